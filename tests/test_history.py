# SPDX-License-Identifier: Apache-2.0
"""Rebalance histories from records: known causes, gaps, moved partitions, and broken records."""

from __future__ import annotations

import gc
import json
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest

from kafka_rebalance import GroupError
from kafka_rebalance.cli import main
from kafka_rebalance.history.all_groups import (
    WholeFrom,
    in_time,
    read_key,
    rebalance_history,
    recorded_generations,
    recorded_in_order,
)
from kafka_rebalance.history.group_log import Members, read_generation
from kafka_rebalance.history.patterns import find_patterns
from kafka_rebalance.history.records import OffsetsRecord, read_records
from kafka_rebalance.wire.group_records import GroupMetadataKey

if TYPE_CHECKING:
    from kafka_rebalance.history.recorded import RecordedRebalance

VECTORS = Path(__file__).parent / "vectors" / "history"
RELEASES = ("4.4.0", "3.6.2", "2.4.1")
KNOWN_AS = {
    "created": "created",
    "started": "start",
    "joined": "join",
    "rejoined": "back",
    "left": "left",
    "timed out": "timeout",
    "gone": "not known",
    "resubscription": "subscription",
    "partitions added": "partitions",
    "second round": "follow_up",
    "follow-up": "follow_up",
    "static restart": "static_replaced",
    "requested": "rejoin",
}
"""Our cause -> the cause that the recording script wrote down."""


def records_of(release: str) -> list[OffsetsRecord]:
    return list(read_records(str(VECTORS / f"kafka-{release}" / "records.jsonl.gz")))


def known_causes(release: str) -> list[dict[str, Any]]:
    """Returns the causes that the recording script wrote down, without those of new groups."""
    text = (VECTORS / f"kafka-{release}" / "causes.jsonl").read_text(encoding="utf-8")
    known = [json.loads(line) for line in text.splitlines()]
    return [one for one in known if one["cause"] not in (None, "created")]


def judged(rows: list[RecordedRebalance], release: str) -> Counter[str]:
    """Counts the rebalances whose main cause is right, wrong, or "not known"."""
    found = {(row.group_id, row.offset): KNOWN_AS[row.cause] for row in rows}
    counts: Counter[str] = Counter()
    for known in known_causes(release):
        cause = found[known["group"], known["offset"]]
        right = "right" if cause == known["cause"] else "wrong"
        counts[cause if cause == "not known" else right] += 1
    return counts


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("4.4.0", {"right": 107, "not known": 4}),
        ("3.6.2", {"right": 64, "not known": 4}),
        ("2.4.1", {"right": 48, "not known": 3}),
    ],
)
def test_causes_from_records_alone(release: str, expected: dict[str, int]) -> None:
    counts = judged(rebalance_history(records_of(release)), release)
    print(release, dict(counts))
    assert counts == expected


@pytest.mark.parametrize("release", RELEASES)
def test_the_order_of_records_does_not_matter(release: str) -> None:
    records = records_of(release)
    assert rebalance_history(reversed(records)) == rebalance_history(records)


@pytest.mark.parametrize("release", RELEASES)
def test_who_came_and_went_is_who_the_script_started_and_stopped(release: str) -> None:
    """The members in the rows are the clients that the recording script started or stopped."""
    rows = {(row.group_id, row.offset): row for row in rebalance_history(records_of(release))}
    seen = Counter[str]()
    for known in known_causes(release):
        row = rows[known["group"], known["offset"]]
        came = {_client(one) for one in row.joined} | {one.identity for one in row.back}
        went = {_client(one) for one in row.left}
        if known["cause"] == "join":
            assert _without_instance(came) <= set(known["members"])
            seen["came"] += len(came)
        elif known["cause"] in ("left", "timeout") and known["action"] != "poll_timeout":
            assert _without_instance(went) <= set(known["members"])
            seen["went"] += len(went)
    assert min(seen["came"], seen["went"]) >= 3


def _client(member_id: str) -> str:
    return member_id[:-37]  # a UUID and the dash before it


def _without_instance(names: set[str]) -> set[str]:
    return {name.removesuffix("-i") for name in names}


def test_gaps_are_told_apart() -> None:
    """Generations can be missing because they were never recorded, or compacted away, or not
    read.
    """
    records = records_of("4.4.0")
    never = [row for row in rebalance_history(records) if row.gap]
    assert [(row.group_id, row.generation_id, row.gap) for row in never] == [("rdk", 2, 1)]
    assert never[0].gap_reason.startswith("never recorded")
    group = [row for row in rebalance_history(records) if row.group_id == "billing"]
    gone = {row.offset for row in group[3:8]}
    left = [one for one in records if one.partition != group[0].partition or one.offset not in gone]
    # Compaction takes commits, too; a hole of one offset could be a transaction's marker.
    left = [
        one
        for one in left
        if one.partition != group[0].partition
        or not group[3].offset - 2 < one.offset < group[7].offset + 2
    ]
    row = next(one for one in rebalance_history(left) if one.group_id == "billing" and one.gap)
    assert row.gap_reason.startswith("compacted")
    assert row.gap >= 5
    late = [one for one in records if one.offset >= group[5].offset]
    first = next(one for one in rebalance_history(late) if one.group_id == "billing")
    assert (first.cause, first.gap_reason) == (
        "first record",
        "before the first record that was read",
    )
    assert first.gap == first.generation_id - 1


@pytest.mark.parametrize(
    ("offsets", "expected"), [((0, 1, 3, 4), 0), ((0, 1, 4, 5, 9), 9), ((7, 8), 7), ((), 0)]
)
def test_a_hole_of_one_offset_may_be_a_transactions_marker(
    offsets: tuple[int, ...], expected: int
) -> None:
    whole = WholeFrom()
    for offset in offsets:
        whole.add(offset)
    assert whole.offset == expected


@pytest.mark.parametrize("release", RELEASES)
def test_one_group_alone_has_the_rows_that_it_has_among_all(release: str) -> None:
    records = sorted(records_of(release), key=lambda one: (one.partition, one.offset))
    rows = recorded_generations(records)
    for group_id in {row.group_id for row, _ in rows}:
        alone = in_time(recorded_in_order(iter(records), group_id))
        assert alone == [one for one in rows if one[0].group_id == group_id]


@pytest.mark.parametrize("release", ["4.4.0", "3.6.2"])
def test_a_static_restart_has_the_time_at_which_its_record_was_written(release: str) -> None:
    """The record of a restart contains the time of its generation, which may be hours earlier."""
    last: dict[str, RecordedRebalance] = {}
    late = 0
    for row, generation in recorded_generations(records_of(release)):
        assert generation is not None
        before = last.get(row.group_id)
        assert row.time_ms == (row.written_ms if row.again else generation.joined_ms)
        if before is not None and row.seconds is not None:
            assert row.seconds == (row.time_ms - before.time_ms) / 1000
        late += row.again and row.time_ms > generation.joined_ms
        last[row.group_id] = row
    assert late >= 1


def test_moves_add_up_to_what_each_generation_owns() -> None:
    """In each record, the number of owned partitions is the number before, plus gained, minus
    revoked.
    """
    owned: dict[str, int] = {}
    moved = 0
    for row, generation in recorded_generations(records_of("4.4.0")):
        assert generation is not None
        now = len(generation.owners)
        assert now == owned.get(row.group_id, 0) + row.gained - row.revoked
        owned[row.group_id] = now
        moved += row.moved
    assert moved > 50


def test_foreign_bytes_and_other_groups_do_no_harm() -> None:
    """A log with user data of other clients, groups of the new protocol and tombstones is read.

    A record that is cut short becomes a row with an error.
    """
    path = VECTORS / "every_line-4.4.0.records.jsonl.gz"
    records = list(read_records(str(path)))
    rows = rebalance_history(records)
    assert {row.group_id for row in rows} >= {"raw-static", "migrated", "gone"}
    assert [row for row in rows if row.error] == []
    place = next(i for i, one in enumerate(records) if one.value and one.key[:2] == b"\0\2")
    broken = records[place]._replace(value=(records[place].value or b"")[:-1])
    found = [row for row in rebalance_history([*records[:place], broken]) if row.error]
    assert [(row.partition, row.offset) for row in found] == [(broken.partition, broken.offset)]
    assert (found[0].error or "").startswith("value.")
    assert not found[0].is_rebalance


def test_conversions_to_the_consumer_protocol_and_back_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A real group was converted, converted back and again, then deleted and created again."""
    path = str(VECTORS / "every_line-4.4.0.records.jsonl.gz")
    records = list(read_records(path))
    every = [row for row in rebalance_history(records) if row.group_id == "migrated"]
    epochs = [(row.generation_id, row.cause) for row in every if row.group_type == "consumer"]
    assert epochs == [(2, "joined"), (4, "joined"), (5, "left"), (6, "left")]
    rows = [row for row in every if row.group_type == "classic"]
    told = [(row.generation_id, row.cause, row.causes[0].detail) for row in rows]
    assert told == [
        (0, "created", ""),
        (1, "started", ""),
        (-1, "converted", "to the consumer protocol"),
        (2, "converted", "from the consumer protocol"),
        (3, "follow-up", "all join again after the conversion"),
        (-1, "converted", "to the consumer protocol"),
        (0, "created", ""),
        (1, "started", ""),
    ]
    assert [row.gap for row in rows] == [0] * 8
    assert [row.is_rebalance for row in rows].count(True) == 3
    assert main(["history", path, "--group", "migrated"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("converted to the consumer protocol") == 2
    assert text.count("converted from the consumer protocol") == 1
    deleted = next(i for i, one in enumerate(records) if _is_deletion(one, b"migrated"))
    earlier = records[deleted]._replace(timestamp_ms=records[deleted].timestamp_ms - 2_000)
    rows = rebalance_history([*records[:deleted], earlier, *records[deleted + 1 :]])
    assert [row.cause for row in rows if row.group_id == "migrated"].count("converted") == 2


def _is_deletion(record: OffsetsRecord, group: bytes) -> bool:
    return record.value is None and record.key[:2] == b"\0\2" and record.key[4:] == group


@pytest.mark.parametrize("seed", range(6))
def test_broken_records_end_in_errors_of_their_rows(seed: int) -> None:
    """Values are cut or changed at random, some records dropped; every group record has a row."""
    rng = random.Random(seed)
    broken = [_broken(one, rng) for one in records_of(RELEASES[seed % 3]) if rng.random() < 0.9]
    rows = rebalance_history(broken)
    groups = [one for one in broken if one.key[:2] == b"\0\2" and one.value is not None]
    assert len(rows) == len(groups)
    assert len([row for row in rows if row.error]) > 3
    assert len(find_patterns(rows)) > 0


def _broken(record: OffsetsRecord, rng: random.Random) -> OffsetsRecord:
    if record.value is None or rng.random() < 0.5:
        return record
    data = bytearray(record.value)
    if rng.random() < 0.3:
        return record._replace(value=bytes(data[: rng.randrange(len(data))]))
    data[rng.randrange(len(data))] = rng.randrange(256)
    return record._replace(value=bytes(data))


# The command --------------------------------------------------------------------------------------


def test_the_command_lists_the_worst_groups_first(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    assert main(["history", path]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines() if re.match(r" [a-z]+ +[0-9]", line)]
    avoidable = [int(row[2]) for row in rows]
    assert len(avoidable) == 5
    assert avoidable == sorted(avoidable, reverse=True)
    assert avoidable[0] > avoidable[-1]
    assert "… and 1 group with 10" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_command_shows_one_group_as_lines_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(VECTORS / "kafka-3.6.2" / "records.jsonl.gz")
    assert main(["history", path, "--group", "orders", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["history", path, "--group", "orders", "--all"]) == 0
    text = capsys.readouterr().out
    assert [line["generation_id"] for line in lines] == sorted(
        line["generation_id"] for line in lines
    )
    for line in lines:
        assert line["cause"] in text
    assert main(["history", path, "--group", "nobody"]) == 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"partition": 0, "offset": 1}', "timestamp: missing"),
        ('{"partition": 0, "offset": "1", "timestamp": 0, "key": null, "value": null}', "offset"),
        (
            '{"partition": 0, "offset": 1, "timestamp": 0, "key": "?", "value": null}',
            "key: not",
        ),
        ("[]", "not an object"),
        ("{", "Expecting"),
    ],
)
def test_a_line_that_is_no_record_is_named(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(GroupError, match=rf"records.jsonl:2: .*{problem}"):
        list(read_records(str(path)))


def test_files_that_are_broken_are_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    packed = (VECTORS / "kafka-2.4.1" / "records.jsonl.gz").read_bytes()
    damaged = packed[:3000] + bytes(64) + packed[3064:]
    for name, data in (
        ("cut.jsonl.gz", packed[:3000]),
        ("damaged.jsonl.gz", damaged),
        ("no.parquet", b"PAR1 and no more"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(GroupError, match=name):
            list(read_records(str(tmp_path / name)))
    assert main(["history", str(tmp_path / "absent.jsonl")]) == 2
    good = str(VECTORS / "kafka-2.4.1" / "records.jsonl.gz")
    assert main(["history", good, "--broker-log", str(tmp_path / "cut.jsonl.gz")]) == 2


def test_parquet_and_lines_are_equal(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    from pyarrow import parquet

    records = records_of("2.4.1")
    times = arrow.array([one.timestamp_ms for one in records], arrow.timestamp("ms", "UTC"))
    columns = {
        "partition": [one.partition for one in records],
        "offset": [one.offset for one in records],
        "timestamp": times.cast(arrow.timestamp("us", "UTC")),
        "key": [one.key for one in records],
        "value": [one.value for one in records],
    }
    parquet.write_table(arrow.table(columns), tmp_path / "records.parquet")
    assert list(read_records(str(tmp_path / "records.parquet"))) == records
    assert list(read_records(str(tmp_path))) == records
    parquet.write_table(arrow.table({"key": [b""]}), tmp_path / "other.parquet")
    with pytest.raises(GroupError, match="no column partition"):
        list(read_records(str(tmp_path / "other.parquet")))


def test_members_are_reused_in_the_next_record_and_not_kept_for_longer() -> None:
    """A group's memory is that of its last record, whatever was read before."""
    members, seen = Members(), []
    log = [one for one in records_of("4.4.0") if one.value is not None]
    keys = [(read_key(one.key), one) for one in log]
    groups = [(key, one) for key, one in keys if isinstance(key, GroupMetadataKey)]
    for key, one in sorted(groups, key=lambda of: (of[0].group_id, of[1].offset)):
        read = read_generation(key, one, members)
        assert read == read_generation(key, one)
        seen.append({id(member): ref(member) for member in read.members})
    reused = sum(len(one.keys() & other.keys()) for one, other in pairwise(seen))
    assert reused > 5
    del read
    gc.collect()
    alive = {name for one in seen for name, member in one.items() if member() is not None}
    assert alive <= set(seen[-1])

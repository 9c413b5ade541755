# SPDX-License-Identifier: Apache-2.0
"""`describe` of many groups: a sentence, then the groups that need a look, the worst first."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_rebalance import TopicPartition, live
from kafka_rebalance.cli import main
from kafka_rebalance.errors import ClusterError, GroupError, NotReachedError
from kafka_rebalance.live import Listed, NoLogError, NoTopicError
from kafka_rebalance.present.connect_workers import ConnectGroup
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetsRecord,
    encode_key,
    encode_value,
)
from tests.test_describe import _group, _member

Lines = list[dict[str, Any]]
_REBALANCES = "state: PreparingRebalance, it is rebalancing: ask again when it is Stable"


def _line(group_id: str, *owned: str, partitions: int = 2, members: int = 2) -> dict[str, Any]:
    """Returns a group whose member N owns the Nth partition of `owned`."""
    each = (_member(f"m{n}", "a", *owned[n : n + 1]) for n in range(members))
    return _group({"a": partitions}, *each).to_dict() | {"group_id": group_id}


WELL = [_line(f"well-{n}", "a0", "a1") for n in range(3)]
IDLE = _line("idle", "a0", "a1", members=3)
UNREAD = _line("unread", "a0", "a1", partitions=3)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that sets what a cluster lists and answers."""

    def set_up(
        lines: Lines,
        empty: dict[str, int],
        workers: dict[str, ConnectGroup | GroupError],
        records: Iterable[OffsetsRecord] = (),
    ) -> None:
        listed = {
            **{one["group_id"]: Listed(1, "Classic", "consumer", "Stable") for one in lines},
            **{group_id: Listed(1, "Consumer", "consumer", "Empty") for group_id in empty},
            **{group_id: Listed(1, "Classic", "connect", "Stable") for group_id in workers},
        }

        def snapshot_lines(
            _: str, names: list[str] | None, *, on_left_out: Any, on_listed: Any = None, **__: Any
        ) -> Iterator[dict[str, Any]]:
            if on_listed is not None:
                on_listed(listed)
            for group_id in () if names else empty:
                on_left_out(group_id, "state: Empty, it has no members")
            for group_id in workers:
                on_left_out(group_id, "protocol_type: connect, not consumer: …")
            yield from (one for one in lines if names is None or one["group_id"] in names)

        def group_lags(_: str, asked: dict[str, Any], **__: Any) -> dict[str, Any]:
            assert {one for one, partitions in asked.items() if partitions is None} <= {
                *empty,
                "busy",
            }
            tp = TopicPartition("a", 0)
            return {one: {tp: empty.get(one, 0)} for one in asked}

        monkeypatch.setattr(live, "snapshot_lines", snapshot_lines)
        monkeypatch.setattr(live, "group_lags", group_lags)
        monkeypatch.setattr(live, "connect_groups", lambda *_, **__: workers.items())
        monkeypatch.setattr(live, "offsets_records", lambda *_, **__: iter(records))

    return set_up


def _rows(printed: str) -> list[str]:
    """Returns the groups of the table, in its order."""
    body = printed.partition("─\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in body.splitlines()]


LIVE = ["describe", "--bootstrap-server", "broker:9092"]


def test_a_cluster_has_a_summary_and_its_worst_groups_first(
    cluster: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    rebalancing = {"group_id": "busy", "error": _REBALANCES}
    workers = {
        "connect": ConnectGroup("connect", "Stable", "sessioned", ()),
        "workers": GroupError("state", "CompletingRebalance, it is rebalancing: ask again"),
    }
    cluster([IDLE, *WELL, rebalancing, UNREAD], {"dead": 5000, "gone": 7, "old": 0}, workers)
    assert main(LIVE) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert " ".join(printed.out.split()).startswith(
        "11 groups, each by its worst finding: 2 stopped (lag 5,007), 1 with unread "
        "partitions, 1 with idle members, 2 rebalancing, 1 without members, 4 well. "
    )
    assert _rows(printed.out) == ["dead", "gone", "unread", "idle", "busy", "workers"]
    assert " dead      no members         0" in printed.out
    assert "5 groups are not shown; --all shows every group." in printed.out
    assert main([*LIVE, "--group", "well-*"]) == 0  # groups that are asked for have their rows
    assert _rows(capsys.readouterr().out) == ["well-0", "well-1", "well-2"]


def test_one_group_without_members_is_a_row_too(
    cluster: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster([WELL[0]], {"dead": 5000}, {})
    assert main(LIVE) == 0
    assert _rows(capsys.readouterr().out) == ["dead"]
    cluster([WELL[0]], {}, {})
    assert main(LIVE) == 0
    assert "well-0, sticky: 2 members" in capsys.readouterr().out  # alone: in detail


def test_a_group_without_members_is_shown_with_its_lag_by_its_name_too(
    cluster: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = {"group_id": "dead", "error": "state: Empty, it has no members"}
    cluster([line, *WELL], {"dead": 5000}, {})
    monkeypatch.setattr(live, "other_group", lambda *_, **__: None)
    assert main([*LIVE, "--group", "dead"]) == 0
    assert capsys.readouterr().out.startswith("1 group: 1 stopped (lag 5,000).\n")


def test_groups_are_selected_by_name_pattern_finding_and_severity(
    cluster: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster([IDLE, *WELL, UNREAD], {"dead": 9, "old": 0}, {})

    def shown(*options: str) -> list[str]:
        code = main([*LIVE, *options, "--json"])
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert code == (3 if any("error" in one for one in lines) else 0)
        return [one["group_id"] + "!" * ("error" in one) for one in lines]

    everything = ["dead", "unread", "idle", "old", "well-0", "well-1", "well-2"]
    assert shown() == everything
    assert shown("--only", "idle", "--only", "stopped") == ["dead", "idle"]
    assert shown("--only", "error") == ["dead", "unread"]
    assert shown("--only", "warning") == ["dead", "unread", "idle"]
    assert shown("--only", "empty") == ["dead", "old"]
    assert shown("--group", "well-*", "--group", "i?le") == ["idle", *everything[-3:]]
    assert shown("--group", "well-0", "--group", "none*") == ["none*!", "well-0"]
    assert shown("--sort", "name") == sorted(everything)
    assert shown("--sort", "members")[0] == "idle"


def test_json_has_the_kind_of_group_its_state_and_the_place_of_each_finding(
    cluster: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster([IDLE], {"dead": 5000}, {})
    main([*LIVE, "--json"])
    dead, idle = map(json.loads, capsys.readouterr().out.splitlines())
    assert dead == {
        "group_id": "dead",
        "group_type": "consumer",
        "state": "Empty",
        "lag": 5000,
        "findings": [
            {
                "kind": "stopped",
                "text": "the group has no members, and a lag of 5,000",
                "member_ids": [],
                "partitions": ["a-0"],
                "ask": None,
                "severity": "error",
                "see": "docs/findings.md#stopped",
            }
        ],
    }
    assert (idle["group_type"], idle["state"], idle["lag"]) == ("classic", "Stable", 0)


def _generation(offset: int, at_ms: int, generation_id: int, member_id: str) -> OffsetsRecord:
    """Returns the record of a generation with one member, which has client id "c"."""
    sent = encode_subscription(Subscription(("a",)))
    given = encode_assignment(AssignmentData((TopicPartition("a", 0),)))
    member = MemberMetadata(member_id, None, "c", "/h", 60_000, 10_000, sent, given)
    value = GroupMetadataValue("consumer", generation_id, "range", member_id, at_ms, (member,))
    key = encode_key(GroupMetadataKey("well-0"))
    return OffsetsRecord(0, offset, at_ms, key, encode_value(value))


@pytest.mark.parametrize(("ids", "kind"), [(("m",) * 12, "storm"), ("abcde", "flapping")])
def test_the_newest_records_show_storms_and_flapping_members(
    ids: Sequence[str],
    kind: str,
    cluster: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_ms = 1_700_000_000_000
    records = [_generation(n, at_ms + 1000 * n, n + 1, f"c-{one}") for n, one in enumerate(ids)]
    cluster(WELL, {}, {}, records)
    monkeypatch.setattr(time, "time", lambda: at_ms / 1000 + 60)
    assert main([*LIVE, "--json", "--only", "warning"]) == 0
    line = json.loads(capsys.readouterr().out)
    (found,) = line["findings"]
    assert (line["group_id"], found["kind"]) == ("well-0", kind)
    monkeypatch.setattr(time, "time", lambda: at_ms / 1000 + 7200)  # it is over
    assert main([*LIVE, "--json", "--only", "warning"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NotReachedError("broker:9092: no broker answers"), 1, "no broker answers"),
        (NoLogError("no permission: Read"), 0, "are not known: no permission: Read"),
        (NoTopicError("no topic"), 0, ""),
    ],
)
def test_records_that_cannot_be_read_are_said_and_a_dead_cluster_is_an_error(
    error: ClusterError,
    code: int,
    said: str,
    cluster: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def records() -> Iterator[OffsetsRecord]:
        raise error
        yield

    cluster(WELL, {}, {}, records())
    assert main(LIVE) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert bool(printed.err) == bool(said)
    assert printed.out.startswith("3 groups: 3 well.") == (code == 0)


def test_a_file_of_many_groups_is_sorted_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = _line("by-hand")  # written without owners
    lines = [*WELL, {"group_id": "busy", "error": _REBALANCES}, IDLE, bare, {"group_id": "bad"}]
    file = tmp_path / "groups.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main(["describe", str(file)]) == 3
    printed = capsys.readouterr()
    assert printed.out.startswith("6 groups: 1 with unread partitions, 1 with idle members, ")
    assert _rows(printed.out) == ["by-hand", "idle", "busy"]
    assert printed.err.startswith("bad: ")
    assert main(["describe", str(file), "--only", "unread"]) == 3
    assert _rows(capsys.readouterr().out) == ["by-hand"]


def test_a_leader_of_another_library_is_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = json.loads(json.dumps(WELL))
    for line in lines:
        line |= {"assignor": "roundrobin", "leader_library": "python"}
        for member in line["members"]:
            member["client_library"] = "python"
    file = tmp_path / "groups.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main(["describe", str(file), "--all"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("3 groups: 3 well.")
    assert "the members' bytes do not show" in " ".join(printed.split())  # aiokafka's?


def _checked(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["check", *LIVE[1:], "--max-rebalances-per-hour", "3"])
    return code, capsys.readouterr().out


def test_check_counts_the_rebalances_in_the_records_of_the_last_hour(
    cluster: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_ms = 1_700_000_000_000
    records = [_generation(n, at_ms + 1000 * n, n + 1, f"c-{n}") for n in range(6)]
    monkeypatch.setattr(time, "time", lambda: at_ms / 1000 + 60)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("the records are enough"))
    cluster(WELL, {}, {}, records)
    code, out = _checked(capsys)
    assert code == 4
    assert "well-0: max-rebalances-per-hour: 6 rebalances, above the limit of 3 (in records" in out
    assert "well-1: " not in out
    cluster(WELL, {}, {}, records[:3])
    assert _checked(capsys)[0] == 0


def test_check_without_records_compares_two_descriptions(
    cluster: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def records() -> Iterator[OffsetsRecord]:
        raise NoLogError("no permission: Read")
        yield

    topics = [{"name": "a", "partitions": 2, "topic_id": "AAAAAAAAAAEAAAAAAAAAAg"}]
    brokers = WELL[0] | {"assignor": "consumer/uniform", "generation_id": 5, "topics": topics}
    later = iter((5, 9))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        brokers["generation_id"] = next(later)

    monkeypatch.setattr(time, "sleep", sleep)
    for expected in (0, 4):
        cluster([brokers, WELL[1]], {}, {}, records())
        code, out = _checked(capsys)
        assert code == expected
    assert "well-0: max-rebalances-per-hour: 4 rebalances, above the limit of 3 (between two" in out
    assert slept == [30, 30]

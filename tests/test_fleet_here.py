# SPDX-License-Identifier: Apache-2.0
"""`fleet` answers small local files of lines in this process; tests/spark/test_fleet.py compares
its files and reports with Spark's.
"""

from __future__ import annotations

import json
import random
import re
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk.local_files import files_of
from kafka_rebalance.bulk.plan_totals import READ, PlanTotals
from kafka_rebalance.cli import fleet_here, main
from kafka_rebalance.data import captured_lines

if TYPE_CHECKING:
    from pathlib import Path


def arguments(source: Path, target: object, **given: Any) -> Namespace:
    usual = {"word": "assign", "direct": None, "format": None, "topics": None}
    usual |= {"master": None, "remote": None}
    return Namespace(input=str(source), output=str(target), **usual | given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"word": "summary"}, True),
        ({"format": "lines"}, True),
        ({"format": "parquet"}, False),
        ({"master": "local[2]"}, False),
        ({"direct": False}, False),
        ({"topics": "topics.jsonl"}, False),
        ({"word": "summary", "direct": True}, False),
    ],
)
def test_which_jobs_need_no_spark(tmp_path: Path, given: dict[str, Any], expected: bool) -> None:
    (tmp_path / "groups.jsonl").write_text("{}\n", encoding="utf-8")
    found = fleet_here.files_here(arguments(tmp_path, tmp_path / "out", **given))
    assert (found is not None) is expected
    assert fleet_here.files_here(arguments(tmp_path, "s3a://lake/out", **given)) is None


def test_spark_reads_large_files_and_patterns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "groups.jsonl"
    source.write_text("{}\n", encoding="utf-8")
    assert fleet_here.files_here(arguments(tmp_path / "*.jsonl", "out")) is None
    monkeypatch.setattr(fleet_here, "MOST_BYTES", 4)
    assert fleet_here.files_here(arguments(source, "out")) is not None
    monkeypatch.setattr(fleet_here, "MOST_BYTES", 3)
    assert fleet_here.files_here(arguments(source, "out")) is None


def test_hidden_files_are_left_out_and_directories_name_clusters(tmp_path: Path) -> None:
    for name in ("cluster=a%2Fb/1.jsonl", "_cluster=c/2.jsonl", "_old/3.jsonl", ".4.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    found = [(one.path.rpartition("/")[2], one.cluster, one.end) for one in files_of(str(tmp_path))]
    assert found == [("2.jsonl", None, 2), ("1.jsonl", "a/b", 2)]


def test_a_summary_reads_lines_of_any_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that has loaded Spark answers on Spark; tests of Spark may have run in this one.
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    strange = [
        "[1]", "{nope", '{"members": 1, "topics": {}}', "[" * 100_000,
        '{"members": [{"rack_id": []}, 1, {"rack_id": 7}], "topics": [{"racks": [1, "x", [[]]]}]}',
    ]  # fmt: skip
    source = tmp_path / "groups.jsonl"
    source.write_text("\n".join([*captured_lines(), *strange]), encoding="utf-8")
    assert main(["fleet", "summary", str(source), str(tmp_path / "out"), "--json"]) == 3
    done = json.loads(capsys.readouterr().out)
    assert (done["groups"], done["errors"]) == (25, 6)
    assert done["changes"][-3:] == [f"remove-rack={rack}" for rack in "abc"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (command,) = re.findall(r"kafka-rebalance (plan \S+/01\.jsonl[^<]*)", page)
    assert main(command.split()) == 0


ERROR = "1 has an error: state: PreparingRebalance, it is rebalancing: ask again when it is Stable"
SUMS = {
    "assign --assignor cooperative-sticky": "19 groups are assigned, 2 of them only round 1 of 2 "
    f"(9 partitions without an owner until the next); {ERROR}.",
    "assign --assignor range": f"19 groups are assigned; {ERROR}.",
    "compare --remove-members 1": "12 of 18 groups would do better with another assignor, all with "
    "cooperative-sticky (9 for fewer partitions without a reader, 3 to be more even): "
    "chat-moderation, exchange-rates, fraud-detection and 9 more; 1 group has no member left; "
    f"{ERROR}. The price of a switch: `compare --group`.",
    "plan --add-members 1": "Adding 1 member: 184 moves in 17 of 19 groups; 377 partitions of 19 "
    "groups have no reader in a rebalance or more; 3 groups less even than possible afterwards "
    f"(telemetry, notifications and orders); {ERROR}.",
    "plan --remove-members 3": "Removing 3 members: 178 moves in 9 groups; 272 partitions of 9 "
    "groups have no reader in a rebalance or more; 1 group less even than possible afterwards "
    "(telemetry); 7 groups have no member left; 4 have errors, most often (3): changes[0]: 3 is "
    "not a number of members from 1 to 2.",
    "plan --remove-rack a": "Losing rack a: 78 moves in 3 of 18 groups; 104 partitions of 3 groups "
    "have no reader in a rebalance or more; 2 groups less even than possible afterwards "
    "(telemetry and notifications); 16 groups have members without client.rack, played as if "
    f"outside the lost rack; {ERROR}.",
    "plan --switch-assignor sticky": "Switching to sticky: 3,462 moves in 15 of 16 groups, in the "
    "first of two bounces (Java; `compare` has the whole); 592 partitions of 16 groups have no "
    f"reader in a rebalance or more; {ERROR}.",
}


@pytest.mark.parametrize(("words", "said"), SUMS.items())
def test_the_first_sentence_says_what_is_missing_and_wrong(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    said: str,
) -> None:
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    source = tmp_path / "groups.jsonl"
    source.write_text("\n".join(captured_lines()), encoding="utf-8")
    word, *options = words.split()
    assert main(["fleet", word, str(source), str(tmp_path / "out"), "--json", *options]) == 3
    assert json.loads(capsys.readouterr().out)["summary"] == said


def test_totals_hold_few_groups_and_the_worst_of_all() -> None:
    rng = random.Random(35)
    rows = []
    for n in range(3_000):
        spread, moves = rng.randrange(9), rng.randrange(100)
        balances = {"before": 1, "after": spread, "possible": rng.randrange(spread + 1)}
        row: dict[str, Any] = dict.fromkeys((one for one in READ if "." not in one), 0)
        row |= {f"balance_{name}": {"min": 1, "max": 1 + n} for name, n in balances.items()}
        rows.append(row | {"group_id": f"g{n}", "moves": moves, "error": None, "error_kind": None})
    totals = PlanTotals()
    for row in rows:
        totals.add(row)
    assert len(totals.worst) <= 1_000

    def badness(row: dict[str, Any]) -> tuple[int, int, str]:
        after, possible = (row[f"balance_{name}"]["max"] for name in ("after", "possible"))
        return after - possible, row["moves"], row["group_id"]

    found = totals.row(20)
    worst = sorted(rows, key=badness, reverse=True)[:20]
    assert [one["group_id"] for one in found["worst"]] == [row["group_id"] for row in worst]
    most = sorted(row["moves"] for row in rows)
    assert found["group_moves"] == {
        "p50": most[1_499], "p90": most[2_699], "p99": most[2_969], "max": most[-1],
    }  # fmt: skip
    assert found["uneven"] == sum(badness(row)[0] > 0 for row in rows)


def test_what_waits_is_what_a_plan_withholds(tmp_path: Path) -> None:
    """Also for topics that no member subscribes to, and for librdkafka's assignor."""
    groups = [json.loads(line) for line in captured_lines() if "error" not in json.loads(line)]
    source = tmp_path / "groups.jsonl"
    for group in groups:
        group["topics"].append({"name": "zz-unread", "partitions": 7})
    source.write_text("\n".join(map(json.dumps, groups)), encoding="utf-8")
    for name in ("cooperative-sticky", "librdkafka/cooperative-sticky", "range"):
        expected = []
        for group in groups:
            rounds = kr.plan(kr.GroupSpec.from_dict(group), name).rounds
            expected.append(sum(map(len, rounds[0].withheld.values())) if rounds else 0)
        given = {"tasks": None, "overwrite": True, "assignor": name, "max_partitions": 1_000_000}
        args = arguments(source, tmp_path / "out", **given)
        done, _ = fleet_here.Here(args, files_of(str(source))).answer()
        found = (done.counts["only_round_1"], done.counts["in_round_2"])
        assert found == (sum(map(bool, expected)), sum(expected))
        assert (found > (0, 0)) is (name != "range")

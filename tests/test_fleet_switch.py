# SPDX-License-Identifier: Apache-2.0
"""`fleet plan --switch-protocol`: which groups can switch, which cannot and why, and the order."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.report.plans.fleet_switch import FleetSwitch
from tests.support.broker_groups import broker_line

if TYPE_CHECKING:
    from pathlib import Path

SWITCH = ("--switch-protocol", "consumer")


def line(group_id: str, assignor: str, library: str | None = None) -> str:
    found = broker_line(assignor, [[0, 1, 2], [3, 4, 5]]) | {"group_id": group_id}
    found["members"][-1]["client_library"] = library
    return json.dumps(found)


LINES = (
    line("can", "range"), line("by kafka-python", "kafka-python/range"),
    line("mixed", "range", "aiokafka"), line("there", "consumer/range"),
    line("shares", "share/simple"), "[1]",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A process that has loaded Spark answers on Spark; tests of Spark may have run in this one.
    monkeypatch.delitem(sys.modules, "pyspark.sql", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    for cluster in ("a", "b"):
        (tmp_path / "in" / f"cluster={cluster}").mkdir(parents=True)
        file = tmp_path / "in" / f"cluster={cluster}" / "groups.jsonl"
        file.write_text("\n".join(LINES), encoding="utf-8")
    return tmp_path


def fleet(place: Path, capsys: pytest.CaptureFixture[str], *changes: str) -> str:
    code = main(["fleet", "plan", str(place / "in"), str(place / "out"), "--overwrite", *changes])
    assert code == 3  # some lines are errors
    return capsys.readouterr().out


def test_the_first_sentence_is_the_answer(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = fleet(place, capsys, *SWITCH)
    sentence, table, cannot = text.split("\n\n")
    assert sentence.split(". Together")[0].replace("\n", " ") == (
        "2 groups can switch, 6 cannot, 2 have switched already, 2 have only one protocol (share "
        "and streams groups)"
    )
    heading, _, *rows = table.splitlines()
    assert heading.split()[:3] == ["cluster", "group", "assignor"]
    assert [row.split()[:3] for row in rows] == [["a", "can", "range"], ["b", "can", "range"]]
    reasons = " ".join(cannot.split())
    assert "cannot: a/by kafka-python, b/by kafka-python: kafka-python and aiokafka" in reasons
    assert "1 of 2 members cannot restart with group.protocol=consumer: aiokafka lacks" in reasons
    assert "a/a line without an id, b/a line without an id: line: a list is not" in reasons
    assert reasons.endswith(f"written to {place / 'out'}")


def test_what_waits_and_what_is_not_known_is_said() -> None:
    names = ("not_affected", "error", "rack_share_before", "rack_share_after")
    row: dict[str, Any] = {"group_id": "g", "assignor": "range", **dict.fromkeys(names)}
    row |= {"rounds": 1, "moves": 0, "unavailable": 0, "unavailable_rounds": 0, "waiting": 38}
    busy = "state: PreparingRebalance, it is rebalancing: ask again when it is Stable"
    found = FleetSwitch.of([row, row | {"error": busy}])
    assert found.summary == (
        "1 group can switch, 1 is not known (it is rebalancing: ask again). Together: 0 moves; 0 "
        "partitions have no reader; 38 partitions wait while their member is down. That needs "
        "brokers of 4.0 or newer, and clients that have the protocol (their versions are not "
        "known): Kafka's Java client has it from 4.0 on; librdkafka from 2.12.0 on; kafka-python "
        "and aiokafka do not have it."
    )
    assert (found.to_dict()["cannot"], found.to_dict()["not_known"]) == (0, 1)


def test_groups_that_lose_racks_are_named_and_come_last(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("rounds", "moves", "unavailable", "unavailable_rounds", "waiting")
    row: dict[str, Any] = {"assignor": "range", "not_affected": None, "error": None}
    row |= dict.fromkeys(names, 1)
    shares = {"loses": (0.98, 0.67), "has no racks": (None, None), "keeps": (0.972, 0.969)}
    shares["wins"] = (0.5, 1.0)
    rows = [
        row | {"group_id": name, "rack_share_before": before, "rack_share_after": after}
        for name, (before, after) in shares.items()
    ]
    found = FleetSwitch.of(rows)
    found.show()
    sentence, table, _ = capsys.readouterr().out.split("\n\n")
    said = (
        "1 group will read less in rack (loses 98% to 67%). Cheapest first (times no reader + "
        "waiting), and the one that reads less in rack last:"
    )
    assert " ".join(sentence.split()).endswith(said)
    ends = [line.split()[-1] for line in table.splitlines()[2:]]
    assert ends == ["1", "1", "100%", "67%"]
    assert found.to_dict()["lose_racks"] == 1


def test_a_group_under_another_assignor_of_its_broker_has_not_switched(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(fleet(place, capsys, "--switch-protocol", "consumer/uniform", "--json"))
    assert (found["can"], found["switched_already"], found["other_assignor"]) == (2, 0, 2)
    assert (
        "2 have the protocol, with another assignor (--switch-assignor changes it)"
        in (found["summary"])
    )


def test_the_sum_has_partitions_and_times(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(fleet(place, capsys, *SWITCH).split())
    stopped, times = re.findall(
        r"; (\d+) partitions have no reader .* \((\d+) times in all\)", text
    )[0]
    assert int(times) > int(stopped)


def test_json_has_the_sentence_and_its_parts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(fleet(place, capsys, *SWITCH, "--json"))
    assert found["summary"].startswith("2 groups can switch, 6 cannot, ")
    names = ("can", "cannot", "switched_already", "only_one_protocol", "lose_racks")
    assert [found[name] for name in names] == [2, 6, 2, 2, 0]


@pytest.mark.parametrize("first", [True, False])
def test_other_changes_do_not_make_a_switch(
    place: Path, capsys: pytest.CaptureFixture[str], first: bool
) -> None:
    """Groups that only the other change affects have a plan, but do not count as switching."""
    more = ("--add-members", "1")
    found = json.loads(
        fleet(place, capsys, *((*SWITCH, *more) if first else (*more, *SWITCH)), "--json")
    )
    assert (found["can"], found["switched_already"], found["only_one_protocol"]) == (2, 2, 2)


def test_the_way_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(fleet(place, capsys, "--switch-protocol", "classic", "--json"))
    names = ("can", "cannot", "switched_already", "only_one_protocol")
    assert [found[name] for name in names] == [2, 2, 6, 2]


@pytest.mark.parametrize("change", ["switch-protocol=consumer", "add-members=1"])
def test_a_rows_own_changes_have_the_words_of_the_argument(change: str) -> None:
    rows = [json.loads(one) for one in LINES[:3]]
    own = [{**row, "changes": [change]} for row in rows]
    asked = kr.bulk.plan_batch(pa.Table.from_pylist(rows), None, [change])
    assert kr.bulk.plan_batch(pa.Table.from_pylist(own)).to_pylist() == asked.to_pylist()

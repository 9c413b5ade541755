# SPDX-License-Identifier: Apache-2.0
"""`plan` warns that an application of Kafka Streams may stop if a topic that it reads grows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import GroupSpec
from kafka_rebalance.cli import main
from kafka_rebalance.notes.grown_sources import STOPS, may_stop
from kafka_rebalance.plans.changes import AddPartitions

if TYPE_CHECKING:
    from pathlib import Path


def _streams(*subtopologies: tuple[int, bool, list[str]]) -> dict[str, Any]:
    """Returns the line of a streams group; a subtopology has tasks, state and source topics."""
    fields = [
        {"subtopology_id": str(n), "tasks": tasks, "stateful": stateful, "source_topics": topics}
        for n, (tasks, stateful, topics) in enumerate(subtopologies)
    ]
    tasks = [{"subtopology_id": "0", "partitions": list(range(subtopologies[0][0]))}]
    member = {"member_id": "m", "topics": [], "process_id": "p", "active_tasks": tasks}
    line = {"group_id": "app", "assignor": "streams/sticky", "topics": []}
    return {**line, "members": [member], "subtopologies": fields}


def _classic(*topics: str, assignor: str = "stream") -> dict[str, Any]:
    return {
        "group_id": "classic",
        "assignor": assignor,
        "topics": [{"name": name, "partitions": 4} for name in topics],
        "members": [{"member_id": "m", "topics": list(topics)}],
    }


COUNTS = _streams((4, True, ["orders"]))


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def plan(*lines: dict[str, Any], change: str, more: tuple[str, ...] = ()) -> Any:
        file = tmp_path / "groups.jsonl"
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        code = main(["plan", str(file), "--partitions", change, *more])
        said = capsys.readouterr()
        return code, " ".join(said.out.split()), said.err

    return plan


@pytest.mark.parametrize(
    ("line", "stops"),
    [
        (COUNTS, True),
        (_streams((8, True, ["orders"])), False),  # orders is not its largest source
        (_streams((4, False, ["orders"])), False),  # neither state nor repartition topics
        (_streams((4, False, ["orders"]), (4, True, ["app-by-repartition"])), True),
        (_streams((4, False, ["orders"]), (4, True, ["audit"])), False),
        (_classic("orders"), True),
        (_classic("audit"), False),
        (_classic("orders", assignor="range"), False),
    ],
)
def test_which_applications_may_stop(line: dict[str, Any], stops: bool) -> None:
    group = GroupSpec.from_dict(line)
    assert may_stop(group, [AddPartitions("orders", 8)]) == stops
    assert not may_stop(group, [])


@pytest.mark.parametrize("line", [COUNTS, _classic("orders")], ids=["KIP-1071", "classic"])
def test_the_plan_says_so_alone_and_among_others(plan: Any, line: dict[str, Any]) -> None:
    code, out, told = plan(line, change="orders=8")
    name = line["group_id"]
    text = f"Left out: 1 group of Kafka Streams that may stop: {name}; {STOPS}."
    assert (code, out, told) == (3, text, "kafka-rebalance: no group is left\n")
    code, out, told = plan(line, _classic("orders", assignor="range"), change="orders=8")
    assert (code, told) == (0, "")
    assert text in out
    _, out, told = plan(line, change="orders=8", more=("--json",))
    assert json.loads(out) == {"group_id": name, "left_out": STOPS}
    assert told == f"kafka-rebalance: no group is left: {STOPS}\n"


def test_a_streams_group_that_does_not_read_the_topic_is_not_affected(plan: Any) -> None:
    other = _classic("audit", assignor="range")
    code, out, told = plan(COUNTS, other, change="audit=8")
    assert (code, told) == (0, "")
    assert "Not affected by partitions audit=8: 1 group." in out
    assert "Left out" not in out
    joined = ("--add-members", "1", "--json")
    _, out, _ = plan(COUNTS, other, change="audit=8", more=joined)
    assert '"not_affected":["partitions audit=8: no subtopology reads topic \\"audit\\""]' in out
    code, _, told = plan(COUNTS, change="audit=8")
    assert code == 3
    assert told.startswith('app: partitions audit=8: no subtopology reads topic "audit"')


def test_without_source_topics_nobody_knows_what_the_group_reads(plan: Any) -> None:
    unknown = {**COUNTS, "subtopologies": [{"subtopology_id": "0", "tasks": 4, "stateful": True}]}
    _, out, _ = plan(unknown, change="audit=8")
    assert "the plan plays only members that join, leave or restart" in out

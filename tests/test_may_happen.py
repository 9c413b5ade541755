# SPDX-License-Identifier: Apache-2.0
"""Events in a real group that its plan does not contain: waits for commits, more rebalances, hangs.

`tests/live/test_topic_changes.py` tests the waits of real members.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.notes.may_happen import commit_waits, may_happen
from kafka_rebalance.simulator import simulate
from kafka_rebalance.simulator.from_group import scenario_from_group
from tests.support.contract_lines import noted

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine


def group(
    *libraries: str | None, assignor: str = "range", leader: str | None = None
) -> kr.GroupSpec:
    """Makes a group of members m0, m1, … with partitions of the topics gone and kept."""
    topics = (kr.Topic("gone", len(libraries)), kr.Topic("kept", len(libraries)))
    members = tuple(
        kr.Member(
            f"m{n}",
            ("gone", "kept"),
            owned_partitions=(kr.TopicPartition("gone", n), kr.TopicPartition("kept", n)),
            generation_id=4,
            client_library=library,
        )
        for n, library in enumerate(libraries)
    )
    return kr.GroupSpec("g", topics, members, assignor, 4, leader=leader)


# Commits for a deleted topic ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("libraries", "leader", "java", "aiokafka", "intervals"),  # others: kafka-python
    [
        (("java", "java"), "m0", ("m0", "m1"), (), 2),
        (("java", "java"), None, ("m0", "m1"), (), 2),
        (("java", "librdkafka"), "m1", ("m0",), (), 1),
        (("java", "java", "librdkafka"), "m2", ("m0", "m1"), (), 1),
        (("java", "aiokafka"), "m0", ("m0",), ("m1",), 1),
        (("python", "kafka-python"), None, (), ("m0",), 0),
        (("kafka-python", "java"), None, ("m1",), (), 1),
        ((None, "librdkafka"), "m1", ("m0",), (), 1),
    ],
)
@pytest.mark.parametrize("engine", ["rust", "reference"])
def test_members_that_hold_a_deleted_topic_may_wait(
    libraries: tuple[str | None, ...],
    leader: str | None,
    java: tuple[str, ...],
    aiokafka: tuple[str, ...],
    intervals: int,
    engine: Engine,
) -> None:
    one = group(*libraries, leader=leader)
    plan = kr.plan(one, changes=["remove-topics=gone"], engine=engine)
    (note,) = commit_waits(plan)
    others = [f"m{n}" for n, library in enumerate(libraries) if library == "kafka-python"]
    assert note.member_ids == (*java, *aiokafka, *others)
    assert note.detail == {
        "topics": ["gone"], "java": [*java], "aiokafka": [*aiokafka], "kafka_python": others,
        "intervals": intervals,
    }  # fmt: skip
    assert ("kafka-python (3.0.12) commits there as long as" in note.text) == bool(others)
    # Members that unsubscribe first hold no partition of the topic when it is deleted.
    first = ["resubscribe=kept", "remove-topics=gone"]
    assert not [*commit_waits(kr.plan(one, changes=first, engine=engine))]


def test_a_library_that_joins_at_once_has_no_warning() -> None:
    plan = kr.plan(group("librdkafka", "librdkafka"), changes=["remove-topics=gone"])
    assert not [*commit_waits(plan)]


def test_the_plan_begins_with_the_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    line = f"{group('java', 'java').to_json()}\n"
    file.write_text(line, encoding="utf-8")
    command = ["plan", str(file), "--remove-topics", "gone"]
    assert main([*command, "--how-long"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("WARNING: deleting gone can stop this group.")
    assert "until up to two times max.poll.interval.ms" in text
    assert "is stable again: 60" in text  # two times 300 s, and a few s
    assert main([*command, "--json"]) == 0
    (waits,) = noted(json.loads(capsys.readouterr().out), "commit waits")
    assert waits == {"topics": ["gone"], "java": ["m0", "m1"], "aiokafka": [], "kafka_python": [],
                     "intervals": 2}  # fmt: skip
    file.write_text(line + line, encoding="utf-8")
    assert main(command) == 0
    assert "WARNING: 2 groups may not rebalance for minutes" in capsys.readouterr().out


def test_the_notes_in_python_are_those_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, change = group("java", "librdkafka"), "remove-topics=gone"
    led = kr.plans.plans_by_leader(one, [change])
    assert led[0].plan is not None
    notes = kr.notes.plan_notes(led[0].plan, led)
    assert [note.kind for note in notes] == ["commit waits", "lower bound"]
    assert all(note.text for note in notes)
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{one.to_json()}\n", encoding="utf-8")
    assert main(["plan", str(file), "--remove-topics", "gone", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["notes"] == json.loads(json.dumps([note.to_dict() for note in notes]))


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize(("commits", "waits"), [(True, 2), (False, 0)])
def test_the_simulator_waits_as_real_members_do(assignor: str, commits: bool, waits: int) -> None:
    """First the leader waits, then the other members; real members took 41.8 s, with an interval of
    20 s.
    """
    config = ConsumerConfig(enable_auto_commit=commits, max_poll_interval_ms=20_000)
    one = group("java", "java", assignor=assignor)
    scenario = scenario_from_group(one, ["remove-topics=gone"], config=config)
    run = simulate(scenario)
    deleted_ms = scenario.happenings[0].at_ms
    last = run.rebalances[-1]
    assert last.to_ms is not None
    assert waits * 20_000 <= last.to_ms - deleted_ms < (waits * 20_000) + 10_000
    held = {hold.partition for hold in run.holds if hold.to_ms == run.until_ms}
    assert held == {"kept-0", "kept-1"}
    # An eager member that waits returns no records from poll().
    unread_ms = sum(gap.to_ms - gap.from_ms for gap in run.gaps if gap.from_ms >= deleted_ms)
    assert (unread_ms > 20_000) == (commits and assignor == "range")


# Possibilities ------------------------------------------------------------------------------------


def kinds(one: kr.GroupSpec, *changes: str) -> list[str]:
    return [each.kind for each in may_happen(kr.plan(one, changes=changes))]


def test_a_generation_can_be_missed_if_two_members_revoke() -> None:
    four = group(*["librdkafka"] * 4, assignor="cooperative-sticky")
    assert kinds(four, "add-members=2") == ["missed"]
    assert kinds(four, "add-members=1") == []  # one member revokes
    assert kinds(four, "remove-members=1") == []
    assert kinds(four.edited(assignor="range"), "add-members=2") == []


def test_javas_bytes_may_be_those_of_a_plug_in() -> None:
    java = group("java", "java")
    assert kinds(java, "add-members=1") == ["plug-ins"]
    assert kinds(group("librdkafka", "java"), "add-members=1") == []
    assert kinds(group(None, None), "add-members=1") == []


def test_a_hang_of_kafka_python_is_reported_where_it_is_known() -> None:
    python = group("kafka-python", "java")
    assert kinds(python, "resubscribe=m0:kept") == ["poll hangs"]
    assert kinds(python, "partitions kept=9") == ["poll hangs"]
    assert kinds(python, "add-members=1") == []
    assert kinds(group("librdkafka", "librdkafka"), "partitions kept=9") == []

# SPDX-License-Identifier: Apache-2.0
"""kafka-python and librdkafka join again after a rebalance; plans report it.

`librdkafka_growth.jsonl` contains a real group of three librdkafka members with racks: as it was
when its topic payments had just grown from 10 to 12 partitions, and after the four rebalances that
followed. The snapshots are of a broker of Kafka 4.4.0 and librdkafka 2.16, 2026-11-23.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, MagicMock

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.notes.other_courses import extra_note, extra_rebalances, played_further
from kafka_rebalance.plans.changes import change_from_text
from tests.support.contract_lines import noted

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaTimeoutError

from tests.support.client_members import KafkaPython

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

DIALECT = "librdkafka/cooperative-sticky"
GROWN, LAST = (
    kr.GroupSpec.from_dict(json.loads(line))
    for line in (Path(__file__).parent / "data" / "librdkafka_growth.jsonl").open(encoding="utf-8")
)
SENTENCE = "The number of rebalances is a lower bound: if one ends between two polls of a kafka-pyt"


@pytest.mark.parametrize("is_done", [True, False])
def test_a_join_that_ended_between_two_polls_is_dropped(is_done: bool) -> None:
    """The previous poll timed out during its join; if that join has ended, this poll joins
    again.
    """
    member = KafkaPython("m", [RangePartitionAssignor], ["t"], [kr.Topic("t", 2)])
    coordinator: Any = member._coordinator
    coordinator.ensure_coordinator_ready_async = AsyncMock(return_value=True)
    coordinator._join_task, coordinator.rejoining = SimpleNamespace(is_done=is_done), True
    joins = MagicMock()
    manager = coordinator._manager
    manager.call_soon, manager.wait_for = joins, AsyncMock(side_effect=KafkaTimeoutError)
    assert asyncio.run(coordinator.join_group_async(timeout_ms=50)) is False
    assert joins.call_args_list == [((coordinator._do_join_and_sync_async,),)] * is_done


def said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], library: str | None, *command: str
) -> str:
    owned = tuple(kr.TopicPartition("t", p) for p in range(4))
    member = kr.Member(
        "c-1",
        ("t",),
        client_id="c",
        owned_partitions=owned,
        subscription_version=0,
        client_library=library,
    )
    group = kr.GroupSpec("g", (kr.Topic("t", 4),), (member,), "range", leader_library=library)
    file = tmp_path / "g.jsonl"
    file.write_text(f"{group.to_json()}\n", encoding="utf-8")
    assert main([command[0], str(file), *command[1:]]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["plan", "compare"])
@pytest.mark.parametrize(
    ("library", "is_reported"),
    [("kafka-python", True), ("python", True), ("aiokafka", False), ("java", False), (None, False)],
)
def test_the_number_of_rebalances_is_called_a_lower_bound(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    library: str | None,
    is_reported: bool,
) -> None:
    text = said(tmp_path, capsys, library, command, "--add-members", "1")
    assert (SENTENCE in text) == is_reported


@pytest.mark.parametrize(
    ("assignor", "library", "change", "is_reported"),
    [
        ("cooperative-sticky", "librdkafka", "partitions t=6", True),
        ("librdkafka/cooperative-sticky", "librdkafka", "partitions t=6", True),
        ("cooperative-sticky", "librdkafka", "add-members=1", False),
        ("range", "librdkafka", "partitions t=6", False),
        ("cooperative-sticky", "java", "partitions t=6", False),
    ],
)
def test_growth_may_take_one_more_rebalance_with_librdkafka(
    assignor: str, library: str, change: str, is_reported: bool
) -> None:
    member = kr.Member("c-1", ("t",), client_library=library)
    group = kr.GroupSpec("g", (kr.Topic("t", 4),), (member,), assignor)
    extra = extra_rebalances(group, [change_from_text(change)])
    assert (extra is not None) == is_reported
    assert extra is None or "each member of librdkafka joins again" in extra_note(extra).text


def test_no_rebalance_has_no_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(tmp_path, capsys, "kafka-python", "plan", "--bounce-members", "c-1,static")
    assert "causes no rebalance" in text
    assert SENTENCE not in text


# Partitions that move in the further rebalances ---------------------------------------------------


def before_growth() -> kr.GroupSpec:
    """The real group, with ten partitions of payments."""
    topics = (
        replace(one, partitions=10, racks=(one.racks or ())[:10]) if one.name == "payments" else one
        for one in GROWN.topics
    )
    return GROWN.edited(topics=tuple(topics))


def held(group: kr.GroupSpec) -> dict[str, set[kr.TopicPartition]]:
    return {one.member_id: set(one.owned_partitions) for one in group.members}


def test_further_rebalances_end_as_a_real_group_did(engine: Engine) -> None:
    """A member joins again: two rounds. Then another member joins again: one round, which moves
    nothing.
    """
    first = kr.plan(GROWN, DIALECT, engine=engine)
    further = played_further(first)
    assert (further.rejoins, further.draws, further.moves) == (2, 0, (2, 2))
    ended = {tp: one for one, owned in held(LAST).items() for tp in owned}
    moved = [tp for one, owned in held(first.final).items() for tp in owned if ended[tp] != one]
    assert list(further.partitions) == sorted(moved)
    second = kr.plan(first.final, engine=engine)
    assert held(second.final) == held(LAST)
    assert kr.plan(second.final, engine=engine).moves == 0


def test_draws_of_racks_find_the_partitions_that_really_moved() -> None:
    planned = kr.plan(before_growth(), DIALECT, ["partitions payments=12"])
    assert planned.moves == 2
    further = played_further(planned)
    assert further.to_dict() == {
        "rejoins": 2,
        "draws": 32,
        "moves": [0, 2],
        "partitions": [["orders", 1], ["payments", 10]],
    }
    assert played_further(planned, 0).moves == (0, 0)


def grown(random: Random, *, has_racks: bool) -> kr.RebalancePlan | None:
    """The plan of a random group that has settled, and whose topic grows; None if it never ends."""

    def racks(partitions: int) -> tuple[tuple[str, ...], ...] | None:
        return tuple(tuple(random.sample("abc", 2)) for _ in range(partitions) if has_racks) or None

    counts = {name: random.randint(1, 8) for name in "tu"}
    topics = tuple(kr.Topic(name, count, racks=racks(count)) for name, count in counts.items())
    members = tuple(
        kr.Member(
            f"m{i}",
            random.choice([("t", "u"), ("t", "u"), ("t",)]),
            rack_id=random.choice("abc") if has_racks else "",
            client_library="librdkafka",
        )
        for i in range(random.randint(2, 4))
    )
    settled = kr.plan(kr.GroupSpec("g", topics, members), DIALECT)
    if not settled.settled:
        return None
    return kr.plan(settled.final, None, [f"partitions t={counts['t'] + 2}"])


@pytest.mark.parametrize("has_racks", [True, False])
def test_further_rebalances_move_partitions_only_if_there_are_racks(has_racks: bool) -> None:
    random = Random(6)
    moving = 0
    for planned in filter(None, (grown(random, has_racks=has_racks) for _ in range(150))):
        extra = extra_rebalances(planned.group, planned.changes)
        assert extra is not None
        assert extra.may_move is has_racks
        moving += played_further(planned, 2).moves[1] > 0
    assert (moving > 0) == has_racks


def test_a_plan_names_the_partitions_of_further_rebalances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(f"{before_growth().to_json()}\n", encoding="utf-8")
    change = ["--partitions", "payments=12"]
    assert main(["plan", str(file), *change]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "after this plan and after 32 samples, they move partitions 0 to 2 times more;" in text
    assert "orders-1 (here ck-coop-1-8dcb), payments-10 (here" in text
    assert main(["plan", str(file), *change, "--json"]) == 0
    (extra,) = noted(json.loads(capsys.readouterr().out), "lower bound")
    assert (extra["cause"], extra["may_move"], extra["played"]["moves"]) == (
        "metadata",
        True,
        [0, 2],
    )
    assert main(["compare", str(file), *change]) == 0
    assert "moves are a lower bound, too" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("others", "rejoins"), [(2, 0), (1, 1)])
def test_one_join_of_the_members_of_librdkafka_is_planned(others: int, rejoins: int) -> None:
    """Only a Java leader checks the topics itself: all joins of librdkafka's members are further
    ones.
    """
    group = before_growth()
    members = tuple(
        replace(one, client_library="java" if i < others else "librdkafka")
        for i, one in enumerate(group.members)
    )
    planned = kr.plan(group.edited(members=members), DIALECT, ["partitions payments=12"])
    assert played_further(planned, 0).rejoins == rejoins
    by_java = kr.plan(
        group.edited(members=members), "cooperative-sticky", ["partitions payments=12"]
    )
    assert played_further(by_java, 0).to_dict() == {
        "rejoins": rejoins + 1,
        "draws": 0,
        "moves": [0, 0],
        "partitions": [],
    }


def test_a_table_of_groups_marks_lower_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = before_growth()
    java = (replace(member, client_library="java") for member in one.members)
    other = replace(one, group_id="j", members=tuple(java), leader_library="java")
    file = tmp_path / "g.jsonl"
    file.write_text(f"{one.to_json()}\n{other.to_json()}\n", encoding="utf-8")
    assert main(["plan", str(file), "--partitions", "payments=12"]) == 0
    out = capsys.readouterr().out
    cells = {line.split()[0]: line.split()[2:4] for line in out.splitlines() if line.strip()}
    assert (cells["ck-coop"], cells["j"]) == (["1+", "2+"], ["1", "2"])
    assert "+: the rounds of 1 group are lower bounds" in out
    assert main(["plan", str(file), "--partitions", "payments=12", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [noted(line, "lower bound") for line in lines] == [
        [{"cause": "metadata", "may_move": True}],
        [],
    ]

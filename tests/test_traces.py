# SPDX-License-Identifier: Apache-2.0
"""Plays traces and compares the output. REWRITE_TRACES=1 replaces the stored output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.assignors import register, unregister
from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.objects import CooperativeSticky
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import answers
from kafka_rebalance.playback.coordinator_runs import Tracer
from kafka_rebalance.playback.text import Command, parse, play
from tests.support.member_trace import Tracer as MemberTracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kafka_rebalance.wire.error_codes import ErrorCode

TRACES = Path(__file__).parent / "traces"
COORDINATOR = sorted((TRACES / "coordinator").glob("*.txt"))
MEMBER = sorted((TRACES / "member").glob("*.txt"))


def compare(path: Path, step: Callable[[Command], Sequence[str]]) -> None:
    """Plays a trace; asserts that its output is the stored one, or stores it."""
    there = path.read_text(encoding="utf-8")
    played = play(there, step)
    if os.environ.get("REWRITE_TRACES"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == there


@pytest.mark.parametrize("path", COORDINATOR, ids=lambda path: path.stem)
def test_coordinator(path: Path) -> None:
    compare(path, Tracer().step)


class OnlyCooperative(CooperativeSticky):
    """An assignor that eager members cannot use, unlike all built-in assignors."""

    name = "only-cooperative"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)


@pytest.fixture
def _only_cooperative() -> Iterator[None]:
    register(OnlyCooperative())
    yield
    unregister(OnlyCooperative.name)


@pytest.mark.usefixtures("_only_cooperative")
@pytest.mark.parametrize("path", MEMBER, ids=lambda path: path.stem)
def test_member(path: Path) -> None:
    compare(path, MemberTracer().step)


def test_the_directory_of_traces_is_not_empty() -> None:
    assert len(COORDINATOR) > 10
    consumers = [path for path in MEMBER if not path.stem.startswith(("errors_", "worker_"))]
    assert len(consumers) == 22
    workers = [path.stem[:9] for path in MEMBER if path.stem.startswith("worker_")]
    assert workers == [f"worker_{number:02}" for number in range(1, 13)]


@pytest.mark.parametrize(
    ("name", "kind", "table"),
    [
        ("errors_join_group", "JoinGroup", answers.JOIN_GROUP),
        ("errors_sync_group", "SyncGroup", answers.SYNC_GROUP),
        ("errors_heartbeat", "Heartbeat", answers.HEARTBEAT),
        ("errors_offset_commit", "OffsetCommit", answers.OFFSET_COMMIT),
    ],
)
def test_every_reaction_has_a_trace(
    name: str, kind: str, table: dict[ErrorCode, answers.Reaction]
) -> None:
    blocks = parse((TRACES / "member" / f"{name}.txt").read_text(encoding="utf-8"))
    played = {command.words for block in blocks for command in block.commands}
    assert played >= {("answer", kind, str(code)) for code in table}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("foo", "no command 'foo'; known: config, join"),
        ("advance soon", "'soon' is not a duration"),
        ("advance", "advance DURATION"),
        ("config speed=3", "no option 'speed' here; known: initial_delay"),
        ("config max_size=0", "0 is less than 1"),
        ("fetch t", "'t' is not a partition; t-0 is"),
        ("commit c0 t-0=x", "'x' is not a whole number"),
        ("sync leader", "the group has no leader"),
        ("fail-next NOBODY", "no error code 'NOBODY'"),
        ("join", "join NAME [new]"),
    ],
)
def test_wrong_commands_say_what_is_wrong_and_the_next_is_played(line: str, problem: str) -> None:
    played = play(f"{line}\ngroups\n", Tracer().step)
    said = parse(played)[0].expected
    assert said[0].startswith(f"error: {problem}")
    assert said[1:] == ("0.0s -> admin: ListGroups NONE",)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("foo", "no command 'foo'; known: config, topics"),
        ("advance soon", "'soon' is not a duration"),
        ("advance", "advance DURATION"),
        ("config speed=3", "no option 'speed' here; known: assignors"),
        ("config instance=", "is empty; leave it out"),
        ("topics t=x", "'x' is not a whole number"),
        ("poll t=7", "'t' is not a partition; t-0 is"),
        ("subscribe-pattern", "subscribe-pattern PATTERN"),
        ("answer", "no request '' is without an answer"),
        ("fail JoinGroup", "no request 'JoinGroup' is without an answer"),
        ("answer Heartbeat OOPS", "no error code 'OOPS'"),
        ("answer Heartbeat node=1", "no option 'node' here; known: none"),
        ("answer LeaveGroup", "nobody waits for the answer to LeaveGroup"),
        ("nodes", "nodes NUMBER=STATE"),
        ("nodes 1=away:soon", "'soon' is not a duration"),
        ("nodes 1=lazy", "no state 'lazy'; ready:2"),
    ],
)
def test_wrong_commands_of_a_member_do_nothing(line: str, problem: str) -> None:
    start = (
        "config max_poll_interval=10s",
        "subscribe t",
        "poll",
        "answer FindCoordinator node=1",
        "poll",
        "answer JoinGroup generation=1 member=m leader=x",
        "answer SyncGroup t-0",
        "advance 10s",  # sends heartbeats and a LeaveGroup
    )
    played = play("\n".join([*start, "", line, "show", ""]), MemberTracer().step)
    said = parse(played)[1].expected
    assert said[0].startswith(f"error: {problem}")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("subscribe t", "a consumer's command"),
        ("topics t=1", "a consumer's command"),
        ("configuration", "configuration OFFSET"),
        ("configuration x", "'x' is not a whole number"),
        ("configuration 4 c=x", "'x' is not a whole number"),
        ("config worker protocol=v1", "'v1' is none of eager, compatible, sessioned"),
        ("config worker assignors=range", "no option 'assignors' here; known: protocol"),
        ("answer JoinGroup members=m,x@y", "'y' is not a whole number"),
        ("answer JoinGroup members=m protocol=v1", "no protocol 'v1' was offered"),
    ],
)
def test_wrong_commands_of_a_worker_do_nothing(line: str, problem: str) -> None:
    start = (
        "config worker",
        "configuration 3 c=1",
        "poll",
        "answer FindCoordinator node=1",
        "poll",
    )
    played = play("\n".join([*start, "", line, "show", ""]), MemberTracer().step)
    said = parse(played)[1].expected
    assert said[0].startswith(f"error: {problem}")
    assert said[1:] == ("0.0s PreparingRebalance no member id runs=()",)


def test_a_consumer_takes_no_workers_command() -> None:
    said = parse(play("configuration 3 c=1\n", MemberTracer().step))[0].expected
    assert said == ("error: a worker's command",)


def test_a_line_that_cannot_be_read_is_named() -> None:
    with pytest.raises(GroupError, match="line 2: No closing quotation"):
        parse("join c0\njoin 'c1\n")

# SPDX-License-Identifier: Apache-2.0
"""A change of the brokers' assignor (group.remote.assignor), beside Kafka's own coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.plans.changes.made_up import Basis, MadeUp
from kafka_rebalance.plans.changes.member_table import in_table_order
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.switching.rounds import MOST_MEMBERS, remote_bounce
from tests.support.broker_groups import broker_group
from tests.support.coordinator_oracle import JAR, CoordinatorOracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_rebalance.assignors.registry import Engine

IDS = {"t": "dAAAAAAAAAAAAAAAAAAAAA", "u": "dQAAAAAAAAAAAAAAAAAAAA"}
UNIFORM, RANGE = "consumer/uniform", "consumer/range"


class Commands(Protocol):
    def command(self, command: dict[str, Any]) -> dict[str, Any]: ...


@pytest.fixture(
    params=[
        "ours",
        pytest.param(
            "kafkas",
            marks=[
                pytest.mark.oracle,
                pytest.mark.skipif(not JAR.is_file(), reason="no oracle: make judges"),
            ],
        ),
    ]
)
def coordinator(request: pytest.FixtureRequest) -> Iterator[Commands]:
    if request.param == "ours":
        yield Driver()
        return
    with CoordinatorOracle() as oracle:
        yield oracle


@dataclass
class Live:
    """Members of a coordinator; `held` maps members to usable partitions, `epochs` to member
    epochs.
    """

    coordinator: Commands
    topics: dict[str, int]
    epochs: dict[str, int] = field(default_factory=dict)
    held: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    instances: dict[str, str | None] = field(default_factory=dict)
    targets: dict[str, set[TopicPartition]] = field(default_factory=dict)
    moves: int = 0

    def __post_init__(self) -> None:
        self.coordinator.command({"op": "init", "at": 1_000_000, "cai": 0, "seed": 1})
        self.coordinator.command({"op": "topics", "topics": self.topics})

    def join(self, member_id: str, assignor: str | None, instance: str | None) -> None:
        named = {} if assignor is None else {"assignor": assignor.partition("/")[2]}
        first = {"rt": 60_000, "topics": [*self.topics], "owned": {}, **named}
        self.instances[member_id], self.epochs[member_id] = instance, 0
        self._beat(member_id, **first)

    def leave(self, member_id: str) -> None:
        static = self.instances[member_id] is not None
        self._beat(member_id, epoch=-2 if static else -1)
        for mine in (self.epochs, self.held, self.instances):
            del mine[member_id]

    def settle(self) -> None:
        """Lets all members send heartbeats until all have reached their targets; in a tie, for a
        while.
        """
        for _ in range(8):
            for member_id in self.epochs:
                self._beat(member_id, owned=self.held.get(member_id, {}))
        before = self.targets
        self.targets = {
            name: {TopicPartition(t, p) for t, numbers in one["target"].items() for p in numbers}
            for name, one in self.state()["members"].items()
        }
        self.moves += sum(len(has - before.get(name, set())) for name, has in self.targets.items())

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.coordinator.command({"op": "mstate", "g": "g"})["state"]
        return found

    def runs(self) -> str:
        """Returns the assignor that the broker describes."""
        described = self.coordinator.command({"op": "cdescribe", "g": "g"})
        return str(described.get("assignor"))

    def _beat(self, member_id: str, **fields: Any) -> None:
        static = self.instances[member_id]
        command = {"op": "chb", "g": "g", "m": member_id, "epoch": self.epochs[member_id]}
        answer = self.coordinator.command(command | ({"inst": static} if static else {}) | fields)
        assert answer["err"] == "NONE", (fields, answer)
        self.epochs[member_id] = answer["epoch"]
        if answer["asg"] is not None:
            self.held[member_id] = answer["asg"]


def settled(
    coordinator: Commands, members: int, static: int, old: str, named: str | None
) -> tuple[Live, GroupSpec]:
    """A live group whose first members are static, and its line; all members name `named`."""
    live = Live(coordinator, {"t": 7, "u": 4})
    ids = MadeUp("members")
    for n in range(members):
        one = ids.newcomer("m", Basis.KNOWN, (), is_static=False, is_bare=True)
        live.join(one.member_id, named, f"i{n}" if n < static else None)
        live.settle()
    epoch = live.state()["epoch"]
    joined = [
        Member(
            member_id,
            ("t", "u"),
            group_instance_id=live.instances[member_id],
            owned_partitions=tuple(sorted(live.targets[member_id])),
            generation_id=epoch,
        )
        for member_id in live.epochs
    ]
    topics = tuple(Topic(name, count, topic_id=IDS[name]) for name, count in live.topics.items())
    live.moves = 0
    return live, GroupSpec("g", topics, tuple(in_table_order(joined[::-1])), old, epoch)


def bounced(live: Live, group: GroupSpec, new: str) -> list[tuple[str, str]]:
    """Restarts all members with `new`, as planned; returns each event and the assignor after it."""
    ids = MadeUp(f"g/{new}")
    ran = []
    for member in group.members:
        name = static = member.group_instance_id
        live.leave(member.member_id)
        live.settle()
        ran.append((f"{name or member.member_id} leaves", live.runs()))
        back = ids.newcomer("m", Basis.KNOWN, (), is_static=static is not None, is_bare=True)
        live.join(back.member_id, new, static)
        if static is not None:
            live.targets[back.member_id] = live.targets.pop(member.member_id)
        live.settle()
        ran.append((f"{name or member.member_id} is back", live.runs()))
    return ran


@pytest.mark.parametrize("engine", ["rust", "reference"])
@pytest.mark.parametrize(("members", "static"), [(1, 0), (2, 0), (3, 0), (4, 0), (4, 4), (5, 2)])
def test_uniform_to_range_is_planned_as_the_coordinator_plays_it(
    coordinator: Commands, members: int, static: int, engine: Engine
) -> None:
    """Nobody names an assignor before, so the first restarted member decides."""
    live, group = settled(coordinator, members, static, UNIFORM, None)
    planned = remote_bounce(group, RANGE, engine)
    first = live.state()["epoch"]
    ran = bounced(live, group, RANGE)
    epochs = live.state()["epoch"] - first - (members == 1)  # an empty group has no target
    assert (planned.restarts, planned.is_exact) == (members, True)
    assert (planned.rebalances, planned.moves) == (epochs, live.moves)
    assert planned.takes_over == next(event for event, runs in ran if runs == "range")


@pytest.mark.parametrize(
    ("members", "static", "is_exact"),
    [(1, 0, True), (2, 0, False), (3, 0, False), (3, 3, True), (4, 0, True), (4, 4, True),
     (5, 2, True), (6, 0, True)],
)  # fmt: skip
def test_range_to_uniform_is_planned_as_the_coordinator_plays_it(
    coordinator: Commands, members: int, static: int, is_exact: bool
) -> None:
    """All name range before: half of the members decide for uniform, which a tie prefers.

    If only two members name an assignor, and not the same one, their heartbeats make targets in
    turns.
    """
    live, group = settled(coordinator, members, static, RANGE, RANGE)
    planned = remote_bounce(group, UNIFORM, "rust")
    first = live.state()["epoch"]
    ran = bounced(live, group, UNIFORM)
    epochs = live.state()["epoch"] - first - (members == 1)
    assert planned.is_exact is is_exact
    # An empty group is described with uniform.
    ran = ran[1:] if members == 1 else ran
    assert planned.takes_over == next(event for event, runs in ran if runs == "uniform")
    if is_exact:
        assert (planned.rebalances, planned.moves) == (epochs, live.moves)
    else:
        assert planned.rebalances < epochs
        assert planned.moves is None


def test_a_large_group_has_a_lower_bound() -> None:
    group = broker_group(UNIFORM, [[n] for n in range(6)] + [[]] * MOST_MEMBERS)
    bounce = remote_bounce(group, RANGE, "rust")
    assert (bounce.rebalances, bounce.moves, bounce.is_exact) == (212, None, False)

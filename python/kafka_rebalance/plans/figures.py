# SPDX-License-Identifier: Apache-2.0
"""The figures of a plan, with the same names in Python, JSON and Spark (`src/plans/figures.rs`)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.ownership import Assignment, Balance, Delta
from kafka_rebalance.group.spec import GroupSpec, partition_or_task_counts

from .rounds import Round, Step

if TYPE_CHECKING:
    from .rebalance_plan import RebalancePlan

Reader = tuple[str, str | None, Iterable[TopicPartition]]
"""A member's id, its rack, and the partitions that it reads."""


class Figures(Frozen):
    """The costs and results of a plan, and the best possible result.

    `rounds`              rebalances until the group has settled.
    `settled`             False if the group never settles.
    `moves`               gained partitions, added up over all members and rounds.
    `least_moves`         the smallest number of moves that leads to the best balance; None for
                          groups that share partitions or have tasks, because it is not known.
    `unavailable`         partitions that no member reads in one round or more.
    `unavailable_rounds`  the `unavailable` partitions, each counted once for each such round.
    `waiting`             partitions whose member is down without a rebalance: a static member that
                          restarts, or a member in a lost rack until its session ends. No member
                          reads these partitions for that time, which is not counted in rounds.
    `leaderless`          partitions that have lost all replicas, because a rack is lost: they are
                          assigned, but no member can read them.
    `balance_*`           partitions per member: before the changes, after, and the best possible.
    `rack_share_*`        the share of partitions that are read in the rack of a replica, out of
                          those for which the racks of the reader and of a replica are known; None
                          if there are none.
    `depends_on_ids`      True if member ids, or topic ids that an assignor reads, are made up.
    `owns_nothing`        True if no member owns anything at the beginning, so that every assigned
                          partition counts as a move (`GroupSpec.owning` sets the owners).
    """

    rounds: int
    moves: int
    least_moves: int | None
    unavailable: int
    unavailable_rounds: int
    waiting: int
    leaderless: int
    balance_before: Balance
    balance_after: Balance
    balance_possible: Balance
    rack_share_before: float | None
    rack_share_after: float | None
    settled: bool
    depends_on_ids: bool
    owns_nothing: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), value) for name, value in self.to_dict().items()]
        return small_table("Figures of a plan", ("figure", "value"), rows, lambda row: row)


def figure_rows(plan: "RebalancePlan", one: Figures) -> list[tuple[str, ...]]:
    """Returns rows (name, before, after, best possible) on members, balance, racks and moves."""
    balances = (one.balance_before, one.balance_after, one.balance_possible)
    new = new_partitions(plan)
    moves = "moves" + f" ({new} of new partitions)" * (new > 0)
    rows: list[tuple[str, ...]] = [
        ("members", str(len(plan.group.members)), str(len(plan.final.members)), ""),
        ("partitions per member", *(balance.least_to_most for balance in balances)),
        ("deviation", *(f"{balance.stddev:.2f}" for balance in balances)),
        (moves, "", str(one.moves), "" if one.least_moves is None else str(one.least_moves)),
    ]
    shares = (one.rack_share_before, one.rack_share_after)
    if shares != (None, None):
        rows.insert(3, ("in rack", *map(share_text, shares), ""))
    return rows


def new_partitions(plan: "RebalancePlan") -> int:
    """Returns the number of added partitions (or tasks) that have an owner at the end."""
    had, there = map(partition_or_task_counts, (plan.group, plan.final))
    grows = any(number > had.get(topic, 0) for topic, number in there.items())
    owned = plan.after.values() if grows else ()
    return sum(tp.partition >= had.get(tp.topic, 0) for tps in owned for tp in tps)


def count_rows(figures: Figures) -> list[tuple[str, ...]]:
    """Returns the rows that follow those of `figure_rows`: rebalances, and partitions without a
    reader.
    """
    rounds = str(figures.rounds) + ("" if figures.settled else ", never stable")
    counts = (
        ("partitions that wait while their member is down", figures.waiting),
        ("partitions without a leader", figures.leaderless),
    )
    return [
        ("rebalances", "", rounds, ""),
        ("partitions without a reader in a rebalance or more", "", str(figures.unavailable), ""),
        *((name, "", str(count), "") for name, count in counts if count),
    ]


def share_text(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def rack_share(
    group: GroupSpec, assignment: Mapping[str, Sequence[TopicPartition]]
) -> float | None:
    """Returns the share of partitions read in a replica's rack; see `share_in_racks`."""
    readers = (
        (one.member_id, one.rack, assignment.get(one.member_id, ())) for one in group.members
    )
    return share_in_racks(group.topics, readers)


def share_in_racks(topics: Iterable[Topic], readers: Iterable[Reader]) -> float | None:
    """Returns the share (0 to 1) of partitions that are read in the rack of a replica.

    A partition counts if the racks of its reader and of a replica are known; None if none counts.
    """
    racks = {topic.name: topic.racks for topic in topics if topic.racks is not None}
    known = near = 0
    for _, rack, partitions in readers if racks else ():
        if rack is None:
            continue
        for topic, partition in partitions:
            replicas = racks.get(topic, ())
            if partition < len(replicas) and any(one is not None for one in replicas[partition]):
                known += 1
                near += rack in replicas[partition]
    return near / known if known else None


def topic_balances(
    group: GroupSpec, assignment: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, Balance]:
    """Returns topic -> balance over its subscribers, for topics with partitions and subscribers."""
    held = Counter(
        (topic, member_id) for member_id, owned in assignment.items() for topic, _ in owned
    )
    subscribers: dict[str, list[str]] = {topic.name: [] for topic in group.topics}
    for member in group.members:
        for name in {*member.topics} & subscribers.keys():
            subscribers[name].append(member.member_id)
    return {
        topic.name: Balance.of([held[topic.name, m] for m in subscribers[topic.name]])
        for topic in group.topics
        if topic.partitions and subscribers[topic.name]
    }


def as_dict(plan: "RebalancePlan") -> dict[str, Any]:
    """Returns the figures of a plan, and all its steps and rounds."""
    return {
        "group_id": plan.group.group_id,
        "assignor": plan.assignor,
        "leader_library": plan.group.leader_library,
        "changes": [str(change) for change in plan.changes],
        "assignor_after": plan.final.assignor,
        "members": [member.member_id for member in plan.group.members],
        "summary": plan.summary,
        **plan.figures().to_dict(),
        "made_up": [
            {"member_id": one.member_id, "name": one.name, "basis": one.basis.value}
            for one in plan.newcomers
        ],
        "possible": plan.possible.to_dict(),
        "topics_before": _balances(plan.group, plan.before),
        "topics_after": _balances(plan.final, plan.after),
        "steps": [_step(step, known=plan.knows_generation) for step in plan.steps],
        "assignment": plan.after.to_dict(),
        **({} if plan.after.standby is None else {"standby": plan.after.standby.to_dict()}),
    }


def _balances(group: GroupSpec, assignment: Assignment) -> dict[str, Any]:
    return {name: one.to_dict() for name, one in topic_balances(group, assignment).items()}


def _step(step: Step, *, known: bool) -> dict[str, Any]:
    return {
        "cause": step.cause,
        "settled": step.settled,
        "waiting": [list(tp) for tp in step.waiting],
        "leaderless": [list(tp) for tp in step.leaderless],
        "rounds": [
            {
                "protocol": one.kind,
                "generation_id": one.generation_id if known else None,
                **_changed(one, *_MOVES, "withheld"),
                "unavailable": [list(tp) for tp in one.unavailable],
                **({} if standby is None else {"standby": _changed(standby, *_MOVES)}),
            }
            for one, standby in ((one, one.standby) for one in step.rounds)
        ],
    }


_MOVES = ("kept", "revoked", "gained")


def _changed(one: Round | Delta, *parts: str) -> dict[str, Any]:
    return {
        part: {m: owned for m, owned in getattr(one, part).to_dict().items() if owned}
        for part in parts
    }

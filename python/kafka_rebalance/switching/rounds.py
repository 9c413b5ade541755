# SPDX-License-Identifier: Apache-2.0
"""Plays a change of assignor without stopping the group: two rolling bounces, event by event.

Each member restarts twice: first with both assignors in its list (the new one first), then with
only the new one. If both share a name in JoinGroup (range, librdkafka/range), one bounce is
enough. `changes/assignor.py` defines the events of a bounce and the votes of the members.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import Engine, protocol_name
from kafka_rebalance.assignors.selection import select_protocol
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.broker_rounds import play_by_broker
from kafka_rebalance.plans.changes.assignor import AssignorNames, is_cooperative, restarts
from kafka_rebalance.plans.changes.bounces import BounceMembers
from kafka_rebalance.plans.changes.made_up import MadeUp
from kafka_rebalance.plans.playing import play_led
from kafka_rebalance.plans.rounds import Round, lists_eager

MOST_MEMBERS = 100
"""A cooperative or broker-assigned group with more members is not played: lower bounds only."""

MOST_IN_PYTHON = 20_000
"""The product of members and partitions above which a Python library's class is not played."""


class Bounce(NamedTuple):
    """One rolling bounce: every member restarts with `assignors` as its list.

    `rebalances` is a lower bound unless `is_exact`. `moves` is the number of partitions that
    members gain in these rebalances, under made-up ids; None if not exact. `takes_over` is the
    event, in words, after which the group uses another assignor; None if the bounce does not change
    the assignor, or is not played.
    """

    assignors: AssignorNames
    restarts: int
    rebalances: int
    moves: int | None
    is_exact: bool = True
    takes_over: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "assignors": list(self.assignors)}


def two_bounces(group: GroupSpec, old: str, new: str, engine: Engine) -> tuple[Bounce, ...]:
    """Returns the two bounces: members list only `old` before the first, only `new` after the
    second.
    """
    return _bounces(group, (old,), ((new, old), (new,)), engine)


def bounce_of_one_name(group: GroupSpec, old: str, new: str, engine: Engine) -> Bounce:
    """Returns the one bounce between two assignors that are equal or share a protocol name."""
    (only,) = _bounces(group, (old,), ((new,),), engine)
    return only


def one_bounce(group: GroupSpec, both: AssignorNames, new: str, engine: Engine) -> Bounce:
    """Returns the only bounce of members that already list both assignors: the second of
    `two_bounces`.
    """
    (only,) = _bounces(group, both, ((new,),), engine)
    return only


def _bounces(
    group: GroupSpec, first: AssignorNames, lists: Sequence[AssignorNames], engine: Engine
) -> tuple[Bounce, ...]:
    eager = lists_eager(group, first[0])
    played = lists if eager else [first, *lists]
    too_many = len(group.members) > MOST_MEMBERS and any(map(is_cooperative, played))
    in_python = not PYTHON_LIBRARIES.keys().isdisjoint([*first, *lists[0]])
    if too_many or (in_python and is_large(group)):
        return tuple(at_least(group, names) for names in lists)
    ids = MadeUp(group.group_id)
    selected = select_protocol([tuple(map(protocol_name, first))])
    runs = next(name for name in first if protocol_name(name) == selected)
    if runs != group.assignor:
        group = group.edited(assignor=runs)
    bounces = []
    for old, new in pairwise([first, *lists]):
        bounce, group = _bounce(group, old, new, ids, engine)
        bounces.append(bounce)
    return tuple(bounces)


def _bounce(
    group: GroupSpec, old: AssignorNames, new: AssignorNames, ids: MadeUp, engine: Engine
) -> tuple[Bounce, GroupSpec]:
    restarted, takes_over = len(group.members), None
    rounds: list[Round] = []
    for member, event in ((one.member, e) for one in restarts(group, old, new) for e in one.events):
        edited = event.edit(group, ids)
        before, after = group.assignor or "", edited.group.assignor or ""
        if protocol_name(before) != protocol_name(after):
            how = "is back" if edited.renamed else "leaves"
            takes_over = f"{member.group_instance_id or member.member_id} {how}"
        group = edited.group
        if edited.rebalances:
            played = play_led(edited, engine)
            rounds += played.rounds
            group = played.group
    moves = sum(one.moves for one in rounds)
    return Bounce(new, restarted, len(rounds), moves, takes_over=takes_over), group


def at_least(group: GroupSpec, names: AssignorNames) -> Bounce:
    """Returns a bounce that is not played; its `rebalances` is a lower bound."""
    dynamic = sum(member.group_instance_id is None for member in group.members)
    # A dynamic member's return causes a rebalance, and so does its departure if there are other
    # members.
    least = dynamic if len(group.members) == 1 else 2 * dynamic
    return Bounce(names, len(group.members), least, None, is_exact=False)


def is_large(group: GroupSpec) -> bool:
    """Returns whether the Python libraries' classes are too slow for many rounds of this group."""
    partitions = sum(topic.partitions for topic in group.topics)
    return len(group.members) * partitions > MOST_IN_PYTHON


BROKERS_DEFAULT = "consumer/uniform"
"""The assignor that brokers with default settings run if no member names one."""


def remote_bounce(group: GroupSpec, new: str, engine: Engine) -> Bounce:
    """Returns the rolling bounce of a consumer group (KIP-848) to the brokers' assignor `new`.

    1. A dynamic member leaves, and comes back with the new `group.remote.assignor`.
    2. The broker runs the assignor that most members name; if none is named, its default.
    3. If a member leaves or joins, or the assignor changes, there is a new group epoch and target.
    4. In a tie, uniform assigns. But if only two members name an assignor, and the names differ,
       each heartbeat counts the name of its own member first, so the winner changes: the figures
       are then lower bounds.

    Brokers do not report these names. If the group runs uniform, its members count as naming none.

    Source   ConsumerGroup.computePreferredServerAssignor; GroupMetadataManager:
             hasMemberSubscriptionChanged (Kafka 4.4.0).
    """
    old = group.assignor or BROKERS_DEFAULT
    if len(group.members) > MOST_MEMBERS:
        return at_least(group, (new,))
    names = None if old == BROKERS_DEFAULT else old
    named = {member.member_id: names for member in group.members}
    ids = MadeUp(f"{group.group_id}/{new}")
    runs, takes_over, in_turns = old, None, False
    rebalances = moves = 0
    for member in group.members:
        for event in BounceMembers(member.member_id).events(group):
            # 1.
            edited = event.edit(group, ids)
            named |= dict.fromkeys(edited.renamed, new)
            # 2.
            named = {one.member_id: named[one.member_id] for one in edited.group.members}
            counts = Counter(name for name in named.values() if name is not None)
            before, runs = runs, _most_named(counts)
            # 4.
            in_turns |= len(counts) == 2 and set(counts.values()) == {1}
            if before != runs:
                how = "is back" if edited.renamed else "leaves"
                takes_over = f"{member.group_instance_id or member.member_id} {how}"
            group = edited.group.edited(assignor=runs)
            # 3.
            if edited.rebalances or before != runs:
                seen = _newest_last(group, edited.renamed)
                played = play_by_broker(seen, eager=(), engine=engine)
                rebalances += len(played.rounds)
                moves += sum(one.moves for one in played.rounds)
                group = played.group
    exact = not in_turns
    return Bounce((new,), len(named), rebalances, moves if exact else None, exact, takes_over)


def _most_named(counts: Mapping[str, int]) -> str:
    """Returns the assignor that most members name; uniform in a tie, or if none is named."""
    most = [name for name, count in counts.items() if count == max(counts.values())]
    return most[0] if len(most) == 1 else BROKERS_DEFAULT


def _newest_last(group: GroupSpec, back: Iterable[str]) -> GroupSpec:
    back = set(back)
    return group.edited(members=tuple(sorted(group.members, key=lambda m: m.member_id in back)))

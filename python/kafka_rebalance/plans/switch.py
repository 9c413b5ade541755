# SPDX-License-Identifier: Apache-2.0
"""Plays a change of assignor without stopping the group: two rolling bounces, event by event.

At any time, all members must have an assignor in common. So each member restarts twice: first with
both assignors in its list (the new one first), then with the new assignor alone.

1. A member leaves or comes back, as in `BounceMembers`. Static members come back in time. A member
   with the new list sends what its library sends under the new assignor (`other_assignor.py`).
2. The members vote (`protocol/selection.py`). The new assignor is selected as soon as the last
   member that lists only the old one leaves. A static member does not leave: its return changes
   the vote, and starts the only rebalance that a static member causes.
3. A member is eager unless all assignors of its list are cooperative. An eager member revokes all
   partitions. It claims its last assignment only if the selected assignor is eager and also made
   that assignment. In an eager group (`lists_eager`), a member that has not restarted is eager.
4. If cooperative members lost partitions, they join again, which starts another rebalance.

If the old and the new assignor have one name in JoinGroup (range, librdkafka/range), one bounce is
enough: members vote for the name, and the leader's class answers. If the leader is unknown, it is
the first member; a leader that leaves is followed by the first member of the broker's map.

Source   ConsumerCoordinator: the protocol is the highest that all assignors of the list support;
         onJoinPrepare, onJoinComplete. ClassicGroup.selectProtocol. KIP-429, KIP-345.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_rebalance.assignors import RebalanceProtocol, assign
from kafka_rebalance.assignors.classic.subscriptions import members_in_order
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import Engine, library_of, protocol_name
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.protocol.selection import select_protocol

from .changes import BounceMembers
from .changes.made_up import MadeUp
from .changes.other_assignor import sends_anew
from .rounds import lists_eager, protocol_of

MOST_MEMBERS = 100
"""The most members of a cooperative group that is played; a larger one gets a lower bound."""

MOST_IN_PYTHON = 20_000
"""The largest group, members times partitions, that a Python library's class plays in bounces."""

_MOST_FOLLOW_UPS = 100

AssignorNames = tuple[str, ...]


class Bounce(NamedTuple):
    """One rolling bounce: every member restarts with `assignors` as its list.

    `rebalances` is a lower bound unless `is_exact`. `moves` is how many partitions members gain in
    all these rebalances, under made-up ids; None if not exact. `takes_over` is the event, in words,
    after which the group uses another assignor; None if this bounce does not change the assignor,
    or if that is not played.
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
    """Returns the bounces from members that list only `old` to members that list only `new`.

    In an eager group, the members list another assignor beside `old` at the beginning.
    """
    return _bounces(group, (old,), ((new, old), (new,)), engine)


def bounce_of_one_name(group: GroupSpec, old: str, new: str, engine: Engine) -> Bounce:
    """Returns the only bounce between two assignors of one protocol name, or between equal ones.

    With `old` and `new` equal, an eager group's members then list this assignor alone.
    """
    (only,) = _bounces(group, (old,), ((new,),), engine)
    return only


def one_bounce(group: GroupSpec, both: AssignorNames, new: str, engine: Engine) -> Bounce:
    """Returns the second bounce alone, for members that already list both assignors."""
    (only,) = _bounces(group, both, ((new,),), engine)
    return only


def _bounces(
    group: GroupSpec, first: AssignorNames, lists: Sequence[AssignorNames], engine: Engine
) -> tuple[Bounce, ...]:
    eager = lists_eager(group, first[0])
    played = lists if eager else [first, *lists]
    too_many = len(group.members) > MOST_MEMBERS and any(map(_is_cooperative, played))
    in_python = not PYTHON_LIBRARIES.keys().isdisjoint([*first, *lists[0]])
    if too_many or (in_python and is_large(group)):
        return tuple(at_least(group, names) for names in lists)
    moment = _Moment(
        group,
        {m.member_id: first for m in group.members},
        engine,
        eager={m.member_id for m in group.members} if eager else set(),
    )
    return tuple(moment.bounce(names) for names in lists)


def at_least(group: GroupSpec, names: AssignorNames) -> Bounce:
    """Returns a bounce with the least number of its rebalances, without playing them."""
    dynamic = sum(member.group_instance_id is None for member in group.members)
    # A member that leaves starts a rebalance of the others, if there are any.
    least = dynamic if len(group.members) == 1 else 2 * dynamic
    return Bounce(names, len(group.members), least, None, is_exact=False)


def is_large(group: GroupSpec) -> bool:
    """Returns whether the Python libraries' classes are too slow for many rounds of this group."""
    partitions = sum(topic.partitions for topic in group.topics)
    return len(group.members) * partitions > MOST_IN_PYTHON


def _is_cooperative(names: AssignorNames) -> bool:
    return all(protocol_of(name) is RebalanceProtocol.COOPERATIVE for name in names)


@dataclass(slots=True)
class _Moment:
    """The group between two events.

    `eager` are members that list an unknown eager assignor beside those of `lists`. `selected` is a
    protocol name, and `served` has the one under which a member's assignment was made.
    """

    group: GroupSpec
    lists: dict[str, AssignorNames]
    engine: Engine
    eager: set[str]
    leader: str = ""
    selected: str = ""
    served: dict[str, str] = field(default_factory=dict)
    rebalances: int = 0
    moves: int = 0

    def __post_init__(self) -> None:
        leader = self.group.leader
        self.leader = leader if leader in self.lists else self.group.members[0].member_id
        self.selected = self._vote()
        self.served = dict.fromkeys(self.lists, self.selected)

    def bounce(self, names: AssignorNames) -> Bounce:
        """Restarts all members, in join order."""
        ids = MadeUp(f"{self.group.group_id}/{','.join(names)}")
        self.rebalances, self.moves, takes_over = 0, 0, None
        restarts = self.group.members
        for member in restarts:
            for event in BounceMembers(member.member_id).events(self.group):
                # 1.
                edited = event.edit(self.group, ids)
                self.group = edited.group
                for new_id, old_id in edited.renamed.items():
                    self.lists[new_id] = names
                    self._sends_anew(new_id, names[0])
                    if not edited.rebalances:
                        self.served[new_id] = self.served[old_id]
                        self.leader = new_id if old_id == self.leader else self.leader
                self._replace_leader()
                # 2.
                before, self.selected = self.selected, self._vote()
                if before != self.selected:
                    how = "leaves" if edited.rebalances and not edited.renamed else "is back"
                    takes_over = f"{member.group_instance_id or member.member_id} {how}"
                if edited.rebalances or before != self.selected:
                    self._rebalance()
        return Bounce(names, len(restarts), self.rebalances, self.moves, takes_over=takes_over)

    def _sends_anew(self, member_id: str, assignor: str) -> None:
        members = (
            sends_anew(one, assignor) if one.member_id == member_id else one
            for one in self.group.members
        )
        self.group = self.group.edited(members=tuple(members))

    def _replace_leader(self) -> None:
        if all(member.member_id != self.leader for member in self.group.members):
            self.leader = members_in_order(self.group)[0].member_id

    def _vote(self) -> str:
        listed = (self.lists[member.member_id] for member in self.group.members)
        return select_protocol([tuple(map(protocol_name, names)) for names in listed])

    def _answering(self) -> str:
        """Returns the leader's assignor of the selected name."""
        names = self.lists[self.leader]
        return next(name for name in names if protocol_name(name) == self.selected)

    def _is_cooperative(self, member: Member) -> bool:
        member_id = member.member_id
        return member_id not in self.eager and _is_cooperative(self.lists[member_id])

    def _rebalance(self) -> None:
        for _ in range(_MOST_FOLLOW_UPS):
            # 3.
            assignor = self._answering()
            members = self.group.members
            if library_of(assignor):  # a library's leader sees the order of the broker's map
                members = tuple(members_in_order(self.group))
            sent = tuple(self._sent(member, assignor) for member in members)
            answer = assign(self.group.edited(members=sent), assignor, engine=self.engine)
            given = {member_id: set(owned) for member_id, owned in answer.items()}
            self.rebalances += 1
            self.moves += sum(
                len(given[member.member_id].difference(member.owned_partitions))
                for member in self.group.members
            )
            # 4.
            joins_again = any(
                not given[member.member_id].issuperset(member.owned_partitions)
                for member in self.group.members
                if self._is_cooperative(member)
            )
            generation_id = 1 + max(member.generation_id or 0 for member in self.group.members)
            self.group = self.group.owning(answer, generation_id=generation_id)
            self.served = dict.fromkeys(given, self.selected)
            if not joins_again:
                return

    def _sent(self, member: Member, assignor: str) -> Member:
        if self._is_cooperative(member):
            return member
        remembers = self.served.get(member.member_id) == self.selected
        if remembers and protocol_of(assignor) is RebalanceProtocol.EAGER:
            return member
        return member.owning()

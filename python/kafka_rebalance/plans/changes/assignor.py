# SPDX-License-Identifier: Apache-2.0
"""The change of the assignor by a rolling bounce: each member restarts with another list.

1. A member leaves or comes back, as in `BounceMembers`; a static member returns before its session
   ends. After the restart, each member sends the data that its library sends under the first
   assignor of its new list.
2. The members vote (`assignors/selection.py`). The new assignor is selected as soon as the last
   member that lists only the old one has left; a static member's return can also change the vote.
3. The leader assigns with its class of the selected name. An unknown leader is assumed to be
   the first member; after a leader leaves, the first member of the broker's map leads.
4. A member is eager unless all assignors of its list are cooperative. In an eager group
   (`lists_eager`), a member that has not restarted is eager. Eager members revoke all partitions.
   They claim these partitions only if the selected assignor is eager and also made the last
   assignment.

Mirror of `SwitchAssignor`: `src/plans/changes/assignor.rs`.

Source   ConsumerCoordinator: the protocol is the highest that all assignors of the list support;
         onJoinPrepare, onJoinComplete. ClassicGroup.selectProtocol. KIP-429, KIP-345.
"""

from collections.abc import Callable
from typing import NamedTuple, Self

from kafka_rebalance.assignors.classic.subscriptions import members_in_order
from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.registry import (
    SERVER_SIDE,
    is_known,
    protocol_name,
    protocol_of,
    unknown,
)
from kafka_rebalance.assignors.selection import select_protocol
from kafka_rebalance.errors import NotAffected
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, RebalanceProtocolName, quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.group_kinds import by_switch_protocol, never_runs
from kafka_rebalance.plans.rounds import lists_eager

from .bounces import BounceMembers
from .change import Change, Verb, check_fields, some
from .edits import Edited, GroupEvent, error, newly_listed
from .made_up import MadeUp
from .other_assignor import restarted_as, restarted_with

AssignorNames = tuple[str, ...]
_Edit = Callable[[GroupSpec, MadeUp], Edited]


class SwitchAssignor(Change, Frozen):
    """All members restart one after another, in join order, and afterwards list this assignor.

    In this bounce, they list both assignors, the new one first; if both share a name in JoinGroup,
    only the new one. Later changes in the plan assume that members list only the new one. A switch
    to an assignor of the brokers (KIP-848) is planned as one new target.
    """

    assignor: str

    VERBS = (
        Verb(
            "switch-assignor",
            "NAME",
            "all members restart one after another with this assignor in their list",
        ),
    )

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        return cls(some(value))

    def __post_init__(self) -> None:
        check_fields(self)
        if not is_known(self.assignor):
            raise error(unknown(self.assignor))

    def __str__(self) -> str:
        return f"switch-assignor={self.assignor}"

    def in_words(self) -> str:
        return f"switching to {self.assignor}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        old, new = group.assignor or "", self.assignor
        if old == new:
            present = f"{quoted(new)} is the group's assignor already"
            if group.rebalance_protocol == "eager":
                raise error(present + _ENDS_EAGER)
            raise NotAffected("change", present)
        if problem := never_runs(group, new):
            raise error(problem)
        if protocol := by_switch_protocol(old, new):
            problem = (
                f"is an assignor of the other protocol; switch-protocol={protocol} leads to it"
            )
            raise error(f"{quoted(new)} {problem}")
        if new in SERVER_SIDE:
            return [GroupEvent(str(self), lambda group, _: Edited(restarted_with(group, new)))]
        if protocol_name(old) == protocol_name(new):
            return [event for one in restarts(group, (old,), (new,)) for event in one.events]
        *others, last = (one.events for one in restarts(group, (old,), (new, old)))
        cause = f"{last[0].cause.removesuffix(_SILENT)}, and {new} takes over"
        last[0] = last[0]._replace(cause=cause)
        return [event for events in (*others, last) for event in events]


_ENDS_EAGER = "; `compare` has the rolling bounce after which members list it alone"
_SILENT = ": no rebalance"


def restarts(group: GroupSpec, old: AssignorNames, new: AssignorNames) -> "list[Restart]":
    """Returns the restarts of a bounce, in join order; each changes a member's list from `old` to
    `new`.
    """
    was_eager = lists_eager(group, group.assignor or "")
    ids = [member.member_id for member in group.members]
    return [
        Restart(group, member, frozenset(ids[i:]), old, new, was_eager)
        for i, member in enumerate(group.members)
    ]


class Restart(NamedTuple):
    """The restart of one member in a bounce. `began` is the group before the whole bounce.

    `waiting` are the ids of this member and of the members that restart later. If `was_eager`,
    they also list an eager assignor.
    """

    began: GroupSpec
    member: Member
    waiting: frozenset[str]
    old: AssignorNames
    new: AssignorNames
    was_eager: bool

    @property
    def events(self) -> list[GroupEvent]:
        bounce = BounceMembers(self.member.member_id)
        return [one._replace(edit=self._voting(one)) for one in bounce.events(self.began)]

    @property
    def left(self) -> frozenset[str]:
        """Returns the ids of the members that restart after this one."""
        return self.waiting - {self.member.member_id}

    def _voting(self, event: GroupEvent) -> _Edit:
        return lambda group, ids: self._edited(group, event.edit(group, ids), ids)

    def _edited(self, group: GroupSpec, edited: Edited, ids: MadeUp) -> Edited:
        # 1.
        after = edited.group.edited(
            members=tuple(
                restarted_as(one, self.new[0]) if one.member_id in edited.renamed else one
                for one in edited.group.members
            ),
            leader=_leader(group, edited),
        )
        # 2.
        selected = select_protocol(self._names(after, self.left))
        takes_over = selected != select_protocol(self._names(group, self.waiting))
        # 3.
        listed = self._list(after.leader or "", self.left)
        answers = next(name for name in listed if protocol_name(name) == selected)
        # 4.
        claimless = takes_over or is_cooperative((answers,))
        forgets = frozenset(
            one.member_id for one in after.members if claimless and self._is_eager(one.member_id)
        )
        # From here on, `forgets` names the eager members; `rebalance_protocol` no longer does.
        lists: RebalanceProtocolName | None = (
            "cooperative" if self.was_eager and is_cooperative((answers,)) else None
        )
        after = after.edited(assignor=answers, rebalance_protocol=lists)
        if not self.left and edited.renamed:  # after the bounce, a plan does not know who leads
            after = after.edited(members=after.members, leader="")
        back = {one.member_id for one in after.members} - self.left
        back = back if answers != group.assignor else {*edited.renamed}
        return edited._replace(
            group=newly_listed(after, ids, back),
            rebalances=edited.rebalances or takes_over,
            starts_over=len(forgets) == len(after.members),
            forgets=forgets,
        )

    def _list(self, member_id: str, left: frozenset[str]) -> AssignorNames:
        return self.old if member_id in left else self.new

    def _names(self, group: GroupSpec, left: frozenset[str]) -> list[tuple[str, ...]]:
        lists = (self._list(one.member_id, left) for one in group.members)
        return [tuple(map(protocol_name, names)) for names in lists]

    def _is_eager(self, member_id: str) -> bool:
        if member_id in self.left and self.was_eager:
            return True
        return not is_cooperative(self._list(member_id, self.left))


def _leader(before: GroupSpec, edited: Edited) -> str:
    leader = before.leader or before.members[0].member_id
    back = next((new for new, old in edited.renamed.items() if old == leader), leader)
    there = any(one.member_id == back for one in edited.group.members)
    return back if there else members_in_order(edited.group)[0].member_id


def is_cooperative(names: AssignorNames) -> bool:
    """Returns whether members with this list of assignors are cooperative."""
    return all(protocol_of(name) is RebalanceProtocol.COOPERATIVE for name in names)

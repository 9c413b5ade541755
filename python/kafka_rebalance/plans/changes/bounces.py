# SPDX-License-Identifier: Apache-2.0
"""Members that restart: each is away for a time, then back with a new id. Mirror: bounces.rs.

If a member is away long enough, the group rebalances without it, and then with it. If the member
returns earlier, there is one rebalance. A broker that assigns reacts to the departure at the next
heartbeat of any member. A group with a leader reacts when all other members have joined again; each
of them does this at its next heartbeat.

Each other member sends one heartbeat per `interval` (ms), at an unknown time. All these times are
assumed to be equally likely. After `away` ms, the chance that no other member has sent a heartbeat
yet is `(1 - away / interval) ** others`; the chance that at least one of them has not is `1 - (away
/ interval) ** others`. A plan plays the likelier course: one rebalance for a restart, or two.

Source   GroupMetadataManager: consumerGroupLeave, shareGroupLeave, streamsGroupLeave; the
         heartbeats' maybeUpdateTargetAssignment; classicGroupLeaveToClassicGroup,
         maybeCompleteJoinPhase (Kafka 4.4.0); GroupCoordinatorConfig.
"""

from dataclasses import replace
from typing import Self

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.declared_types import milliseconds
from kafka_rebalance.group.model import Member, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.rounds import next_generation, subscribed_partitions

from .change import Change, Verb, check_fields, check_least
from .edits import Edited, GroupEvent, error, find_member, held_by, newly_listed, restarted, without
from .made_up import MadeUp

AWAY_MS = 10_000
"""The time in ms for which a member is away in a plan, if the change does not set it."""

HEARTBEAT_MS = 5_000
"""The default of `group.consumer.heartbeat.interval.ms`, also for share and streams groups."""

LEADERS_HEARTBEAT_MS = 3_000
"""The default of `heartbeat.interval.ms` in Java, librdkafka, kafka-python and aiokafka."""

_LONGEST_MS = 2**31 - 1
_LONGEST_TEXT = 15
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


class BounceMembers(Change, Frozen):
    """Members restart one after another; if `member` is None, all members do, in join order.

    A dynamic member leaves, and comes back with a new id: `away_ms` decides whether that causes one
    rebalance or two (see the module's docstring). A static member is back before its session times
    out, so there is no rebalance, and no member reads its partitions meanwhile. If `static` is
    True, all members count as static; if it is False, all count as dynamic, as if the sessions of
    static members ended.
    """

    member: str | None = None
    static: bool | None = None
    away_ms: int | None = None

    VERBS = (
        Verb(
            "bounce-members",
            "MEMBER[,KIND][,away=T]",
            "MEMBER restarts, or all one after another (*). KIND: count all members as static or "
            "as dynamic. T: from leaving to coming back, such as 5s",
            default="*",
        ),
    )

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        value, is_given, away = value.partition(",away=")
        static = None
        for ending, meant in ((",static", True), (",dynamic", False)):
            if value.endswith(ending):
                value, static = value.removesuffix(ending), meant
                break
        member = None if value in ("", "*") else value
        return cls(member, static, _duration(away) if is_given else None)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.away_ms is not None:
            check_least(self.away_ms, 0, "milliseconds")
            if self.away_ms > _LONGEST_MS:
                raise error(f"away is more than {_LONGEST_MS} milliseconds")

    def __str__(self) -> str:
        how = {None: "", True: ",static", False: ",dynamic"}[self.static]
        away = "" if self.away_ms is None else f",away={_text(self.away_ms)}"
        return f"bounce-members={'*' if self.member is None else self.member}{how}{away}"

    def in_words(self) -> str:
        return f"restarting {'every member' if self.member is None else self.member}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        bounced = group.members if self.member is None else (find_member(group, self.member),)
        is_first = self.chance_to_be_first(group) > 0.5
        return [event for one in bounced for event in self._bounce(one, is_first=is_first)]

    def renamed(self, ids: MadeUp) -> Self:
        return self if self.member is None else replace(self, member=ids.alias(self.member))

    def is_certain_in(self, group: GroupSpec) -> bool:
        """Returns whether the number of rebalances for each restart is certain in this group, not
        only likely.
        """
        if len(group.members) < 2:
            return True
        if self.static or all(m.group_instance_id and self.static is None for m in group.members):
            return True
        return self.away_ms is not None and not 0 < self.away_ms < heartbeat_ms(group)

    def chance_to_be_first(self, group: GroupSpec) -> float:
        """Returns the chance (0 to 1) that a member is back before the group has reacted."""
        others = len(group.members) - 1
        away_ms = AWAY_MS if self.away_ms is None else self.away_ms
        heard = min(1.0, away_ms / heartbeat_ms(group))
        if not others:
            return 1.0
        by_broker = group.assignor in SERVER_SIDE
        return float((1 - heard) ** others if by_broker else 1 - heard**others)

    def _bounce(self, member: Member, *, is_first: bool) -> list[GroupEvent]:
        name = member.group_instance_id or member.member_id
        static = member.group_instance_id is not None if self.static is None else self.static
        if static:
            cause = f"{name} restarts as a static member: no rebalance"
            return [GroupEvent(cause, lambda group, ids: _restart(group, member, ids))]
        if is_first:
            cause = f"{name} leaves and comes back"
            return [GroupEvent(cause, lambda group, ids: _return(group, member, ids))]
        gone = {member.member_id}
        return [
            GroupEvent(f"{name} leaves", lambda group, _: Edited(without(group, gone))),
            GroupEvent(f"{name} comes back", lambda group, ids: _join_again(group, member, ids)),
        ]


def heartbeat_ms(group: GroupSpec) -> int:
    """Returns the default time in ms between two heartbeats of a member of this group."""
    return HEARTBEAT_MS if group.assignor in SERVER_SIDE else LEADERS_HEARTBEAT_MS


def _text(ms: int) -> str:
    unit, size = next(one for one in _UNITS if ms % one[1] == 0 and (ms or one[0] == "s"))
    return f"{ms // size}{unit}"


def _duration(text: str) -> int:
    ms = milliseconds(text) if len(text) <= _LONGEST_TEXT else None
    if ms is None or text[-1:].isdigit() or "." in text:
        raise error(f"{quoted(text)} is not a duration; 250ms, 5s, 2m and 1h are")
    return ms


def _join_again(group: GroupSpec, member: Member, ids: MadeUp) -> Edited:
    """Returns the group with the restarted member, which owns nothing, as its last member."""
    others = tuple(m for m in group.members if m.member_id != member.member_id)
    back = restarted(member, ids, group.members, is_bare=group.assignor in SERVER_SIDE)
    after = newly_listed(group.edited(members=(*others, back)), ids, {back.member_id})
    return Edited(after, renamed={back.member_id: member.member_id})


def _return(group: GroupSpec, member: Member, ids: MadeUp) -> Edited:
    """Returns the group after a member left and came back before the group noticed that it left."""
    joined = _join_again(group, member, ids)
    if group.assignor not in SERVER_SIDE and len(group.members) > 1:
        return joined
    back = joined._replace(group=joined.group.edited(generation_id=next_generation(group)))
    if group.assignor not in SERVER_SIDE:
        return back
    (new_id,) = back.renamed
    owned = Assignment.owned(group)
    mine = {*owned[member.member_id]}
    mine.difference_update(*(tps for one, tps in owned.items() if one != member.member_id))
    as_before = (
        replace(one, member_id=new_id) if one.member_id == member.member_id else one
        for one in group.members
    )
    return back._replace(
        held=Assignment.owned(group.edited(members=tuple(as_before))),
        waiting=tuple(tp for tp in subscribed_partitions(group) if tp in mine),
    )


def _restart(group: GroupSpec, member: Member, ids: MadeUp) -> Edited:
    """Returns the group after a member is back in time; a really static one has a new id."""
    waiting = held_by(group, {member.member_id})
    if member.group_instance_id is None:
        return Edited(group, rebalances=False, waiting=waiting)
    back = restarted(member, ids, group.members, is_bare=group.assignor in SERVER_SIDE)
    members = tuple(
        replace(m, member_id=back.member_id) if m.member_id == member.member_id else m
        for m in group.members
    )
    leader = back.member_id if group.leader == member.member_id else None
    return Edited(
        newly_listed(group.edited(members=members, leader=leader), ids, {back.member_id}),
        renamed={back.member_id: member.member_id},
        rebalances=False,
        waiting=waiting,
    )

# SPDX-License-Identifier: Apache-2.0
"""The change of the rebalance protocol by a rolling restart, member by member (KIP-848).

To "consumer":

1. A dynamic member leaves. Until the first member is back, the group is classic and its leader
   assigns; from then on, the broker assigns.
2. The member is back with `group.protocol=consumer`. The first such heartbeat converts the group:
   the classic assignment becomes the present target, and the broker's assignor runs over all
   members, in the order of the hash map into which it copies them.
3. A static member does not leave. It gets its partitions back without a new target. It starts a
   rebalance only if it is the first member to restart, because this converts the group.
4. Members that have not yet restarted follow each new target by the classic protocol: they join
   again, and an eager member first revokes all its partitions.

To "classic": the broker assigns until the last member of the consumer protocol has left, or has
been replaced by a static member. If that member left, the leader assigns at once; if it was
replaced, the group keeps its assignment. A classic member that joins while the broker assigns gets
a bare UUID as its id; one that joins later gets an id that begins with the client id, and so sorts
elsewhere.

Source   GroupMetadataManager: convertToConsumerGroup, convertToClassicGroup, classicGroupJoin (an
         empty consumer group becomes classic), classicGroupJoinToConsumerGroup (ids); KIP-848.
"""

from dataclasses import replace
from typing import NamedTuple, Self

from kafka_rebalance.assignors.registry import (
    BUILT_IN,
    FOREIGN,
    OURS,
    SERVER_SIDE,
    library_of,
    protocol_name,
)
from kafka_rebalance.errors import NotAffected, SwitchRefused
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.plans.group_kinds import CLASSIC, CONSUMER, protocol_kind
from kafka_rebalance.plans.rounds import lists_eager

from .change import Change, Verb, check_fields
from .edits import Edited, GroupEvent, error, held_by, restarted, without
from .made_up import MadeUp
from .member_table import in_table_order

_DEFAULTS = {CONSUMER: "uniform", CLASSIC: "range"}
_ASSIGNS = {CONSUMER: "the broker", CLASSIC: "a member"}
_OFFERED = {
    CONSUMER: ("uniform", "range", "balanced"),
    CLASSIC: tuple(name for name in BUILT_IN if name not in OURS),
}


class SwitchProtocol(Change, Frozen):
    """All members restart one after another, in join order, with another `group.protocol`.

    `protocol` is "consumer" or "classic". `assignor` is the group's assignor afterwards. For
    "consumer", it is the broker's uniform, range or balanced (None means uniform); for "classic", a
    classic assignor, such as librdkafka/range (None means range, the first in the Java client's
    default list).
    """

    protocol: str
    assignor: str | None = None

    VERBS = (
        Verb(
            "switch-protocol",
            "PROTOCOL[/ASSIGNOR]",
            "all members restart one after another with this group.protocol, consumer or classic; "
            "then ASSIGNOR assigns (uniform, or range for classic)",
        ),
    )

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        protocol, slash, assignor = value.partition("/")
        if slash and not assignor:
            raise error(f"{quoted(value)} names no assignor after the slash")
        return cls(protocol, assignor if slash else None)

    def __str__(self) -> str:
        return f"switch-protocol={self.protocol}{f'/{self.assignor}' if self.assignor else ''}"

    def in_words(self) -> str:
        return f"switching to the {self.protocol} protocol"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.protocol not in _DEFAULTS:
            raise error(f"{quoted(self.protocol)} is not consumer or classic")
        offered = _OFFERED[self.protocol]
        if self.assignor is not None and self.assignor not in offered:
            raise error(f"{quoted(self.assignor)} is none of {', '.join(offered)}")

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        old, after = group.assignor or "", self.assignor or _DEFAULTS[self.protocol]
        classic, kind = after, protocol_kind(old)
        if self.protocol == CONSUMER:
            classic, after = old, f"{CONSUMER}/{after}"
        if kind not in _DEFAULTS:
            raise NotAffected(
                "change",
                f"only consumer groups have two protocols, and this is a {kind} group, which runs "
                f"{quoted(old)}: it never changes its protocol",
            )
        if old in FOREIGN:
            raise error(f"{quoted(old)} is {FOREIGN[old]}")
        if old == after:
            raise NotAffected("change", f"{quoted(old)} is the group's assignor already")
        if kind == self.protocol:
            problem = f"{_ASSIGNS[kind]} assigns the group already"
            if self.assignor is not None:
                problem += f", by {quoted(old)}: switch-assignor={after} changes that"
            raise NotAffected("change", problem)
        if self.protocol == CONSUMER:
            _check_classic(group)
        stops = not BUILT_IN[classic].withholds or lists_eager(group, classic)
        ids = [member.member_id for member in group.members]
        restarts = (
            _Restart(member, frozenset(ids[i + 1 :]), self.protocol, after, stops)
            for i, member in enumerate(group.members)
        )
        return [event for one in restarts for event in one.events(is_alone=len(ids) == 1)]


def _check_classic(group: GroupSpec) -> None:
    name = group.assignor
    if name is None:
        raise error("the group has no assignor: name the one that its leader runs")
    if library_of(name) in ("kafka-python", "aiokafka"):
        raise SwitchRefused("change", lacking(name))
    if name not in _OFFERED[CLASSIC]:
        played = ", ".join(_OFFERED[CLASSIC])
        raise error(f"{quoted(name)} is classic, but the plan plays the switch only of {played}")
    if copies_user_data(group) and _joins_again(group):
        raise SwitchRefused(
            "change",
            "the broker refuses to convert a group whose assignments have user data, as those of "
            "librdkafka's cooperative-sticky after members have joined again: stop all members "
            "first, and start them with group.protocol=consumer; a rolling change to range first "
            "is not possible, because librdkafka refuses a list of both",
        )


def lacking(assignor: str) -> str:
    """Returns the error text for a group whose clients do not support the consumer protocol."""
    return (
        "kafka-python and aiokafka have no consumer protocol; leave the group classic, or, if its "
        "members move to Kafka's Java client (from 4.0 on) or to librdkafka (from 2.12.0 on), plan "
        f"with --assignor {protocol_name(assignor)} (docs/switch-protocol.md)"
    )


def copies_user_data(group: GroupSpec) -> bool:
    """Returns whether the leader copies user data into assignments: only librdkafka's does,
    with its cooperative-sticky.
    """
    library = library_of(group.assignor) or group.leader_library
    return library == "librdkafka" and protocol_name(group.assignor or "") == "cooperative-sticky"


def _joins_again(group: GroupSpec) -> bool:
    """Returns whether the other members certainly join again before the first restarted member
    converts the group.
    """
    return len(group.members) > 1 and group.members[0].group_instance_id is None


class _Restart(NamedTuple):
    """One member's restart.

    Members in `left` restart later. If `stops`, the classic members are eager: they revoke all
    their partitions each time they join again.
    """

    member: Member
    left: frozenset[str]
    protocol: str
    assignor: str
    stops: bool

    def events(self, *, is_alone: bool) -> list[GroupEvent]:
        member = self.member
        name, how = member.group_instance_id or member.member_id, f"group.protocol={self.protocol}"
        if member.group_instance_id is not None:
            return [GroupEvent(f"{name} restarts with {how}", self._come_back)]
        back = GroupEvent(f"{name} joins with {how}", self._join)
        return [back] if is_alone else [GroupEvent(f"{name} leaves", self._leave), back]

    def _leave(self, group: GroupSpec, _: MadeUp) -> Edited:
        after = without(group, {self.member.member_id})
        if self.protocol == CLASSIC and not self.left:
            after = _led_by_client(after, self.assignor)
        return Edited(after, eager=self._eager(after))

    def _join(self, group: GroupSpec, ids: MadeUp) -> Edited:
        # The dynamic member has left. If no member of the consumer protocol remains, the group is
        # classic, and the broker makes an id that is not bare.
        is_bare = self.protocol == CONSUMER or bool(self.left)
        back = restarted(self.member, ids, group.members, is_bare=is_bare)
        others = (m for m in _in_brokers_order(group, self) if m.member_id != self.member.member_id)
        after = self._assigned(group.edited(members=(*others, back)))
        return Edited(after, {back.member_id: self.member.member_id}, eager=self._eager(after))

    def _come_back(self, group: GroupSpec, ids: MadeUp) -> Edited:
        converts = self.protocol == CONSUMER and group.assignor not in SERVER_SIDE
        waiting = held_by(group, {self.member.member_id})
        # First the broker copies its hash map; then it puts the replaced member in the last place.
        members = _in_brokers_order(group, self)
        # The last static member's entry stays while it is away, so the group is not yet classic.
        back = restarted(self.member, ids, group.members, is_bare=True)
        held = next(one for one in members if one.member_id == self.member.member_id)
        new = replace(held, member_id=back.member_id)
        others = tuple(one for one in members if one is not held)
        after = self._assigned(group.edited(members=(*others, new)))
        return Edited(
            after,
            {new.member_id: self.member.member_id},
            rebalances=converts,
            waiting=waiting,
            eager=self._eager(after),
        )

    def _assigned(self, group: GroupSpec) -> GroupSpec:
        """Returns the group after this member's restart: with the new assignor, if the restart
        changes it.
        """
        if self.protocol == CONSUMER:
            return group.edited(assignor=self.assignor)
        return group if self.left else _led_by_client(group, self.assignor)

    def _eager(self, group: GroupSpec) -> frozenset[str]:
        # Eager members claim nothing if the broker assigns; under a leader, they claim as before.
        if not self.stops or group.assignor not in SERVER_SIDE:
            return frozenset()
        ids = frozenset(member.member_id for member in group.members)
        return self.left if self.protocol == CONSUMER else ids - self.left


def _led_by_client(group: GroupSpec, assignor: str) -> GroupSpec:
    """Returns the group as a classic leader with this assignor sees it.

    A librdkafka client sorts the topics of its subscription. As the leader, it adds the topics of
    one member after another to its request for metadata, and the broker's response lists them in
    this order.
    """
    if library_of(assignor) != "librdkafka":
        return group.edited(assignor=assignor)
    members = {m.member_id: replace(m, topics=tuple(sorted(m.topics))) for m in group.members}
    asked = dict.fromkeys(
        topic for one in java_hash_order(list(members)) for topic in members[one].topics
    )
    places = {topic: place for place, topic in enumerate(asked)}
    topics = sorted(group.topics, key=lambda topic: places.get(topic.name, len(places)))
    return group.edited(assignor=assignor, topics=tuple(topics), members=tuple(members.values()))


def _in_brokers_order(group: GroupSpec, restart: _Restart) -> tuple[Member, ...]:
    """Returns the group's members. If the restart converts a classic group, they are in the order
    of the broker's own hash map, into which it copies them from the classic group's `HashMap`.
    """
    if restart.protocol == CLASSIC or group.assignor in SERVER_SIDE:
        return group.members
    by_id = {member.member_id: member for member in group.members}
    copied = [by_id[member_id] for member_id in java_hash_order(list(by_id))]
    return tuple(in_table_order(copied[::-1]))

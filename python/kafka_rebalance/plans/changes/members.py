# SPDX-License-Identifier: Apache-2.0
"""Changes of members: members join or leave, or are lost with their rack."""

import re
from dataclasses import replace
from typing import Any, Self

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import NoMembersLeft, NotAffected
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, StreamsMember, TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.rounds import subscribed_partitions

from .change import Change, Verb, check_fields, check_least, count, some
from .edits import Edited, GroupEvent, error, find_member, held_by, newly_listed, without
from .made_up import MadeUp, client_names, instance_names, prefix_of

MOST_NEW_MEMBERS = 100_000
"""The largest number of members that may join at once, far more than in any real group."""

_OPTIONS = ("rack", "client-id", "instance-id", "like")
_OPTION = re.compile(rf",({'|'.join(_OPTIONS)})=")


class AddMembers(Change, Frozen):
    """New members join: in one rebalance or, if a broker assigns, in one for each.

    They copy the member `like` (a member_id or group_instance_id; default: the member that joined
    last): its subscription, its rack (unless `rack` is set), and whether it is static (always with
    `instance_id`). Their names are guessed (`made_up.py`), unless `client_id` or `instance_id`
    names the first new member: then the others get the next numbers; but a client id without a
    number is used for all. In a streams group, each new member has its own process.
    """

    count: int
    like: str | None = None
    rack: str | None = None
    client_id: str | None = None
    instance_id: str | None = None

    VERBS = (
        Verb(
            "add-members",
            "N[,KEY=VALUE]…",
            "N members join, like the one that joined last. The keys: rack=RACK, client-id=ID and "
            "instance-id=ID (ID names the first), like=MEMBER",
        ),
    )

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        # A name may contain commas: it ends only before the next `key=`.
        members, *said = _OPTION.split(value)
        options: dict[str, str] = {}
        for name, value_of in zip(said[::2], said[1::2], strict=True):
            if name.replace("-", "_") in options:
                raise error(f"{name}= is there twice")
            options[name.replace("-", "_")] = value_of
        _, comma, more = members.partition(",")
        if comma:
            key = quoted(more.partition("=")[0])
            raise error(f"{key} is not a key; the keys are {', '.join(_OPTIONS)}")
        return cls(count(members, "members"), **options)

    def __str__(self) -> str:
        said = {name: getattr(self, name.replace("-", "_")) for name in _OPTIONS}
        options = (f",{name}={value}" for name, value in said.items() if value is not None)
        return f"add-members={self.count}{''.join(options)}"

    def in_words(self) -> str:
        return f"adding {counted(self.count)}"

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.count <= MOST_NEW_MEMBERS:
            raise error(f"{self.count} is not a number of members from 1 to {MOST_NEW_MEMBERS}")

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        model = group.members[-1] if self.like is None else find_member(group, self.like)
        for name, value in (("client-id", self.client_id), ("instance-id", self.instance_id)):
            if value == "":
                raise error(f"{name} is empty; name the first of the new members")
        if self.instance_id is not None and self.instance_id in _instances(group):
            raise error(f"{quoted(self.instance_id)} is the instance id of a member already")
        return [GroupEvent(str(self), lambda group, ids: self._join(group, model, ids))]

    def renamed(self, ids: MadeUp) -> Self:
        return self if self.like is None else replace(self, like=ids.alias(self.like))

    def _join(self, group: GroupSpec, model: Member, ids: MadeUp) -> Edited:
        is_static = self.instance_id is not None or model.group_instance_id is not None
        instances = {*_instances(group)}
        names = [prefix_of(member.client_id, member.member_id) for member in group.members]
        name = prefix_of(model.client_id, model.member_id)
        client_ids, client_basis = client_names(name, names, self.client_id)
        instance_ids, instance_basis = instance_names(
            model.group_instance_id or "", instances, self.instance_id
        )
        basis = instance_basis if is_static else client_basis
        places = sorted(instances if is_static else {*names})
        taken = {member.member_id for member in group.members}
        joined = []
        for _ in range(self.count):
            client_id, instance_id = next(client_ids), None
            if is_static:
                instance_id = ids.place(next(instance_ids), basis, places, instances)
                instances.add(instance_id)
            else:
                client_id = ids.place(client_id, basis, places)
            made = ids.newcomer(
                instance_id or client_id,
                basis,
                taken,
                is_static=is_static,
                is_bare=group.assignor in SERVER_SIDE,
            )
            joined.append(
                replace(
                    model.owning(),
                    member_id=made.member_id,
                    group_instance_id=instance_id,
                    # If client ids are unknown, `client_id` is only the beginning of the member id.
                    client_id=client_id if model.client_id or self.client_id else model.client_id,
                    client_host=None,
                    rack_id=model.rack_id if self.rack is None else self.rack,
                    streams=model.streams and StreamsMember(ids.process_id(made.member_id)),
                )
            )
        new = {member.member_id for member in joined}
        return Edited(newly_listed(group.edited(members=(*group.members, *joined)), ids, new))


class RemoveMembers(Change, Frozen):
    """Members leave, all at once: exactly one of the fields selects them.

    `count` selects the members that joined last; `member` is a member_id or group_instance_id.

    With a `rack`, the rack's brokers are also lost, with their replicas. If all replicas of a
    partition were in the rack, no broker leads it: the partition stays in the metadata and is
    assigned, but no member can read it. The members in the rack are killed: they send no
    LeaveGroup, and the rebalance begins when their sessions have timed out.

    Source   MetadataResponse.convertToNodeArray: a replica on a broker that is down has no rack;
             ConsumerCoordinator.MetadataSnapshot: only a leader that has a rack asks for a
             rebalance when the racks of replicas change.
    """

    count: int | None = None
    member: str | None = None
    rack: str | None = None
    client_id: str | None = None

    VERBS = (
        Verb("remove-members", "N", "the N members that joined last leave"),
        Verb("remove-member", "MEMBER", "this member leaves"),
        Verb("remove-rack", "RACK", "a rack is lost, with its members, brokers and replicas"),
        Verb("remove-client", "CLIENT_ID", "all members with this client id leave"),
    )

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        removed: Any = count(value, "members") if verb == "remove-members" else some(value)
        return cls(**{_REMOVED_BY[verb]: removed})

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self._given()) != 1:
            raise error("say which members: one of count, member, rack and client_id")
        if self.count is not None:
            check_least(self.count, 1, "members")

    def __str__(self) -> str:
        return self._given()[0]

    def in_words(self) -> str:
        if self.count is not None:
            return f"removing {counted(self.count)}"
        if self.rack is not None:
            return f"losing rack {self.rack}"
        return f"removing {self.member or f'all members of client id {self.client_id}'}"

    def _given(self) -> list[str]:
        values = {verb: getattr(self, field) for verb, field in _REMOVED_BY.items()}
        return [f"{verb}={value}" for verb, value in values.items() if value is not None]

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        gone = self._gone(group)
        if len(gone) == len(group.members):
            noun = "partition" if group.subtopologies is None else "task"
            which = counted(sum(1 for _ in subscribed_partitions(group)), noun)
            problem = f"no member is left: nobody reads {which} until one is back"
            raise NoMembersLeft("change", problem)
        if self.rack is not None:
            rack = self.rack
            return [GroupEvent(str(self), lambda group, _: _lost(group, rack, gone))]
        return [GroupEvent(str(self), lambda group, _: Edited(without(group, gone)))]

    def renamed(self, ids: MadeUp) -> Self:
        if self.member is not None:
            return replace(self, member=ids.alias(self.member))
        if self.client_id is not None:
            client_id = ids.client_aliases.get(self.client_id, self.client_id)
            return replace(self, client_id=client_id)
        return self

    def _gone(self, group: GroupSpec) -> set[str]:
        members = group.members
        if self.count is not None:
            if self.count > len(members) > 1:
                raise error(f"{self.count} is not a number of members from 1 to {len(members)}")
            return {member.member_id for member in members[-self.count :]}
        if self.member is not None:
            return {find_member(group, self.member).member_id}
        if self.rack is not None:
            gone = {member.member_id for member in members if member.rack == self.rack}
            racks = {rack for t in group.topics for replicas in t.racks or () for rack in replicas}
            if not gone and self.rack not in racks:
                problem = f"no member and no replica is in rack {quoted(self.rack)}"
                raise NotAffected("change", problem)
            return gone
        gone = {member.member_id for member in members if member.client_id == self.client_id}
        if not gone:
            problem = f"no member has the client_id {quoted(self.client_id or '')}"
            raise NotAffected("change", problem)
        return gone


_REMOVED_BY = {
    "remove-members": "count",
    "remove-member": "member",
    "remove-rack": "rack",
    "remove-client": "client_id",
}
"""Each verb of RemoveMembers, with the field that it sets."""


def _instances(group: GroupSpec) -> list[str]:
    members = group.members
    return [m.group_instance_id for m in members if m.group_instance_id is not None]


def _lost(group: GroupSpec, rack: str, gone: set[str]) -> Edited:
    """Returns the group after `rack` is lost, with its replicas and the members in `gone`."""
    left = without(group, gone)
    read = {topic for member in left.members for topic in member.topics}
    leaderless = tuple(
        TopicPartition(topic.name, p)
        for topic in group.topics
        if topic.name in read
        for p, replicas in enumerate(topic.racks or ())
        if rack in replicas and {*replicas} <= {rack, None}
    )
    topics = tuple(
        topic
        if topic.racks is None
        else replace(topic, racks=tuple(tuple(r for r in one if r != rack) for one in topic.racks))
        for topic in group.topics
    )
    return Edited(
        left.edited(topics=topics),
        # If no member was in the rack, only a leader that has a rack notices the lost replicas.
        rebalances=bool(gone) or any(member.rack is not None for member in left.members),
        waiting=held_by(group, gone),
        leaderless=leaderless,
    )

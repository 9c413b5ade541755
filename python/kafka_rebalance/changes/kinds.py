"""What can happen to a group.

    apply: (change, group) -> GroupSpec

A change is one or more events in a row (`events`): most are one; a bounce is a leaving and a coming
back for each member. After each event a live group rebalances until it has settled (`plans`).
Texts (`add-members=2`) are in `text.py`. Mirror: `src/changes.rs`.

Every change that does not fit the group is a GroupError at `change`: an unknown member or topic,
fewer partitions than now, the last member gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kafka_rebalance.assignors.registry import assignor_names, unknown
from kafka_rebalance.errors import GroupError
from kafka_rebalance.model import GroupSpec, Member, Topic, quoted

from .made_up import MadeUp, next_instance_id, prefix_of

MOST_NEW_MEMBERS = 100_000
"""How many members may join at once: a guard, far above any real group."""


class Edited(NamedTuple):
    """A group after an event.

    `renamed`     new member ids of members that came back, and the ones that they had before.
    `rebalances`  False where nothing starts a rebalance: a static member returns in time.
    `starts_over` the members give up everything and forget what they owned: another assignor.
    """

    group: GroupSpec
    renamed: dict[str, str] = {}  # noqa: RUF012 -- never written to
    rebalances: bool = True
    starts_over: bool = False


class Event(NamedTuple):
    """One thing that happens, and what the group is afterwards."""

    cause: str
    edit: Callable[[GroupSpec, MadeUp], Edited]


@dataclass(frozen=True, slots=True)
class AddMembers:
    """New members join, in one rebalance.

    They are as the member `like` (member_id or group_instance_id; default: the one that joined
    last): its client id, subscription and rack, and static where it is; `rack` replaces the rack.
    """

    count: int
    like: str | None = None
    rack: str | None = None

    def __str__(self) -> str:
        text = f"add-members={self.count}"
        text += "" if self.rack is None else f",rack={self.rack}"
        return text + ("" if self.like is None else f",like={self.like}")

    def events(self, group: GroupSpec) -> list[Event]:
        if not 1 <= self.count <= MOST_NEW_MEMBERS:
            raise _error(f"{self.count} is not a number of members from 1 to {MOST_NEW_MEMBERS}")
        model = group.members[-1] if self.like is None else find_member(group, self.like)

        def edit(group: GroupSpec, ids: MadeUp) -> Edited:
            taken = {member.member_id for member in group.members}
            instances = {member.group_instance_id or "" for member in group.members}
            joined = []
            for _ in range(self.count):
                instance = model.group_instance_id
                if instance is not None:
                    instance = next_instance_id(instance, instances)
                    instances.add(instance)
                prefix = instance or prefix_of(model.client_id, model.member_id)
                member = replace(
                    model,
                    member_id=ids.member_id(prefix, taken),
                    group_instance_id=instance,
                    client_host=None,
                    owned_partitions=(),
                    generation_id=None,
                    rack_id=model.rack_id if self.rack is None else self.rack,
                )
                taken.add(member.member_id)
                joined.append(member)
            return Edited(group.edited(members=(*group.members, *joined)))

        return [Event(str(self), edit)]


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    """Members leave, in one rebalance: exactly one of the fields says which.

    `count` removes those that joined last; `member` is a member_id or group_instance_id.
    """

    count: int | None = None
    member: str | None = None
    rack: str | None = None
    client_id: str | None = None

    def __post_init__(self) -> None:
        given = [self.count, self.member, self.rack, self.client_id]
        if sum(field is not None for field in given) != 1:
            raise _error("say which members: one of count, member, rack and client_id")

    def __str__(self) -> str:
        if self.count is not None:
            return f"remove-members={self.count}"
        if self.member is not None:
            return f"remove-member={self.member}"
        if self.rack is not None:
            return f"remove-rack={self.rack}"
        return f"remove-client={self.client_id}"

    def events(self, group: GroupSpec) -> list[Event]:
        gone = self._gone(group)
        if len(gone) == len(group.members):
            raise _error("no member would be left, and a group without members has no assignment")
        return [Event(str(self), lambda group, _: Edited(_without(group, gone)))]

    def _gone(self, group: GroupSpec) -> set[str]:
        members = group.members
        if self.count is not None:
            if not 1 <= self.count <= len(members):
                raise _error(f"{self.count} is not a number of members from 1 to {len(members)}")
            return {member.member_id for member in members[len(members) - self.count :]}
        if self.member is not None:
            return {find_member(group, self.member).member_id}
        if self.rack is not None:
            gone = {member.member_id for member in members if member.rack == self.rack}
            if not gone:
                raise _error(f"no member is in rack {quoted(self.rack)}")
            return gone
        gone = {member.member_id for member in members if member.client_id == self.client_id}
        if not gone:
            raise _error(f"no member has the client_id {quoted(self.client_id or '')}")
        return gone


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """A topic grows to `partitions` in all; where replicas are known, those of new ones are not."""

    topic: str
    partitions: int

    def __str__(self) -> str:
        return f"partitions {self.topic}={self.partitions}"

    def events(self, group: GroupSpec) -> list[Event]:
        topic = find_topic(group, self.topic)
        if self.partitions <= topic.partitions:
            raise _error(
                f"{quoted(self.topic)} has {topic.partitions} partitions already; "
                "give the number that it shall have in all, Kafka never takes any away"
            )
        _guard(group, self.partitions - topic.partitions)
        unknown = ((),) * (self.partitions - topic.partitions)
        racks = None if topic.racks is None else topic.racks + unknown
        grown = replace(topic, partitions=self.partitions, racks=racks)

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            topics = tuple(grown if t.name == self.topic else t for t in group.topics)
            return Edited(group.edited(topics=topics))

        return [Event(str(self), edit)]


@dataclass(frozen=True, slots=True)
class AddTopics:
    """Topics are created, and every member subscribes to them, as with a pattern."""

    topics: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return "add-topics " + ",".join(f"{name}={count}" for name, count in self.topics)

    def events(self, group: GroupSpec) -> list[Event]:
        known = {topic.name for topic in group.topics}
        for name, _ in self.topics:
            if name in known:
                raise _error(f"{quoted(name)} is there already")
            known.add(name)
        _guard(group, sum(count for _, count in self.topics))

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            created = tuple(Topic(name, count) for name, count in self.topics)
            names = tuple(name for name, _ in self.topics)
            members = tuple(
                replace(m, topics=m.topics + tuple(n for n in names if n not in m.topics))
                for m in group.members
            )
            return Edited(group.edited(topics=group.topics + created, members=members))

        return [Event(str(self), edit)]


@dataclass(frozen=True, slots=True)
class RemoveTopics:
    """Topics are deleted, and nobody subscribes to them any more."""

    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"remove-topics={','.join(self.topics)}"

    def events(self, group: GroupSpec) -> list[Event]:
        for name in self.topics:
            find_topic(group, name)
        gone = set(self.topics)

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            topics = tuple(topic for topic in group.topics if topic.name not in gone)
            members = tuple(
                replace(m, topics=tuple(t for t in m.topics if t not in gone))
                for m in group.members
            )
            return Edited(group.edited(topics=topics, members=members))

        return [Event(str(self), edit)]


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """A member, or (None) every member, subscribes to these topics in place of its own."""

    topics: tuple[str, ...]
    member: str | None = None

    def __str__(self) -> str:
        who = "" if self.member is None else f"{self.member}:"
        return f"resubscribe={who}{','.join(self.topics)}"

    def events(self, group: GroupSpec) -> list[Event]:
        for name in self.topics:
            find_topic(group, name)
        who = None if self.member is None else find_member(group, self.member).member_id

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            members = tuple(
                replace(m, topics=self.topics) if who in (None, m.member_id) else m
                for m in group.members
            )
            return Edited(group.edited(members=members))

        return [Event(str(self), edit)]


@dataclass(frozen=True, slots=True)
class SwitchAssignor:
    """The group's first rebalance by another assignor.

    The members have already been restarted with both assignors in their configuration; in that
    state they are eager, give up everything before they join, and send nothing that they owned, so
    that the new assignor starts from an empty table (KIP-429; ConsumerCoordinator).
    """

    assignor: str

    def __str__(self) -> str:
        return f"switch-assignor={self.assignor}"

    def events(self, group: GroupSpec) -> list[Event]:
        if self.assignor not in assignor_names():
            raise _error(unknown(self.assignor))
        if group.assignor == self.assignor:
            raise _error(f"{quoted(self.assignor)} is the group's assignor already")

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            return Edited(group.edited(assignor=self.assignor), starts_over=True)

        return [Event(str(self), edit)]


@dataclass(frozen=True, slots=True)
class BounceMembers:
    """Members restart one after another (`member` None: all, in join order).

    A dynamic member leaves, and comes back with a new id: two rebalances. A static one is back
    before its session times out: none. `static` True bounces all as static ones are, False as
    dynamic ones are (a static member whose session did time out).
    """

    member: str | None = None
    static: bool | None = None

    def __str__(self) -> str:
        how = {None: "", True: ",static", False: ",dynamic"}[self.static]
        return f"bounce-members={'*' if self.member is None else self.member}{how}"

    def events(self, group: GroupSpec) -> list[Event]:
        bounced = group.members if self.member is None else (find_member(group, self.member),)
        return [event for member in bounced for event in self._bounce(member, len(group.members))]

    def _bounce(self, member: Member, members: int) -> list[Event]:
        name = member.group_instance_id or member.member_id
        static = member.group_instance_id is not None if self.static is None else self.static
        back = Event(f"{name} comes back", lambda group, ids: _join_again(group, member, ids))
        if static:
            keeps = member.group_instance_id is None
            return [
                Event(
                    f"{name} restarts as a static member: no rebalance",
                    lambda group, ids: _restart(group, member, None if keeps else ids),
                )
            ]
        if members == 1:
            # Between the two nobody is there to rebalance.
            return [back._replace(cause=f"{name} leaves and comes back")]
        gone = {member.member_id}
        leaves = Event(f"{name} leaves", lambda group, _: Edited(_without(group, gone)))
        return [leaves, back]


Change = (
    AddMembers
    | RemoveMembers
    | AddPartitions
    | AddTopics
    | RemoveTopics
    | Resubscribe
    | SwitchAssignor
    | BounceMembers
)


def apply(change: Change, group: GroupSpec) -> GroupSpec:
    """The group after a change; what its members own is as before, rebalancing is another step."""
    ids = MadeUp(group.group_id)
    for event in change.events(group):
        group = event.edit(group, ids).group
    return group


def renamed(change: Change, aliases: Mapping[str, str]) -> Change:
    """The same change with other names for some members."""
    if isinstance(change, AddMembers) and change.like is not None:
        return replace(change, like=aliases.get(change.like, change.like))
    if (
        isinstance(change, RemoveMembers | Resubscribe | BounceMembers)
        and change.member is not None
    ):
        return replace(change, member=aliases.get(change.member, change.member))
    return change


def find_member(group: GroupSpec, name: str) -> Member:
    """By member_id, else by group_instance_id."""
    for member in group.members:
        if member.member_id == name:
            return member
    for member in group.members:
        if member.group_instance_id == name:
            return member
    raise _error(f"no member has the member_id or group_instance_id {quoted(name)}")


def find_topic(group: GroupSpec, name: str) -> Topic:
    for topic in group.topics:
        if topic.name == name:
            return topic
    raise _error(f"there is no topic {quoted(name)}")


def _guard(group: GroupSpec, more: int) -> None:
    total = sum(topic.partitions for topic in group.topics) + more
    if total > group.limit:
        raise _error(f"{total} partitions in all, more than the limit of {group.limit}")


def _without(group: GroupSpec, gone: set[str]) -> GroupSpec:
    return group.edited(members=tuple(m for m in group.members if m.member_id not in gone))


def _join_again(group: GroupSpec, member: Member, ids: MadeUp) -> Edited:
    """A process that starts again: a new member, which owns nothing."""
    others = tuple(m for m in group.members if m.member_id != member.member_id)
    prefix = member.group_instance_id or prefix_of(member.client_id, member.member_id)
    taken = {m.member_id for m in group.members}
    back = replace(
        member,
        member_id=ids.member_id(prefix, taken),
        owned_partitions=(),
        generation_id=None,
    )
    return Edited(group.edited(members=(*others, back)), renamed={back.member_id: member.member_id})


def _restart(group: GroupSpec, member: Member, ids: MadeUp | None) -> Edited:
    """A static member that is back in time: a new member id in its old place (KIP-345)."""
    if ids is None:
        return Edited(group, rebalances=False)
    taken = {m.member_id for m in group.members}
    new_id = ids.member_id(member.group_instance_id or "", taken)
    members = tuple(
        replace(m, member_id=new_id) if m.member_id == member.member_id else m
        for m in group.members
    )
    return Edited(
        group.edited(members=members), renamed={new_id: member.member_id}, rebalances=False
    )


def _error(problem: str) -> GroupError:
    return GroupError("change", problem)

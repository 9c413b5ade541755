# SPDX-License-Identifier: Apache-2.0
"""The values in records of broker-assigned groups, and the group as its assignor read it.

1. Members are in the order of the broker's hash map (`plans/changes/member_table.py`). A member
   whose heartbeat joins and computes the targets comes last; in a share group, it has its
   usual place.
2. The assignors of consumer and share groups read the old targets; those of streams groups read the
   present tasks, without the tasks' offsets, which no record contains.
3. Every partition of a subscribed topic, and every task, is in the new targets: they show the
   numbers of partitions, and a topic that they lack was deleted or is not read. A share group's
   record lists the partitions that can be read.
4. If exactly one topic id lacks a name, and exactly one subscribed name lacks an id, they belong
   together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from struct import pack
from typing import Any

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import (
    Member,
    StreamsMember,
    Subtopology,
    Topic,
    TopicPartition,
    id_text,
)
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.plans.changes.member_table import in_table_order
from kafka_rebalance.wire import broker_records as wire
from kafka_rebalance.wire.streams_groups import StreamsTopology

AnyEpoch = wire.EpochValue | wire.ShareEpochValue | wire.StreamsEpochValue
AnyMember = wire.MemberValue | wire.ShareMemberValue | wire.StreamsMemberValue
AnyTarget = wire.TargetValue | wire.StreamsTargetValue
AnyCurrent = wire.CurrentValue | wire.ShareCurrentValue | wire.StreamsCurrentValue

STANDBY_REPLICAS = "num.standby.replicas"


def given(value: AnyTarget | AnyCurrent | None) -> Sequence[Any]:
    """Returns the partitions (of each topic) or active tasks in a member's target or assignment."""
    if value is None:
        return ()
    if isinstance(value, wire.StreamsTargetValue | wire.StreamsCurrentValue):
        return value.active
    return value.topics if isinstance(value, wire.TargetValue) else value.assigned


def to_revoke(value: AnyCurrent | None) -> Sequence[Any]:
    """Returns the partitions or tasks that a member was asked to revoke; none in share groups."""
    if isinstance(value, wire.StreamsCurrentValue):
        return (*value.active_pending, *value.standby_pending, *value.warmup_pending)
    return value.pending_revocation if isinstance(value, wire.CurrentValue) else ()


def instance_of(value: AnyMember) -> str | None:
    return None if isinstance(value, wire.ShareMemberValue) else value.instance_id


def rebalance_timeout_ms(value: AnyMember | None) -> int:
    if value is None or isinstance(value, wire.ShareMemberValue):
        return -1
    return value.rebalance_timeout_ms


def assignors_of(members: Iterable[AnyMember]) -> tuple[str, ...]:
    """Returns the assignors that may compute the targets.

    In a consumer group, this is the assignor that most members name. If several are named equally
    often, all of them are returned: no record shows which one the broker chose. If none is named,
    both of Kafka's assignors are returned: no record shows the broker's default.
    """
    members = tuple(members)
    if any(isinstance(one, wire.ShareMemberValue) for one in members):
        return ("share/simple",)
    if any(isinstance(one, wire.StreamsMemberValue) for one in members):
        return ("streams/sticky",)
    named = Counter(one.server_assignor for one in members if isinstance(one, wire.MemberValue))
    del named[None]
    most = max(named.values(), default=0)
    names = [str(name) for name, count in named.items() if count == most]
    return tuple(f"consumer/{name}" for name in sorted(names) or ("uniform", "range"))


def pattern_of(value: AnyMember) -> str:
    return (value.subscribed_topic_regex or "") if isinstance(value, wire.MemberValue) else ""


def topics_of(value: AnyMember) -> tuple[str, ...]:
    """Returns the topics that a member names; none in a streams group: its topology names them."""
    return () if isinstance(value, wire.StreamsMemberValue) else value.subscribed_topic_names


def settings_of(value: AnyEpoch) -> tuple[tuple[str, str], ...]:
    """Returns a streams group's topology epoch and assignment settings; none for other groups."""
    if not isinstance(value, wire.StreamsEpochValue):
        return ()
    topology = ("topology epoch", str(value.validated_topology_epoch))
    return (topology, *((one.key, one.value) for one in value.assignment_configs or ()))


def topic_of(run: Any, names: Mapping[Uuid, str]) -> str:
    """Returns a topic's name, or its id if no name is known; for tasks, the subtopology's id."""
    if isinstance(run, wire.TaskIds):
        return run.subtopology_id
    return names.get(run.topic_id) or id_of(run.topic_id)


class EpochInputs(Frozen):
    """The inputs of a broker's assignor at one epoch, and the `targets` that it computed from them.

    `members` are in the order in which they joined; `most` is the largest number of members so far.
    `patterns` maps each pattern to the topics that it matched.
    """

    members: Mapping[str, AnyMember]
    old: Mapping[str, AnyTarget]
    targets: Mapping[str, AnyTarget]
    current: Mapping[str, AnyCurrent]
    most: int
    patterns: Mapping[str, tuple[str, ...]]
    state: wire.ShareStateValue | None
    settings: Mapping[str, str]
    topology: StreamsTopology | None
    names: Mapping[Uuid, str]

    def group(self, group_id: str, assignor: str, inventory: Iterable[Topic] = ()) -> GroupSpec:
        """Returns the group as the assignor read it. Errors: GroupError if a record is missing."""
        # 1.
        known = [name for name in self.members if name in self.current]
        new = [name for name in self.members if name not in self.current]
        names, topics = self._topics(inventory)
        made = {name: self._member(name, one, names) for name, one in self.members.items()}
        table = [made[name] for name in reversed(known)]
        if assignor.startswith("share/"):
            newest = [made[name] for name in reversed(new)]
            members = in_table_order([*newest, *table], has_joined=False, most=self.most)
        else:
            members = in_table_order(table, most=self.most) + [made[name] for name in new]
        if not assignor.startswith("streams/"):
            return GroupSpec(group_id, tuple(topics), tuple(members), assignor)
        replicas = self.settings.get(STANDBY_REPLICAS, "")
        return GroupSpec(
            group_id,
            (),
            tuple(members),
            assignor,
            subtopologies=tuple(self._subtopologies()),
            num_standby_replicas=int(replicas) if replicas.isdecimal() else 0,
        )

    def difference(self, group: GroupSpec, answer: Assignment) -> str:
        """Returns the first difference between an answer and the targets, in words; "" if none."""
        ids = {topic.topic_id: topic.name for topic in group.topics}
        names = {one: ids[id_of(one)] for one in self._counts(self.targets) if ids}
        for member in self.members:
            target = self.targets.get(member)
            sides = [(set(self.partitions(given(target), names)), set(answer.get(member, ())))]
            if isinstance(target, wire.StreamsTargetValue):
                standby = answer.standby[member] if answer.standby is not None else ()
                sides.append((set(self.partitions(target.standby, names)), set(standby)))
            for had, computed in sides:
                parts = [f"was given {tp}" for tp in sorted(had - computed)[:1]]
                parts += [f"computed {tp}" for tp in sorted(computed - had)[:1]]
                if parts:
                    return f"{member}: {', '.join(parts)}"
        return ""

    def partitions(self, runs: Sequence[Any], names: Mapping[Uuid, str]) -> list[TopicPartition]:
        return [
            TopicPartition(topic_of(one, names), partition)
            for one in runs
            for partition in one.partitions
        ]

    def _member(self, name: str, value: AnyMember, names: Mapping[Uuid, str]) -> Member:
        # 2.
        pattern = self.patterns.get(pattern_of(value), ())
        topics = dict.fromkeys((*topics_of(value), *pattern))
        instance, current = instance_of(value), self.current.get(name)
        made = Member(name, tuple(topics), instance, value.client_id, value.client_host)
        made = replace(made, rack_id=value.rack_id or None)
        if isinstance(value, wire.StreamsMemberValue):
            has = current if isinstance(current, wire.StreamsCurrentValue) else None
            active, standby = (has.active, has.standby) if has else ((), ())
            tasks = (tuple(self.partitions(runs, names)) for runs in (active, standby))
            return replace(made, streams=StreamsMember(value.process_id, next(tasks), next(tasks)))
        runs = given(self.old.get(name))
        is_empty = any(not one.partitions for one in runs)
        return made.owning(
            tuple(self.partitions(runs, names)),
            None if current is None else current.member_epoch,
            tuple(topic_of(one, names) for one in runs) if is_empty else (),
        )

    def _topics(self, inventory: Iterable[Topic]) -> tuple[Mapping[Uuid, str], list[Topic]]:
        """Returns topic id -> name, and the topics. Errors: GroupError if a name is unknown."""
        # 3.
        if self.has_tasks:
            return {}, []
        state = self.state.initialized if self.state is not None else ()
        ready = {one.topic_id: one.partitions for one in state}
        had = self._counts(self.targets) | self._counts(self.old)
        there = (
            self._whole_counts()
            if self.state is None
            else {
                one: max(had.get(one, 0), *(p + 1 for p in numbers))
                for one, numbers in ready.items()
            }
        )
        by_id = {one.topic_id: one.name for one in inventory if one.topic_id is not None}
        read = {name for one in self.members.values() for name in topics_of(one)}
        read |= {name for topics in self.patterns.values() for name in topics}
        names: dict[Uuid, str] = {}
        for one in there | had:
            name = self.names.get(one) or by_id.get(id_of(one))
            if name is not None and name not in names.values():  # else the topic was created again
                names[one] = name
        # 4.
        left = sorted(read - set(names.values()))
        unknown = [one for one in there if one not in names]
        if len(left) == len(unknown) == 1:
            names[unknown[0]] = left[0]
        elif unknown:
            problem = "in no record; give the topics with their topic_id (--topics)"
            raise GroupError("topics", f"the names of {len(unknown)} topics are {problem}")
        topics = []
        for one in there | had:
            can_read = ready.get(one, ()) if self.state is not None else None
            name, topic_id = names.get(one, id_of(one)), id_of(one)
            topics.append(Topic(name, there.get(one, 0), None, topic_id, can_read))
        return names, topics

    @staticmethod
    def _counts(targets: Mapping[str, AnyTarget]) -> dict[Any, int]:
        counts: dict[Any, int] = {}
        for target in targets.values():
            for run in given(target):
                of = run.subtopology_id if isinstance(run, wire.TaskIds) else run.topic_id
                counts[of] = max(counts.get(of, 0), *(p + 1 for p in run.partitions), 0)
        return counts

    def _whole_counts(self) -> dict[Any, int]:
        """Returns the targets' partition counts. Errors: GroupError if a partition is missing."""
        counts = self._counts(self.targets)
        runs = [run for target in self.targets.values() for run in given(target)]
        found = Counter(topic_of(run, {}) for run in runs for _ in run.partitions)
        for of, count in counts.items():
            name = of if isinstance(of, str) else id_of(of)
            if found[name] < count:
                problem = "partitions are in no target; a record of one is missing or damaged"
                raise GroupError("topics", f"{count - found[name]} {problem}")
        return counts

    @property
    def has_tasks(self) -> bool:
        return any(isinstance(one, wire.StreamsMemberValue) for one in self.members.values())

    def _subtopologies(self) -> Iterator[Subtopology]:
        if self.topology is None:
            raise GroupError("subtopologies", "no record of the topology was read")
        counts = self._whole_counts()
        for one in self.topology.subtopologies:
            if tasks := counts.get(one.subtopology_id):
                is_stateful = bool(one.state_changelog_topics)
                yield Subtopology(one.subtopology_id, tasks, is_stateful, one.source_topics)


def id_of(topic_id: Uuid) -> str:
    return id_text(pack(">qq", *topic_id))

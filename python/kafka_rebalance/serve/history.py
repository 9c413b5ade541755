# SPDX-License-Identifier: Apache-2.0
"""The generations of each group, in order, for tests that check the rebalances."""

from collections import Counter, deque
from typing import Any

from kafka_rebalance.coordinator.broker_assigned.group import AssigningGroup
from kafka_rebalance.coordinator.classic_group.group import Group
from kafka_rebalance.coordinator.streams_group.group import MemberTasks
from kafka_rebalance.errors import WireError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.wire.consumer_protocol import by_topic, decode_assignment
from kafka_rebalance.wire.messages import GroupState

from .cluster import Cluster

MOST_GENERATIONS = 10_000
"""The most generations that are stored for all groups together; older ones are dropped."""


class StableGeneration(Frozen):
    """A generation in which a group became Stable, at `at_ms` of the server's clock.

    In a broker-assigned group, it is an epoch: nobody leads, and `protocol_name` is the
    broker's assignor if members name one. A member's name is its instance id, else its client id,
    or its member id if another member has the same name. `assignment` maps names to partitions by
    topic.
    """

    generation_id: int
    at_ms: int
    protocol_name: str
    leader: str
    member_ids: dict[str, str]
    assignment: dict[str, dict[str, list[int]]]

    @property
    def partitions(self) -> int:
        """Returns the number of partitions that all members own together."""
        owned = (topics.values() for topics in self.assignment.values())
        return sum(len(numbers) for topics in owned for numbers in topics)


class History:
    """The latest generations of each group, by group id."""

    def __init__(self) -> None:
        self._generations: dict[str, deque[StableGeneration]] = {}
        self._noted: deque[str] = deque()  # the group of each generation, the oldest first

    def of(self, group_id: str) -> list[StableGeneration]:
        return list(self._generations.get(group_id, ()))

    def note(self, group: Group, now_ms: int) -> None:
        """Adds the generation of a group that has become Stable."""
        members = group.members.values()
        names = _names({one.member_id: one.group_instance_id or one.client_id for one in members})
        owned = {names[one.member_id]: _partitions(one.assignment) for one in members}
        ids = {name: member_id for member_id, name in names.items()}
        protocol, leader = group.protocol_name or "", names.get(group.leader_id or "", "")
        new = StableGeneration(group.generation_id, now_ms, protocol, leader, ids, owned)
        self._add(group.group_id, new)

    def is_new(self, group: AssigningGroup[Any, Any]) -> bool:
        """Returns whether the group is Stable in an epoch that is not recorded as the newest."""
        newest = self._generations.get(group.group_id, deque())
        is_known = bool(newest) and newest[-1].generation_id == group.epoch
        return not is_known and group.state is GroupState.STABLE

    def note_epoch(self, group: AssigningGroup[Any, Any], now_ms: int, cluster: Cluster) -> None:
        """Adds the epoch of a group that has become Stable."""
        members = group.members.values()
        names = _names({one.member_id: one.instance_id or one.client_id for one in members})
        owned = {names[one.member_id]: _owned(one.assigned, cluster) for one in members}
        ids = {name: member_id for member_id, name in names.items()}
        assignor = getattr(group, "preferred_assignor", str)() or ""
        self._add(group.group_id, StableGeneration(group.epoch, now_ms, assignor, "", ids, owned))

    def _add(self, group_id: str, generation: StableGeneration) -> None:
        self._generations.setdefault(group_id, deque()).append(generation)
        self._noted.append(group_id)
        if len(self._noted) > MOST_GENERATIONS:
            oldest = self._noted.popleft()
            self._generations[oldest].popleft()
            if not self._generations[oldest]:
                del self._generations[oldest]


def _names(wanted: dict[str, str]) -> dict[str, str]:
    """Returns member id -> name: the wanted name or, if several members want it, the id."""
    used = Counter(wanted.values())
    return {one: name if used[name] == 1 else one for one, name in wanted.items()}


def _owned(assigned: Any, cluster: Cluster) -> dict[str, list[int]]:
    """Returns topic -> partitions; in a streams group, subtopology -> numbers of active tasks."""
    if isinstance(assigned, MemberTasks):
        return by_topic(sorted(assigned.active))
    return {cluster.name_of(topic): sorted(numbers) for topic, numbers in assigned.items()}


def _partitions(assignment: bytes) -> dict[str, list[int]]:
    """Returns topic -> partitions; an empty dict if the assignment is not a consumer's."""
    try:
        return by_topic(decode_assignment(assignment).partitions) if assignment else {}
    except WireError:
        return {}

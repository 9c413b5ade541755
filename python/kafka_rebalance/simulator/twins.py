# SPDX-License-Identifier: Apache-2.0
"""Plays eager assignors together: the times of one run also hold for the others, its *twins*.

Members of an eager group give up all partitions before they join, and take new ones when the
leader's assignment arrives. `twins_of` accepts only scenarios in which no event depends on which
partitions a member has: starts and stops take no time, no topic is deleted, no broker is lost, and
no static member restarts (it would keep what its last process had). A member's requests then
depend only on whether it has a partition: without one, it commits nothing before it joins. So while
every member has partitions under both assignors, the runs differ only in holds and gaps. A twin is
dropped if it would leave a member without partitions, or throws: it then gets its own run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kafka_rebalance.assignors.objects import BuiltInAssignor, built_in
from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.wire.classic_groups import JoinGroupResponse, SyncGroup
from kafka_rebalance.wire.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_subscription,
)

from .intervals import Holds
from .process import Process, Sends
from .scenario import Costs, Kind, Scenario

_PLAYED = (Kind.START, Kind.STOP, Kind.KILL, Kind.GROW)


def twins_of(scenario: Scenario, assignor: str, others: Iterable[str]) -> Iterator[str]:
    """Yields the other assignors that can be twins of a run whose members list only `assignor`."""
    restarted = {one.member for one in scenario.happenings if one.kind is Kind.START}
    is_plain = all(one.kind in _PLAYED for one in scenario.happenings) and all(
        getattr(one.config, "partition_assignment_strategy", ()) == (assignor,)
        and (one.config.group_instance_id is None or one.name not in restarted)
        and one.work == Costs()
        for one in scenario.members
    )
    for name in others:
        rows = [BUILT_IN.get(assignor), BUILT_IN.get(name)]
        if is_plain and not any(row is None or row.withholds for row in rows):
            yield name


class Twins(Holds):
    """The holds of the played run; `holds` contains those of each twin that is not dropped."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self.holds = {name: Holds() for name in names}
        self._assignors: dict[tuple[str, str, int], BuiltInAssignor] = {}
        # (twin, process, generation) -> the member's assignor and its partitions, until it takes
        # them; then they are in `_held`, by (twin, process).
        self._given: dict[
            tuple[str, str, int], tuple[BuiltInAssignor, tuple[TopicPartition, ...]]
        ] = {}
        self._held: dict[tuple[str, str], tuple[TopicPartition, ...]] = {}

    def appear(self, partition: str, now_ms: int) -> None:
        super().appear(partition, now_ms)
        for holds in self.holds.values():
            holds.appear(partition, now_ms)

    def take(self, partition: str, member: str, generation_id: int, now_ms: int) -> None:
        super().take(partition, member, generation_id, now_ms)
        for name, holds in self.holds.items():
            if given := self._given.pop((name, member, generation_id), None):
                assignor, self._held[name, member] = given
                assignor.on_assignment(given[1], generation_id)
                for one in given[1]:
                    holds.take(str(one), member, generation_id, now_ms)

    def give(self, partition: str, member: str, now_ms: int) -> None:
        super().give(partition, member, now_ms)
        for name, holds in self.holds.items():
            for one in self._held.pop((name, member), ()):
                holds.give(str(one), member, now_ms)

    def lead(
        self,
        leader: Consumer,
        response: JoinGroupResponse,
        sends: Sends,
        processes: Mapping[str, Process],
    ) -> None:
        """Assigns for each twin, or drops it. `processes` maps member id -> process."""
        for sent in (one.request for _, one in sends if isinstance(one.request, SyncGroup)):
            if not all(decode_assignment(data).partitions for _, data in sent.assignments):
                self.holds.clear()
            for name in list(self.holds):
                if not self._assigns(name, leader, response, processes):
                    del self.holds[name]

    def _assigns(
        self,
        name: str,
        leader: Consumer,
        response: JoinGroupResponse,
        processes: Mapping[str, Process],
    ) -> bool:
        """Assigns for the twin `name`; returns whether every member gets partitions."""
        members, assignors = [], {}
        for one in response.members:
            process = processes[one.member_id]
            key = (name, process.name, process.incarnation)
            assignor = assignors[one.member_id] = self._assignors.setdefault(key, built_in(name))
            sent = decode_subscription(one.metadata)
            sent = replace(sent, user_data=assignor.subscription_user_data(sent.topics))
            members.append(one._replace(metadata=encode_subscription(sent)))
        try:
            shares = leader.assigns(built_in(name), members)
        except KafkaRebalanceError:
            return False
        given = {member_id: decode_assignment(data).partitions for member_id, data in shares}
        for member_id, partitions in given.items():
            key = (name, processes[member_id].name, response.generation_id)
            self._given[key] = (assignors[member_id], partitions)
        return all(given.values())

# SPDX-License-Identifier: Apache-2.0
"""Fills a broker with thousands of groups by bare requests: no client runs for their members.

A member joins with a consumer's subscription, syncs, and is then silent; its session timeout is
half an hour. Group N has one member, or two if N is odd; its members subscribe to two topics. Two
connections are enough for all groups: the JoinGroup of a second member waits on one connection
while the first member joins again on the other one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kafka_rebalance import GroupSpec, Topic, TopicPartition, assign
from kafka_rebalance import Member as Subscriber
from kafka_rebalance.wire.consumer_protocol import (
    HIGHEST_VERSION,
    AssignmentData,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from tests.parity.wire import ANSWER_TIMEOUT_S, Connection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROPERTIES = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "8"}
SESSION_MS = 1_800_000
NO_ERROR, REBALANCE_IN_PROGRESS = 0, 27
NOT_YET = (14, 15, 16)  # COORDINATOR_LOAD_IN_PROGRESS, _NOT_AVAILABLE, NOT_COORDINATOR
PARTITIONS = (3, 6, 12)

Owned = dict[str, tuple[TopicPartition, ...]]


class Library(NamedTuple):
    """What the members of a client library send: client id, assignor, subscription, assignment.

    `answers` names this project's assignor that answers as the library's does.
    """

    client_id: str = "light"
    assignor: str = "range"
    answers: str = "range"
    version: int = HIGHEST_VERSION
    user_data: bytes | None = None
    rack_id: str | None = None
    assignment_version: int = HIGHEST_VERSION
    assignment_data: bytes | None = None


def topic_names(topics: int) -> dict[str, int]:
    """Returns each topic with its number of partitions."""
    return {f"topic-{n}": PARTITIONS[n % len(PARTITIONS)] for n in range(topics)}


def create_topics(server: str, topics: Mapping[str, int]) -> None:
    from kafka import KafkaAdminClient

    wanted = {n: {"num_partitions": p, "replication_factor": 1} for n, p in topics.items()}
    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.create_topics(wanted, wait_for_metadata=True)


class LightGroups:
    """The groups of one broker. `owned` holds the assigned partitions by group and member."""

    def __init__(
        self, server: str, topics: Mapping[str, int], library: Library | None = None
    ) -> None:
        host, _, port = server.partition(":")
        self._library = library or Library()
        name = self._library.client_id
        self._first, self._second = (Connection(host, int(port), f"{name}-{n}") for n in range(2))
        self._topics = dict(topics)
        self._generations: dict[str, int] = {}
        self.owned: dict[str, Owned] = {}

    def add(self, number: int) -> str:
        """Forms a group, and returns its id when the group is Stable."""
        group_id, names = f"group-{number:05}", list(self._topics)
        read = sorted({names[number % len(names)], names[(7 * number + 1) % len(names)]})
        self.form(group_id, read, 1 + number % 2)
        return group_id

    def form(
        self,
        group_id: str,
        read: list[str],
        members: int = 1,
        owned: Sequence[Sequence[TopicPartition]] | None = None,
    ) -> None:
        """Forms a group of one or two members; range assigns, unless they get what is `owned`."""
        joined = self.join(group_id, read)
        ids = [joined.member_id]
        if members == 2:
            joined = self._join_second(group_id, read, ids[0], joined.generation_id, ids)
        self._sync(group_id, joined.generation_id, ids, read, owned)

    def grow(self, group_id: str, read: list[str]) -> None:
        """Lets a second member join a group of one."""
        (first,) = ids = [*self.owned[group_id]]
        joined = self._join_second(group_id, read, first, self._generations[group_id], ids)
        self._sync(group_id, joined.generation_id, ids, read)

    def shrink(self, group_id: str, read: list[str], leaves: int = 1) -> None:
        """Lets one of two members leave; the other one joins again."""
        ids = [*self.owned[group_id]]
        self._leave(group_id, ids.pop(leaves))
        joined = self.join(group_id, read, ids[0])
        self._sync(group_id, joined.generation_id, ids, read)

    def grown(self, topic: str, partitions: int) -> None:
        """From now on, members that join see this number of partitions."""
        self._topics[topic] = partitions

    def join_again(self, group_id: str, read: list[str]) -> None:
        """Lets the only member of a group cause a rebalance."""
        (member_id,) = self.owned[group_id]
        joined = self.join(group_id, read, member_id)
        self._sync(group_id, joined.generation_id, [member_id], read)

    def of(self, group_id: str) -> list[TopicPartition]:
        """Returns the partitions of all members of a group."""
        return [tp for owned in self.owned[group_id].values() for tp in owned]

    def join(self, group_id: str, topics: list[str], member_id: str = "") -> Any:
        """Joins on the first connection, and waits for the answer.

        A new broker is not yet the coordinator of all groups: the join is sent again until it has
        become the coordinator.
        """
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            answer = self._first.ask("join_group", 3, **self._join(group_id, topics, member_id))
            if answer.error_code not in NOT_YET or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        assert answer.error_code == NO_ERROR, answer
        return answer

    def leave(self, group_id: str) -> None:
        """Lets all members leave, so that the group is Empty."""
        for member_id in self.owned[group_id]:
            self._leave(group_id, member_id)

    def _leave(self, group_id: str, member_id: str) -> None:
        answer = self._first.ask("leave_group", 2, group_id=group_id, member_id=member_id)
        assert answer.error_code == NO_ERROR, answer

    def close(self) -> None:
        self._first.close()
        self._second.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _join_second(
        self, group_id: str, topics: list[str], first: str, generation_id: int, ids: list[str]
    ) -> Any:
        """Sends a second member's JoinGroup, waits until the group rebalances, and ends that.

        Returns the first member's answer; the second member's id is added to `ids`. The coordinator
        answers the second member when the first one has joined again.
        """
        self._second.send("join_group", 3, **self._join(group_id, topics, ""))
        code = NO_ERROR
        while code != REBALANCE_IN_PROGRESS:
            answer = self._first.ask(
                "heartbeat", 2, group_id=group_id, generation_id=generation_id, member_id=first
            )
            code = answer.error_code
            assert code in (NO_ERROR, REBALANCE_IN_PROGRESS), answer
        joined = self.join(group_id, topics, first)
        ids.append(self._second_answer().member_id)
        return joined

    def _second_answer(self) -> Any:
        answer = None
        while answer is None:
            answer = self._second.receive()
        assert answer.error_code == NO_ERROR, answer
        return answer

    def _sync(
        self,
        group_id: str,
        generation_id: int,
        ids: list[str],
        read: list[str],
        planted: Sequence[Sequence[TopicPartition]] | None = None,
    ) -> None:
        group = GroupSpec(
            group_id,
            tuple(Topic(name, self._topics[name]) for name in read),
            tuple(Subscriber(member_id, tuple(read)) for member_id in ids),
        )
        one = self._library
        owned = dict(assign(group, one.answers).items())
        if planted is not None:
            owned = {m: tuple(given) for m, given in zip(ids, planted, strict=True)}
        sent = [
            {
                "member_id": m,
                "assignment": encode_assignment(
                    AssignmentData(tuple(owned[m]), one.assignment_data, one.assignment_version)
                ),
            }
            for m in ids
        ]
        for connection, member_id in zip((self._first, self._second), ids, strict=False):
            answer = connection.ask(
                "sync_group", 2, group_id=group_id, generation_id=generation_id,
                member_id=member_id, assignments=sent if member_id == ids[0] else [],
            )  # fmt: skip
            assert answer.error_code == NO_ERROR, answer
        self.owned[group_id] = {m: tuple(owned[m]) for m in ids}
        self._generations[group_id] = generation_id

    def _join(self, group_id: str, topics: list[str], member_id: str) -> dict[str, Any]:
        one = self._library
        subscription = Subscription(
            tuple(topics), one.user_data, rack_id=one.rack_id, version=one.version
        )
        return {
            "group_id": group_id,
            "session_timeout": SESSION_MS,
            "rebalance_timeout": SESSION_MS,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [{"name": one.assignor, "metadata": encode_subscription(subscription)}],
        }

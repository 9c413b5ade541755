# SPDX-License-Identifier: Apache-2.0
"""Real members of consumer groups, for the live tests and the captured sample.

`JavaMembers` runs Kafka's own consumers in one JVM. `PythonMembers` runs kafka-python, with a
thread for each consumer, and aiokafka, with tasks on one loop. `close` or `with` ends them.
"""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from tests.support.broker import java
from tests.support.long_polls import poll_until
from tests.support.loop_thread import LoopThread
from tests.support.processes import end_by_closing_stdin
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_CLOSE_TIMEOUT_S = 20.0
SAME_LOOKS = 3
"""A group has settled (it is not between two rounds) if this many looks in a row find no change."""


JOINS = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
"""The logger of a Java consumer that joins classic groups."""


class JavaMembers:
    """A JVM that runs a program of tools/broker, such as Consumers; its log goes to `log`.

    The log has the steps of classic members: joined, synced, assigned, revoked. The jars in the
    directories `first` replace jars of equal names.
    """

    def __init__(
        self,
        bootstrap_server: str,
        log: Path,
        program: str = "Consumers",
        first: Sequence[Path] = (),
    ) -> None:
        self._turn = threading.Lock()
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                java(
                    f"kafkarebalance.{program}",
                    bootstrap_server,
                    log="error",
                    loggers=[JOINS],
                    first=first,
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, **command: Any) -> dict[str, Any]:
        """Sends add=, close= or stall=, and waits until the groups are stable.

        Returns {group id: {client id: member}}; a member has its member_id, generation_id and
        assignment. Groups with a stalled member are left out.
        """
        groups: dict[str, Any] = self.send(**command)["groups"]
        return groups

    def send(self, **command: Any) -> dict[str, Any]:
        """Sends a command and returns its answer; threads take turns. Errors: RuntimeError."""
        assert self._process.stdin
        assert self._process.stdout
        with self._turn:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(
                self._process.stdout.readline() or '{"error": "the program ended"}'
            )
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        end_by_closing_stdin(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PythonMembers:
    """Members of the Python clients; each polls until `close`."""

    def __init__(self, bootstrap_server: str) -> None:
        for library in ("kafka", "aiokafka"):
            logging.getLogger(library).setLevel(logging.CRITICAL)
        self._server = bootstrap_server
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._loop = LoopThread(_CLOSE_TIMEOUT_S)

    def add(
        self, client: str, group_id: str, client_id: str, assignor: str, topics: Sequence[str]
    ) -> None:
        """Starts a consumer in the background; `client` is "kafka-python" or "aiokafka"."""
        settings = {
            "bootstrap_servers": self._server,
            "group_id": group_id,
            "client_id": client_id,
            "heartbeat_interval_ms": 300,
        }
        if client == "aiokafka":
            self._loop.spawn(self._poll_aiokafka(assignor, topics, settings))
            return
        thread = threading.Thread(
            target=self._poll_kafka_python, args=(assignor, topics, settings), daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(10)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _poll_kafka_python(
        self, assignor: str, topics: Sequence[str], settings: Mapping[str, Any]
    ) -> None:
        from kafka import KafkaConsumer
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

        strategy = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
        }[assignor]
        consumer = KafkaConsumer(partition_assignment_strategy=[strategy], **settings)
        consumer.subscribe(list(topics))
        poll_until(self._ended, consumer)

    async def _poll_aiokafka(
        self, assignor: str, topics: Sequence[str], settings: Mapping[str, Any]
    ) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        # aiokafka's sticky assignor stores its state on the class, so each member needs a subclass.
        strategy = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": type("OwnSticky", (StickyPartitionAssignor,), {}),
        }[assignor]
        consumer = AIOKafkaConsumer(*topics, partition_assignment_strategy=(strategy,), **settings)
        try:
            await consumer.start()
            while not self._ended.is_set():
                await consumer.getmany(timeout_ms=100)
        finally:
            await consumer.stop()


def await_coordinators(bootstrap_server: str, group_ids: Sequence[str]) -> None:
    """Waits until the brokers of a new cluster can serve each of these groups.

    Consumers that join earlier are sent from broker to broker; a consumer of kafka-python can then
    lose its membership.
    """
    from kafka import KafkaAdminClient
    from kafka.errors import CoordinatorNotAvailableError

    deadline = time.monotonic() + FAR_S
    with KafkaAdminClient(bootstrap_servers=bootstrap_server) as admin:
        while True:
            try:
                admin.describe_groups(list(group_ids))
            except CoordinatorNotAvailableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)
            else:
                return


def await_stable(bootstrap_server: str, sizes: Mapping[str, int]) -> None:
    """Waits until every group is Stable with the given number of members."""
    from kafka import KafkaAdminClient
    from kafka.errors import CoordinatorNotAvailableError

    deadline = time.monotonic() + FAR_S
    same, last, groups = 0, None, {}
    with KafkaAdminClient(bootstrap_servers=bootstrap_server) as admin:
        while time.monotonic() < deadline:
            try:
                groups = admin.describe_groups(list(sizes))
            except CoordinatorNotAvailableError:  # the broker has just started
                time.sleep(0.3)
                continue
            there = all(
                group["group_state"] == "Stable" and len(group["members"]) == sizes[group_id]
                for group_id, group in groups.items()
            )
            same = same + 1 if there and groups == last else 0
            last = groups
            if same >= SAME_LOOKS:
                return
            time.sleep(0.3)
    states = {g: (group["group_state"], len(group["members"])) for g, group in groups.items()}
    raise TimeoutError(f"not stable after {FAR_S:.0f} s: {states}, wanted {dict(sizes)}")


def join_by_hand(
    bootstrap_server: str,
    group_id: str,
    subscription: bytes,
    *,
    protocol_type: str = "consumer",
    assignment: bytes | None,
) -> None:
    """Joins a new group with any bytes as subscription; the member's session lasts 60 s.

    If `assignment` is None, no SyncGroup is sent, so the group stays in CompletingRebalance.
    """
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=bootstrap_server) as admin:

        async def send(request: Any) -> Any:
            node = await admin._find_coordinator_id(group_id)
            response = await admin._manager.send(request, node_id=node)
            assert response.error_code == 0, response
            return response

        joined = admin._manager.run(send, _join_request(group_id, protocol_type, subscription))
        if assignment is not None:
            admin._manager.run(send, _sync_request(group_id, joined, assignment))


def _join_request(group_id: str, protocol_type: str, subscription: bytes) -> Any:
    from kafka.protocol.consumer.group import JoinGroupRequest

    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type=protocol_type,
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription)],
        max_version=3,  # from version 4 on, the first response contains only a member id
    )


def _sync_request(group_id: str, joined: Any, assignment: bytes) -> Any:
    from kafka.protocol.consumer.group import SyncGroupRequest

    own = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=assignment
    )
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[own],
        max_version=3,
    )

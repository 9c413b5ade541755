# SPDX-License-Identifier: Apache-2.0
"""A broker that runs inside a test, to test an application that consumes from Kafka.

    pytest_plugins = ["kafka_rebalance.testing"]          # in conftest.py

    def test_a_dead_consumer_is_replaced(serve_kafka):
        broker = serve_kafka({"orders": 6})
        …                                                 # two consumers, client ids "a" and "b"
        broker.wait_until_stable("billing", members=2)
        broker.kill("a")
        left = broker.wait_until_stable("billing", members=1)
        assert left.assignment == {"b": {"orders": [0, 1, 2, 3, 4, 5]}}

The broker listens on a free port of the loopback address, and keeps records in memory and, with
`log_dir`, on disk. This module needs pytest and the extra `serve`.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

try:
    import pytest
except ImportError as error:
    raise ImportError("kafka_rebalance.testing needs pytest: pip install pytest") from error

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.spec import counted
from kafka_rebalance.serve.batches import StoredRecord
from kafka_rebalance.serve.cluster import ServedTopic
from kafka_rebalance.serve.configs import changed
from kafka_rebalance.serve.connections import Limits
from kafka_rebalance.serve.faults import Fault
from kafka_rebalance.serve.history import StableGeneration
from kafka_rebalance.serve.server import Server
from kafka_rebalance.serve.topic_configs import SETTINGS
from kafka_rebalance.wire.messages import GroupState

__all__ = [
    "CoordinatorConfig", "GroupState", "Limits", "RunningBroker", "ServedTopic", "StableGeneration",
    "StoredRecord", "serve_kafka",
]  # fmt: skip

PATIENCE_S = 30.0
_LOOK_AGAIN_S = 0.02
_HEARTBEAT_MS = 500  # a member of a consumer group learns its partitions from a heartbeat

_T = TypeVar("_T")


class RunningBroker:
    """A server in a thread of its own. Every method can be called from the test's thread.

    `topics` maps names to numbers of partitions. With `stopped_clock`, only `advance` and `kill`
    move the clock; without it, time also passes by itself. A later broker with the same `log_dir`
    continues with the state in its log. With `config`, `initial_delay_ms` has no effect, and
    members of the consumer protocol send heartbeats every 5 s by default, not every 0.5 s. With
    `kafka`, which is "2.8", "3.9" or "4.0", requests are answered in the versions of such an older
    broker. If `auto_create` is not 0, a client that asks for an unknown topic creates it with that
    many partitions.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        initial_delay_ms: int = 0,
        stopped_clock: bool = False,
        log_dir: Path | None = None,
        config: CoordinatorConfig | None = None,
        limits: Limits | None = None,
        kafka: str | None = None,
        auto_create: int = 0,
    ) -> None:
        served = [ServedTopic(name, partitions) for name, partitions in topics.items()]
        quick = CoordinatorConfig(
            group_initial_rebalance_delay_ms=initial_delay_ms,
            group_consumer_heartbeat_interval_ms=_HEARTBEAT_MS,
            group_share_heartbeat_interval_ms=_HEARTBEAT_MS,
            group_streams_heartbeat_interval_ms=_HEARTBEAT_MS,
            group_streams_initial_rebalance_delay_ms=initial_delay_ms,
        )
        self._server = Server(
            served,
            config=config or quick,
            stopped_clock=stopped_clock,
            log_dir=log_dir,
            limits=limits,
            kafka=kafka,
            auto_create=auto_create,
        )
        self._loop = asyncio.new_event_loop()
        # A daemon thread: a server that hangs must not keep the test run from ending.
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="kafka-rebalance-serve", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._await(self._server.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._await(self._server.__aexit__())
        finally:
            self._stop()

    def _stop(self) -> None:
        """Ends the thread, and closes the log for the next broker even if the thread hangs."""
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop)
        self._thread.join(PATIENCE_S)
        self._server.close_log()
        if not self._thread.is_alive():
            self._loop.close()

    @property
    def address(self) -> str:
        """Returns the broker's address for `bootstrap.servers`."""
        return self._server.address

    @property
    def recovered(self) -> tuple[int, int]:
        """Returns how many entries the log contained when the broker last read it, and how many
        bytes of an incomplete last entry were cut off.
        """
        return self._server.recovered

    @property
    def connections(self) -> int:
        """Returns the number of open connections."""
        return self._call(lambda: len(self._server.connections))

    # Changes to the cluster -----------------------------------------------------------------------

    def add_topic(
        self, name: str, partitions: int, settings: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic. Errors: GroupError if the name, the number or a setting is wrong."""
        new = changed(SETTINGS, {}, settings or {})
        self._call(lambda: self._server.cluster.add(ServedTopic(name, partitions, settings=new)))

    def grow(self, name: str, partitions: int) -> None:
        """Adds partitions until the topic has this number. Consumers see them in new metadata.

        Errors: GroupError if the name or the number is wrong.
        """
        self._call(lambda: self._server.cluster.grow(name, partitions))

    def configure(self, group_id: str, settings: Mapping[str, str | None]) -> None:
        """Changes settings of a group, such as "share.auto.offset.reset"; None means the default.

        Errors: GroupError for an unknown setting or a wrong value.
        """
        self._call(lambda: self._server.group_configs.change(group_id, settings))

    def cut_off(self, client_id: str) -> None:
        """Closes the client's connections and refuses new ones; its session times out later."""
        self._call(lambda: self._server.connections.cut_off(client_id))

    def let_back(self, client_id: str) -> None:
        """Undoes `cut_off` or `kill`: the broker answers the client's requests again."""
        self._call(lambda: self._server.connections.let_back(client_id))

    def kill(self, client_id: str) -> None:
        """Cuts the client off, and moves the clock until its sessions have expired."""
        sessions = self._call(lambda: self._server.sessions_of(client_id))
        if not sessions:
            raise ValueError(f"client_id: no member has the client id {client_id}")
        self.cut_off(client_id)
        self._call(lambda: self._server.advance(max(sessions)))

    def advance(self, ms: int, *, heartbeats: bool = True) -> None:
        """Moves the clock by `ms`; with `heartbeats`, connected members stay alive meanwhile."""
        self._call(lambda: self._server.advance(ms, heartbeats=heartbeats))

    def fault(
        self,
        api: str,
        *,
        nth: int = 1,
        times: int = 1,
        client_id: str | None = None,
        error: str | int | None = None,
        delay_ms: int = 0,
        lost: bool = False,
        cut_at: int | None = None,
    ) -> None:
        """Disturbs the answers to one kind of request, for example `api` "OffsetCommit".

        From now on, requests number `nth` to `nth + times - 1`, of one client or of all, are
        refused with `error`, such as "NOT_COORDINATOR" or 16, and not carried out. Without an
        error, they are carried out, and the answer is `delay_ms` late by the broker's clock; or it
        is `lost`, and no later request of the connection is read; or the connection ends after
        `cut_at` bytes of the answer.

        Errors: GroupError for a request or an error that is not known.
        """
        fault = Fault(api, nth, times, client_id, error, delay_ms, lost, cut_at)
        self._call(lambda: self._server.faults.add(fault))

    def slow_disk(self, ms: int) -> None:
        """Makes each sync of the log last `ms` longer, by the broker's clock.

        A request that is answered after a sync, such as a commit, waits for this time, too. Errors:
        ValueError without `log_dir`.
        """
        self._call(lambda: self._server.slow_disk(ms))

    def clear_faults(self) -> None:
        """Removes all rules of `fault`."""
        self._call(self._server.faults.clear)

    def move_coordinator(self) -> None:
        """Makes another broker the coordinator of all groups; clients have to find it.

        That broker has a port of its own, and reads the groups from `log_dir`. Errors: ValueError
        without `log_dir`.
        """
        self._await(self._server.move_coordinator())

    def move_away(self) -> None:
        """Makes the broker refuse group requests, as if another broker were now the coordinator."""
        self._call(self._server.unload)

    def move_back(self) -> None:
        """Makes the broker the coordinator again; it reads the groups from `log_dir`."""
        self._call(self._server.reload)

    def expire_offsets(self) -> None:
        """Removes offsets whose retention time has passed, then Empty groups without offsets."""
        self._call(self._server.sweep)

    # Records --------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *more: bytes | None,
        key: bytes | None = None,
        partition: int = 0,
        headers: Mapping[str, bytes] | None = None,
    ) -> list[StoredRecord]:
        """Appends a record for each value to a partition, with the time now; returns the records.

        Errors: GroupError if there is no such partition; TypeError for a str instead of bytes.
        """
        for one in (key, value, *more):
            if not isinstance(one, bytes | None):
                raise TypeError(f'a key or value: {a_type(one)} is not bytes; b"…" is')

        def appended() -> list[StoredRecord]:
            if not self._server.cluster.has(topic, partition):
                raise GroupError("topic", f"{topic} {partition} is not a partition; add it first")
            now, pairs = self._server.now_ms(), tuple((headers or {}).items())
            made = [StoredRecord(partition, -1, now, key, one, pairs) for one in (value, *more)]
            return self._server.records.produce(topic, made)

        return self._call(appended)

    def records(self, topic: str) -> list[StoredRecord]:
        """Returns the topic's records by partition and offset, whoever produced them.

        They include the records of open and aborted transactions. Errors: WireError for a batch
        whose bytes are not records; MissingExtra if the library of its codec is missing.
        """
        return self._call(lambda: self._server.records.records(topic))

    # Results for assertions -----------------------------------------------------------------------

    def history(self, group_id: str) -> list[StableGeneration]:
        """Returns the group's generations that became Stable, oldest first."""
        return self._call(lambda: self._server.history.of(group_id))

    def wait_until_stable(
        self,
        group_id: str,
        *,
        members: int,
        partitions: int | None = None,
        after: int = 0,
        timeout_s: float = PATIENCE_S,
    ) -> StableGeneration:
        """Waits until the group is Stable with this number of members, in a generation > `after`.

        If `partitions` is set, it also waits until the members together own this number. Between
        the two rounds of a cooperative rebalance some partitions have no owner, and a first leader
        may not have seen the topic's metadata yet.

        Errors   TimeoutError after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            found = self._call(lambda: self._stable(group_id))
            if (
                found is not None
                and len(found.assignment) == members
                and partitions in (None, found.partitions)
                and found.generation_id > after
            ):
                return found
            if time.monotonic() > deadline:
                who = f"{counted(members)} within {timeout_s:g} s"
                there = self._call(lambda: self._there(group_id))
                raise TimeoutError(f"{group_id}: not Stable with {who}: {there}")
            time.sleep(_LOOK_AGAIN_S)

    def _stable(self, group_id: str) -> StableGeneration | None:
        group = self._server.coordinator.groups().get(group_id)
        generations = self._server.history.of(group_id)
        if group is None or group.state is not GroupState.STABLE or not generations:
            return None
        return generations[-1]

    def _there(self, group_id: str) -> str:
        """Returns the group's state and its members' client ids, as text."""
        group = self._server.coordinator.groups().get(group_id)
        if group is None:
            return "no such group"
        names = sorted(one.client_id for one in group.members.values())
        return f"it is {group.state.value} with {', '.join(names) or 'no member'}"

    # Threads --------------------------------------------------------------------------------------

    def _call(self, function: Callable[[], _T]) -> _T:
        """Calls `function` in the server's thread, and returns its result."""

        async def called() -> _T:
            return function()

        return self._await(called())

    def _await(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(PATIENCE_S)
        except TimeoutError:
            if future.done():
                raise  # the coroutine itself raised it in time
            future.cancel()
            raise TimeoutError(f"broker: no answer of its thread in {PATIENCE_S:g} s") from None


async def _cancel_others() -> None:
    """Cancels all other tasks of the loop, waits up to 15 s for their end, and stops the loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=PATIENCE_S / 2)
    asyncio.get_running_loop().stop()


@pytest.fixture
def serve_kafka() -> Iterator[Callable[..., RunningBroker]]:
    """Returns a function that starts a `RunningBroker`; the end of the test stops the broker."""
    with ExitStack() as stack:
        yield lambda *topics, **options: stack.enter_context(RunningBroker(*topics, **options))

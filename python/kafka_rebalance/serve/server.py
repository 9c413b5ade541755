# SPDX-License-Identifier: Apache-2.0
"""Runs a coordinator behind a port: the clock, the log, and the answers to all requests.

    async with Server([ServedTopic("orders", 6)]) as server:
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=server.address, …)

Without a log on disk, an append counts as durable at once. With a log, a response that depends on
an append is sent once the append is synced to disk; appends made during a sync share the next one.
"""

import asyncio
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from inspect import isawaitable
from itertools import count
from pathlib import Path
from typing import Any, Self, cast

from kafka_rebalance.coordinator.classic_group.group import Group
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine import events
from kafka_rebalance.coordinator.machine.deadlines import SESSION, DeadlineKey
from kafka_rebalance.wire.broker_groups import ConsumerGroupHeartbeat, ShareGroupHeartbeat
from kafka_rebalance.wire.classic_groups import JoinGroup
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Response, Tick
from kafka_rebalance.wire.offsets import EndTransaction, OffsetCommit, TxnOffsetCommit
from kafka_rebalance.wire.streams_groups import StreamsGroupHeartbeat

from . import groups
from .cluster import Cluster, ServedTopic
from .configs import GroupConfigs
from .connections import Answer, Connections, Limits
from .faults import Broken, Fault, Faults
from .frames import APIS, Asked, KafkaError, apis_of
from .history import History
from .record_log import RecordFiles, RecordLog
from .records import Records
from .share import Shares
from .share_offsets import ShareOffsets
from .topics import Controller
from .transactions import Transactions

MOST_GROUPS = 10_000
"""The largest number of groups; a request for one more gets COORDINATOR_NOT_AVAILABLE."""
SWEEP_S = 600.0
"""Seconds from one removal of expired offsets to the next, as in Kafka's default settings."""
# `advance` handles a deadline at most this many times per millisecond, as `VirtualBroker` does.
_TIMES_AT_A_MOMENT = 3
_NO_LOG = "log_dir: without a log, groups cannot be read again, and nothing is synced"
_NO_FAULT = Fault("")
_BROKER_ASSIGNS = (ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat)
_MAKES_GROUP = (JoinGroup, OffsetCommit, TxnOffsetCommit, *_BROKER_ASSIGNS)
_APPENDS_S = 0.005
"""The delay of an answer to a heartbeat that changes a group: the default of
`group.coordinator.append.linger.ms` in Kafka 4.0. If the answer is sent at once, a consumer of
librdkafka 2.15.0 can stop sending heartbeats.
"""


def _epoch_clock() -> Callable[[], float]:
    """Returns a clock that shows the seconds since 1970 and never goes back."""
    start = time.time() - time.monotonic()
    return lambda: start + time.monotonic()


class Server:
    """A broker with one coordinator. By default, it listens on loopback.

    With `stopped_clock`, the clock starts at 0, and only `advance` moves it. With `kafka` ("2.8",
    "3.9" or "4.0"), only the versions of requests that such an older broker knows are answered. A
    client that asks for an unknown topic creates it with `auto_create` partitions, if not 0.
    """

    def __init__(
        self,
        topics: Iterable[ServedTopic],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        config: CoordinatorConfig | None = None,
        stopped_clock: bool = False,
        log_dir: Path | None = None,
        limits: Limits | None = None,
        kafka: str | None = None,
        auto_create: int = 0,
    ) -> None:
        self.cluster = Cluster(topics, auto_create)
        self.coordinator = Coordinator(config, lambda: str(uuid.uuid4()))
        self.connections = Connections(self._answer, host, port, limits)
        self.connections.apis = self.cluster.apis = apis_of(kafka)
        self.faults = Faults()
        self.history = History()
        self.records = Records(
            self.cluster,
            self.connections.limits,
            self.now_ms,
            lambda *given: self._transactions.verified(*given),
        )
        self.group_configs = GroupConfigs(self.coordinator.config, self._handle)
        self.shares = Shares(
            self.cluster,
            self.records,
            self.group_configs,
            self.connections.limits,
            self.now_ms,
            self.coordinator.groups,
        )
        self._share_offsets = ShareOffsets(self.cluster, self.shares, self.coordinator.groups)
        self.connections.ended = self.shares.disconnected
        self.recovered = (0, 0)
        """The number of entries read from the groups' log, and of bytes cut off all logs' ends."""
        self.sync_ms = 0
        """The additional ms of the server's clock that each sync of the log takes."""
        self.unreadable: list[str] = []
        self._log_dir = log_dir
        self._log: RecordLog | None = None
        self._transactions = Transactions()
        self._clock = None if stopped_clock else _epoch_clock()
        self._moved_ms = 0
        self._position = self._topics_version = 0
        self._request_ids = count(1)
        self._asleep: list[tuple[int, asyncio.Future[None]]] = []
        self._parked: dict[int, asyncio.Future[Any]] = {}
        self._unsynced: list[events.Appended] = []
        self._syncing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: int | None = None
        self._sweeps: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        return self.connections.address

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _start(self) -> None:
        if self._log_dir is not None:
            self._log = RecordLog(self._log_dir)
            entries = self._load(self._log)
            files = RecordFiles(self._log_dir)
            last = max((one.producer_id or 0 for one in entries), default=0)
            last = max(last, self.records.load(files))
            self.recovered = len(entries), self.recovered[1] + files.torn
            self._transactions = Transactions(last + 1)
        await self.connections.__aenter__()
        self.cluster.host, self.cluster.port = self.connections.host, self.connections.port
        self._sweep_later()

    async def __aexit__(self, *_: object) -> None:
        for timer in (self._timer, self._sweeps):
            if timer is not None:
                timer.cancel()
        try:
            await self.connections.__aexit__()
            self.sync_ms = 0
            for one in self._asleep:
                if not one[1].done():
                    one[1].set_result(None)
            if self._syncing is not None:
                await self._syncing
        finally:
            self.close_log()

    def close_log(self) -> None:
        """Closes the log, so that another server can use it even if this one is not stopped."""
        if self._log is not None:
            self._log.close()

    # Requests -------------------------------------------------------------------------------------

    async def _answer(self, asked: Asked, host: str) -> Answer:
        """Returns the answer to a request, changed by the rule of `faults` that applies, if any."""
        fault = self.faults.of(asked) or _NO_FAULT
        if fault.error is not None:
            asked = asked._replace(error=KafkaError(int(fault.error)))
        elif APIS[asked.api].is_coordinated and not self.cluster.is_coordinator(asked.port):
            asked = asked._replace(error=KafkaError.not_coordinator)
        answer = await self._answered(asked, host)
        if fault.delay_ms:
            await self._sleep(fault.delay_ms)
        if answer is not None and (fault.lost or fault.cut_at is not None):
            return Broken(answer, 0 if fault.lost else fault.cut_at or 0, fault.lost)
        return answer

    @cached_property
    def _answers(self) -> Mapping[str, Callable[[Asked], Any]]:
        """Returns the functions for requests that neither `_transact` nor `groups` answers."""
        return {
            **self.cluster.answers,
            **self.records.answers,
            **self._share_offsets.answers,
            **Controller(self.cluster, self.group_configs, self._forget).answers,
            **dict.fromkeys(("share_fetch", "share_acknowledge"), self._share),
        }

    async def _answered(self, asked: Asked, host: str) -> Mapping[str, Any] | Response | None:
        for one in self._share_offsets.makes(asked):
            await self._ask(one, asked._replace(version=1), host)
        if asked.api in self._answers:
            made = self._answers[asked.api](asked)
            fields: Mapping[str, Any] | None = await made if isawaitable(made) else made
            return fields
        if (fields := await self._transact(asked, host)) is not None:
            return fields
        if asked.api == "txn_offset_commit" and not asked.error:
            body = asked.body
            error = self._transactions.verified(
                asked, body.producer_id, body.producer_epoch, body.group_id
            )
            asked = asked._replace(error=error)
        answer = await groups.answered(
            asked, lambda request: self._ask(request, asked, host), self.cluster
        )
        if asked.api == "delete_groups":
            self.shares.forget()
        return answer

    async def _share(self, asked: Asked) -> Mapping[str, Any]:
        fields = await self.shares.answer(asked)
        self._wake()
        return fields

    def _forget(self, deleted: list[events.ClusterTopic]) -> None:
        self.records.drop([(one.name, p) for one in deleted for p in range(one.partitions)])
        self.shares.forget()
        gone = tuple((one.name, one.topic_id) for one in deleted)
        self._handle(events.PartitionsDeleted(topics=gone))

    async def _transact(self, asked: Asked, host: str) -> Mapping[str, Any] | None:
        """Answers requests about transactions; returns None for TxnOffsetCommit and for others."""
        ended = None
        match asked.api:
            case "init_producer_id":
                fields, ended = self._transactions.begin(asked)
            case "add_partitions_to_txn":
                fields = self._transactions.add_partitions(asked, self.cluster)
            case "add_offsets_to_txn":
                fields = self._transactions.add_offsets(asked)
            case "end_txn":
                fields, ended = self._transactions.end(asked)
            case "describe_transactions":
                fields = self._transactions.describe(asked)
            case _:
                return None
        if ended is not None:
            self.records.end_transaction(ended)
            end = EndTransaction(producer_id=ended.producer_id, committed=ended.committed)
            await self._ask(end, asked, host)
        return fields

    async def _ask(self, request: Request, asked: Asked, host: str) -> Any:
        if asked.error:
            return request.refused(cast(ErrorCode, asked.error))
        known = self.coordinator.groups()
        if (
            len(known) >= MOST_GROUPS
            and isinstance(request, _MAKES_GROUP)
            and request.group_id not in known
        ):
            return request.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        request_id, position = next(self._request_ids), self._position
        answer = self._parked[request_id] = asyncio.get_running_loop().create_future()
        try:
            self._handle(events.Received(request_id, request, asked.version, asked.client_id, host))
            appends = isinstance(request, _BROKER_ASSIGNS) and self._position > position
            answered = await answer
        finally:
            self._parked.pop(request_id, None)
        if appends:
            await asyncio.sleep(_APPENDS_S)
        return answered

    # The coordinator ------------------------------------------------------------------------------

    def now_ms(self) -> int:
        ticks = 0.0 if self._clock is None else self._clock()
        return int(ticks * 1000) + self._moved_ms

    def _handle(self, event: events.CoordinatorEvent) -> None:
        waiting = deque([event])
        if self._topics_version != self.cluster.version:
            self._topics_version = self.cluster.version
            waiting.appendleft(self.cluster.topics_changed())
        stable = set()
        while waiting:
            for effect in self.coordinator.handle(waiting.popleft(), self.now_ms()):
                if isinstance(effect, events.Append):
                    waiting.extend(self._append(effect))
                elif isinstance(effect, events.PatternsDue | events.ShareStateDue):
                    waiting.append(effect)
                elif isinstance(effect, events.Transition) and effect.after is GroupState.STABLE:
                    stable.add(effect.group_id)
                else:
                    self._carry_out(effect)
        if isinstance(event, events.Received) and isinstance(event.request, _BROKER_ASSIGNS):
            stable.add(event.request.group_id)
        for group_id in stable:
            group = self.coordinator.groups().get(group_id)
            if isinstance(group, Group):
                self.history.note(group, self.now_ms())
            elif group is not None and self.history.is_new(group):
                self.history.note_epoch(group, self.now_ms(), self.cluster)
        self._wake()

    def _carry_out(self, effect: events.Effect) -> None:
        match effect:
            case events.Respond(request_id) | events.Drop(request_id):
                answer = self._parked.pop(request_id, None)
                if answer is not None and not answer.done():
                    answer.set_result(getattr(effect, "response", None))
            case events.Unreadable(position, problem):
                refused = "a broker cannot load this log, so all its groups are refused"
                self.unreadable.append(f"record {position}: {problem}; {refused}")

    async def _sleep(self, ms: int) -> None:
        """Waits until this time has passed on the server's clock."""
        woken = asyncio.get_running_loop().create_future()
        self._asleep.append((self.now_ms() + ms, woken))
        self._wake()
        await woken

    def _wake(self) -> None:
        """Ends each `_sleep` whose time is over; sets the timer for the next deadline."""
        self.shares.expire()
        for due, woken in self._asleep:
            if due <= self.now_ms() and not woken.done():
                woken.set_result(None)
        self._asleep = [one for one in self._asleep if not one[1].done()]
        dues = [self.coordinator.next_deadline_ms(), self.shares.next_due()]
        dues += (due for due, _ in self._asleep)
        first = min((one for one in dues if one is not None), default=None)
        armed = None if first is None else first - self._moved_ms
        if armed != self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = armed
            if first is not None and self._clock is not None:
                # At least 1 ms, because a deadline may be armed for the present time again and
                # again.
                delay = max(1, first - self.now_ms()) / 1000
                self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._due = None
        self._handle(Tick())

    def _sweep_later(self) -> None:
        self._sweeps = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self.sweep()
        self._sweep_later()

    def sweep(self) -> None:
        """Removes expired offsets and empty groups."""
        self._handle(events.Sweep())

    # The log --------------------------------------------------------------------------------------

    def _load(self, log: RecordLog) -> tuple[events.LogEntry, ...]:
        entries, torn = log.read()
        self.recovered = (len(entries), torn)
        self._handle(events.Loaded(entries))
        return entries

    def _append(self, append: events.Append) -> list[events.CoordinatorEvent]:
        """Appends to the log; returns the result as an event, or [] if a sync must come first."""
        if self._log is None:
            position, self._position = self._position, self._position + len(append.records)
            return [events.Appended(append.append_id, position)]
        try:
            position = self._log.append(append, self.now_ms())
        except OSError:
            return [events.AppendFailed(append.append_id, ErrorCode.KAFKA_STORAGE_ERROR)]
        self._unsynced.append(events.Appended(append.append_id, position))
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.get_running_loop().create_task(self._sync(self._log))
        return []

    async def _sync(self, log: RecordLog) -> None:
        while self._unsynced:
            appended, self._unsynced = self._unsynced, []
            if self.sync_ms:
                await self._sleep(self.sync_ms)
            try:
                await asyncio.to_thread(log.sync)
            except OSError:
                storage = ErrorCode.KAFKA_STORAGE_ERROR
                for one in appended:
                    self._handle(events.AppendFailed(one.append_id, storage))
                continue
            for one in appended:
                self._handle(one)

    def _known_log(self) -> RecordLog:
        if self._log is None:
            raise ValueError(_NO_LOG)
        return self._log

    def slow_disk(self, ms: int) -> None:
        """Makes each sync last `ms` longer. Errors: ValueError without a log, or below 0."""
        self._known_log()
        if ms < 0:
            raise ValueError(f"ms: {ms} is less than 0")
        self.sync_ms = ms

    def unload(self) -> None:
        """Stops coordinating the groups, as if another broker had become their coordinator."""
        self._handle(events.Unloaded())

    def reload(self) -> None:
        """Coordinates the groups in the log again. Errors: ValueError without a log."""
        log = self._known_log()
        self._handle(events.LoadStarted())
        self._load(log)

    async def move_coordinator(self) -> None:
        """Makes a new broker the coordinator: it has a port of its own, and reads the log."""
        self._known_log()
        _, port = await self.connections.listen()
        self.cluster.move_coordinator(port)
        self.unload()
        self.reload()

    # Time -----------------------------------------------------------------------------------------

    def advance(self, ms: int, *, heartbeats: bool = True) -> None:
        """Moves the clock by `ms`, and runs each deadline that falls in that time when it is due.

        With `heartbeats`, members with a connection count as sending heartbeats meanwhile, so only
        the sessions of clients that left or were cut off expire.
        """
        end = self.now_ms() + ms
        times: Counter[DeadlineKey] = Counter()
        while (found := self.coordinator.next_deadline()) is not None and found[1] <= end:
            key, due = found
            if due > self.now_ms():
                times.clear()
            elif times[key] == _TIMES_AT_A_MOMENT:
                if self.now_ms() >= end:
                    break
                due = self.now_ms() + 1
                times.clear()
            self._move_to(due)
            times[key] += 1
            # Only one heartbeat: if the deadline is due again at once, the heartbeat did not move
            # it. More heartbeats could move the clock in steps of 1 ms, for minutes.
            if heartbeats and times[key] == 1 and self._heartbeat(key):
                continue
            self._handle(Tick())
        self._move_to(end)
        self._wake()

    def sessions_of(self, client_id: str) -> list[int]:
        """Returns the session timeouts in ms of a client's members."""
        found = []
        for group in self.coordinator.groups().values():
            for one in group.members.values():
                classic = one if isinstance(group, Group) else getattr(one, "classic", None)
                if one.client_id == client_id and classic is not None:
                    found.append(classic.session_timeout_ms)
                elif one.client_id == client_id:
                    setting = f"group_{group.group_type}_session_timeout_ms"
                    found.append(getattr(self.coordinator.config_of(group.group_id), setting))
        return found

    def _move_to(self, at_ms: int) -> None:
        self._moved_ms += max(0, at_ms - self.now_ms())

    def _heartbeat(self, key: DeadlineKey) -> bool:
        """Restarts a connected member's session; returns whether the deadline `key` moved.

        No Heartbeat is made up: its response could assign partitions, which only the client can
        take.
        """
        group = self.coordinator.groups().get(key.group_id)
        if key.kind not in ("heartbeat", SESSION) or group is None:
            return False
        member = group.members.get(key.member_id)
        if member is None or not self.connections.has_client(member.client_id):
            return False
        self._handle(events.Silent(key.group_id, key.member_id, self.now_ms()))
        self._handle(events.Heard(key.group_id, key.member_id))
        return self.coordinator.next_deadline() != (key, self.now_ms())

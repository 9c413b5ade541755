# SPDX-License-Identifier: Apache-2.0
"""Runs one coordinator in virtual time, with a clock, a log, and failures on request.

An append succeeds at once, is held back, or fails. The coordinator can move to another broker and
back. Effects are collected as (time in ms, effect), in order, until `take` returns them; an
AppendFailed replaces a failed Append.

    Getters   now_ms, coordinator, log, topic, topic_name
    Inputs    send, advance, sweep, delete_partitions, change_topics; hold, release, release_last,
              fail_next; reload, unload; write, mark
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from struct import pack

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator, counted_ids
from kafka_rebalance.coordinator.machine import events as interface
from kafka_rebalance.coordinator.machine.deadlines import DeadlineKey
from kafka_rebalance.group.model import id_text
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Tick

# How often a deadline may run within 1 ms; a join phase without initial delay needs 2 runs.
_TIMES_AT_A_MOMENT = 3

Happened = tuple[int, interface.Effect | interface.AppendFailed]


class VirtualBroker:
    """A coordinator with its clock, which starts at `now_ms`, and its log."""

    def __init__(
        self,
        config: CoordinatorConfig | None = None,
        new_id: Callable[[], str] | None = None,
        now_ms: int = 0,
    ) -> None:
        self.now_ms = now_ms
        self._topic_names: dict[Uuid, str] = {}
        self._cluster = interface.TopicsChanged((), 0)
        self.log: list[interface.LogEntry] = []
        self._new_id = new_id or counted_ids()
        self.coordinator = Coordinator(config, self._new_id)
        self._request_ids = count(1)
        self._happened: list[Happened] = []
        self._outstanding: deque[interface.Appended] = deque()
        self._holding = False
        self._next_error: ErrorCode | None = None
        self._share_state: deque[interface.ShareStateDue] = deque()

    def take(self) -> list[Happened]:
        happened, self._happened = self._happened, []
        return happened

    def send(
        self,
        request: Request,
        *,
        api_version: int | None = None,
        client_id: str = "",
        request_id: int | None = None,
    ) -> int:
        if request_id is None:
            request_id = next(self._request_ids)
        self._handle(interface.Received(request_id, request, api_version, client_id))
        return request_id

    def advance(self, ms: int) -> None:
        """Moves the clock by `ms`, and runs each due deadline at its own time.

        First, the share state that is due is initialised, at the present time. A deadline may be
        armed again for the present time. After `_TIMES_AT_A_MOMENT` of its runs within one
        millisecond, the clock moves by 1 ms, or `advance` ends if no time is left.
        """
        while self._share_state:
            self._handle(self._share_state.popleft())
        end = self.now_ms + ms
        times: Counter[DeadlineKey] = Counter()
        while (found := self.coordinator.next_deadline()) is not None and found[1] <= end:
            key, due = found
            if due > self.now_ms:
                self.now_ms = due
                times.clear()
            elif times[key] == _TIMES_AT_A_MOMENT:
                if self.now_ms == end:
                    break
                self.now_ms += 1
                times.clear()
            times[key] += 1
            self._handle(Tick())
        self.now_ms = end

    def sweep(self) -> None:
        self._handle(interface.Sweep())

    def delete_partitions(self, *partitions: tuple[str, int]) -> None:
        self._handle(interface.PartitionsDeleted(partitions))

    def change_topics(self, *topics: interface.ClusterTopic) -> None:
        """Sets the cluster's topics; offsets and share state of deleted topics are removed."""
        before = self._cluster.topics
        self._cluster = interface.TopicsChanged(topics, self._cluster.version + 1)
        self._topic_names |= {one.topic_id: one.name for one in topics}
        self._handle(self._cluster)
        kept = {one.topic_id for one in topics}
        gone = tuple((one.name, one.topic_id) for one in before if one.topic_id not in kept)
        if gone:
            self._handle(interface.PartitionsDeleted(topics=gone))

    def topic(self, name: str) -> interface.ClusterTopic | None:
        return next((one for one in self._cluster.topics if one.name == name), None)

    def topic_name(self, topic_id: Uuid) -> str:
        """Returns the name of a topic that exists or existed; else the id as a string."""
        return self._topic_names.get(topic_id) or id_text(pack(">qq", *topic_id))

    # The log --------------------------------------------------------------------------------------

    def hold(self) -> None:
        self._holding = True

    def release(self) -> None:
        """Completes all held appends in order; later appends succeed at once."""
        self._holding = False
        while self._outstanding:
            self._handle(self._outstanding.popleft())

    def release_last(self) -> None:
        """Completes only the newest held append, before the older ones."""
        if self._outstanding:
            self._handle(self._outstanding.pop())

    def fail_next(self, error: ErrorCode) -> None:
        """Makes the next append with records fail."""
        self._next_error = error

    def write(self, key: bytes, value: bytes | None, producer_id: int | None = None) -> None:
        """Writes a record to the log; the coordinator reads it when it loads the log."""
        self.log.append(interface.LogEntry(len(self.log), key, value, producer_id))

    def mark(self, producer_id: int, committed: bool) -> None:
        """Writes a transaction's marker; the coordinator reads it when it loads the log."""
        self.log.append(
            interface.LogEntry(len(self.log), producer_id=producer_id, committed=committed)
        )

    def reload(self, *, group_max_size: int | None = None) -> None:
        """Moves the coordinator away and back, so that it loads the log."""
        self.unload()
        if group_max_size is not None:
            config = replace(self.coordinator.config, group_max_size=group_max_size)
            self.coordinator = Coordinator(config, self._new_id)
            if self._cluster.version:
                self._handle(self._cluster)
        self._handle(interface.Loaded(tuple(self.log)))

    def unload(self) -> None:
        self._outstanding.clear()
        self._handle(interface.Unloaded())

    def _handle(self, event: interface.CoordinatorEvent) -> None:
        waiting = deque([event])
        while waiting:
            for effect in self.coordinator.handle(waiting.popleft(), self.now_ms):
                happened: interface.Effect | interface.AppendFailed = effect
                if isinstance(effect, interface.Append):
                    done = self._append(effect)
                    if isinstance(done, interface.AppendFailed):
                        happened = done
                    if done is not None:
                        waiting.append(done)
                elif isinstance(effect, interface.PatternsDue):
                    waiting.append(effect)
                    continue
                elif isinstance(effect, interface.ShareStateDue):
                    self._share_state.append(effect)
                    continue
                self._happened.append((self.now_ms, happened))

    def _append(
        self, append: interface.Append
    ) -> interface.Appended | interface.AppendFailed | None:
        if append.records and self._next_error is not None:
            error, self._next_error = self._next_error, None
            return interface.AppendFailed(append.append_id, error)
        position = len(self.log)
        for record in append.records:
            self.write(*record, append.producer_id)
        if append.committed is not None and append.producer_id is not None:
            self.mark(append.producer_id, append.committed)
        done = interface.Appended(append.append_id, position)
        if not self._holding:
            return done
        self._outstanding.append(done)
        return None

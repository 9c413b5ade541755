# SPDX-License-Identifier: Apache-2.0
"""Defines the entries of a run's journal, and turns the journal into text.

`process.py` and `broker.py` append an entry for each event that a member or the coordinator
handles, so that a run can be replayed from its journal.
"""

from collections.abc import Iterable, Iterator

from kafka_rebalance.coordinator.machine.events import (
    CoordinatorEvent,
    Effect,
    Received,
    Respond,
    TopicsChanged,
    Transition,
)
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.member.interface import FetchMetadata, MemberEffect, MemberEvent, Send
from kafka_rebalance.playback.lines import IdNames, effect_line, listed, response_line
from kafka_rebalance.wire.broker_groups import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_rebalance.wire.classic_groups import (
    Heartbeat,
    HeartbeatResponse,
    JoinGroupResponse,
    SyncGroupResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode

from .scenario import MemberConfig

_Partitions = tuple[TopicPartitions, ...]


class HeartbeatLines:
    """Formats heartbeats of consumer groups; returns None for one that reports nothing new."""

    def __init__(self) -> None:
        self._names: dict[Uuid, str] = {}

    def learn(self, event: TopicsChanged) -> None:
        self._names |= {one.topic_id: one.name for one in event.topics}

    def request(self, request: ConsumerGroupHeartbeat) -> str | None:
        names, pattern = request.subscribed_topic_names, request.subscribed_topic_regex
        owned = request.topic_partitions
        if request.member_epoch > 0 and (names, pattern, owned) == (None, None, None):
            return None
        shows = owned is not None and request.member_epoch >= 0
        fields = {
            "epoch": request.member_epoch,
            "instance": request.instance_id,
            "topics": listed(names) if names else None,
            "pattern": pattern or None,
            "assignor": request.server_assignor,
            "owned": self._listed(owned or ()) if shows else None,
        }
        parts = (f"{name}={value}" for name, value in fields.items() if value is not None)
        return " ".join(("ConsumerGroupHeartbeat", *parts))

    def response(self, response: ConsumerGroupHeartbeatResponse) -> str | None:
        error, assignment = response.error_code, response.assignment
        if error is not ErrorCode.NONE:
            return f"ConsumerGroupHeartbeat {error}"
        if assignment is None and response.member_epoch >= 0:
            return None
        shown = "" if assignment is None else f" assignment={self._listed(assignment)}"
        return f"ConsumerGroupHeartbeat NONE epoch={response.member_epoch}{shown}"

    def _listed(self, partitions: _Partitions) -> str:
        names = sorted(
            (self._names.get(one.topic_id, "?"), number)
            for one in partitions
            for number in one.partitions
        )
        return listed(f"{name}-{number}" for name, number in names)


class MemberEntry(Frozen):
    """An event of a process and its effects. `incarnation` counts the process's starts."""

    at_ms: int
    process: str
    incarnation: int
    config: MemberConfig
    event: MemberEvent
    effects: tuple[MemberEffect, ...]
    generation_id: int


class CoordinatorEntry(Frozen):
    """An event of the coordinator and its effects."""

    at_ms: int
    event: CoordinatorEvent
    effects: tuple[Effect, ...]


class EpochEntry(Frozen):
    """The epochs of a consumer group after a change, and the name of its state in Kafka."""

    at_ms: int
    group_id: str
    epoch: int
    assignment_epoch: int
    state: str

    def __str__(self) -> str:
        target = f"target of epoch {self.assignment_epoch}"
        return f"group {self.group_id}: {self.state} epoch={self.epoch}, {target}"


Entry = MemberEntry | CoordinatorEntry | EpochEntry


def lines(journal: Iterable[Entry]) -> Iterator[str]:
    """Yields the run as text, with names instead of ids.

    Omitted are Heartbeat requests and their responses without an error, heartbeats of consumer
    groups that report nothing new, requests for metadata, and the coordinator's timers and appends.
    """
    names, heartbeats = IdNames(), HeartbeatLines()
    clients: dict[int, str] = {}
    for entry in journal:
        if isinstance(entry, EpochEntry):
            yield f"{entry.at_ms / 1000:.3f}s {entry}"
            continue
        for line in _entry_lines(entry, clients, names, heartbeats):
            yield f"{entry.at_ms / 1000:.3f}s {names.in_text(line)}"


def _entry_lines(
    entry: MemberEntry | CoordinatorEntry,
    clients: dict[int, str],
    names: IdNames,
    heartbeats: HeartbeatLines,
) -> Iterator[str]:
    if isinstance(entry, MemberEntry):
        for done in entry.effects:
            if isinstance(done, Send) and isinstance(done.request, ConsumerGroupHeartbeat):
                names.call(done.request.member_id, entry.process)
                text = heartbeats.request(done.request)
                if text is not None:
                    yield f"{entry.process}: -> {done.node_id}: {text}"
                continue
            request = done.request if isinstance(done, Send) else None
            if not isinstance(done, FetchMetadata) and not isinstance(request, Heartbeat):
                yield f"{entry.process}: {effect_line(done, entry.generation_id)}"
        return
    if isinstance(entry.event, TopicsChanged):
        heartbeats.learn(entry.event)
    if isinstance(entry.event, Received):
        clients[entry.event.request_id] = entry.event.client_id
    for effect in entry.effects:
        match effect:
            case Respond(_, HeartbeatResponse(error_code=ErrorCode.NONE)):
                pass
            case Respond(number, ConsumerGroupHeartbeatResponse() as response):
                text = heartbeats.response(response)
                if text is not None:
                    yield f"coordinator -> {clients[number]}: {text}"
            case Respond(number, SyncGroupResponse(error_code=error)):
                # The line of the leader's SyncGroup request has already shown the assignment.
                yield f"coordinator -> {clients[number]}: SyncGroup {error}"
            case Respond(number, response):
                if isinstance(response, JoinGroupResponse):
                    names.call(response.member_id, clients[number])
                yield f"coordinator -> {clients[number]}: {response_line(response, names)}"
            case Transition(group_id, before, after, generation_id):
                yield f"group {group_id}: {before} -> {after} generation={generation_id}"

# SPDX-License-Identifier: Apache-2.0
"""The events that `Coordinator.handle` takes, and the effects that it returns.

An event reports something that happened; an effect asks the host to do something, or informs it.
A continuation is what the coordinator does when an append is durable, or has failed.
"""

from typing import Any, NamedTuple

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire.error_codes import ErrorCode, of_operation_error
from kafka_rebalance.wire.messages import GroupState, Request, Response, Tick

from ..config import CoordinatorConfig
from .deadlines import SESSION, DeadlineKey


class LogRecord(NamedTuple):
    """A record of the log. It is a tombstone if `value` is None."""

    key: bytes
    value: bytes | None


class LogEntry(NamedTuple):
    """A record, or a transaction's marker, at its position in the log.

    `producer_id` is set for records of a transaction. If `committed` is set too, the entry is that
    producer's marker, and key and value are empty.
    """

    position: int
    key: bytes = b""
    value: bytes | None = None
    producer_id: int | None = None
    committed: bool | None = None


class _Event(Frozen):
    """Something that happened, except for a deadline (`Tick`)."""


class Received(_Event):
    """A request has arrived. The caller chooses `request_id`; the response has the same id.

    `api_version` is the request's version; None means the newest version of Kafka 4.4.0.
    """

    request_id: int
    request: Request
    api_version: int | None = None
    client_id: str = ""
    client_host: str = "/127.0.0.1"


class Appended(_Event):
    """An Append is durable; its first record is at `position`."""

    append_id: int
    position: int


class AppendFailed(_Event):
    """An Append failed: none of its records is in the log."""

    append_id: int
    error: ErrorCode


class LoadStarted(_Event):
    """This broker has become the coordinator; requests are refused until Loaded."""


class Loaded(_Event):
    """The whole log has been read, in order; the coordinator starts with these entries."""

    entries: tuple[LogEntry, ...]


class Unloaded(_Event):
    """Another broker has become the coordinator."""


class PartitionsDeleted(_Event):
    """The cluster has deleted single partitions (topic, number) and whole topics (name, id).

    Offsets and share state that were stored for a deleted topic's name with another id remain.
    """

    partitions: tuple[tuple[str, int], ...] = ()
    topics: tuple[tuple[str, Uuid], ...] = ()


class ClusterTopic(NamedTuple):
    """A topic of the cluster. `racks` lists the racks of each partition's replicas, if known."""

    name: str
    topic_id: Uuid
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


class TopicsChanged(_Event):
    """The cluster has exactly these topics from now on. `version` is the metadata's offset."""

    topics: tuple[ClusterTopic, ...]
    version: int


class Sweep(_Event):
    """Offsets and empty groups may expire now (every `offsets.retention.check.interval.ms`)."""


class Silent(_Event):
    """The host reports a member silent since `since_ms`; its session timeout runs from then."""

    group_id: str
    member_id: str
    since_ms: int


class Heard(_Event):
    """The host reports that a silent member sends heartbeats again."""

    group_id: str
    member_id: str


class PatternsDue(_Event):
    """The host passes this effect back as an event, after the appends emitted before it; then the
    patterns are resolved.
    """

    group_id: str
    patterns: tuple[str, ...]


class ShareStateDue(_Event):
    """The host initialises share state, and then passes this effect back as an event."""

    group_id: str
    partitions: tuple[tuple[Uuid, tuple[int, ...]], ...]


class GroupConfigured(_Event):
    """From now on, the group has its own settings or, if `config` is None, the broker's."""

    group_id: str
    config: CoordinatorConfig | None


CoordinatorEvent = _Event | Tick


class Respond(Frozen):
    """The host sends this response to the request."""

    request_id: int
    response: Response


class Drop(Frozen):
    """A newer request of the member has replaced this parked request, which gets no response."""

    request_id: int


class Append(Frozen):
    """The host appends the records and reports Appended or AppendFailed.

    The records belong to a transaction if `producer_id` is set. If `committed` is set, there are no
    records: the host writes the producer's marker.
    """

    append_id: int
    records: tuple[LogRecord, ...]
    producer_id: int | None = None
    committed: bool | None = None


class Transition(Frozen):
    """A group has changed its state or generation."""

    group_id: str
    before: GroupState
    after: GroupState
    generation_id: int


class Expired(Frozen):
    """A deadline has passed."""

    key: DeadlineKey


class Unreadable(Frozen):
    """The load failed at this record; as after Unloaded, every request is refused."""

    position: int
    problem: str


Effect = Respond | Drop | Append | Transition | Expired | Unreadable | PatternsDue | ShareStateDue


# Continuations -----------------------------------------------------------------------------------

_RETRY_MS = 500


class Continuation(Frozen):
    """Actions after an append; by default there are none.

    A `state` is a `Shard`; its type is `Any` here, because the module of `Shard` imports this one.
    Requests that need other actions have a `Continuation` of their own, next to their handler.
    """

    def done(self, state: Any) -> None:
        """Called when the append is durable."""

    def failed(self, state: Any, error: ErrorCode) -> None:
        """Called when the append failed, or the coordinator's state is lost (NOT_COORDINATOR)."""


class Answer(Continuation):
    """After the append, `response` is sent, or a refusal of `request` if the append failed.

    For a share group's member, the host must then carry out `due`. For a classic member, the
    deadline `cancelled` is cancelled, and those in `armed` are armed: pairs (key, delay in ms).
    """

    request_id: int
    response: Response
    request: Request
    due: ShareStateDue | None = None
    cancelled: DeadlineKey | None = None
    armed: tuple[tuple[DeadlineKey, int], ...] = ()

    def done(self, state: Any) -> None:
        if self.cancelled is not None:
            state.deadlines.cancel(self.cancelled)
        for key, delay_ms in self.armed:
            if key.kind == SESSION:
                state.start_session(key, delay_ms)
            else:
                state.deadlines.arm(key, state.now_ms + delay_ms)
        state.respond(self.request_id, self.response)
        if self.due is not None:
            state.effects.append(self.due)

    def failed(self, state: Any, error: ErrorCode) -> None:
        state.respond(self.request_id, self.request.refused(of_operation_error(error)))


class Retry(Continuation):
    """Arms the passed deadline again, for 500 ms later, on a failure except NOT_COORDINATOR."""

    key: DeadlineKey
    revocation: int | None  # the epoch that the passed deadline took from `revocations`

    def failed(self, state: Any, error: ErrorCode) -> None:
        if error is not ErrorCode.NOT_COORDINATOR:
            state.deadlines.arm(self.key, state.now_ms + _RETRY_MS)
            if self.revocation is not None:
                state.revocations[self.key] = self.revocation

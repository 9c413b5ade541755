# SPDX-License-Identifier: Apache-2.0
"""What goes into `Coordinator.handle`, events, and what comes out, effects.

An event is what has happened, an effect what is to be done about it.

    Received                        a request -> Respond, at once or with a later event
    Appended, AppendFailed          what came of an Append
    Tick                            time has come to `now_ms`
    LoadStarted, Loaded, Unloaded   the partition of `__consumer_offsets` comes and goes
    PartitionsDeleted, Sweep        of the cluster, of the clock
    Silent, Heard                   of members, where the host vouches for all others
"""

from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.group_state import GroupState
from kafka_rebalance.protocol.messages import Request, Response
from kafka_rebalance.protocol.tick import Tick

from .deadlines import DeadlineKey

# Events ------------------------------------------------------------------------------------------


class LogRecord(NamedTuple):
    """A record of the log; `value` None is a tombstone."""

    key: bytes
    value: bytes | None


class LogEntry(NamedTuple):
    """A record, or a transaction's marker, at its place in the log.

    `producer_id` where it is part of a transaction; `committed` set makes it that producer's
    marker, and then key and value are empty.
    """

    position: int
    key: bytes = b""
    value: bytes | None = None
    producer_id: int | None = None
    committed: bool | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A request has come. `request_id` is the caller's, and names it in `Respond`.

    `api_version` is the newest that the client and the broker have for this request; None is the
    newest of all.
    """

    request_id: int
    request: Request
    api_version: int | None = None
    client_id: str = ""
    client_host: str = "/127.0.0.1"


@dataclass(frozen=True, slots=True)
class Appended:
    """The log has taken an Append durably; its first record is at `position`."""

    append_id: int
    position: int


@dataclass(frozen=True, slots=True)
class AppendFailed:
    """The log has not taken an Append."""

    append_id: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LoadStarted:
    """This broker has become the coordinator; requests are refused until Loaded."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The whole log, in order; the coordinator starts from it."""

    entries: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Another broker has become the coordinator."""


@dataclass(frozen=True, slots=True)
class PartitionsDeleted:
    """(topic, partition)s are gone from the cluster."""

    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Expired offsets and empty groups go; Kafka: every `offsets.retention.check.interval.ms`."""


@dataclass(frozen=True, slots=True)
class Silent:
    """A member says nothing any more since `since_ms`: its session ends by itself."""

    group_id: str
    member_id: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Heard:
    """A member that was silent is heard of again."""

    group_id: str
    member_id: str


CoordinatorEvent = (
    Received
    | Tick
    | Appended
    | AppendFailed
    | LoadStarted
    | Loaded
    | Unloaded
    | PartitionsDeleted
    | Sweep
    | Silent
    | Heard
)


# Effects ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer a request."""

    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Drop:
    """A parked request that a newer one of the same member has replaced: it gets no answer."""

    request_id: int


@dataclass(frozen=True, slots=True)
class Append:
    """Append records (of a transaction, where `producer_id` is set) and say what came of it.

    With `committed` set there are no records: it is the producer's marker.
    """

    append_id: int
    records: tuple[LogRecord, ...]
    producer_id: int | None = None
    committed: bool | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A group has changed its state."""

    group_id: str
    before: GroupState
    after: GroupState
    generation_id: int


@dataclass(frozen=True, slots=True)
class Expired:
    """A deadline has passed."""

    key: DeadlineKey


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record of the log could not be read and was passed over."""

    position: int
    problem: str


Effect = Respond | Drop | Append | Transition | Expired | Unreadable

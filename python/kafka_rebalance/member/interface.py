# SPDX-License-Identifier: Apache-2.0
"""What goes into `Consumer.handle`, and what comes out.

An event is what has happened, an effect what is to be done about it.

    Subscribe, SubscribePattern, Unsubscribe, Poll, Close     the application
    MetadataUpdated, ConfigurationUpdated                     the cluster
    Answered, Failed                                          the network
    Tick, Vouched                                             the clock, and who keeps it
"""

from dataclasses import dataclass

from kafka_rebalance.assignors.connect import Work
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.protocol import ErrorCode, Request, Response
from kafka_rebalance.protocol.tick import Tick

from .states import MemberState

Partitions = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """subscribe(topics)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """subscribe(pattern): all topics whose whole name matches."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """unsubscribe(): gives everything up and leaves."""


@dataclass(frozen=True, slots=True)
class Poll:
    """poll(): `positions` are (partition, next offset) of what has been consumed so far."""

    positions: tuple[tuple[TopicPartition, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Close:
    """close()."""


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """All topics of the cluster, as far as the client may see them."""

    topics: tuple[Topic, ...]


@dataclass(frozen=True, slots=True)
class ConfigurationUpdated:
    """A Connect worker has read its configuration topic up to `offset`; (connector, tasks)."""

    offset: int
    connectors: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The response to a request has come."""

    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Failed:
    """No response will come: disconnected."""

    request_id: int


@dataclass(frozen=True, slots=True)
class Vouched:
    """The host has not simulated this member for a while: it was well.

    Its last heartbeat was sent and answered at `heartbeat_ms`, its last poll() at `polled_ms`.
    """

    heartbeat_ms: int
    polled_ms: int


MemberEvent = (
    Subscribe
    | SubscribePattern
    | Unsubscribe
    | Poll
    | Close
    | MetadataUpdated
    | ConfigurationUpdated
    | Answered
    | Failed
    | Tick
    | Vouched
)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request: to a node, or to the least loaded one where `node_id` is None."""

    request_id: int
    node_id: int | None
    request: Request
    api_version: int | None = None


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """The client wants the cluster's metadata now."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """onPartitionsRevoked: the member still owns them while it is called."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Assigned:
    """onPartitionsAssigned: what is new; called with nothing too."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Lost:
    """onPartitionsLost: others may own them already."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Start:
    """A Connect worker starts connectors and tasks."""

    work: Work


@dataclass(frozen=True, slots=True)
class Stop:
    """It stops them, and goes on when they have stopped; `is_revoked` where its leader says so."""

    work: Work
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class MemberTransition:
    """The member has changed its state."""

    before: MemberState
    after: MemberState


@dataclass(frozen=True, slots=True)
class Fatal:
    """poll() throws; the member goes on only if the application polls again."""

    error_code: ErrorCode
    message: str


MemberEffect = (
    Send | FetchMetadata | Revoked | Assigned | Lost | Start | Stop | MemberTransition | Fatal
)

# SPDX-License-Identifier: Apache-2.0
"""The events that `handle` of consumers and workers takes, and the effects that it returns.

An event reports something that happened; an effect asks the host to do something.

    Subscribe, SubscribePattern, Unsubscribe, Poll, Close     the application
    MetadataUpdated, ConfigurationUpdated                     the cluster
    Answered, Failed                                          the network
    Tick, Vouched, Polled, CallbackCompleted                  the host
"""

from dataclasses import dataclass

from kafka_rebalance.assignors.connect import Work
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response, Tick

from .consumer_group.states import ConsumerMemberState
from .states import MemberState

Partitions = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The application calls subscribe(topics)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """The application calls subscribe(pattern); the pattern must match a topic's whole name."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The application calls unsubscribe(): the member gives up its partitions and leaves."""


@dataclass(frozen=True, slots=True)
class Poll:
    """The application calls poll(); `positions` are pairs (partition, next offset to read)."""

    positions: tuple[tuple[TopicPartition, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Close:
    """The application closes the member."""


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """The client has new metadata: all topics of the cluster that the client may see."""

    topics: tuple[Topic, ...]


@dataclass(frozen=True, slots=True)
class ConfigurationUpdated:
    """A worker has read the configuration topic up to `offset`; `connectors` are (name, tasks)."""

    offset: int
    connectors: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The response to a request has arrived."""

    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Failed:
    """A request will get no response: the connection was lost."""

    request_id: int


@dataclass(frozen=True, slots=True)
class Vouched:
    """The host reports that a member was healthy, and when it last sent a heartbeat and polled."""

    heartbeat_ms: int
    polled_ms: int


@dataclass(frozen=True, slots=True)
class Polled:
    """The host reports the application's last poll, which had no effect on the member.

    Without this report, a member that waits for a long time would count as one whose application
    does not poll.
    """

    at_ms: int


@dataclass(frozen=True, slots=True)
class CallbackCompleted:
    """The callback of an AsyncConsumer's last Revoked, Assigned or Lost has returned."""


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
    | Polled
    | CallbackCompleted
)


@dataclass(frozen=True, slots=True)
class Send:
    """The host sends a request to a node, or to the least loaded node if `node_id` is None."""

    request_id: int
    node_id: int | None
    request: Request
    api_version: int | None = None


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """The client requests the cluster's metadata now."""


@dataclass(frozen=True, slots=True)
class PendingRevocation:
    """An AsyncConsumer reads these partitions no more; onPartitionsRevoked follows."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Revoked:
    """The host calls onPartitionsRevoked; the member owns the partitions until it returns."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Assigned:
    """The host calls onPartitionsAssigned with the gained partitions, even if there are none."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Lost:
    """The host calls onPartitionsLost; other members may own these partitions already."""

    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Start:
    """A Connect worker starts connectors and tasks."""

    work: Work


@dataclass(frozen=True, slots=True)
class Stop:
    """A Connect worker stops connectors and tasks; `is_revoked` if its leader revoked them."""

    work: Work
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class MemberTransition:
    """The member has changed its state."""

    before: MemberState | ConsumerMemberState
    after: MemberState | ConsumerMemberState


@dataclass(frozen=True, slots=True)
class Fatal:
    """poll() throws; the member continues only if the application polls again."""

    error_code: ErrorCode
    message: str


MemberEffect = (
    Send
    | FetchMetadata
    | PendingRevocation
    | Revoked
    | Assigned
    | Lost
    | Start
    | Stop
    | MemberTransition
    | Fatal
)

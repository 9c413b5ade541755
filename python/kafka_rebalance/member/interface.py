# SPDX-License-Identifier: Apache-2.0
"""The events that `handle` of consumers and workers takes, and the effects that it returns.

An event reports something that happened; an effect asks the host to do something.

    Subscribe, SubscribePattern, Unsubscribe, Poll, Close     the application
    MetadataUpdated, ConfigurationUpdated                     the cluster
    Answered, Failed                                          the network
    Tick, Vouched, Polled, CallbackCompleted                  the host
"""

from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Frozen, Request, Response, Tick

from .consumer_group.states import ConsumerMemberState
from .states import MemberState

Partitions = tuple[TopicPartition, ...]


class Subscribe(Frozen):
    """The application calls subscribe(topics)."""

    topics: tuple[str, ...]


class SubscribePattern(Frozen):
    """The application calls subscribe(pattern); the pattern must match a topic's whole name."""

    pattern: str


class Unsubscribe(Frozen):
    """The application calls unsubscribe(): the member gives up its partitions and leaves."""


class Poll(Frozen):
    """The application calls poll(); `positions` are pairs (partition, next offset to read)."""

    positions: tuple[tuple[TopicPartition, int], ...] = ()


class Close(Frozen):
    """The application closes the member."""


class MetadataUpdated(Frozen):
    """The client has new metadata: all topics of the cluster that the client may see."""

    topics: tuple[Topic, ...]


class ConfigurationUpdated(Frozen):
    """A worker has read the configuration topic up to `offset`; `connectors` are (name, tasks)."""

    offset: int
    connectors: tuple[tuple[str, int], ...]


class Answered(Frozen):
    """The response to a request has arrived."""

    request_id: int
    response: Response


class Failed(Frozen):
    """A request will get no response: the connection was lost."""

    request_id: int


class Vouched(Frozen):
    """The host reports that a member was healthy, and when it last sent a heartbeat and polled."""

    heartbeat_ms: int
    polled_ms: int


class Polled(Frozen):
    """The host reports the application's last poll, which had no effect on the member.

    Without this report, a member that waits for a long time would count as one whose application
    does not poll.
    """

    at_ms: int


class CallbackCompleted(Frozen):
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


class Send(Frozen):
    """The host sends a request to a node, or to the least loaded node if `node_id` is None."""

    request_id: int
    node_id: int | None
    request: Request
    api_version: int | None = None


class FetchMetadata(Frozen):
    """The client requests the cluster's metadata now."""


class PendingRevocation(Frozen):
    """An AsyncConsumer stops reading these partitions; onPartitionsRevoked follows."""

    partitions: Partitions


class Revoked(Frozen):
    """The host calls onPartitionsRevoked; the member owns the partitions until it returns."""

    partitions: Partitions


class Assigned(Frozen):
    """The host calls onPartitionsAssigned with the gained partitions, even if there are none."""

    partitions: Partitions


class Lost(Frozen):
    """The host calls onPartitionsLost; other members may own these partitions already."""

    partitions: Partitions


class Start(Frozen):
    """A Connect worker starts connectors and tasks."""

    work: Work


class Stop(Frozen):
    """A Connect worker stops connectors and tasks; `is_revoked` if its leader revoked them."""

    work: Work
    is_revoked: bool = False


class MemberTransition(Frozen):
    """The member has changed its state."""

    before: MemberState | ConsumerMemberState
    after: MemberState | ConsumerMemberState


class Fatal(Frozen):
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

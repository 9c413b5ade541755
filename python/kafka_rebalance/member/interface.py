# SPDX-License-Identifier: Apache-2.0
"""The events that `handle` of consumers and workers takes, and the effects that it returns.

An event reports something that happened; an effect asks the host to do something.

    Subscribe, SubscribePattern, Unsubscribe, Poll, Close     the application
    MetadataUpdated, ConfigurationUpdated                     the cluster
    Answered, Failed                                          the network
    Tick, Vouched, Polled, CallbackCompleted                  the host
"""

from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, Response, Tick

from .states import AnyState

Partitions = tuple[TopicPartition, ...]


class _Event(Frozen):
    """Something that happened, except for a deadline (`Tick`)."""


class MemberEffect(Frozen):
    """An action that a member asks of its host."""


class Subscribe(_Event):
    """The application calls subscribe(topics)."""

    topics: tuple[str, ...]


class SubscribePattern(_Event):
    """The application calls subscribe(pattern); the pattern must match a topic's whole name."""

    pattern: str


class Unsubscribe(_Event):
    """The application calls unsubscribe(): the member gives up its partitions and leaves."""


class Poll(_Event):
    """The application calls poll(). `positions` are pairs (partition, next offset to read)."""

    positions: tuple[tuple[TopicPartition, int], ...] = ()


class Close(_Event):
    """The application closes the member."""


class MetadataUpdated(_Event):
    """The client has new metadata: all topics of the cluster that the client may see."""

    topics: tuple[Topic, ...]


class ConfigurationUpdated(_Event):
    """A worker has read the configuration topic up to `offset`. `connectors` are (name, tasks)."""

    offset: int
    connectors: tuple[tuple[str, int], ...]


class Answered(_Event):
    """The response to a request has arrived."""

    request_id: int
    response: Response


class Failed(_Event):
    """A request will get no response: the connection was lost."""

    request_id: int


class Vouched(_Event):
    """The host vouches that a member was healthy; it names the last heartbeat and the last poll."""

    heartbeat_ms: int
    polled_ms: int


class Polled(_Event):
    """The host reports the application's last poll, which had no effect on the member.

    Without this report, the application of a member that waits would seem to have stopped polling.
    """

    at_ms: int


class CallbackCompleted(_Event):
    """The callback of an AsyncConsumer's last Revoked, Assigned or Lost has returned."""


MemberEvent = _Event | Tick


class Send(MemberEffect):
    """The host sends a request to a node, or to the least loaded node if `node_id` is None."""

    request_id: int
    node_id: int | None
    request: Request
    api_version: int | None = None


class FetchMetadata(MemberEffect):
    """The client requests the cluster's metadata now."""


class PendingRevocation(MemberEffect):
    """An AsyncConsumer stops reading these partitions; onPartitionsRevoked follows."""

    partitions: Partitions


class Revoked(MemberEffect):
    """The host calls onPartitionsRevoked; the member owns the partitions until it returns."""

    partitions: Partitions


class Assigned(MemberEffect):
    """The host calls onPartitionsAssigned with the gained partitions, even if there are none."""

    partitions: Partitions


class Lost(MemberEffect):
    """The host calls onPartitionsLost; other members may own these partitions already."""

    partitions: Partitions


class Start(MemberEffect):
    """A Connect worker starts connectors and tasks."""

    work: Work


class Stop(MemberEffect):
    """A Connect worker stops connectors and tasks; if `is_revoked`, its leader revoked them."""

    work: Work
    is_revoked: bool = False


class MemberTransition(MemberEffect):
    """The member has changed its state."""

    before: AnyState
    after: AnyState


class Fatal(MemberEffect):
    """poll() throws; a classic member continues only if the application polls again."""

    error_code: ErrorCode
    message: str

"""The client's side of the classic group protocol, without I/O: `Consumer.handle(event, now)`."""

from .config import ConsumerConfig
from .consumer import Consumer
from .events import (
    Answered,
    Assigned,
    Close,
    Failed,
    Fatal,
    FetchMetadata,
    Lost,
    MemberEffect,
    MemberEvent,
    MemberTransition,
    MetadataUpdated,
    Poll,
    Revoked,
    Send,
    Subscribe,
    SubscribePattern,
    Tick,
    Unsubscribe,
    Vouched,
)
from .states import MemberState

__all__ = [
    "Answered",
    "Assigned",
    "Close",
    "Consumer",
    "ConsumerConfig",
    "Failed",
    "Fatal",
    "FetchMetadata",
    "Lost",
    "MemberEffect",
    "MemberEvent",
    "MemberState",
    "MemberTransition",
    "MetadataUpdated",
    "Poll",
    "Revoked",
    "Send",
    "Subscribe",
    "SubscribePattern",
    "Tick",
    "Unsubscribe",
    "Vouched",
]

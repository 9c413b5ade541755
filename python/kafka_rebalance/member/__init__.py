# SPDX-License-Identifier: Apache-2.0
"""The client's side of the classic group protocol, without I/O: consumers and Connect workers.

`member.handle(event, now_ms)` returns effects.
"""

from .config import ConsumerConfig
from .consumer import Consumer
from .group_member import GroupMember
from .interface import (
    Answered,
    Assigned,
    Close,
    ConfigurationUpdated,
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
    Start,
    Stop,
    Subscribe,
    SubscribePattern,
    Unsubscribe,
    Vouched,
)
from .states import MemberState
from .worker import Worker
from .worker_config import WorkerConfig

__all__ = [
    "Answered",
    "Assigned",
    "Close",
    "ConfigurationUpdated",
    "Consumer",
    "ConsumerConfig",
    "Failed",
    "Fatal",
    "FetchMetadata",
    "GroupMember",
    "Lost",
    "MemberEffect",
    "MemberEvent",
    "MemberState",
    "MemberTransition",
    "MetadataUpdated",
    "Poll",
    "Revoked",
    "Send",
    "Start",
    "Stop",
    "Subscribe",
    "SubscribePattern",
    "Unsubscribe",
    "Vouched",
    "Worker",
    "WorkerConfig",
]

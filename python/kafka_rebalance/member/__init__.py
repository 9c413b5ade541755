# SPDX-License-Identifier: Apache-2.0
"""The client's side of groups, without I/O: consumers of both protocols, Connect workers."""

from .config import ConsumerConfig as ConsumerConfig
from .config import WorkerConfig as WorkerConfig
from .consumer import Consumer as Consumer
from .consumer_group.async_consumer import AsyncConsumer as AsyncConsumer
from .consumer_group.states import ConsumerMemberState as ConsumerMemberState
from .group_member import GroupMember as GroupMember
from .interface import Answered as Answered
from .interface import Assigned as Assigned
from .interface import CallbackCompleted as CallbackCompleted
from .interface import Close as Close
from .interface import ConfigurationUpdated as ConfigurationUpdated
from .interface import Failed as Failed
from .interface import Fatal as Fatal
from .interface import FetchMetadata as FetchMetadata
from .interface import Lost as Lost
from .interface import MemberEffect as MemberEffect
from .interface import MemberEvent as MemberEvent
from .interface import MemberTransition as MemberTransition
from .interface import MetadataUpdated as MetadataUpdated
from .interface import PendingRevocation as PendingRevocation
from .interface import Poll as Poll
from .interface import Polled as Polled
from .interface import Revoked as Revoked
from .interface import Send as Send
from .interface import Start as Start
from .interface import Stop as Stop
from .interface import Subscribe as Subscribe
from .interface import SubscribePattern as SubscribePattern
from .interface import Unsubscribe as Unsubscribe
from .interface import Vouched as Vouched
from .states import MemberState as MemberState
from .worker import Worker as Worker

AnyConsumer = Consumer | AsyncConsumer
AnyMember = AnyConsumer | Worker

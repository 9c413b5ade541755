# SPDX-License-Identifier: Apache-2.0
"""Kafka's group coordinator, without I/O: `handle(event, now_ms)` returns effects.

    states, members, member_checks, group          the state of a group and of its members
    join_group, sync_group, heartbeat, leave_group, rebalance
    offsets, offset_commit, offset_fetch, offset_delete, expiry
    records, appends, loading                      the log of `__consumer_offsets`
    interface, deadlines, config, cluster          events, effects, timers, settings, topics
    consumer_group, share_group, streams_group     groups whose broker assigns (KIP-848, 932, 1071)

The classes of requests and responses are in `kafka_rebalance.wire.messages`.

>>> from kafka_rebalance.coordinator import Coordinator, Received
>>> from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupProtocol
>>> from kafka_rebalance.wire.messages import Tick
>>> coordinator = Coordinator()
>>> join = JoinGroup(group_id="orders", protocols=(JoinGroupProtocol("range", b""),))
>>> effects = coordinator.handle(Received(1, join, api_version=3, client_id="c"), now_ms=0)
>>> coordinator.next_deadline_ms()
3000
>>> for effect in coordinator.handle(Tick(), now_ms=3000):
...     print(type(effect).__name__)
Expired
Transition
Respond
"""

from .config import CoordinatorConfig as CoordinatorConfig
from .coordinator import Coordinator as Coordinator
from .coordinator import counted_ids as counted_ids
from .deadlines import DeadlineKey as DeadlineKey
from .group import Group as Group
from .interface import Append as Append
from .interface import Appended as Appended
from .interface import AppendFailed as AppendFailed
from .interface import ClusterTopic as ClusterTopic
from .interface import CoordinatorEvent as CoordinatorEvent
from .interface import Drop as Drop
from .interface import Effect as Effect
from .interface import Expired as Expired
from .interface import Heard as Heard
from .interface import Loaded as Loaded
from .interface import LoadStarted as LoadStarted
from .interface import LogEntry as LogEntry
from .interface import LogRecord as LogRecord
from .interface import PartitionsDeleted as PartitionsDeleted
from .interface import PatternsDue as PatternsDue
from .interface import Received as Received
from .interface import Respond as Respond
from .interface import ShareStateDue as ShareStateDue
from .interface import Silent as Silent
from .interface import Sweep as Sweep
from .interface import TopicsChanged as TopicsChanged
from .interface import Transition as Transition
from .interface import Unloaded as Unloaded
from .interface import Unreadable as Unreadable
from .members import ClassicGroupMember as ClassicGroupMember
from .states import IllegalTransition as IllegalTransition

# SPDX-License-Identifier: Apache-2.0
"""Kafka's group coordinator, without I/O: `handle(event, now_ms)` returns effects.

    machine          events, effects, the state, deadlines, appends, loading
    offsets          committed offsets
    classic_group    groups whose leader assigns: `join_group`; `member_requests` has the others
    broker_assigned  what groups have in common whose broker assigns
    consumer_group, share_group, streams_group   the kinds of these (KIP-848, 932, 1071)

The classes of requests and responses are in the modules of `kafka_rebalance.wire`.

>>> from kafka_rebalance.coordinator import Coordinator, Received
>>> from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupProtocol
>>> coordinator = Coordinator()
>>> join = JoinGroup(group_id="orders", protocols=(JoinGroupProtocol("range", b""),))
>>> effects = coordinator.handle(Received(1, join, api_version=3, client_id="c"), now_ms=0)
>>> coordinator.next_deadline_ms()
3000
"""

from .classic_group.group import ClassicGroupMember as ClassicGroupMember
from .classic_group.group import Group as Group
from .classic_group.group import IllegalTransition as IllegalTransition
from .config import CoordinatorConfig as CoordinatorConfig
from .coordinator import Coordinator as Coordinator
from .coordinator import counted_ids as counted_ids
from .machine.deadlines import DeadlineKey as DeadlineKey
from .machine.events import Append as Append
from .machine.events import Appended as Appended
from .machine.events import AppendFailed as AppendFailed
from .machine.events import ClusterTopic as ClusterTopic
from .machine.events import CoordinatorEvent as CoordinatorEvent
from .machine.events import Drop as Drop
from .machine.events import Effect as Effect
from .machine.events import Expired as Expired
from .machine.events import Heard as Heard
from .machine.events import Loaded as Loaded
from .machine.events import LoadStarted as LoadStarted
from .machine.events import LogEntry as LogEntry
from .machine.events import LogRecord as LogRecord
from .machine.events import PartitionsDeleted as PartitionsDeleted
from .machine.events import PatternsDue as PatternsDue
from .machine.events import Received as Received
from .machine.events import Respond as Respond
from .machine.events import ShareStateDue as ShareStateDue
from .machine.events import Silent as Silent
from .machine.events import Sweep as Sweep
from .machine.events import TopicsChanged as TopicsChanged
from .machine.events import Transition as Transition
from .machine.events import Unloaded as Unloaded
from .machine.events import Unreadable as Unreadable

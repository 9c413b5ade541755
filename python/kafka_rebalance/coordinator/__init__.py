# SPDX-License-Identifier: Apache-2.0
"""The classic group coordinator of Kafka, without I/O: `Coordinator.handle(event, now_ms)`.

    states, members, member_checks, group          a group's state, and who is its member
    join_group, sync_group, heartbeat, leave_group, rebalance
    offsets, offset_commit, offset_fetch, offset_delete, expiry
    records, appends, loading                      the log of `__consumer_offsets`
    interface, deadlines, config                   events, effects, timers, settings

The classes of requests and responses are in `kafka_rebalance.protocol`.

>>> from kafka_rebalance.coordinator import Coordinator, Received
>>> from kafka_rebalance.protocol import JoinGroup, JoinGroupProtocol, Tick
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

from .config import CoordinatorConfig
from .coordinator import Coordinator, counted_ids
from .deadlines import DeadlineKey
from .group import Group
from .interface import (
    Append,
    Appended,
    AppendFailed,
    CoordinatorEvent,
    Drop,
    Effect,
    Expired,
    Heard,
    Loaded,
    LoadStarted,
    LogEntry,
    LogRecord,
    PartitionsDeleted,
    Received,
    Respond,
    Silent,
    Sweep,
    Transition,
    Unloaded,
    Unreadable,
)
from .members import ClassicGroupMember
from .states import IllegalTransition

__all__ = [
    "Append",
    "AppendFailed",
    "Appended",
    "ClassicGroupMember",
    "Coordinator",
    "CoordinatorConfig",
    "CoordinatorEvent",
    "DeadlineKey",
    "Drop",
    "Effect",
    "Expired",
    "Group",
    "Heard",
    "IllegalTransition",
    "LoadStarted",
    "Loaded",
    "LogEntry",
    "LogRecord",
    "PartitionsDeleted",
    "Received",
    "Respond",
    "Silent",
    "Sweep",
    "Transition",
    "Unloaded",
    "Unreadable",
    "counted_ids",
]

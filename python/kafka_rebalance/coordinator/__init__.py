"""The classic group coordinator of Kafka, without I/O: `Coordinator.handle(event, now_ms)`.

    states, members, group, protocol_selection     what a group is
    join_group, sync_group, heartbeat, leave_group, rebalance
    offsets, offset_commit, offset_fetch, offset_delete, expiry
    records, appends, loading                      the log of `__consumer_offsets`
    messages, events, deadlines, config            what goes in and comes out, and when

>>> from kafka_rebalance.coordinator import Coordinator, JoinGroup, Protocol, Received, Tick
>>> coordinator = Coordinator()
>>> join = JoinGroup(group_id="orders", protocols=(Protocol("range", b""),))
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
from .error_codes import ErrorCode
from .events import (
    Append,
    Appended,
    AppendFailed,
    Drop,
    Effect,
    Event,
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
    Tick,
    Transition,
    Unloaded,
    Unreadable,
)
from .find_coordinator import Node, find_coordinator, least_loaded_node, partition_for
from .group import Group
from .members import Member
from .messages import (
    DeleteGroups,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    DescribeGroupsResponse,
    EndTransaction,
    EndTransactionResponse,
    FetchedOffset,
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinedMember,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeftMember,
    ListedGroup,
    ListGroups,
    ListGroupsResponse,
    MemberIdentity,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    OffsetToCommit,
    PartitionError,
    Protocol,
    Request,
    Response,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from .protocol_selection import select_protocol
from .states import GroupState, IllegalTransition

__all__ = [
    "Append",
    "AppendFailed",
    "Appended",
    "Coordinator",
    "CoordinatorConfig",
    "DeadlineKey",
    "DeleteGroups",
    "DeleteGroupsResponse",
    "DescribeGroups",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedMember",
    "Drop",
    "Effect",
    "EndTransaction",
    "EndTransactionResponse",
    "ErrorCode",
    "Event",
    "Expired",
    "FetchedOffset",
    "FindCoordinator",
    "FindCoordinatorResponse",
    "Group",
    "GroupState",
    "Heard",
    "Heartbeat",
    "HeartbeatResponse",
    "IllegalTransition",
    "JoinGroup",
    "JoinGroupResponse",
    "JoinedMember",
    "LeaveGroup",
    "LeaveGroupResponse",
    "LeftMember",
    "ListGroups",
    "ListGroupsResponse",
    "ListedGroup",
    "LoadStarted",
    "Loaded",
    "LogEntry",
    "LogRecord",
    "Member",
    "MemberIdentity",
    "Node",
    "OffsetCommit",
    "OffsetCommitResponse",
    "OffsetDelete",
    "OffsetDeleteResponse",
    "OffsetFetch",
    "OffsetFetchResponse",
    "OffsetToCommit",
    "PartitionError",
    "PartitionsDeleted",
    "Protocol",
    "Received",
    "Request",
    "Respond",
    "Response",
    "Silent",
    "Sweep",
    "SyncGroup",
    "SyncGroupResponse",
    "Tick",
    "Transition",
    "TxnOffsetCommit",
    "Unloaded",
    "Unreadable",
    "counted_ids",
    "find_coordinator",
    "least_loaded_node",
    "partition_for",
    "select_protocol",
]

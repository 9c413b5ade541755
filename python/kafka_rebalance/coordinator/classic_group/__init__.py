# SPDX-License-Identifier: Apache-2.0
"""Classic groups: one member assigns, and the broker passes the assignment on.

group, records                the state of a group and its members, its log
join_group, member_requests   JoinGroup; SyncGroup, Heartbeat and LeaveGroup
member_checks                 who may send a request
rebalance, describe           the phases of a rebalance; what administrators see
"""

# SPDX-License-Identifier: Apache-2.0
"""Classic groups, as the machine handles groups of each kind: deadlines, tombstones, offsets."""

from kafka_rebalance.wire.classic_groups import DeleteGroups
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState
from kafka_rebalance.wire.offsets import OffsetDelete

from ..machine.deadlines import INITIAL_REBALANCE, MEMBER_KINDS, DeadlineKey
from ..machine.events import LogRecord
from ..machine.state import CoordinatorState, GroupKind
from . import rebalance
from .group import CONSUMER, Group
from .member_checks import refuse_in_state
from .records import group_tombstone


class ClassicGroups(GroupKind):
    """Classic groups."""

    fall_silent = staticmethod(rebalance.fall_silent)

    def start_members(self, state: CoordinatorState, group: Group) -> None:
        for member in group.members.values():
            state.renew_session(group, member)
        if group.size > state.config.group_max_size:
            # `group.max.size` was lowered: all members rejoin, and the last to do so are refused.
            rebalance.prepare(state, group)

    def deadline(self, state: CoordinatorState, group: Group, key: DeadlineKey) -> None:
        if key.kind == INITIAL_REBALANCE or (key.kind in MEMBER_KINDS and key.member_id):
            return  # a deadline of the group that had this id before, or of its member
        if key.kind == "join":
            rebalance.join_deadline(state, group)
        elif key.kind == "sync":
            rebalance.sync_deadline(state, group)
        else:
            rebalance.session_deadline(state, group, key.member_id)

    def tombstones(self, group: Group) -> list[LogRecord]:
        return [group_tombstone(group.group_id)]

    def refuse_deletion(self, group: Group, request: DeleteGroups | OffsetDelete) -> ErrorCode:
        error = refuse_in_state(group, request)
        if type(request) is DeleteGroups or error is not ErrorCode.NONE:
            return error
        other = group.not_(GroupState.EMPTY) and group.protocol_type != CONSUMER
        return ErrorCode.NON_EMPTY_GROUP if other else ErrorCode.NONE

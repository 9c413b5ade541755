# SPDX-License-Identifier: Apache-2.0
"""What all kinds of groups whose broker assigns do alike: replay, deadlines, leaving, describing.

    a tombstone of an absent group                     is ignored
    a record of a group of another kind                IllegalRecord; consumer groups and streams
                                                       groups replace a group that has only offsets
    the tombstone of a group with members or targets   IllegalRecord
    the tombstone of the targets' epoch before theirs  IllegalRecord
    the tombstone of a member with an assignment       IllegalRecord

A group is created by the first of its records, and removed by the tombstone of its epoch. After an
IllegalRecord, the group can be half changed, and the caller restores or drops it.

A member leaves with epoch -1: what it has is free at once, and the group gets its next epoch. A
static member that leaves with epoch -2 will come back: it keeps what it has until its session ends.
A leave computes no targets: the next heartbeat of any member does.

A description shows the group as the log has it. Groups with an empty id are first in the response,
as INVALID_GROUP_ID. An absent group, and one of another kind, is GROUP_ID_NOT_FOUND.

Source   GroupMetadataManager (replay, getOrMaybeCreatePersistedConsumerGroup, consumerGroupLeave,
         consumerGroupFenceMembers, consumerGroupDescribe, and their twins for share groups and
         streams groups), GroupCoordinatorService.consumerGroupDescribe (Kafka 4.4.0).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from kafka_rebalance.wire.broker_groups import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from kafka_rebalance.wire.broker_records import BrokerRecord, RecordType, encode_record
from kafka_rebalance.wire.classic_groups import DeleteGroups, JoinGroup, JoinGroupResponse
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetDelete

from ..classic_group.group import Group
from ..classic_group.join_group import join_group
from ..classic_group.records import group_tombstone
from ..machine.continuations import Continuation, SendResponse
from ..machine.deadlines import REBALANCE, SESSION, DeadlineKey
from ..machine.events import LogRecord, Received
from ..machine.state import CoordinatorState, GroupKind, Groups, of_kind
from . import log
from .group import DELETED_EPOCH, NOT_ASSIGNED_MS, AssigningGroup, IllegalRecord
from .members import RequestRefused, known_sender
from .records import RecordTypes
from .timeouts import arm_rebalance, arm_session, cancel_all, overdue_member

_LEFT_EPOCH = -1


class BrokerAssigned(GroupKind):
    """A kind of group: its classes, its types of records, and the steps that are special to it."""

    group_class: ClassVar[type[AssigningGroup[Any, Any]]]
    member_class: ClassVar[type[Any]]
    records: ClassVar[RecordTypes]
    response: ClassVar[Callable[..., Any]]
    described: ClassVar[Callable[..., Any]]
    describe_response: ClassVar[Callable[..., Any]]
    deadline_kinds: ClassVar[tuple[str, ...]] = (SESSION, REBALANCE)
    becomes_classic: ClassVar[bool] = True
    """Whether an empty group becomes a classic group by a JoinGroup, and the other way round."""
    nothing: ClassVar[Mapping[str, object]]
    """The fields of a member that has lost its assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers[JoinGroup] = self.join

    def setting(self, state: CoordinatorState, name: str) -> Any:
        """Returns the setting of this kind of group, such as `session_timeout_ms`."""
        return getattr(state.config, f"group_{self.group_class.group_type}_{name}")

    # Requests -------------------------------------------------------------------------------------

    def heartbeat(self, state: CoordinatorState, event: Received, request: Any) -> None:
        """Answers a heartbeat when its records are durable. Errors: RequestRefused."""
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self._leave(state, event, request)
        else:
            self.beat(state, event, request)

    def beat(self, state: CoordinatorState, event: Received, request: Any) -> None:
        """Answers the heartbeat of a member that joins or stays."""
        raise NotImplementedError

    def known_group(self, state: CoordinatorState, group_id: str) -> Any:
        group = of_kind(state.groups.get(group_id), self.group_class)
        if group is None:
            raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    def group_for(
        self, state: CoordinatorState, request: Any, records: log.Records
    ) -> tuple[Any, Group | None]:
        """Returns the group, a new one for epoch 0, and the classic group that it replaces."""
        group_id = request.group_id
        if request.member_epoch != JOIN_EPOCH:
            return self.known_group(state, group_id), None
        if group_id not in state.groups:
            return self.group_class(group_id), None
        classic = state.classic(group_id)
        if classic is None or not self.becomes_classic:
            return self.known_group(state, group_id), None
        if not classic.is_empty:
            return self.upgrade(state, classic, records), classic
        records.append(group_tombstone(group_id))
        return self.group_class(group_id), classic

    def upgrade(self, state: CoordinatorState, classic: Group, records: log.Records) -> Any:
        """Returns the group of a classic group's members. Errors: RequestRefused."""
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)

    def join(
        self, state: CoordinatorState, event: Received, request: JoinGroup, group: Any
    ) -> None:
        """Handles a JoinGroup. Quirk: an empty group is removed even if the join is refused."""
        if group.is_empty and self.becomes_classic:
            state.remove(group)
            buried = self.tombstones(group)
            join_group(state, event, request, buried=buried)
        else:
            self.join_classic(state, event, request, group)

    def join_classic(
        self, state: CoordinatorState, event: Received, request: JoinGroup, group: Any
    ) -> None:
        """Handles the JoinGroup of a classic member of a group with members."""
        refused = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        state.respond(event.request_id, refused)

    def _leave(self, state: CoordinatorState, event: Received, request: Any) -> None:
        group = self.known_group(state, request.group_id)
        self.leaves(group, request)
        epoch, instance_id = request.member_epoch, getattr(request, "instance_id", None)
        response = self.response(member_id=request.member_id, member_epoch=epoch)
        then = SendResponse(event.request_id, response, request)
        member = known_sender(group, request.member_id, instance_id)
        if instance_id is not None and epoch == LEAVE_STATIC_EPOCH:
            away = replace(
                member,
                member_epoch=LEAVE_STATIC_EPOCH,
                **{**self.nothing, "assigned": self.without_epochs(member.assigned)},
            )
            log.write(state, group.group_id, [self.current_record(group.group_id, away)], then)
        else:
            self.remove(state, group, [member], then)

    def leaves(self, group: Any, request: Any) -> None:
        """Does what a leave does before its member is known."""

    def without_epochs(self, assigned: Any) -> Any:
        """Returns the assignment of a static member that is away: its epochs are 0."""
        raise NotImplementedError

    def current_record(self, group_id: str, member: Any) -> BrokerRecord:
        raise NotImplementedError

    def remove(
        self, state: CoordinatorState, group: Any, members: list[Any], then: Continuation
    ) -> None:
        """Removes members, and makes the group's next epoch."""
        group_id, records = group.group_id, log.Records()
        for member in members:
            records += self.records.member_tombstones(group_id, member.member_id)
        records += self.epoch_without(state, group, members)
        if len(group.members) == len(members):
            epoch = group.epoch + 1
            records.append(self.records.target_epoch_record(group_id, epoch, NOT_ASSIGNED_MS))
        for member in members:
            cancel_all(state, group_id, member.member_id)
        log.write(state, group_id, records, then)

    def epoch_without(
        self, state: CoordinatorState, group: Any, members: list[Any]
    ) -> list[BrokerRecord]:
        """Returns the record of the group's next epoch, after these members have left."""
        raise NotImplementedError

    def describe(self, state: CoordinatorState, event: Received, request: Any) -> None:
        """Describes groups, at once."""
        ids = request.group_ids
        groups = [self.described(error_code=ErrorCode.INVALID_GROUP_ID) for one in ids if not one]
        for group_id in filter(None, ids):
            group = of_kind(state.durable_group(group_id), self.group_class)
            if group is not None:
                groups.append(self.describe_one(state, group))
            else:
                absent = ErrorCode.GROUP_ID_NOT_FOUND
                groups.append(self.described(error_code=absent, group_id=group_id))
        state.respond(event.request_id, self.describe_response(groups=tuple(groups)))

    def describe_one(self, state: CoordinatorState, group: Any) -> Any:
        raise NotImplementedError

    # Deadlines ------------------------------------------------------------------------------------

    def start_members(self, state: CoordinatorState, group: Any) -> None:
        """Arms the deadlines of the members of a group that was loaded.

        Quirk: a classic member gets the session timeout of the consumer protocol.
        """
        timeout_ms = self.setting(state, "session_timeout_ms")
        for member in group.members.values():
            arm_session(state, group.group_id, member.member_id, timeout_ms)
            if member.is_revoking:
                arm_rebalance(state, group.group_id, member)

    def session_timeout_ms(self, state: CoordinatorState, member: Any) -> int:
        timeout_ms: int = self.setting(state, "session_timeout_ms")
        return timeout_ms

    def fall_silent(
        self, state: CoordinatorState, group: Any, member_id: str, since_ms: int
    ) -> None:
        """Starts the session timeout of a silent member at `since_ms`."""
        member = group.members.get(member_id)
        if member is not None:
            key = DeadlineKey(SESSION, group.group_id, member_id)
            ends_ms = since_ms + self.session_timeout_ms(state, member)
            state.deadlines.arm(key, max(ends_ms, state.now_ms))

    def deadline(self, state: CoordinatorState, group: Any, key: DeadlineKey) -> None:
        """Removes the member of a deadline that has passed, unless it has revoked in time.

        A deadline that only other kinds of groups have is void.
        """
        overdue = overdue_member(state, group, key) if key.kind in self.deadline_kinds else None
        if overdue is not None:
            member, retry = overdue
            self.remove(state, group, [member], retry)

    def refuse_deletion(self, group: Any, request: DeleteGroups | OffsetDelete) -> ErrorCode:
        if type(request) is DeleteGroups:
            return ErrorCode.NONE if group.is_empty else ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE if group.has_offsets else ErrorCode.GROUP_ID_NOT_FOUND

    # Records --------------------------------------------------------------------------------------

    def tombstones(self, group: Any) -> list[LogRecord]:
        """Returns the records that remove a group, without those of its offsets."""
        return [LogRecord(*encode_record(one)) for one in self.group_tombstones(group)]

    def group_tombstones(self, group: Any) -> list[BrokerRecord]:
        raise NotImplementedError

    def replay(self, groups: Groups, record: BrokerRecord, now_ms: int) -> None:
        """Applies one record. Errors: IllegalRecord."""
        (kind, group_id, name), value = record
        group = self._group_of_record(groups, group_id, creates=value is not None)
        types, member_id = self.records, name or ""
        if group is None:
            return
        if value is None:
            self._bury(groups, group, kind, member_id)
        elif kind is types.member:
            group.update(self.with_fields(self.member_of(group, member_id), value))
        elif kind is types.current:
            group.update(self.with_current(self.member_of(group, member_id), value))
        elif kind is types.target:
            group.targets[member_id] = self.target_of_record(value)
        elif kind is types.target_epoch:
            target: Any = value
            group.assignment_epoch = target.assignment_epoch
            group.assignment_timestamp_ms = target.assignment_timestamp_ms
        else:
            self.replay_other(group, name, value, now_ms)

    def _group_of_record(self, groups: Groups, group_id: str, *, creates: bool) -> Any:
        """Returns the group of a record, a new one if `creates`; None: it has no effect."""
        group = groups.get(group_id)
        known = of_kind(group, self.group_class)
        if known is not None or (group is None and not creates):
            return known
        classic = of_kind(group, Group) if self.becomes_classic else None
        if group is not None and (classic is None or not classic.is_simple()):
            kind = self.group_class.group_type
            raise IllegalRecord(f"group {group_id!r} is not a {kind} group")
        new = groups[group_id] = self.group_class(group_id)
        return new

    def member_of(self, group: Any, member_id: str) -> Any:
        """Returns the member of a record, a new one if the group does not have it."""
        known = group.members.get(member_id)
        return self.member_class(member_id) if known is None else known

    def with_fields(self, member: Any, value: Any) -> Any:
        """Returns the member with the fields of a record."""
        raise NotImplementedError

    def with_current(self, member: Any, value: Any) -> Any:
        """Returns the member with the epoch and the assignment of a record."""
        raise NotImplementedError

    def target_of_record(self, value: Any) -> Any:
        raise NotImplementedError

    def replay_other(self, group: Any, name: str | None, value: Any, now_ms: int) -> None:
        """Applies a record of the group's epoch, or of a type that only this kind has."""
        raise NotImplementedError

    def _bury(self, groups: Groups, group: Any, kind: RecordType, member_id: str) -> None:
        types = self.records
        if kind is types.epoch:
            if not self.is_removable(group) or group.assignment_epoch != DELETED_EPOCH:
                raise IllegalRecord(f"group {group.group_id!r} is deleted while it has members")
            del groups[group.group_id]
        elif kind is types.target_epoch:
            if group.targets:
                raise IllegalRecord(f"group {group.group_id!r} still has targets")
            group.assignment_epoch = DELETED_EPOCH
            group.assignment_timestamp_ms = NOT_ASSIGNED_MS
        elif kind is types.target:
            group.targets.pop(member_id, None)
        elif kind is types.current:
            if member_id in group.members:
                epochs = {"member_epoch": _LEFT_EPOCH, "previous_member_epoch": _LEFT_EPOCH}
                group.update(replace(group.members[member_id], **epochs, **self.nothing))
        elif kind is types.member:
            member = group.members.get(member_id)
            if member is None:
                return
            if member.member_epoch != _LEFT_EPOCH or member_id in group.targets:
                raise IllegalRecord(f"member {member_id!r} is deleted while it has an assignment")
            group.remove(member_id)
        else:
            self.bury_other(group, kind, member_id)

    def is_removable(self, group: Any) -> bool:
        """Returns whether the group's tombstone fits: it has neither members nor targets."""
        return group.is_empty and not group.targets

    def bury_other(self, group: Any, kind: RecordType, name: str) -> None:
        """Applies a tombstone of a type that only this kind has."""
        raise NotImplementedError

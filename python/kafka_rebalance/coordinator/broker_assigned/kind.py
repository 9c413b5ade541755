# SPDX-License-Identifier: Apache-2.0
"""Members, leaves, deadlines and offsets: the code that all kinds of broker-assigned groups share.

A leave (epoch -1) starts the group's next epoch, but computes no targets: the next heartbeat of any
member computes them. A static member that leaves with epoch -2 keeps its partitions or tasks until
its session expires. `members.py` checks ids and epochs. A description shows the group as it is in
the log.

A commit with a smaller epoch than the member's is accepted if the member has owned each partition
since that epoch. A commit without an epoch is accepted if the group is Empty, or in a transaction
without member ids. A member of the group's own protocol gets UNSUPPORTED_VERSION for an
OffsetCommit before version 9.

Source   GroupMetadataManager (consumerGroupLeave, consumerGroupFenceMembers, replaceMember, and
         their twins), validateOffsetCommit and validateOffsetFetch of each kind (Kafka 4.4.0);
         docs/behaviour/consumer-groups.md.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from kafka_rebalance.wire import classic_groups
from kafka_rebalance.wire import offsets as wire
from kafka_rebalance.wire.broker_groups import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from kafka_rebalance.wire.broker_records import BrokerRecord
from kafka_rebalance.wire.error_codes import ErrorCode

from ..classic_group.group import Group, group_tombstone
from ..classic_group.join_group import join_group
from ..machine.cluster import ClusterTopics
from ..machine.deadlines import REBALANCE, SESSION, DeadlineKey
from ..machine.events import Answer, Continuation, Received, Retry, ShareStateDue
from ..machine.state import Shard, of_kind
from . import log
from .group import NOT_ASSIGNED_MS
from .members import (
    RequestRefused,
    arm_rebalance,
    arm_session,
    cancel_all,
    check_epoch,
    known_member,
)
from .records import Forms, Recorded, converted, key_values
from .target import NO_TARGET

_SHOWN: Forms = {"subscribed_topic_names": tuple, "client_tags": key_values}
"""Conversions of the fields whose form in a description differs from the member's."""


class BrokerAssigned(Recorded):
    """A kind of broker-assigned group; each kind defines the steps in which it differs."""

    described_member: ClassVar[type[Any]]
    deadline_kinds: ClassVar[tuple[str, ...]] = (SESSION, REBALANCE)
    no_target: ClassVar[Any] = NO_TARGET
    refuse_fields: Callable[[Shard, Any, int | None], ErrorCode]
    """Returns the error for the fields of a heartbeat in this version; NONE if they are valid."""
    beat: Callable[[Shard, Received, Any], None]
    """Answers the heartbeat of a member that joins or stays."""
    owns_only_assigned: Callable[[Any, Any], bool]
    """Returns whether a member reports only partitions or tasks that are assigned to it."""
    without_epochs: Callable[[Any], Any]
    """Returns an assignment with epochs 0, for a static member that has left with epoch -2."""
    epoch_without: Callable[[Shard, Any, list[Any]], list[BrokerRecord]]
    """Returns the records of the group's next epoch, in which these members have left."""
    assignment_of: Callable[[Shard, Any, Any], dict[str, Any]]
    """Returns a described member's assignment and target, as fields of its description."""
    held_since: Callable[[Any, Any, wire.OffsetToCommit, ClusterTopics], int | None]
    """Returns the epoch in which the member got an offset's partition; None if it lacks it."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers[classic_groups.JoinGroup] = self.join

    def setting(self, state: Shard, group_id: str, name: str) -> Any:
        """Returns the group's value of a setting; `name` is, for example, `session_timeout_ms`."""
        return getattr(state.config_of(group_id), f"group_{self.group_class.group_type}_{name}")

    # Requests -------------------------------------------------------------------------------------

    def heartbeat(self, state: Shard, event: Received, request: Any) -> None:
        """Answers a heartbeat when its records are durable. Errors: RequestRefused."""
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self._leave(state, event, request)
        else:
            self.beat(state, event, request)

    def find_member(self, group: Any, request: Any, records: log.Records) -> Any:
        """Returns the sender of a heartbeat; a new member is in epoch 0. Errors: RequestRefused."""
        epoch, member_id = request.member_epoch, request.member_id
        if epoch != JOIN_EPOCH:
            member = known_member(group, member_id, request.instance_id)
            check_epoch(member, epoch, partial(self.owns_only_assigned, member, request))
            return member
        holder = group.static_member(request.instance_id)
        if holder is None:
            return self.member_of(group, member_id)
        if holder.member_epoch != LEAVE_STATIC_EPOCH and not self.is_classic(holder):
            raise RequestRefused(ErrorCode.UNRELEASED_INSTANCE_ID)
        return self.take_over(group, holder, member_id, records)

    def take_over(self, group: Any, holder: Any, member_id: str, records: log.Records) -> Any:
        """Returns a static member under its new id, in epoch 0; adds the records of the change."""
        old_id = holder.member_id
        epochs = {"member_epoch": JOIN_EPOCH, "previous_member_epoch": JOIN_EPOCH}
        member = replace(holder, member_id=member_id, **epochs)
        target = group.targets.get(old_id, self.no_target)
        records += group.member_tombstones(old_id)
        records.append(group.member_record(member))
        records.append(group.target_record(member_id, target))
        records.append(group.current_record(member))
        return member

    def check_room(
        self, state: Shard, group: Any, member_id: str, instance_id: str | None = None
    ) -> None:
        """Raises RequestRefused if the member is new and the group is full."""
        is_known = instance_id in group.static_members or member_id in group.members
        if not is_known and len(group.members) >= self.setting(state, group.group_id, "max_size"):
            raise RequestRefused(ErrorCode.GROUP_MAX_SIZE_REACHED)

    def answer(
        self,
        state: Shard,
        event: Received,
        group: Any,
        member: Any,
        records: log.Records,
        *,
        converted: Group | None = None,
        due: ShareStateDue | None = None,
        **fields: Any,
    ) -> None:
        """Restarts the member's session; answers its heartbeat when the records are durable."""
        group_id, member_id = group.group_id, member.member_id
        timeout_ms = self.setting(state, group_id, "session_timeout_ms")
        arm_session(state, group_id, member_id, timeout_ms)
        request: Any = event.request
        response = request.response(
            member_id=member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self.setting(state, group_id, "heartbeat_interval_ms"),
            **fields,
        )
        then = Answer(event.request_id, response, request, due)
        log.write(state, group_id, records, then, converted=converted)

    def is_classic(self, member: Any) -> bool:
        return False

    def known_group(self, state: Shard, group_id: str) -> Any:
        group = of_kind(state.groups.get(group_id), self.group_class)
        if group is None:
            raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
        return group

    def group_for(
        self, state: Shard, request: Any, records: log.Records
    ) -> tuple[Any, Group | None]:
        """Returns the group, which may be new, and the classic group that it replaces, if any."""
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

    def upgrade(self, state: Shard, classic: Group, records: log.Records) -> Any:
        """Returns a group with the classic group's members. Default: raises RequestRefused."""
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)

    def join(
        self, state: Shard, event: Received, request: classic_groups.JoinGroup, group: Any
    ) -> None:
        """Handles a JoinGroup. Quirk: an empty group is removed even if the join is refused."""
        if group.is_empty and self.becomes_classic:
            state.remove(group)
            buried = self.tombstones(group)
            join_group(state, event, request, buried=buried)
        else:
            self.join_classic(state, event, request, group)

    def join_classic(
        self, state: Shard, event: Received, request: classic_groups.JoinGroup, group: Any
    ) -> None:
        """Answers a JoinGroup if the group is not removed. Default: INCONSISTENT_GROUP_PROTOCOL."""
        refused = classic_groups.JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        state.respond(event.request_id, refused)

    def _leave(self, state: Shard, event: Received, request: Any) -> None:
        group = self.known_group(state, request.group_id)
        self.leaves(group, request)
        epoch, instance_id = request.member_epoch, getattr(request, "instance_id", None)
        response = request.response(member_id=request.member_id, member_epoch=epoch)
        then = Answer(event.request_id, response, request)
        member = known_member(group, request.member_id, instance_id)
        if instance_id is not None and epoch == LEAVE_STATIC_EPOCH:
            fields = {**self.nothing, "assigned": self.without_epochs(member.assigned)}
            away = replace(member, member_epoch=LEAVE_STATIC_EPOCH, **fields)
            log.write(state, group.group_id, [group.current_record(away)], then)
        else:
            self.remove(state, group, [member], then)

    def leaves(self, group: Any, request: Any) -> None:
        """Called for a leaving heartbeat, before its member is found; does nothing by default."""

    def remove(
        self, state: Shard, group: Any, members: list[Any], then: Continuation | None
    ) -> None:
        """Removes members, and starts the group's next epoch."""
        group_id, records = group.group_id, log.Records()
        for member in members:
            records += group.member_tombstones(member.member_id)
        records += self.epoch_without(state, group, members)
        if len(group.members) == len(members):
            records.append(group.target_epoch_record(group.epoch + 1, NOT_ASSIGNED_MS))
        for member in members:
            cancel_all(state, group_id, member.member_id)
        log.write(state, group_id, records, then)

    def describe(self, state: Shard, event: Received, request: Any) -> None:
        """Answers a request to describe groups at once, from the durable groups."""
        ids, described = request.group_ids, request.response.described
        groups = [described(error_code=ErrorCode.INVALID_GROUP_ID) for one in ids if not one]
        for group_id in filter(None, ids):
            group = of_kind(state.durable_group(group_id), self.group_class)
            if group is not None:
                groups.append(described(**self._description(state, group)))
            else:
                absent = ErrorCode.GROUP_ID_NOT_FOUND
                groups.append(described(error_code=absent, group_id=group_id))
        state.respond(event.request_id, request.response(groups=tuple(groups)))

    def _description(self, state: Shard, group: Any) -> dict[str, Any]:
        kind = self.described_member
        return {
            "group_id": group.group_id,
            "group_state": str(group.state),
            "group_epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            **self.more_described(state, group),
            "members": tuple(
                kind(**converted(one, kind, _SHOWN), **self.assignment_of(state, group, one))
                for one in group.members.values()
            ),
        }

    def more_described(self, state: Shard, group: Any) -> dict[str, Any]:
        """Returns the fields that only descriptions of this kind contain."""
        return {}

    # Offsets --------------------------------------------------------------------------------------

    def refuse_commit(
        self,
        state: Shard,
        event: Received,
        group: Any,
        request: wire.CommitRequest,
        offsets: Iterable[wire.OffsetToCommit],
    ) -> ErrorCode:
        if not group.has_offsets:
            return ErrorCode.GROUP_ID_NOT_FOUND
        epoch, is_transaction = request.generation_id, isinstance(request, wire.TxnOffsetCommit)
        ids = (epoch, request.member_id, request.group_instance_id)
        if epoch < 0 and group.is_empty:
            return ErrorCode.NONE
        no_ids = (classic_groups.NO_GENERATION, classic_groups.UNKNOWN_MEMBER, None)
        if is_transaction and ids == no_ids:
            return ErrorCode.NONE
        member = group.members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        version = event.api_version
        is_old = version is not None and version < request.knows_epochs
        if is_old and not is_transaction and not self.is_classic(member):
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.member_epoch:
            return ErrorCode.NONE
        if epoch < member.member_epoch:
            # A request in a transaction has no topic ids, so Kafka finds none of its partitions.
            cluster = ClusterTopics() if is_transaction else state.cluster
            since = [self.held_since(group, member, one, cluster) for one in offsets]
            if all(one is not None and one <= epoch for one in since):
                return ErrorCode.NONE
        return self.stale(member, is_old=is_transaction and is_old)

    def stale(self, member: Any, *, is_old: bool) -> ErrorCode:
        """Returns the error for a request with an epoch that is not the member's present one."""
        return ErrorCode.STALE_MEMBER_EPOCH

    def refuse_fetch(self, group: Any, request: wire.OffsetFetch) -> ErrorCode:
        if not group.has_offsets or (request.member_id is None and request.member_epoch < 0):
            return ErrorCode.NONE
        member = group.members.get(request.member_id or classic_groups.UNKNOWN_MEMBER)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_same = request.member_epoch == member.member_epoch
        return ErrorCode.NONE if is_same else self.stale(member, is_old=False)

    # Deadlines ------------------------------------------------------------------------------------

    def start_members(self, state: Shard, group: Any) -> None:
        """Arms the members' deadlines. Quirk: a classic member's own session timeout is ignored."""
        timeout_ms = self.setting(state, group.group_id, "session_timeout_ms")
        for member in group.members.values():
            arm_session(state, group.group_id, member.member_id, timeout_ms)
            if member.is_revoking:
                arm_rebalance(state, group.group_id, member)

    def session_timeout_ms(self, state: Shard, group: Any, member: Any) -> int:
        timeout_ms: int = self.setting(state, group.group_id, "session_timeout_ms")
        return timeout_ms

    def fall_silent(self, state: Shard, group: Any, member_id: str, since_ms: int) -> None:
        member = group.members.get(member_id)
        if member is not None:
            key = DeadlineKey(SESSION, group.group_id, member_id)
            ends_ms = since_ms + self.session_timeout_ms(state, group, member)
            state.deadlines.arm(key, max(ends_ms, state.now_ms))

    def deadline(self, state: Shard, group: Any, key: DeadlineKey) -> None:
        """Removes the member whose deadline has passed, unless it has revoked in time."""
        epoch = state.revocations.pop(key, None) if key.kind in self.deadline_kinds else None
        member = group.members.get(key.member_id)
        is_void = key.kind not in self.deadline_kinds or member is None
        if not is_void and (key.kind != REBALANCE or member.member_epoch == epoch):
            self.remove(state, group, [member], Retry(key, epoch))

    def refuse_deletion(
        self, group: Any, request: classic_groups.DeleteGroups | wire.OffsetDelete
    ) -> ErrorCode:
        if type(request) is classic_groups.DeleteGroups:
            return ErrorCode.NONE if group.is_empty else ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE if group.has_offsets else ErrorCode.GROUP_ID_NOT_FOUND

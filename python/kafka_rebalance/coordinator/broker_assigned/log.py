# SPDX-License-Identifier: Apache-2.0
"""Appends the records of broker-assigned groups; the groups change before the append is durable.

While appends to a group are in flight, the state also holds the group as it is in the log, for
requests to describe groups. If an append fails, a copy of this durable group replaces the group,
and the records that are still in flight are applied to the copy. The copy's hash maps have the
order of Kafka's hash maps, which a failed append returns to their last snapshot.

Source   CoordinatorRuntime, SnapshottableCoordinator (Kafka 4.4.0).
"""

from collections.abc import Sequence

from kafka_rebalance.wire.broker_records import BrokerRecord, encode_record
from kafka_rebalance.wire.error_codes import ErrorCode

from ..classic_group.group import Group
from ..machine.events import Continuation, LogRecord
from ..machine.state import AnyGroup, Groups, Shard, Write, of_kind
from .group import AssigningGroup, IllegalRecord
from .members import RequestRefused

Records = list[BrokerRecord | LogRecord]
"""Records of a broker-assigned group, or LogRecords (bytes) of a classic group."""


def write(
    state: Shard,
    group_id: str,
    records: Sequence[BrokerRecord | LogRecord],
    then: Continuation | None,
    *,
    converted: AnyGroup | None = None,
) -> None:
    """Applies the records to the group and appends them; without records, only answers.

    `converted` is the classic group that the records replace. Errors: RequestRefused; the group is
    then unchanged.
    """
    if not records:
        state.append([], Write(then))
        return
    _keep_durable(state, group_id)
    group = state.groups.get(group_id)
    assigning = of_kind(group, AssigningGroup)
    for table in () if assigning is None else assigning.tables:
        table.snapshot(state.log_epoch)
    if converted is not None:
        state.forget(converted)
    batch = tuple(one for one in records if not isinstance(one, LogRecord))
    try:
        for record in batch:
            replay_any(state, state.groups, record, state.now_ms)
    except IllegalRecord as error:
        restore(state, group_id)
        if converted is not None:
            state.groups[group_id] = converted
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    deleted = () if converted is None else (converted,)
    change = Write(then, deleted=deleted, group_id=group_id, batch=batch, now_ms=state.now_ms)
    state.append(_encoded(records), change)


def replace_group(state: Shard, new: Group) -> None:
    """Puts `new` in place of the group; `append_replacement` must follow."""
    _keep_durable(state, new.group_id)
    state.groups[new.group_id] = new


def append_replacement(
    state: Shard, new: Group, records: Sequence[BrokerRecord | LogRecord], then: Continuation | None
) -> None:
    """Appends the records of a conversion; `replace_group` has already put `new` in place."""
    state.append(_encoded(records), Write(then, group_id=new.group_id, after=new))


def replay_any(state: Shard, groups: Groups, record: BrokerRecord, now_ms: int) -> None:
    """Applies one record of any type. Errors: IllegalRecord."""
    state.kinds[record.key.type.group_type].replay(groups, record, now_ms)


def _encoded(records: Sequence[BrokerRecord | LogRecord]) -> list[LogRecord]:
    return [
        one if isinstance(one, LogRecord) else LogRecord(*encode_record(one)) for one in records
    ]


def completed(state: Shard, write: Write, group_id: str) -> None:
    """Applies a completed append to the durable group, or drops this group if none is in flight."""
    if not _in_flight(state, group_id):
        del state.durable[group_id]
        return
    durable = state.durable[group_id]
    groups: Groups = {} if durable is None else {group_id: durable}
    _apply(state, groups, write)
    state.durable[group_id] = groups.get(group_id)


def failed(state: Shard, write: Write, append_id: int) -> None:
    """Restores the group of a failed append; undoes the append's unlogged changes in all groups."""
    if write.group_id is not None:
        restore(state, write.group_id)
    for group in state.groups.values():
        assigning = of_kind(group, AssigningGroup)
        if assigning is not None:
            assigning.forget_unlogged(append_id)


def restore(state: Shard, group_id: str) -> None:
    """Replaces the group with a copy of the durable one, and applies its records in flight."""
    durable, others = state.durable[group_id], _in_flight(state, group_id)
    before = of_kind(state.groups.pop(group_id, None), AssigningGroup)
    if not others:
        del state.durable[group_id]
    elif (assigning := of_kind(durable, AssigningGroup)) is not None:
        durable = assigning.copy()
    if durable is not None:
        state.groups[group_id] = durable
    for one in others:
        _apply(state, state.groups, one)
    after = of_kind(state.groups.get(group_id), AssigningGroup)
    if before is not None and after is not None:
        after.refresh_at = before.refresh_at
        for table, changed in zip(after.tables, before.tables, strict=False):
            changed.revert()
            table.take_places(changed)
        if type(before) is type(after):
            after.keep_unlogged(before)


def _keep_durable(state: Shard, group_id: str) -> None:
    if group_id not in state.durable:
        group = of_kind(state.groups.get(group_id), AssigningGroup)
        state.durable[group_id] = None if group is None else group.copy()


def _in_flight(state: Shard, group_id: str) -> list[Write]:
    return [one for one in state.writes.values() if one.group_id == group_id]


def _apply(state: Shard, groups: Groups, write: Write) -> None:
    if write.after is not None:
        groups[write.after.group_id] = write.after
    for group in write.deleted:
        if group.group_id == write.group_id:
            groups.pop(group.group_id, None)
    for record in write.batch:
        try:
            replay_any(state, groups, record, write.now_ms)
        except IllegalRecord:
            return  # the record was computed from records that are not in the log

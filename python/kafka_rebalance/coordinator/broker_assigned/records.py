# SPDX-License-Identifier: Apache-2.0
"""The five types of records that each kind of group has, and the records that do not differ.

epoch, target_epoch      of the group
member, target, current  of each member
"""

from typing import NamedTuple

from kafka_rebalance.wire.broker_records import (
    BrokerRecord,
    RecordKey,
    RecordType,
    TargetEpochValue,
)


class RecordTypes(NamedTuple):
    """The types of one kind of group."""

    epoch: RecordType
    target_epoch: RecordType
    member: RecordType
    target: RecordType
    current: RecordType

    def target_epoch_record(self, group_id: str, epoch: int, timestamp_ms: int) -> BrokerRecord:
        key = RecordKey(self.target_epoch, group_id)
        return BrokerRecord(key, TargetEpochValue(epoch, timestamp_ms))

    def member_tombstones(self, group_id: str, member_id: str) -> list[BrokerRecord]:
        """Returns the tombstones of a member that leaves."""
        kinds = (self.current, self.target, self.member)
        return [BrokerRecord(RecordKey(kind, group_id, member_id)) for kind in kinds]


def record_types(kind: str) -> RecordTypes:
    """Returns the types whose names start with `kind`."""
    names = (
        "METADATA",
        "TARGET_ASSIGNMENT_METADATA",
        "MEMBER_METADATA",
        "TARGET_ASSIGNMENT_MEMBER",
        "CURRENT_MEMBER_ASSIGNMENT",
    )
    return RecordTypes(*(RecordType[f"{kind}_GROUP_{name}"] for name in names))

# SPDX-License-Identifier: Apache-2.0
"""The broker's settings for groups, with Kafka's names and defaults."""

from dataclasses import dataclass

from kafka_rebalance.errors import GroupError

# The first JoinGroup of a new member may be parked this long; Kafka has no setting for this time.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """The settings of a coordinator. Times are in ms unless the name has another unit.

    Errors: GroupError if a number is below Kafka's lower bound.
    """

    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_topic_num_partitions: int = 50

    def __post_init__(self) -> None:
        for name in self.__slots__:
            least = 1 if name in _NOT_0 else 0
            if getattr(self, name) < least:
                raise GroupError(name, f"{getattr(self, name)} is less than {least}")

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000


_NOT_0 = ("group_max_size", "offsets_retention_minutes", "offsets_topic_num_partitions")

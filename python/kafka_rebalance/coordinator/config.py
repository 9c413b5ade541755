# SPDX-License-Identifier: Apache-2.0
"""The broker's settings for groups, with Kafka's names and defaults."""

from dataclasses import dataclass

from kafka_rebalance.errors import GroupError

# The first JoinGroup of a new member may be parked this long; Kafka has no setting for this time.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """The settings of a coordinator; times are in ms. Errors: GroupError below Kafka's bounds."""

    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_topic_num_partitions: int = 50

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise GroupError(name, f"{getattr(self, name)} is less than {least}")

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000


_LEAST = {
    "group_initial_rebalance_delay_ms": 0,
    "group_max_size": 1,
    "group_min_session_timeout_ms": 0,
    "group_max_session_timeout_ms": 0,
    "offset_metadata_max_bytes": 0,
    "offsets_retention_minutes": 1,
    "offsets_topic_num_partitions": 1,
}

# SPDX-License-Identifier: Apache-2.0
"""The broker's settings for groups, with Kafka's names and defaults."""

from dataclasses import fields

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Message
from kafka_rebalance.group.declared_types import check_fields

# The first JoinGroup of a new member may be parked this long; Kafka has no setting for this time.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000

_ASSIGNORS = ("uniform", "range")
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


class CoordinatorConfig(Message):
    """Settings of a coordinator; times are in ms. Errors: GroupError for an invalid value."""

    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_topic_num_partitions: int = 50
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = _ASSIGNORS
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_session_timeout_ms: int = 45_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_assignment_interval_ms: int = 1_000
    group_share_max_size: int = 200
    group_share_initialize_retry_interval_ms: int = 30_000
    group_streams_session_timeout_ms: int = 45_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_max_size: int = 2**31 - 1
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_num_standby_replicas: int = 0
    group_streams_num_warmup_replicas: int = 2
    group_streams_rack_aware_assignment_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for name in (one.name for one in fields(self)):
            value, least = getattr(self, name), int(name in _AT_LEAST_1)
            if isinstance(value, int) and value < least:
                raise GroupError(name, f"{value} is less than {least}")
        assignors, policy = self.group_consumer_assignors, self.group_consumer_migration_policy
        if not assignors or not set(assignors) <= set(_ASSIGNORS):
            problem = f"{assignors} is not a choice of {', '.join(_ASSIGNORS)}"
            raise GroupError("group_consumer_assignors", problem)
        if policy not in _POLICIES:
            problem = f"{policy!r} is not one of {', '.join(_POLICIES)}"
            raise GroupError("group_consumer_migration_policy", problem)

    @property
    def allows_upgrades(self) -> bool:
        return self.group_consumer_migration_policy in ("bidirectional", "upgrade")

    @property
    def allows_downgrades(self) -> bool:
        return self.group_consumer_migration_policy in ("bidirectional", "downgrade")

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000


_AT_LEAST_1 = {
    "group_max_size",
    "offsets_retention_minutes",
    "offsets_topic_num_partitions",
    "group_share_initialize_retry_interval_ms",
    *(
        f"group_{kind}_{name}"
        for kind in ("consumer", "share", "streams")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "max_size")
    ),
}

# SPDX-License-Identifier: Apache-2.0
"""A Connect worker's settings, with Kafka's names (underscores for dots) and defaults."""

from dataclasses import dataclass

from kafka_rebalance.errors import GroupError
from kafka_rebalance.wire.connect_protocol import COMPATIBLE, EAGER, SESSIONED

from .config import check_times, join_timeout_ms

# connect.protocol -> the highest version that a worker supports (KIP-415, KIP-507)
_VERSIONS = {"eager": EAGER, "compatible": COMPATIBLE, "sessioned": SESSIONED}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """A worker's settings, times in ms. Errors: GroupError with the setting's name."""

    group_id: str = "connect-cluster"
    connect_protocol: str = "sessioned"
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000
    scheduled_rebalance_max_delay_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 40_000

    def __post_init__(self) -> None:
        check_times(self)
        if self.connect_protocol not in _VERSIONS:
            raise GroupError(
                "connect_protocol", f"{self.connect_protocol!r} is none of {', '.join(_VERSIONS)}"
            )

    @property
    def group_instance_id(self) -> None:
        """Returns None, because Connect has no static membership."""
        return None

    @property
    def version(self) -> int:
        """The highest version of Connect's protocol that the worker supports."""
        return _VERSIONS[self.connect_protocol]

    @property
    def join_timeout_ms(self) -> int:
        """The time after which an unanswered JoinGroup fails."""
        return join_timeout_ms(self)

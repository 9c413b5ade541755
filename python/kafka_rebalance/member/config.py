# SPDX-License-Identifier: Apache-2.0
"""The settings of consumers and Connect workers: Kafka's names (`_` for `.`) and defaults."""

from dataclasses import fields, replace
from typing import Any

from kafka_rebalance.assignors.interface import Assignor, RebalanceProtocol
from kafka_rebalance.assignors.objects import built_in
from kafka_rebalance.assignors.registry import BUILT_IN, custom
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Message
from kafka_rebalance.group.declared_types import check_fields, check_times
from kafka_rebalance.wire.connect_protocol import COMPATIBLE, EAGER, SESSIONED

CLASSIC, CONSUMER = "classic", "consumer"
JAVA, LIBRDKAFKA = "java", "librdkafka"

# connect.protocol -> the highest version that a worker supports (KIP-415, KIP-507)
_VERSIONS = {"eager": EAGER, "compatible": COMPATIBLE, "sessioned": SESSIONED}


class ConsumerConfig(Message):
    """A consumer's settings; times are in ms. Errors: GroupError with the setting's name.

    With `group_protocol` "consumer", the broker decides the assignor and the times of heartbeats
    and sessions. As in Kafka, the consumer's own settings for these (`_OF_CLASSIC`) are then
    refused.

    `client_library` is not a setting of Kafka. It names the library that the consumer imitates:
    "java" or, with `group_protocol` "consumer", "librdkafka".
    """

    group_id: str = "g"
    group_protocol: str = CLASSIC
    group_remote_assignor: str | None = None
    group_instance_id: str | None = None
    client_rack: str = ""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    metadata_max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    client_library: str = JAVA

    def __post_init__(self) -> None:
        check_fields(self)
        _check_times(self)
        if not self.partition_assignment_strategy:
            raise GroupError("partition_assignment_strategy", "is empty; name an assignor")
        if self.group_instance_id == "":
            raise GroupError("group_instance_id", "is empty; leave it out for a dynamic member")
        _check_protocol(self)
        self.rebalance_protocol()

    @property
    def is_classic(self) -> bool:
        return self.group_protocol == CLASSIC

    def with_group_protocol(self, group_protocol: str) -> "ConsumerConfig":
        if group_protocol != CLASSIC:
            unset = {"group_remote_assignor": None, **_defaults()}
            return replace(self, group_protocol=group_protocol, **unset)
        return replace(
            self, group_protocol=CLASSIC, group_remote_assignor=None, client_library=JAVA
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """Returns `max_poll_interval_ms`, because a consumer joins only in a poll."""
        return self.max_poll_interval_ms

    def assignors(self) -> dict[str, Assignor]:
        """Returns the assignors by name, preferred first; each built-in one is a new object."""
        names = self.partition_assignment_strategy
        try:
            return {name: built_in(name) if name in BUILT_IN else custom(name) for name in names}
        except GroupError as error:
            raise GroupError("partition_assignment_strategy", error.problem) from None

    def rebalance_protocol(self) -> RebalanceProtocol:
        """Returns the highest protocol that all assignors support (KIP-429). Errors: GroupError."""
        first, *others = [one.supported_protocols for one in self.assignors().values()]
        common = [one for one in first if all(one in other for other in others)]
        if not common:
            names = ", ".join(self.partition_assignment_strategy)
            raise GroupError(
                "partition_assignment_strategy", f"{names} have no rebalance protocol in common"
            )
        return max(common, key=lambda protocol: protocol.value)


class WorkerConfig(Message):
    """A worker's settings; times are in ms. Errors: GroupError with the setting's name."""

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
        check_fields(self)
        _check_times(self)
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
        return _VERSIONS[self.connect_protocol]


GroupConfig = ConsumerConfig | WorkerConfig


def join_timeout_ms(config: GroupConfig) -> int:
    """Returns the timeout of a JoinGroup, whose response can take the whole rebalance timeout."""
    return max(config.request_timeout_ms, config.rebalance_timeout_ms + 5_000)


def _check_protocol(config: ConsumerConfig) -> None:
    """Raises a GroupError for an unknown value, or a setting that the group's protocol refuses.

    Source   ConsumerConfig.checkUnsupportedConfigsPostProcess (Kafka 4.4.0).
    """
    choices = {"group_protocol": (CLASSIC, CONSUMER), "client_library": (JAVA, LIBRDKAFKA)}
    for name, (one, other) in choices.items():
        if getattr(config, name) not in (one, other):
            problem = f"{getattr(config, name)!r} is neither {one!r} nor {other!r}"
            raise GroupError(name, problem)
    if config.is_classic:
        if config.client_library != JAVA:
            problem = f"{config.client_library!r} needs group_protocol = 'consumer'"
            raise GroupError("client_library", problem)
        if config.group_remote_assignor is not None:
            raise GroupError("group_remote_assignor", "needs group_protocol = 'consumer'")
        return
    for name, default in _defaults().items():
        if getattr(config, name) != default:
            instead = _OF_CLASSIC[name]
            raise GroupError(name, f"is refused with group_protocol = 'consumer'; {instead}")


def _defaults() -> dict[str, Any]:
    return {one.name: one.default for one in fields(ConsumerConfig) if one.name in _OF_CLASSIC}


_OF_CLASSIC = {
    "session_timeout_ms": "the broker has group_consumer_session_timeout_ms",
    "heartbeat_interval_ms": "the broker has group_consumer_heartbeat_interval_ms",
    "partition_assignment_strategy": "the broker assigns: see group_remote_assignor",
}


def _check_times(config: GroupConfig) -> None:
    """Raises a GroupError if a time is too small, or if heartbeats are too far apart."""
    for one in fields(config):
        if one.name.endswith("_ms") and one.name not in _MAY_BE_0 and getattr(config, one.name) < 1:
            raise GroupError(one.name, f"{getattr(config, one.name)} is less than 1 ms")
    check_times(config)
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise GroupError(
            "heartbeat_interval_ms",
            f"{config.heartbeat_interval_ms} is not less than the session timeout, "
            f"{config.session_timeout_ms}",
        )


_MAY_BE_0 = ("auto_commit_interval_ms", "scheduled_rebalance_max_delay_ms")

# SPDX-License-Identifier: Apache-2.0
"""The settings of consumers that concern groups: their names, types and defaults by library.

A setting has the name that Kafka's Java client gives it (`session.timeout.ms`); the Python clients
write it as an argument (`session_timeout_ms`). A `Client` holds the settings of one file, or of one
document in it; a setting that is missing has the library's default.

Source   ConsumerConfig (Kafka 4.4.0); librdkafka 2.16.0, CONFIGURATION.md; KafkaConsumer
         (kafka-python 3.0.12); AIOKafkaConsumer (aiokafka 0.14.0).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.member.config import ConsumerConfig

Library = Literal["java", "librdkafka", "kafka-python", "aiokafka"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
PYTHON: tuple[Library, ...] = ("kafka-python", "aiokafka")

EAGER = ("range", "roundrobin", "sticky")
COOPERATIVE = "cooperative-sticky"
_NAMES = {BUILT_IN[name].java_class: name for name in (*EAGER, COOPERATIVE)}


class Setting(NamedTuple):
    """A setting: its type, its default in Java, and the libraries with another default.

    `limits` are the bounds of librdkafka, which refuses a number outside them.
    """

    type: type
    default: Any = None
    others: Mapping[str, Any] = {}
    limits: tuple[int, int] | None = None


_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_LISTS = {
    "librdkafka": ("range", "roundrobin"),
    "kafka-python": ("range", "roundrobin"),
    "aiokafka": ("roundrobin",),
}
SETTINGS: dict[str, Setting] = {
    "group.id": Setting(str),
    "group.instance.id": Setting(str),
    "group.protocol": Setting(str, "classic"),
    "group.protocol.type": Setting(str),
    "group.remote.assignor": Setting(str),
    "client.rack": Setting(str),
    "session.timeout.ms": Setting(int, 45_000, {"aiokafka": 10_000}, (1, _HOUR_MS)),
    "heartbeat.interval.ms": Setting(int, 3_000, {}, (1, _HOUR_MS)),
    "max.poll.interval.ms": Setting(int, 300_000, {}, (1, _DAY_MS)),
    "rebalance.timeout.ms": Setting(int),
    "partition.assignment.strategy": Setting(list, ("range", COOPERATIVE), _LISTS),
    "enable.auto.commit": Setting(bool, True),
    "auto.commit.interval.ms": Setting(int, 5_000, {}, (0, _DAY_MS)),
    "enable.auto.offset.store": Setting(bool, True),
    "auto.offset.reset": Setting(str, "latest"),
    "max.poll.records": Setting(int),
    "request.timeout.ms": Setting(int, 30_000, {"aiokafka": 40_000}),
    "fetch.max.wait.ms": Setting(int, 500),
    "connections.max.idle.ms": Setting(int, 540_000),
    "metadata.max.age.ms": Setting(int, 300_000, {}, (1, _DAY_MS)),
}
ONLY_LIBRDKAFKA = {
    "metadata.broker.list", "queued.min.messages", "queued.max.messages.kbytes", "debug",
    "fetch.wait.max.ms", "enable.auto.offset.store", "enable.partition.eof", "log_level",
    "socket.keepalive.enable", "sasl.mechanisms", "sasl.username", "sasl.password",
    "statistics.interval.ms", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
}  # fmt: skip
"""Settings that CONFIGURATION.md lists and Kafka's Java client lacks: their names reveal
librdkafka.
"""
ONLY_JAVA = {
    "key.deserializer", "value.deserializer", "max.poll.records", "fetch.max.wait.ms",
    "default.api.timeout.ms", "interceptor.classes", "metric.reporters", "config.providers",
    "exclude.internal.topics", "sasl.jaas.config", "ssl.truststore.location",
}  # fmt: skip
"""Settings that ConsumerConfig defines and CONFIGURATION.md does not list: their names reveal Java.
"""


class Client(Frozen):
    """The settings of one client in a file.

    `client["session.timeout.ms"]` is the value, or the library's default. `names` are the given
    settings (with dots), and `lines` their lines, where found. `wrong` maps the settings whose
    value cannot be read to the reason; their defaults are used instead. `place` is the file, and
    the document in it if there are several: `a.yaml, documents[1]`.
    """

    library: Library
    file: str
    place: str
    names: tuple[str, ...]
    lines: Mapping[str, int]
    values: Mapping[str, Any]
    wrong: Mapping[str, str]

    @classmethod
    def of(
        cls,
        library: Library,
        given: Mapping[str, Any],
        *,
        file: str = "settings",
        place: str | None = None,
        lines: Mapping[str, int] | None = None,
    ) -> "Client":
        """Reads the values of `given`; names are the library's (for Python's, with underscores)."""
        values: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        given, lines = (_dotted(each, library) for each in (given, lines or {}))
        for name in given.keys() & SETTINGS.keys():
            try:
                if given[name] is not None:
                    values[name] = _read(SETTINGS[name].type, given[name])
            except ValueError as error:
                wrong[name] = f"{given[name]!r} {error}"
        return cls(library, file, place or file, tuple(given), lines, values, wrong)

    def __getitem__(self, name: str) -> Any:
        setting = SETTINGS[name]
        return self.values.get(name, setting.others.get(self.library, setting.default))

    def __contains__(self, name: str) -> bool:
        return name in self.values

    @property
    def assignors(self) -> tuple[str, ...]:
        """Returns the names that members list, such as `range`; unknown classes stay as given."""
        return tuple(map(assignor_name, self["partition.assignment.strategy"]))

    @property
    def is_classic(self) -> bool:
        return str(self["group.protocol"]).lower() != "consumer"

    @property
    def config(self) -> ConsumerConfig:
        """Returns these settings, as far as Kafka's own consumer has them, for the simulator."""
        config = ConsumerConfig(
            group_instance_id=self["group.instance.id"] or None,
            max_poll_interval_ms=self["max.poll.interval.ms"],
        )
        if not self.is_classic:
            return replace(config, group_protocol="consumer")
        session = self["session.timeout.ms"]
        known = tuple(name for name in self.assignors if name in _NAMES.values())
        return replace(
            config,
            session_timeout_ms=session,
            heartbeat_interval_ms=min(self["heartbeat.interval.ms"], session - 1),
            partition_assignment_strategy=known or ("range",),
        )


def _dotted(given: Mapping[str, Any], library: Library) -> dict[str, Any]:
    return {k.replace("_", ".") if library in PYTHON else k: value for k, value in given.items()}


def assignor_name(name: str) -> str:
    """Returns the name that a member lists for a class of Kafka or of a Python client, else `name`.

    >>> assignor_name("org.apache.kafka.clients.consumer.CooperativeStickyAssignor")
    'cooperative-sticky'
    """
    simple = name.rpartition(".")[2].replace("PartitionAssignor", "Assignor")
    return _NAMES.get(simple, name)


def _read(type: type, value: Any) -> Any:
    """Converts the value to its type. Errors: ValueError with the reason."""
    text = str(value).strip()
    if type is list:
        each = value if isinstance(value, list | tuple) else text.split(",")
        return tuple(name for one in each if (name := str(one).strip()))
    if isinstance(value, list | dict):
        raise ValueError("is not one value")
    if type is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError("is neither true nor false")
        return text.lower() == "true"
    if type is int:
        if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise ValueError("is not a whole number")
        if abs(int(text)) >= 2**31:
            raise ValueError("has more than 32 bits")
        return int(text)
    return text

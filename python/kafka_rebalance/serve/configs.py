# SPDX-License-Identifier: Apache-2.0
"""Settings of groups and of topics: how DescribeConfigs lists them, and how requests change them.

Settings are in memory only. `topic_configs.py` contains the settings of topics.

Source   ConfigDef, ControllerConfigurationManager and GroupConfig of Kafka 4.4.0; the broker's
         minimum and maximum settings for groups are not checked, so that tests can have short
         sessions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.machine.events import GroupConfigured
from kafka_rebalance.errors import GroupError

from .batches import Refused
from .frames import Asked, KafkaError

Value = bool | int | float | str | tuple[str, ...]
INT, LONG = 2**31 - 1, 2**63 - 1
_MOST_TEXT = 1_000
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_DEFAULT = 5
_TYPES = {bool: 1, str: 2, int: 3, float: 6, tuple: 7}
_LONG_TYPE = 5
"""DescribeConfigs' number for the type LONG; `_TYPES` maps Python's types to such numbers."""


class ServedSetting(NamedTuple):
    """A setting's default, which also shows its type, and its bounds or its possible values."""

    default: Value
    least: float = 0
    choices: tuple[str, ...] = ()
    most: float = INT

    @property
    def type_number(self) -> int:
        return _LONG_TYPE if self.most == LONG else _TYPES[type(self.default)]

    def parsed(self, name: str, text: str) -> Value:
        """Returns the value that the text stands for. Errors: GroupError."""
        wrong = GroupError(name, f"{text!r} is not a value of this setting")
        if len(text) > _MOST_TEXT:
            raise GroupError(name, f"a value has at most {_MOST_TEXT} characters")
        if isinstance(self.default, str | tuple):
            several = (text,) if isinstance(self.default, str) else _split(text)
            if self.choices and not set(several) <= set(self.choices):
                raise wrong
            return text if isinstance(self.default, str) else several
        if isinstance(self.default, bool):
            if text.lower() not in ("true", "false"):
                raise wrong
            return text.lower() == "true"
        try:
            value = type(self.default)(text if text.isascii() and "_" not in text else "")
        except ValueError:
            raise wrong from None
        if not self.least <= value <= self.most:
            raise wrong
        return value


def as_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (one.strip() for one in text.split(","))))


def changed(
    settings: Mapping[str, ServedSetting],
    old: Mapping[str, Value],
    changes: Mapping[str, str | None],
) -> dict[str, Any]:
    """Returns the old values with the changes; None restores a default. Errors: GroupError."""
    new = dict(old)
    for name, text in changes.items():
        if name not in settings:
            raise GroupError(
                name, f"there is no such setting here; give one of {', '.join(settings)}"
            )
        new.pop(name, None)
        if text is not None:
            new[name] = settings[name].parsed(name, text)
    return new


class Configs(ABC):
    """The settings of one kind of resource. `source` is the number with which DescribeConfigs marks
    a setting that was changed.
    """

    def __init__(self, settings: Mapping[str, ServedSetting], source: int) -> None:
        self.settings, self.source = settings, source

    @abstractmethod
    def given(self, name: str) -> Mapping[str, Value]:
        """Returns the settings that were set for the resource. Errors: Refused."""

    @abstractmethod
    def change(
        self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Changes settings, all or none; None restores a default. Errors: Refused, GroupError."""

    def alter(self, one: Any, asked: Asked) -> None:
        """Carries out one resource's part of (Incremental)AlterConfigs. Errors: Refused."""
        whole = asked.api == "alter_configs"  # which also resets all other settings
        given = self.given(one.resource_name)
        changes: dict[str, str | None] = {}
        for config in one.configs:
            operation = _SET if whole else config.config_operation
            if not _SET <= operation <= _SUBTRACT:
                raise Refused(KafkaError.invalid_request, f"{config.name}: no such operation")
            if config.name in changes:
                raise Refused(KafkaError.invalid_request, f"{config.name}: changed twice")
            if operation != _DELETE and config.value is None:
                raise Refused(KafkaError.invalid_request, f"{config.name}: null is no value")
            changes[config.name] = None if operation == _DELETE else config.value
            if operation in (_APPEND, _SUBTRACT):
                changes[config.name] = self._merged(given, config, operation)
        if whole:
            changes = dict.fromkeys(given) | changes
        try:
            self.change(one.resource_name, changes, validate_only=asked.body.validate_only)
        except GroupError as wrong:
            raise Refused(KafkaError.invalid_config, str(wrong)) from None

    def _merged(self, given: Mapping[str, Value], config: Any, operation: int) -> str:
        setting = self.settings.get(config.name)
        if setting is None or not isinstance(setting.default, tuple):
            raise Refused(KafkaError.invalid_config, f"{config.name}: only lists have entries")
        old: Any = given.get(config.name, setting.default)
        new = _split(config.value)
        if operation == _APPEND:
            return ",".join(dict.fromkeys((*old, *new)))
        return ",".join(one for one in old if one not in new)

    def described(self, name: str, keys: Container[str] | None) -> list[dict[str, Any]]:
        """Returns the settings of a resource as a response lists them. Errors: Refused."""
        return [one for one in self.listed(self.given(name)) if keys is None or one["name"] in keys]

    def listed(self, given: Mapping[str, Value]) -> list[dict[str, Any]]:
        return [
            {
                "name": key,
                "value": as_text(given.get(key, setting.default)),
                "config_source": self.source if key in given else _DEFAULT,
                "config_type": setting.type_number,
            }
            for key, setting in sorted(self.settings.items())
        ]


# Groups -------------------------------------------------------------------------------------------

GROUP = 32
"""The number of a group as a resource."""
_MOST = 10_000
_BY_GROUP = 8


def _of_coordinator(least: int, *names: str) -> dict[str, ServedSetting]:
    config = CoordinatorConfig()
    return {one: ServedSetting(getattr(config, _field(one)), least) for one in names}


def _field(name: str) -> str:
    """Returns the setting's name in CoordinatorConfig, which holds the default for all groups."""
    return "group_" + name.replace(".", "_")


_KINDS = ("consumer", "share", "streams")
_LEVELS = ("read_uncommitted", "read_committed")
_SETTINGS = {
    **_of_coordinator(1, *(f"{one}.session.timeout.ms" for one in _KINDS)),
    **_of_coordinator(1, *(f"{one}.heartbeat.interval.ms" for one in _KINDS)),
    **_of_coordinator(0, *(f"{one}.assignment.interval.ms" for one in _KINDS)),
    **_of_coordinator(0, "streams.initial.rebalance.delay.ms", "streams.num.standby.replicas"),
    **_of_coordinator(0, "streams.num.warmup.replicas", "streams.rack.aware.assignment.tags"),
    "share.auto.offset.reset": ServedSetting("latest", choices=("latest", "earliest")),
    "share.isolation.level": ServedSetting("read_uncommitted", choices=_LEVELS),
    # Responses hold this number in 16 bits.
    "share.delivery.count.limit": ServedSetting(5, 2, most=2**15 - 1),
    "share.partition.max.record.locks": ServedSetting(2_000, 100),
    "share.record.lock.duration.ms": ServedSetting(30_000, 1_000),
}


class GroupConfigs(Configs):
    """The settings that were set for groups. `tell` passes them to the coordinator.

    The coordinator reads the settings of heartbeats, sessions and assignments; `share.py` reads the
    settings of records.
    """

    def __init__(self, default: CoordinatorConfig, tell: Callable[[GroupConfigured], None]) -> None:
        ours = {
            name: one._replace(default=getattr(default, _field(name), one.default))
            for name, one in _SETTINGS.items()
        }
        super().__init__(ours, _BY_GROUP)
        self._default, self._tell = default, tell
        self._groups: dict[str, dict[str, Any]] = {}

    def value(self, group_id: str, name: str) -> Any:
        return self._groups.get(group_id, {}).get(name, self.settings[name].default)

    def groups(self) -> list[str]:
        return list(self._groups)

    def given(self, name: str) -> Mapping[str, Any]:
        if not name:
            raise Refused(KafkaError.invalid_request, "a group has a name")
        return self._groups.get(name, {})

    def change(
        self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        new = changed(self.settings, self._groups.get(name, {}), changes)
        config = replace(
            self._default,
            **{_field(n): v for n, v in new.items() if hasattr(self._default, _field(n))},
        )
        for kind in _KINDS:
            names = (f"group_{kind}_session_timeout_ms", f"group_{kind}_heartbeat_interval_ms")
            session, interval = (getattr(config, one) for one in names)
            if session <= interval and any(one.startswith(kind) for one in new):
                field = f"{kind}.session.timeout.ms"
                raise GroupError(field, f"{session} is not more than the interval of heartbeats")
        if len(self._groups) >= _MOST and name not in self._groups:
            raise GroupError("group_id", f"at most {_MOST} groups have settings")
        if validate_only:
            return
        self._groups[name] = new
        if not new:
            del self._groups[name]
        self._tell(GroupConfigured(name, config if new else None))

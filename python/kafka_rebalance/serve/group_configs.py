# SPDX-License-Identifier: Apache-2.0
"""Settings of groups: IncrementalAlterConfigs and DescribeConfigs of the resource GROUP.

The coordinator reads the settings of heartbeats, sessions and assignments; `share.py` reads the
settings of records. Settings are in memory only.

Source   GroupConfig of Kafka 4.4.0; the broker's minimum and maximum settings are not checked, so
         that tests can have short sessions.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.machine.events import GroupConfigured
from kafka_rebalance.errors import GroupError

from .frames import Asked, KafkaError

GROUP = 32
"""The number of a group as a resource."""
_MOST = 10_000
_MOST_TEXT = 1_000
_MOST_DIGITS = 4_000
"""The largest number of digits of a number; Python itself refuses more than 4,300."""
_SET, _DELETE = 0, 1
_BY_GROUP, _DEFAULT = 8, 5
_TYPES = {int: 3, str: 2, tuple: 7}
"""The numbers of the types of settings in DescribeConfigs."""


class _Setting(NamedTuple):
    default: int | str | tuple[str, ...]
    least: int = 0
    choices: tuple[str, ...] = ()
    most: int = 2**31 - 1


def _of_coordinator(least: int, *names: str) -> dict[str, _Setting]:
    config = CoordinatorConfig()
    return {one: _Setting(getattr(config, _field(one)), least) for one in names}


def _field(name: str) -> str:
    """Returns the setting's name in CoordinatorConfig, which holds the default for all groups."""
    return "group_" + name.replace(".", "_")


_KINDS = ("consumer", "share", "streams")
_LEVELS = ("read_uncommitted", "read_committed")
SETTINGS = {
    **_of_coordinator(1, *(f"{one}.session.timeout.ms" for one in _KINDS)),
    **_of_coordinator(1, *(f"{one}.heartbeat.interval.ms" for one in _KINDS)),
    **_of_coordinator(0, *(f"{one}.assignment.interval.ms" for one in _KINDS)),
    **_of_coordinator(0, "streams.initial.rebalance.delay.ms", "streams.num.standby.replicas"),
    **_of_coordinator(0, "streams.num.warmup.replicas", "streams.rack.aware.assignment.tags"),
    "share.auto.offset.reset": _Setting("latest", choices=("latest", "earliest")),
    "share.isolation.level": _Setting("read_uncommitted", choices=_LEVELS),
    "share.delivery.count.limit": _Setting(5, 2, most=2**15 - 1),  # responses hold it in 16 bits
    "share.partition.max.record.locks": _Setting(2_000, 100),
    "share.record.lock.duration.ms": _Setting(30_000, 1_000),
}


class GroupConfigs:
    """The groups' settings that differ from the defaults. `tell` passes them to the coordinator."""

    def __init__(self, default: CoordinatorConfig, tell: Callable[[GroupConfigured], None]) -> None:
        self._default, self._tell = default, tell
        self._groups: dict[str, dict[str, Any]] = {}
        self._defaults = {n: getattr(default, _field(n), s.default) for n, s in SETTINGS.items()}

    def value(self, group_id: str, name: str) -> Any:
        return self._groups.get(group_id, self._defaults).get(name, self._defaults[name])

    def groups(self) -> list[str]:
        """Returns the groups that have settings of their own."""
        return list(self._groups)

    def altered(self, one: Any, asked: Asked, *, is_repeated: bool) -> dict[str, Any]:
        """Returns the answer for one resource of IncrementalAlterConfigs."""
        error, message = asked.error, None
        try:
            if is_repeated:
                raise _Wrong(KafkaError.invalid_request, "a resource is listed twice")
            if error is KafkaError.none:
                self._alter(one, validate_only=asked.body.validate_only)
        except _Wrong as wrong:
            error, message = wrong.error, str(wrong)
        ids = {"resource_type": one.resource_type, "resource_name": one.resource_name}
        return {**ids, "error_code": error, "error_message": message}

    def _alter(self, one: Any, *, validate_only: bool) -> None:
        if one.resource_type != GROUP or not one.resource_name:
            raise _Wrong(KafkaError.invalid_request, "only groups have settings here")
        changes: dict[str, str | None] = {}
        for given in one.configs:
            if given.config_operation not in (_SET, _DELETE):
                raise _Wrong(KafkaError.invalid_request, f"{given.name}: only set and delete")
            if given.name in changes:
                raise _Wrong(KafkaError.invalid_request, f"{given.name}: changed twice")
            if given.config_operation == _SET and given.value is None:
                raise _Wrong(KafkaError.invalid_request, f"{given.name}: null is no value")
            changes[given.name] = given.value if given.config_operation == _SET else None
        try:
            self.change(one.resource_name, changes, validate_only=validate_only)
        except GroupError as wrong:
            raise _Wrong(KafkaError.invalid_config, str(wrong)) from None

    def change(
        self, group_id: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Changes settings of a group, all or none; None restores a default. Errors: GroupError."""
        new = dict(self._groups.get(group_id, {}))
        for name, text in changes.items():
            new[name] = _parsed(name, text)
            if text is None:
                del new[name]
        config = replace(
            self._default,
            **{_field(n): v for n, v in new.items() if hasattr(self._default, _field(n))},
        )
        for kind in _KINDS:
            names = (f"group_{kind}_session_timeout_ms", f"group_{kind}_heartbeat_interval_ms")
            session, interval = (getattr(config, name) for name in names)
            if session <= interval and any(name.startswith(kind) for name in new):
                name = f"{kind}.session.timeout.ms"
                raise GroupError(name, f"{session} is not more than the interval of heartbeats")
        if len(self._groups) >= _MOST and group_id not in self._groups:
            raise GroupError("group_id", f"at most {_MOST} groups have settings")
        if validate_only:
            return
        self._groups[group_id] = new
        if not new:
            del self._groups[group_id]
        self._tell(GroupConfigured(group_id, config if new else None))

    def described(self, one: Any) -> list[dict[str, Any]]:
        """Returns a group's settings as a DescribeConfigs response lists them."""
        given, defaults = self._groups.get(one.resource_name, {}), self._defaults
        asked = one.configuration_keys
        return [
            {
                "name": name,
                "value": _text(given.get(name, defaults[name])),
                "read_only": False,
                "config_source": _BY_GROUP if name in given else _DEFAULT,
                "is_sensitive": False,
                "synonyms": (),
                "config_type": _TYPES[type(setting.default)],
                "documentation": None,
            }
            for name, setting in sorted(SETTINGS.items())
            if asked is None or name in asked
        ]


class _Wrong(Exception):
    def __init__(self, error: KafkaError, message: str) -> None:
        super().__init__(message)
        self.error = error


def _parsed(name: str, text: str | None) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        raise GroupError(name, f"a group has no such setting; give one of {', '.join(SETTINGS)}")
    wrong = GroupError(name, f"{text!r} is not a value of this setting")
    if text is None:
        return None
    if isinstance(setting.default, tuple):
        if len(text) > _MOST_TEXT:
            raise GroupError(name, f"a value has at most {_MOST_TEXT} characters")
        return tuple(filter(None, (one.strip() for one in text.split(","))))
    if isinstance(setting.default, str):
        if text not in setting.choices:
            raise wrong
        return text
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not is_number or not setting.least <= int(text) <= setting.most:
        raise wrong
    return int(text)


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)

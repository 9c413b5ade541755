# SPDX-License-Identifier: Apache-2.0
"""Settings of groups: the resource GROUP of DescribeConfigs and IncrementalAlterConfigs.

The coordinator reads the settings of heartbeats, sessions and assignments; `share.py` reads the
settings of records.

Source   GroupConfig of Kafka 4.4.0; the broker's minimum and maximum settings are not checked, so
         that tests can have short sessions.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.machine.events import GroupConfigured
from kafka_rebalance.errors import GroupError

from .batches import Refused
from .configs import Configs, ServedSetting, changed
from .frames import KafkaError

GROUP = 32
"""The number of the resource type GROUP."""
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
SETTINGS = {
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
    """Settings of groups that differ from the defaults. `tell` passes them to the coordinator."""

    def __init__(self, default: CoordinatorConfig, tell: Callable[[GroupConfigured], None]) -> None:
        ours = {
            name: one._replace(default=getattr(default, _field(name), one.default))
            for name, one in SETTINGS.items()
        }
        super().__init__(ours, _BY_GROUP)
        self._default, self._tell = default, tell
        self._groups: dict[str, dict[str, Any]] = {}

    def value(self, group_id: str, name: str) -> Any:
        return self._groups.get(group_id, {}).get(name, self.settings[name].default)

    def groups(self) -> list[str]:
        """Returns the groups that have settings of their own."""
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

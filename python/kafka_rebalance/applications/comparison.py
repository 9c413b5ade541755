# SPDX-License-Identifier: Apache-2.0
"""Compares settings of a classic Kafka Streams application: plays one input under each.

First, the application is played with the new settings until no rebalance is due; then the changes
are played. Without changes, the figures count the rebalances that the settings cause.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.change import Change

from .lines import checked_settings
from .plan import SESSION_MS, ApplicationPlan, plan_application
from .replayed import Replay


class ComparedSettings(NamedTuple):
    """Settings that differ from the present ones, and the plan under them."""

    new_settings: Mapping[str, Any]
    plan: ApplicationPlan

    @property
    def copies(self) -> int:
        """Returns the number of standby tasks at the end, without warm-ups (a task's copies beyond
        its replicas). If the process that a task waits for has one of the replicas, its copy is not
        a warm-up.
        """
        counts = Counter(one for of in self.plan.likeliest.tasks.values() for one in of.standby)
        now = self.plan.replay.application.settings
        settings = now._replace(**checked_settings(self.new_settings, "new_settings"))
        return sum(min(count, settings.num_standby_replicas) for count in counts.values())

    @property
    def per_thread(self) -> tuple[int, int]:
        """Returns the smallest and the largest number of active tasks of a thread at the end."""
        counts = [len(of.active) for of in self.plan.likeliest.tasks.values()]
        return min(counts), max(counts)

    def to_dict(self) -> dict[str, Any]:
        course = self.plan.likeliest
        return {
            "new_settings": {**self.new_settings},
            "moved": course.moved,
            "probing_rebalances": course.probings,
            "settled_after_ms": course.duration_ms,
            "settled": course.settled,
            "restored": [{"task": t, "records": n} for t, n in sorted(course.restored.items())],
            "standby_tasks": self.copies,
            "active_tasks_per_thread": self.per_thread,
        }


def compare_settings(
    group: GroupSpec,
    replay: Replay,
    changes: Sequence[Change],
    candidates: Sequence[Mapping[str, Any]] = (),
    *,
    session_ms: int = SESSION_MS,
    restore_rate: int | None = None,
    write_rate: int = 0,
    engine: Engine = "rust",
) -> list[ComparedSettings]:
    """Plays the changes under the present settings, and under each of the `candidates`.

    Without candidates, the settings are: one more standby replica; twice the warm-up replicas; the
    acceptable lag times ten or, if larger, the lowest power of ten with which no task has to wait;
    and, if threads have a rack, the other strategies of rack awareness.
    """
    plan = partial(
        plan_application,
        group,
        replay,
        changes,
        settings_first=bool(changes),
        session_ms=session_ms,
        restore_rate=restore_rate,
        write_rate=write_rate,
        engine=engine,
    )
    every = ({}, *(candidates or _usual(replay, write_rate)))
    return [ComparedSettings(one, plan(one)) for one in every]


def _usual(replay: Replay, write_rate: int) -> list[dict[str, Any]]:
    now = replay.application.settings
    behind = max((late for *_, late in replay.waiting()), default=0)
    behind += write_rate * now.probing_rebalance_interval_ms // 1000
    lag = "acceptable.recovery.lag"
    found: list[dict[str, Any]] = [
        {"num.standby.replicas": now.num_standby_replicas + 1},
        {"max.warmup.replicas": 2 * now.max_warmup_replicas},
        {lag: max(10 * (now.acceptable_recovery_lag or 1_000), 10 ** len(str(behind)))},
    ]
    if any(one.rack_id for one in replay.application.threads):
        strategies = {"none", "min_traffic", "balance_subtopology"}
        others = sorted(strategies - {now.rack_aware_assignment_strategy})
        found += [{"rack.aware.assignment.strategy": one} for one in others]
    return found

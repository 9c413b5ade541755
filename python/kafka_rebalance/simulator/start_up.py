# SPDX-License-Identifier: Apache-2.0
"""Defines a group's start-up: the first ten seconds, in which the group's first members start.

A member that starts later joins a group that is running, so its start is one of the scenario's
events. Times are in ms from the start of the scenario.
"""

from collections.abc import Mapping

from .scenario import Happening, Kind, Scenario

_START_UP_MS = 10_000


def start_up_until_ms(scenario: Scenario) -> int:
    """Returns the last moment of the start-up, which begins with the start of the first member."""
    return min(one.start_ms for one in scenario.members) + _START_UP_MS


def joined_ms(scenario: Scenario, first_joins: Mapping[str, int]) -> int:
    """Returns when the last member of the start-up joined, with the consumer protocol; else 0.

    `first_joins` maps each member to the time at which it first got an answer to a join.
    """
    if not scenario.has_consumer_protocol:
        return 0
    until = start_up_until_ms(scenario)
    early = {one.name for one in scenario.members if one.start_ms <= until}
    return max((at for name, at in first_joins.items() if name in early), default=0)


def happenings_with_late_starts(scenario: Scenario) -> tuple[Happening, ...]:
    """Returns the scenario's events, and the starts of members after the start-up, by time."""
    until = start_up_until_ms(scenario)
    starts = (
        Happening(at_ms=plan.start_ms, kind=Kind.START, member=plan.name)
        for plan in scenario.members
        if plan.start_ms > until
    )
    return tuple(sorted((*scenario.happenings, *starts), key=lambda one: one.at_ms))

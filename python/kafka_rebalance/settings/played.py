# SPDX-License-Identifier: Apache-2.0
"""Plays a client's settings in the simulator: what happens, and when, with these numbers.

Three members of the client's settings read a topic of six partitions. At `_AT_MS` something
happens to one of them; the text counts the time from that event.

Source   kafka_rebalance.simulator, which plays Kafka's consumer and Kafka's coordinator.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import counted
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator.intervals import Gap
from kafka_rebalance.simulator.run import Run
from kafka_rebalance.simulator.scenario import Happening, Kind, MemberPlan, Scenario, TopicPlan
from kafka_rebalance.simulator.simulation import simulate


class Setup(NamedTuple):
    """The settings of the members, and of the broker."""

    config: ConsumerConfig
    broker: CoordinatorConfig = CoordinatorConfig()


_AT_MS = 60_000
_MEMBERS = ("a", "b", "c")
_PARTITIONS = 6
_MOST_PLAYED_MS = 7_200_000
_MOST_HEARTBEATS = 20_000  # of one member
_PHASES = 5  # a pause can begin anywhere between two heartbeats: so many places are played


def slow_batch(setup: Setup, processing_ms: int) -> str:
    """Plays a batch that takes longer than `max_poll_interval_ms`, in one of three members."""
    run = _run(setup, Happening(at_ms=_AT_MS, kind=Kind.PAUSE, member="a", for_ms=processing_ms))
    at = clock(setup.config.max_poll_interval_ms)
    leaves = f"leaves at {at}"
    if setup.config.group_instance_id is not None:
        leaves = f"sends no heartbeat from {at} on"
    left = f"with {duration(processing_ms)} to process a batch, the member {leaves}"
    end_ms = _AT_MS + processing_ms
    taken = [
        one.from_ms
        for one in run.holds
        if one.partition in _held_by(run, "a", _AT_MS)
        and one.member != "a"
        and _AT_MS < one.from_ms < end_ms
    ]
    if not taken:
        return f"{left}, and nobody takes its partitions before the batch ends"
    return f"{left}, and its partitions are read twice from {clock(min(taken) - _AT_MS)} on"


def frozen(setup: Setup, for_ms: int) -> str:
    """Plays a process that does nothing for a time (garbage collection, a lost connection)."""
    run = _run(setup, Happening(at_ms=_AT_MS, kind=Kind.FREEZE, member="a", for_ms=for_ms))
    return f"a pause of {duration(for_ms)} in one of three members costs {_cost(run)}"


def shortest_pause(setup: Setup) -> str:
    """Finds the shortest pause (in seconds) after which the group rebalances."""
    lasts, costs = 0, -(-setup.config.session_timeout_ms // 1000) + 1
    while costs - lasts > 1:
        middle = (lasts + costs) // 2
        steps = range(
            0,
            setup.config.heartbeat_interval_ms,
            setup.config.heartbeat_interval_ms // _PHASES or 1,
        )
        pauses = (
            Happening(at_ms=_AT_MS + step, kind=Kind.FREEZE, member="a", for_ms=middle * 1000)
            for step in steps
        )
        if any(_later(_run(setup, one)) for one in pauses):
            costs = middle
        else:
            lasts = middle
    session = duration(setup.config.session_timeout_ms)
    return (
        f"a pause of {costs} s is enough to lose the member, although its session lasts {session}"
    )


def crash(setup: Setup) -> str:
    """Plays a process that ends without leaving the group."""
    run = _run(setup, Happening(at_ms=_AT_MS, kind=Kind.KILL, member="a"))
    last = max(gap.to_ms for gap in _gaps(run))
    return f"after a crash, its partitions have no reader until {clock(last - _AT_MS)}"


def restart(setup: Setup, for_ms: int) -> str:
    """Plays a static member that closes, and is back after `for_ms`."""
    back = Happening(at_ms=_AT_MS + for_ms, kind=Kind.START, member="a")
    run = _run(setup, Happening(at_ms=_AT_MS, kind=Kind.STOP, member="a"), back)
    return f"a restart that takes {duration(for_ms)} costs {_cost(run)}"


def join(setup: Setup) -> str:
    """Plays one more member with these settings, and with cooperative-sticky alone."""
    config = replace(setup.config, partition_assignment_strategy=("cooperative-sticky",))
    setups = setup, setup._replace(config=config)
    stopped, alone = (len({gap.partition for gap in _gaps(_run(one, late="c"))}) for one in setups)
    return (
        f"when one of three members joins, {stopped} of {_PARTITIONS} partitions stop, and {alone} "
        "with cooperative-sticky alone"
    )


def blocked(setup: Setup) -> str | None:
    """Plays a member that is stuck in a batch while another one joins; None above two hours."""
    if setup.config.max_poll_interval_ms > _MOST_PLAYED_MS:
        return None
    stuck = Happening(
        at_ms=_AT_MS, kind=Kind.PAUSE, member="a", for_ms=setup.config.max_poll_interval_ms * 2
    )
    run = _run(setup, stuck, late="c")
    stuck_with = _held_by(run, "a", _AT_MS)
    others = [one for one in _gaps(run) if one.partition not in stuck_with]
    longest = max(others, key=lambda one: one.to_ms - one.from_ms, default=None)
    if longest is None or longest.to_ms - longest.from_ms < setup.config.max_poll_interval_ms // 2:
        until = clock(setup.config.max_poll_interval_ms)
        return f"a member stuck in a batch holds its partitions, and a rebalance, until {until}"
    until = clock(longest.to_ms - _AT_MS)
    return f"if a member is stuck in a batch when another one joins, all others stop until {until}"


@lru_cache(maxsize=64)  # many clients have equal settings
def _run(setup: Setup, *happenings: Happening, late: str = "") -> Run:
    """Plays three members; the one called `late` starts after the others, at the event."""
    is_static = setup.config.group_instance_id is not None
    members = tuple(
        MemberPlan(
            name=name,
            config=replace(setup.config, group_instance_id=name if is_static else None),
            topics=("t",),
            start_ms=_AT_MS + 5_000 if name == late else 0,
        )
        for name in _MEMBERS
    )
    last = max([_AT_MS, *(one.at_ms + one.for_ms for one in happenings)])
    limits = setup.config.session_timeout_ms + setup.config.max_poll_interval_ms
    scenario = Scenario(
        title="settings",
        members=members,
        topics={"t": TopicPlan(partitions=_PARTITIONS)},
        happenings=happenings,
        until_ms=last + limits + 60_000,
        broker=setup.broker,
    )
    if scenario.until_ms > _MOST_HEARTBEATS * max(setup.config.heartbeat_interval_ms, 1):
        raise GroupError("settings", "a run with so many heartbeats would take minutes")
    return simulate(scenario)


def _gaps(run: Run) -> list[Gap]:
    return [one for one in run.gaps if one.to_ms > _AT_MS]


def _later(run: Run) -> int:
    return sum(one.from_ms >= _AT_MS for one in run.rebalances)


def _held_by(run: Run, member: str, at_ms: int) -> set[str]:
    return {
        one.partition
        for one in run.holds
        if one.member == member and one.from_ms <= at_ms <= one.to_ms
    }


def _cost(run: Run) -> str:
    rebalances = _later(run)
    gaps = _gaps(run)
    unread = max((one.to_ms - max(one.from_ms, _AT_MS) for one in gaps), default=0)
    partitions = len({one.partition for one in gaps})
    return (
        f"{counted(rebalances, 'rebalance')}, and {counted(partitions, 'partition')} of "
        f"{_PARTITIONS} without a reader for up to {duration(unread)}"
    )


def duration(ms: int) -> str:
    """Returns `45 s`, `2.5 s` or `5 min`."""
    if ms % 60_000 == 0 and ms >= 120_000:
        return f"{ms // 60_000} min"
    return f"{ms / 1000:g} s"


def clock(ms: int) -> str:
    """Returns minutes and seconds since the event, rounded up: `0:31`."""
    seconds = -(-ms // 1000)
    return f"{seconds // 60}:{seconds % 60:02}"

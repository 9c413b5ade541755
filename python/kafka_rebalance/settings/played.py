# SPDX-License-Identifier: Apache-2.0
"""Plays a client's settings in the simulator, to find out what happens with its values, and when.

Three members with the client's settings read a topic of six partitions. At `_AT_MS` an event
happens, mostly to the first member. Each function for an event returns the effect as a clause,
whose times count from the event.

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
from kafka_rebalance.simulator.measure import totals
from kafka_rebalance.simulator.run import Run
from kafka_rebalance.simulator.scenario import Happening, Kind, MemberPlan, Scenario, TopicPlan
from kafka_rebalance.simulator.simulation import simulate

_AT_MS = 60_000
_MEMBERS = ("a", "b", "c")
_PARTITIONS = 6
_MOST_PLAYED_MS = 7_200_000
_MOST_HEARTBEATS = 20_000  # the most heartbeats of one member in a run
_PHASES = 5  # the number of moments between two heartbeats at which a played pause begins


class Setup(NamedTuple):
    """The settings of the members and the broker, and the times in ms that a batch and a restart
    take.
    """

    config: ConsumerConfig
    broker: CoordinatorConfig
    processing_ms: int = 0
    restart_ms: int = 0


def slow_batch(setup: Setup) -> str:
    """Plays a batch that takes longer than `max_poll_interval_ms`."""
    run = _run(setup, _happens(Kind.PAUSE, setup.processing_ms))
    at, is_static = clock(setup.config.max_poll_interval_ms), setup.config.group_instance_id
    leaves = f"leaves at {at}" if is_static is None else f"sends no heartbeat from {at} on"
    left = f"with {duration(setup.processing_ms)} to process a batch, the member {leaves}"
    others = (hold for hold in run.holds if hold.member != "a" and hold.partition in _stuck(run))
    taken = [hold.from_ms - _AT_MS for hold in others if hold.from_ms > _AT_MS]
    if min(taken, default=setup.processing_ms) >= setup.processing_ms:
        return f"{left}, and nobody takes its partitions before the batch ends"
    return f"{left}, and its partitions are read twice from {clock(min(taken))} on"


def frozen(setup: Setup) -> str:
    """Plays a process that pauses longer than its session timeout, as in garbage collection."""
    for_ms = setup.config.session_timeout_ms + 1_000
    cost = _cost(_run(setup, _happens(Kind.FREEZE, for_ms)))
    return f"a pause of {duration(for_ms)} in one of three members costs {cost}"


def shortest_pause(setup: Setup) -> str:
    """Finds the shortest pause (in whole seconds) after which the group rebalances."""
    session_ms, every_ms = setup.config.session_timeout_ms, setup.config.heartbeat_interval_ms
    phases = range(_AT_MS, _AT_MS + every_ms, every_ms // _PHASES or 1)
    lasts, costs = 0, -(-session_ms // 1000) + 1
    while costs - lasts > 1:
        middle = (lasts + costs) // 2
        pauses = (_happens(Kind.FREEZE, middle * 1000, at_ms) for at_ms in phases)
        if any(totals(_run(setup, one)).rebalances for one in pauses):
            costs = middle
        else:
            lasts = middle
    lasts_for = f"although its session lasts {duration(session_ms)}"
    return f"a pause of {costs} s is enough to lose the member, {lasts_for}"


def crash(setup: Setup) -> str:
    """Plays a process that exits without leaving the group."""
    last = max(gap.to_ms for gap in _gaps(_run(setup, _happens(Kind.KILL))))
    return f"after a crash, its partitions have no reader until {clock(last - _AT_MS)}"


def restart(setup: Setup) -> str:
    """Plays a static member that closes, and starts again."""
    back = _happens(Kind.START, at_ms=_AT_MS + setup.restart_ms)
    cost = _cost(_run(setup, _happens(Kind.STOP), back))
    return f"a restart that takes {duration(setup.restart_ms)} costs {cost}"


def join(setup: Setup) -> str:
    """Plays the join of one more member with these settings, and again with cooperative-sticky
    alone.
    """
    config = replace(setup.config, partition_assignment_strategy=("cooperative-sticky",))
    setups = setup, setup._replace(config=config)
    stopped, alone = (len({gap.partition for gap in _gaps(_run(one, late="c"))}) for one in setups)
    return (
        f"when one of three members joins, {stopped} of {_PARTITIONS} partitions have no "
        f"reader, and {alone} with cooperative-sticky alone"
    )


def blocked(setup: Setup) -> str | None:
    """Plays a member stuck in a batch while another joins; None for a poll interval over 2 h."""
    poll_ms = setup.config.max_poll_interval_ms
    if poll_ms > _MOST_PLAYED_MS:
        return None
    run = _run(setup, _happens(Kind.PAUSE, poll_ms * 2), late="c")
    others = (gap for gap in _gaps(run) if gap.partition not in _stuck(run))
    longest = max(others, key=lambda one: one.to_ms - one.from_ms, default=None)
    if longest is None or longest.to_ms - longest.from_ms < poll_ms // 2:
        until = clock(poll_ms)
        return f"a member stuck in a batch holds its partitions, and a rebalance, until {until}"
    until = clock(longest.to_ms - _AT_MS)
    return f"if a member is stuck in a batch when another one joins, all others stop until {until}"


def _happens(kind: Kind, for_ms: int = 0, at_ms: int = _AT_MS) -> Happening:
    return Happening(at_ms=at_ms, kind=kind, member="a", for_ms=for_ms)


@lru_cache(maxsize=64)  # many clients have the same settings
def _run(setup: Setup, *happenings: Happening, late: str = "") -> Run:
    """Plays three members; the one called `late` starts after the others, 5 s after the event."""
    config, names = setup.config, _MEMBERS if setup.config.group_instance_id else (None,) * 3
    members = tuple(
        MemberPlan(
            name=name,
            config=replace(config, group_instance_id=instance),
            topics=("t",),
            start_ms=_AT_MS + 5_000 if name == late else 0,
        )
        for name, instance in zip(_MEMBERS, names, strict=True)
    )
    last = max([_AT_MS, *(one.at_ms + one.for_ms for one in happenings)])
    scenario = Scenario(
        title="settings",
        members=members,
        topics={"t": TopicPlan(partitions=_PARTITIONS)},
        happenings=happenings,
        until_ms=last + config.session_timeout_ms + config.max_poll_interval_ms + 60_000,
        broker=setup.broker,
    )
    if scenario.until_ms > _MOST_HEARTBEATS * max(config.heartbeat_interval_ms, 1):
        raise GroupError("settings", "a run with so many heartbeats would take minutes")
    return simulate(scenario)


def _gaps(run: Run) -> list[Gap]:
    return [one for one in run.gaps if one.to_ms > _AT_MS]


def _stuck(run: Run) -> set[str]:
    """Returns the partitions that the first member holds at the event."""
    own = (one for one in run.holds if one.member == "a")
    return {one.partition for one in own if one.from_ms <= _AT_MS <= one.to_ms}


def _cost(run: Run) -> str:
    sums, stopped = totals(run), {gap.partition for gap in _gaps(run)}
    return (
        f"{counted(sums.rebalances, 'rebalance')}, and {counted(len(stopped), 'partition')} of "
        f"{_PARTITIONS} without a reader for up to {duration(sums.longest_gap_ms)}"
    )


def duration(ms: int) -> str:
    """Returns text such as `45 s`, `2.5 s` or `5 min`."""
    return f"{ms // 60_000} min" if ms >= 120_000 and ms % 60_000 == 0 else f"{ms / 1000:g} s"


def clock(ms: int) -> str:
    """Returns minutes and seconds since the event, rounded up, such as `0:31`."""
    seconds = -(-ms // 1000)
    return f"{seconds // 60}:{seconds % 60:02}"

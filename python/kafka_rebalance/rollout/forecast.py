# SPDX-License-Identifier: Apache-2.0
"""Plays a deploy of a group's pods in the simulator, as it is and with other settings.

All pods have the same number of members. The members of a StatefulSet's pod stop and start again;
the new pods of a Deployment have new members, with new instance ids if they are static. Each seed
chooses at which moment between two heartbeats the deploy begins, when the probes run, which pods
end first, and the simulation's own random values. The records that a killed member read since its
last commit are read twice.

With the consumer protocol, the broker refuses a killed member's instance id until its session has
expired (UNRELEASED_INSTANCE_ID). The process then fails, and Kubernetes starts it again: at once,
then after 10 s, 20 s and so on.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, field, replace
from random import Random
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator.from_group import scenario_from_group
from kafka_rebalance.simulator.measure import stops, totals
from kafka_rebalance.simulator.run import Run
from kafka_rebalance.simulator.scenario import (
    Costs,
    Happening,
    Kind,
    MemberConfig,
    MemberPlan,
    Scenario,
    TopicPlan,
    start_condition,
)
from kafka_rebalance.simulator.seeds import Spread
from kafka_rebalance.simulator.simulation import simulate

from .controllers import Assumed, roll
from .manifests import Workload
from .variants import Variant, variants

_SEEDS = range(10, 61)
_WORK = 100_000  # members times partitions times seeds: with more, a forecast would take minutes
_BEGIN_MS = 120_000  # long after the group has formed
_BACK_OFF_MS = (0, 10_000, 20_000, 40_000, 80_000, 160_000)
_MOST_RECORDS = 1_000_000_000  # records of one topic in a second
_SETTLES_MS = 60_000
_COLD_MS = 200
_LEAST_STOP_MS = 50  # an eager rebalance stops members for a shorter time if all are ready


class PlayedDeploy(Frozen):
    """A deploy with certain settings. `lines` are the lines to change for them (() for none).

    Each figure is a range over the seeds, with its median:
    rebalances   generations, or targets of the broker; `plan` also counts these
    moves        partitions that go to another member, counted each time
    unread_ms    partition-ms without a reader; longest_ms: the longest time of one partition
    stopped      members that run, but read nothing for a while; longest_stop_ms: for how long
    twice_ms     partition-ms of records that are read twice; records_twice, if rates are known
    takes_ms     from the beginning of the deploy until the group has settled
    """

    name: str
    lines: tuple[str, ...]
    figures: Mapping[str, Spread] = field(hash=False)

    def median(self, figure: str) -> int:
        return self.figures[figure].median or 0

    def counted(self, figure: str, noun: str) -> str:
        return counted(self.median(figure), noun) if self.median(figure) else f"no {noun}"

    def seconds(self, figure: str) -> str:
        return f"{self.median(figure) / 1000:,.1f}"

    @property
    def cost(self) -> tuple[int, ...]:
        """Returns the medians by which deploys are compared; the first is that of unread or
        repeated records, in ms of a partition.
        """
        lost = self.median("unread_ms") + self.median("twice_ms")
        return lost, self.median("rebalances"), self.median("moves")

    @property
    def unread(self) -> str:
        """Returns a clause: for how long partitions have no reader."""
        if not self.figures["unread_ms"].most:
            return "every partition is read throughout"
        longest = self.seconds("longest_ms")
        unread = f"{self.seconds('unread_ms')} partition-seconds without a reader"
        return f"{unread}{self.twice}, of one partition {longest} s"

    @property
    def twice(self) -> str:
        """Returns text such as " (and 12 records read twice)"; "" if no record is."""
        if not self.figures["twice_ms"].most:
            return ""
        records = f"{self.seconds('twice_ms')} partition-seconds of records"
        if "records_twice" in self.figures:
            records = self.counted("records_twice", "record")
        return f" (and {records} read twice)"


class Forecast(Frozen):
    """The forecast of one deploy: `variants` holds the deploy as it is, then with other settings.

    `assumed` names the facts that were not given, so that the forecast had to assume them.
    """

    group_id: str
    workload: str
    variants: tuple[PlayedDeploy, ...]
    assumed: str

    @property
    def summary(self) -> str:
        """Returns sentences (medians): the settings that cost least, and the deploy as it is."""
        now, best = self.variants[0], min(self.variants, key=lambda one: one.cost)
        deploy = f"a deploy of {self.workload}"
        stops = ""
        if now.median("longest_stop_ms") >= _LEAST_STOP_MS:
            longest = f"for up to {now.seconds('longest_stop_ms')} s"
            stops = f"members whose pods run on stop {now.counted('stopped', 'time')}, {longest}"
        if best is now:
            done = f"{now.counted('rebalances', 'rebalance')} and {now.counted('moves', 'move')}"
            said = [f"{deploy} causes {'; '.join(filter(None, (done, stops)))}; {now.unread}"]
            said += ["Nothing tried here costs less"] if self.variants[1:] else []
        else:
            rebalances = now.counted("rebalances", "rebalance")
            as_now = f"{now.seconds('unread_ms')} and {rebalances} as it is{now.twice}"
            how = f" ({best.lines[0]})" if len(best.lines) == 1 else ""
            least = f"{best.seconds('unread_ms')} partition-seconds without a reader{best.twice}"
            least += f" and {best.counted('rebalances', 'rebalance')}"
            holds_if = start_condition(self.assumed, "--setting start_cost=200ms")
            use = f'{holds_if}, use "{best.name}"{how} in {deploy}'
            said = [f"{use}: {least}, instead of {as_now}"]
        free = [one for one in self.variants if not one.figures["rebalances"].most]
        if free and best not in free:
            none = min(free, key=lambda one: one.cost)
            unread = f"{none.seconds('unread_ms')}{none.twice}"
            longest = f"one partition for {none.seconds('longest_ms')} s"
            said.append(f'"{none.name}": no rebalance, but {unread}, {longest}')
        if stops and best is not now:
            said.append(f"As it is, {stops}")
        return ". ".join(said) + "."

    def to_dict(self) -> dict[str, Any]:
        return {"summary": self.summary, **asdict(self)}


def rollout(
    group: GroupSpec,
    workload: Workload,
    *,
    assumed: Assumed | None = None,
    config: ConsumerConfig | None = None,
    work: Costs | None = None,
    broker: CoordinatorConfig | None = None,
    rate: Mapping[str, float] | None = None,
    seeds: Iterable[int] | None = None,
    most: int = 6,
) -> Forecast:
    """Returns a deploy's effects on the group, as it is and with up to `most` - 1 other settings.

    `config` and `work` contain facts that a group lacks, as in `scenario_from_group`; `broker`
    contains the sessions and heartbeats of the consumer protocol. `rate` maps topics to records a
    second. A small group is played with up to 60 `seeds`, a large one with 10; under other
    settings, each with a quarter as many, but at least 5.

    Errors   those of `scenario_from_group`; GroupError at `rate`, or at `replicas` if the pods
             cannot share the members evenly.
    """
    base = scenario_from_group(group, config=config, work=work)
    topics = {**base.topics, **dict(_with_rates(base.topics, rate or {}))}
    members, pods = len(base.members), workload.replicas
    if members % pods:
        shared = f"{counted(members)} cannot be shared evenly by {pods} pods"
        raise GroupError("replicas", f"{shared}; give the number of pods that run")
    base = replace(base, title=str(workload), topics=topics, broker=broker or base.broker)
    now = Variant("as it is", (), base, workload, assumed or Assumed())
    if seeds is None:  # as many as the size of the group allows
        size = members * sum(one.partitions for one in topics.values())
        seeds = range(1, max(_SEEDS[0], min(_SEEDS[-1], _WORK // max(1, size))) + 1)
    seeds = tuple(seeds)
    fewer = seeds[: max(5, len(seeds) // 4)]
    played = []
    for one in variants(now, most):
        runs = [_run(one, seed) for seed in (seeds if one is now else fewer)]
        figures = {name: Spread.of(run[name] for run in runs) for name in runs[0]}
        if not rate:
            del figures["records_twice"]
        played.append(PlayedDeploy(one.name, one.lines, figures))
    return Forecast(
        base.group_id,
        f"{workload} ({counted(pods, 'pod')})",
        tuple(played),
        f"{len(seeds)} seeds, {len(fewer)} of other settings; {now.assumed}; "
        f"sessions of {now.session_ms / 1000:g} s, heartbeats every "
        f"{base.heartbeat_interval_ms / 1000:g} s, {base.assumed().removeprefix('assumed: ')}",
    )


def _with_rates(
    topics: Mapping[str, TopicPlan], rate: Mapping[str, float]
) -> Iterator[tuple[str, TopicPlan]]:
    for name, number in rate.items():
        if name not in topics:
            raise GroupError("rate", f"the group reads no topic {name!r}")
        if not 0 <= number <= _MOST_RECORDS:
            raise GroupError("rate", f"{number!r} is not a number from 0 to {_MOST_RECORDS:,}")
        each = number / topics[name].partitions
        yield name, replace(topics[name], records_per_second=each)


def _run(one: Variant, seed: int) -> dict[str, int | None]:
    random = Random(f"{seed} rollout")
    begin = _BEGIN_MS + random.randrange(one.scenario.heartbeat_interval_ms)
    scenario = deployed(replace(one, scenario=_uneven(one.scenario, random)), random, begin)
    run = simulate(replace(scenario, seed=seed))
    sums, stopped = totals(run), [each for each in stops(run) if each.from_ms >= _BEGIN_MS]
    twice = list(_read_twice(run, scenario, random))
    return {
        "rebalances": sums.rounds,
        "moves": sums.moves,
        "unread_ms": sums.unavailable_ms,
        "longest_ms": sums.longest_gap_ms,
        "stopped": len({each.member for each in stopped}),
        "longest_stop_ms": max((each.to_ms - each.from_ms for each in stopped), default=0),
        "twice_ms": sum(ms for _, ms in twice),
        "records_twice": round(sum(run.rates[name] * ms / 1000 for name, ms in twice)),
        "takes_ms": None if sums.settled_ms is None else max(0, sums.settled_ms - begin),
    }


def _uneven(base: Scenario, random: Random) -> Scenario:
    """Returns the scenario with members that differ a little, as real ones do.

    In the simulator, all members of a classic group send heartbeats at the same time after a
    rebalance. Java's heartbeat thread reads the clock every 100 ms (retry.backoff.ms), or when a
    poll wakes it: the less often members poll, the sooner their times differ. A new process needs
    up to _COLD_MS for its first JoinGroup response, so a slow member can miss a round.
    """

    def late(config: MemberConfig) -> MemberConfig:
        late_ms = round(random.randrange(config.retry_backoff_ms) * rarely)
        is_classic = isinstance(config, ConsumerConfig) and config.is_classic
        every_ms = config.heartbeat_interval_ms + late_ms * is_classic
        return replace(config, heartbeat_interval_ms=every_ms)

    def cold(work: Costs) -> Costs:
        return replace(work, cold_ms=work.cold_ms + random.randrange(coldest_ms))

    # One value for all pods, because they run the same program.
    coldest_ms, rarely = random.randrange(1, _COLD_MS), random.random()
    each = (replace(one, config=late(one.config), work=cold(one.work)) for one in base.members)
    return replace(base, members=tuple(each))


def deployed(one: Variant, random: Random, begin_ms: int) -> Scenario:
    """Returns the scenario with a deploy that begins at `begin_ms`."""
    base, replicas = one.scenario, one.workload.replicas
    members = sorted(base.members, key=lambda each: _in_order(each.name))
    each = len(members) // replicas
    of_pod = [members[pod * each : (pod + 1) * each] for pod in range(replicas)]
    rolled = roll(one.workload, one.assumed, random)
    happenings, joined = list[Happening](), list[MemberPlan]()
    for pod, end in rolled.ends.items():
        kind, at = Kind.KILL if end.is_killed else Kind.STOP, begin_ms + end.at_ms
        happenings += (Happening(at_ms=at, kind=kind, member=m.name) for m in of_pod[pod])
    for number, new in enumerate(rolled.pods):
        at = begin_ms + new.joins_ms
        if new.replaces is None:
            joined += (_new(member, f"new{number}", at) for member in of_pod[number])
            continue
        is_killed = rolled.ends[new.replaces].is_killed
        for member in of_pod[new.replaces]:
            starts = _starts(member, at, is_killed=is_killed, again_ms=one.assumed.start_up_ms)
            happenings += (Happening(at_ms=t, kind=Kind.START, member=member.name) for t in starts)
    happenings.sort(key=lambda event: event.at_ms)
    last = max([begin_ms, *(h.at_ms for h in happenings), *(m.start_ms for m in joined)])
    until_ms = last + one.session_ms + _SETTLES_MS
    members = [*base.members, *joined]
    return replace(base, members=tuple(members), happenings=tuple(happenings), until_ms=until_ms)


def _new(one: MemberPlan, prefix: str, at_ms: int) -> MemberPlan:
    config, name = one.config, f"{prefix}-{one.name}"
    if isinstance(config, ConsumerConfig) and config.group_instance_id is not None:
        config = replace(config, group_instance_id=name)
    return replace(one, name=name, config=config, start_ms=at_ms, member_ids=())


def _starts(one: MemberPlan, at_ms: int, *, is_killed: bool, again_ms: int) -> Iterator[int]:
    """Yields the times at which the member starts: `at_ms`, then again after each refusal."""
    yield at_ms
    config = one.config
    is_classic = isinstance(config, ConsumerConfig) and config.is_classic
    if is_killed and config.group_instance_id is not None and not is_classic:
        for wait_ms in _BACK_OFF_MS:
            at_ms += wait_ms + again_ms
            yield at_ms


def _read_twice(run: Run, scenario: Scenario, random: Random) -> Iterator[tuple[str, int]]:
    """Yields each partition of a killed member, with the ms of records that are read again."""
    plans = {one.name: one for one in scenario.members}
    for event in (one for one in run.happenings if one.kind is Kind.KILL):
        config = plans[event.member].config
        assert isinstance(config, ConsumerConfig)
        process_ms = plans[event.member].work.process_ms
        auto_ms = config.auto_commit_interval_ms
        since_ms = random.randrange((auto_ms if config.enable_auto_commit else process_ms) + 1)
        for hold in run.holds:
            if hold.member == event.member and hold.to_ms == event.at_ms:
                yield hold.partition, min(since_ms, hold.to_ms - hold.from_ms)


def _in_order(name: str) -> list[tuple[int, str]]:
    """Returns a sort key that puts `orders-2` before `orders-10`."""
    return [(int(one) if one.isdecimal() else -1, one) for one in re.split(r"(\d+)", name)]

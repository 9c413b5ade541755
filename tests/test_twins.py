# SPDX-License-Identifier: Apache-2.0
"""A twin's run is the run that is played under its assignor."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.data import captured_lines
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.simulator.from_group import scenario_from_group
from kafka_rebalance.simulator.seeds import of_seed
from kafka_rebalance.simulator.simulation import Simulation, simulate
from kafka_rebalance.simulator.timing import timed, timed_each
from kafka_rebalance.simulator.twins import Twins, twins_of

if TYPE_CHECKING:
    from tests.support.seeds import Seeds

EAGER = ("range", "roundrobin", "sticky")


@pytest.mark.seeds(quick=40, whole=400)
def test_a_twin_is_the_run_under_its_assignor(seeds: Seeds) -> None:
    lines = (line for line in captured_lines() if "PreparingRebalance" not in line)
    groups = [GroupSpec.from_json(line) for line in lines]
    groups = [one for one in groups if one.members and one.topics and len(one.members) < 20]
    compared = runs = 0
    for number in seeds:
        runs += 1
        rng = random.Random(number)
        group, played = rng.choice(groups), rng.choice(EAGER)
        topic = rng.choice(group.topics)
        kinds = ("add-members=1", "remove-members=1", "bounce-members=*", "remove-rack=a")
        grows = f"partitions={topic.name}={topic.partitions + rng.randint(1, 5)}"
        changes = rng.sample((*kinds, grows), rng.randint(1, 2))
        try:
            alone = {one: scenario_from_group(group, changes, assignor=one) for one in EAGER}
        except GroupError:
            continue  # more members leave than there are
        twins = Twins(twins_of(alone[played], played, [one for one in EAGER if one != played]))
        run = Simulation(of_seed(alone[played], number, 0), twins=twins).run()
        for name, holds in twins.holds.items():
            held = holds.finish(run.until_ms)
            gaps = tuple(holds.gaps(held, run.until_ms))
            twin = replace(run, holds=tuple(held), gaps=gaps)
            assert twin == simulate(of_seed(alone[name], number, 0)), (number, name)
            compared += 1
    assert compared >= runs // 3


@pytest.mark.parametrize("group_id", ["payments", "audit", "telemetry"])
def test_times_together_are_the_times_alone(group_id: str) -> None:
    line = next(one for one in captured_lines() if f'"group_id":"{group_id}"' in one)
    group = GroupSpec.from_json(line)
    changes = parse_changes(["add-members=1"])
    together, _ = timed_each(group, changes, [*EAGER, "cooperative-sticky"])
    assert together == {name: timed(group, changes, name) for name in together}

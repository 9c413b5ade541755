# SPDX-License-Identifier: Apache-2.0
"""Figures as ranges over many seeds, and variants of scenarios with static members."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.simulator import Spread, simulate, simulate_seeds, totals
from kafka_rebalance.simulator.scenario_files import load, read
from kafka_rebalance.simulator.seeds import shifted

if TYPE_CHECKING:
    pass


def test_a_spread_has_a_median_that_is_one_of_its_values() -> None:
    assert Spread.of([3, 1, 7, 5]) == Spread(1, 3, 7)
    assert Spread.of([3, None, 1]) == Spread(1, 1, 3, never=1)
    assert Spread.of([None, None]) == Spread(None, None, None, never=2)
    assert Spread.of([4, 4]).is_one


def test_ranges_include_every_run_and_the_scenarios_own_seed() -> None:
    scenario = load("rolling-bounce")
    runs = simulate_seeds(scenario, range(1, 9))
    assert runs.totals[0] == totals(simulate(scenario))
    spread = runs.spreads()["unavailable_ms"]
    unread = [one.unavailable_ms for one in runs.totals]
    assert (spread.least, spread.most) == (min(unread), max(unread))
    # The figure depends on the times of heartbeats; for the first seed, it is small.
    assert spread.most is not None
    assert spread.most > 1.5 * unread[0]
    assert runs.spreads()["rebalances"].is_one


def test_events_that_belong_together_have_one_delay() -> None:
    scenario = load("zone-lost")
    kills = {one.at_ms for one in shifted(scenario).happenings}
    assert len(kills) == 1
    bounces = load("rolling-bounce")
    moved = {
        (before.member, after.at_ms - before.at_ms)
        for before, after in zip(bounces.happenings, shifted(bounces).happenings, strict=True)
    }
    assert len(moved) == len({member for member, _ in moved})  # absences keep their length
    assert all(0 <= by < 3_000 for _, by in moved)
    assert len({by for _, by in moved}) > 1


def test_the_command_prints_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "scale-out", "--seeds", "4"]) == 0
    shown = capsys.readouterr().out
    assert "seeds 1 to 4: least–most (median)" in shown
    assert main(["simulate", "scale-out", "--seeds", "4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"] == [1, 2, 3, 4]
    settles = told["happenings"][0]["settled_in_ms"]
    of_runs = [one["happenings"][0]["settled_in_ms"] for one in told["by_seed"]]
    assert settles["least"] == min(of_runs) < max(of_runs) == settles["most"]
    assert f"{settles['least'] / 1000:.1f}–{settles['most'] / 1000:.1f}" in shown
    assert main(["simulate", "scale-out", "--seeds", "2", "--compare", "eager,static"]) == 0
    assert "static" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--trace"], ["--output", "run.html"]])
def test_one_run_is_shown_for_one_seed(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--seeds", "2", *option])
    assert "--seeds: not with --trace or --output" in capsys.readouterr().err


def test_variants_of_static_members_are_dynamic_where_their_name_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The variants `eager` and `cooperative` have no instance ids, so members leave the group."""
    rebalances = {}
    names = ("eager", "cooperative", "static")
    assert main(["simulate", "rolling-bounce-static", "--compare", ",".join(names), "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        run = json.loads(line)
        rebalances[run["run"]] = run["totals"]["rebalances"]
    assert rebalances == {"eager": 8, "cooperative": 8, "static": 0}


def test_a_member_that_comes_back_with_other_settings_is_static_too() -> None:
    text = """
    until = "2m"
    [topics]
    t = 4
    [[member]]
    name = "c"
    count = 2
    [[happening]]
    at = "1m"
    do = "bounce"
    members = "c0"
    for = "5s"
    with = { session_timeout = "20s" }
    """
    scenario = read(text).with_static_members()
    (back,) = [one.config for one in scenario.happenings if one.config is not None]
    assert getattr(back, "group_instance_id", None) == "c0"
    assert len(simulate(scenario).rebalances) == 1
    assert len(simulate(scenario.with_dynamic_members()).rebalances) == 3


def test_a_cost_has_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", "scale-out", "--costs", "50/20"])
    assert "'50/20' is not two durations, like 50ms/20ms" in capsys.readouterr().err

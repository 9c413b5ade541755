# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario (a TOML file, or a ready one by its name) and prints every rebalance, with the
time during which partitions had no reader.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_rebalance.errors import GroupError, did_you_mean
from kafka_rebalance.group.declared_types import milliseconds
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.sentences import print_note, print_wrapped
from kafka_rebalance.report.text.terminal import progress_bar
from kafka_rebalance.simulator.playable import PLAYABLE

from . import DONE, SOME_ERRORS
from .applications import add_planned, planned_application, refuse_planned, replayed
from .groups import add_changes, error_text, one_group
from .lines import Leaderless, written
from .options import REPEATED, add_cluster, add_pasted, add_table, member_options, path, whole

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.applications.replayed import Replay
    from kafka_rebalance.simulator.journal import Entry
    from kafka_rebalance.simulator.run import Run
    from kafka_rebalance.simulator.scenario import Scenario
    from kafka_rebalance.simulator.seeds import SeedRuns

_VARIANTS = ("eager", "cooperative", "static", "consumer", "static-consumer")
_FORMATS = (".html", ".parquet")


def add_options(parser: argparse.ArgumentParser) -> None:
    how: dict[str, Any] = {"scenario": {"nargs": "?"}, "from": {"dest": "source"}}
    table = """
    scenario: a file, the name of a ready scenario, or - for standard input
    --list: list the ready scenarios
    --from FILE: make a scenario from a group of FILE (contract lines, as `snapshot` writes them; -
      for standard input): its topics, members, assignor and racks, with the changes below
    """
    add_table(parser, table, **how)
    add_cluster(parser, instead="; one of its groups is played, as with --from")
    of_group = """
    --group G: with --from and --bootstrap-server: which group
    --member SETTING=VALUE: with a group: a setting that contract lines do not contain, for example
      session_timeout=10s or process=500ms (repeatable)
    """
    add_table(parser, of_group, member=REPEATED)
    add_changes(parser, PLAYABLE)
    add_pasted(parser)
    add_planned(parser)
    parser.set_defaults(engine="rust")
    runs = f"""
    --json: print each run as one JSON object
    --trace: print every message, callback and change of state
    --seed: show the run of this seed (default: the median of 5)
    --seeds N: run N seeds, beginning with the scenario's own, and print every figure as a range
    --compare A,B,…: run the scenario with other kinds of members, side by side:
      {", ".join(_VARIANTS)} (eager, cooperative and static members have the classic protocol,
      consumer and static-consumer members the consumer protocol; static members are cooperative,
      all others dynamic)
    --costs START/STOP,…: run the scenario with other times for starting and stopping a partition or
      task, side by side: 50ms/20ms,200ms/100ms
    --output FILE: FILE.html: draw the holder of each partition over time; FILE.parquet: write the
      holders as rows
    """
    add_table(parser, runs, seed={"type": int}, seeds=whole(1), output=path)


def run(args: argparse.Namespace) -> int:
    if args.list:
        _print_ready()
        return DONE
    from kafka_rebalance.simulator.scenario_files import load

    _check(args)
    if args.scenario is None:
        args.file, noted = args.source, Leaderless()
        group = one_group(args, f"{_where(args)}: ", noted)
        if group is None:
            return SOME_ERRORS
        if application := replayed(args, group, noted):
            return _simulate_application(args, group, application)
        scenario = _from_group(args, group)
    else:
        scenario = load(args.scenario)
    refuse_planned(args)
    if args.seed is not None:
        scenario = dataclasses.replace(scenario, seed=args.seed)
    if args.trace:
        from kafka_rebalance.simulator.journal import lines
        from kafka_rebalance.simulator.simulation import simulate

        journal: list[Entry] = []
        simulate(scenario, journal=journal)
        for line in lines(journal):
            print(line)
        return DONE
    scenarios = _scenarios(args, scenario)
    name, first = next(iter(scenarios.items()))
    # A run of Connect takes seconds, so one seed is played.
    is_one = args.seed is not None or bool(first.connectors)
    is_table = len(scenarios) > 1 and not (is_one or args.json or args.output)
    if args.seeds is not None or is_table:
        _run_seeds(args, scenarios)
        return DONE
    seed, of_seeds = (scenario.seed, "") if is_one else _median_seed(name, first)
    runs = {name: _play(name, one, seed, of_seeds) for name, one in scenarios.items()}
    _print_runs(runs, as_json=args.json)
    _write(runs, args.output)
    return DONE


def _print_ready() -> None:
    from kafka_rebalance.simulator.scenario_files import load, ready

    for name in ready():
        print_wrapped(f"{name:24}{load(name).title}", more=" " * 24)


def _check(args: argparse.Namespace) -> None:
    """Reports wrong usage before anything is played."""
    usage = args.parser.error
    if [args.scenario, args.source, args.bootstrap_server].count(None) != 2:
        usage("give a scenario (--list has the ready ones), --from FILE, or --bootstrap-server")
    if args.scenario is not None and (args.group or args.member or args.changes):
        own = "a scenario has its own"
        usage(f"--group, --member and changes need --from or --bootstrap-server; {own}")
    if args.seeds is not None and (args.trace or args.output):
        usage("--seeds: not with --trace or --output, which show one run")
    if args.trace and (args.json or args.output or args.compare or args.costs):
        usage("--trace: not with --json, --output, --compare or --costs")
    if args.output is None:
        return
    if args.output.suffix not in _FORMATS:
        usage(f"--output: name a file that ends in {', '.join(_FORMATS)}")
    if args.output.is_dir() or not args.output.parent.is_dir():
        usage(f"--output: {args.output} cannot be written; does its directory exist?")


def _print_runs(runs: dict[str, "Run"], *, as_json: bool) -> None:
    if as_json:
        for name, one in runs.items():
            print(json.dumps(_plain(_json(name, one))))
        return
    from kafka_rebalance.report.runs.run import print_comparison, print_run

    if len(runs) > 1:
        print_comparison(runs)
    else:
        print_run(next(iter(runs.values())))
    sys.stdout.flush()


def _where(args: argparse.Namespace) -> str:
    return "--bootstrap-server" if args.source is None else "--from"


def _simulate_application(args: argparse.Namespace, group: GroupSpec, application: "Replay") -> int:
    """Simulates the rebalances that `plan` predicts for a classic Kafka Streams application."""
    from kafka_rebalance.report.runs.application import print_application_run, summary
    from kafka_rebalance.simulator.from_application import application_run

    for name in ("member", "trace", "seed", "seeds", "compare", "costs"):
        if getattr(args, name):
            args.parser.error(f"--{name}: not with a classic Kafka Streams application")
    try:
        plan = planned_application(args, group, application, args.changes)
        run = application_run(plan)
    except GroupError as error:
        text = error_text(error, args.changes).replace("restore_rate:", "--restore-rate:")
        raise GroupError(_where(args), f"{group.group_id}: {text}") from None
    if args.json:
        played = _plain(_json("", run) | {"summary": summary(plan, run)})
        print(json.dumps(played | {"plan": plan.to_dict()}))
    else:
        print_application_run(plan, run)
    _write({"": run}, args.output)
    return DONE


def _from_group(args: argparse.Namespace, group: GroupSpec) -> "Scenario":
    from kafka_rebalance.simulator.from_group import scenario_from_group
    from kafka_rebalance.simulator.scenario_files import member_settings

    where = _where(args)
    config, work = member_settings("--member", member_options(args))
    try:
        scenario = scenario_from_group(group, args.changes, config=config, work=work)
    except GroupError as error:
        raise GroupError(where, f"{group.group_id}: {error_text(error, args.changes)}") from None
    from kafka_rebalance.notes.lost_rack import lost_rack

    for note in lost_rack(group, map(str, args.changes)):
        print_note(note.text)
    return scenario


def _run_seeds(args: argparse.Namespace, scenarios: dict[str, "Scenario"]) -> None:
    """Plays every scenario with N seeds, the scenario's own seed first, and prints the results."""
    from kafka_rebalance.simulator.seeds import SeedRuns, simulate_seeds

    runs, count = dict[str, SeedRuns](), args.seeds or 5
    for name, one in scenarios.items():
        with _progress(name, one, count) as progress:
            seeds = range(one.seed, one.seed + count)
            runs[name] = simulate_seeds(one, seeds, progress=progress)
    if args.json:
        for name, each in runs.items():
            print(json.dumps(_plain(_seeds_json(name, each))))
        return
    from kafka_rebalance.report.runs.run import print_seeds

    print_seeds(runs)


@contextmanager
def _progress(name: str, scenario: "Scenario", runs: int) -> Iterator[Callable[[int, int], None]]:
    """Shows progress; call the yielded function with the number of finished runs, and the simulated
    ms of the present run.
    """
    with progress_bar(name or "simulating", scenario.until_ms * runs) as update:
        yield lambda before, now_ms: update(before * scenario.until_ms + now_ms)


def _scenarios(args: argparse.Namespace, scenario: "Scenario") -> dict[str, "Scenario"]:
    """Returns the scenarios by name: one for each variant with each pair of --costs."""
    variants = _listed(args.compare)
    for name in variants:
        if args.compare is not None and name not in _VARIANTS:
            near = did_you_mean(name, _VARIANTS)
            there = f"is not one of {', '.join(_VARIANTS)}{near}"
            args.parser.error(f"--compare: {name!r} {there}")
    found, every = {}, _listed(args.costs)
    is_named = len(every) > 1 or len(variants) == 1  # whether scenarios' names contain the costs
    for cost in every:
        start, _, stop = cost.partition("/")
        costs = (milliseconds(start), milliseconds(stop))
        no_unit = any(each.strip(".0123456789") == "" for each in (start, stop))
        if args.costs is not None and (None in costs or no_unit):
            args.parser.error(f"--costs: {cost!r} is not two durations, like 50ms/20ms")
        for name in variants:
            changed = _variant(scenario, name)
            if cost:
                changed = changed.with_costs(*(each or 0 for each in costs))
            found[f"{name} {cost if is_named else ''}".strip()] = changed
    return found


def _listed(text: str | None) -> list[str]:
    """Returns the distinct names in `a, b`; one empty name if the option is absent."""
    return [""] if text is None else list(dict.fromkeys(one.strip() for one in text.split(",")))


def _variant(scenario: "Scenario", name: str) -> "Scenario":
    """Returns the scenario with the members of the named variant; unchanged without a name."""
    if not name:
        return scenario
    if name.endswith("consumer"):
        scenario = scenario.with_consumer_protocol()
    else:
        scenario = scenario.with_protocol(eager=name == "eager")
    is_static = name.startswith("static")
    return scenario.with_static_members() if is_static else scenario.with_dynamic_members()


def _play(name: str, scenario: "Scenario", seed: int, of_seeds: str) -> "Run":
    from kafka_rebalance.simulator.seeds import of_seed
    from kafka_rebalance.simulator.simulation import simulate

    with _progress(name, scenario, 1) as progress:
        run = simulate(of_seed(scenario, seed, scenario.seed), progress=partial(progress, 0))
    return dataclasses.replace(run, of_seeds=of_seeds)


def _median_seed(name: str, scenario: "Scenario") -> tuple[int, str]:
    from kafka_rebalance.simulator.seeds import MEDIAN_OF, median_seed

    with _progress(name, scenario, MEDIAN_OF) as progress:
        return median_seed(scenario, progress=progress)


def _write(runs: dict[str, "Run"], output: "Path | None") -> None:
    if output is None:
        return
    from kafka_rebalance.report.runs.files import runs_page, write_runs

    with written(output) as part:
        if output.suffix == ".parquet":
            write_runs(runs, part)
        else:
            part.write_text(runs_page(runs), encoding="utf-8")


def _plain(value: Any) -> Any:
    """Returns the value as JSON can hold it: dataclasses and named tuples in it become objects."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value


def _seeds_json(name: str, runs: "SeedRuns") -> dict[str, Any]:
    columns = zip(runs.seeds, runs.totals, runs.parts, runs.crashed, strict=True)
    return {
        "title": runs.title,
        "assumed": runs.assumed,
        "run": name or None,
        "seeds": runs.seeds,
        "totals": runs.spreads(),
        "happenings": runs.part_spreads(),
        "by_seed": [
            {"seed": seed, "totals": sums, "happenings": parts, "crashed": crashed}
            for seed, sums, parts, crashed in columns
        ],
    }


def _json(name: str, run: "Run") -> dict[str, Any]:
    from kafka_rebalance.simulator.measure import settlings, stops_of, totals

    stopped = stops_of(run)
    return {
        "title": run.title,
        "assumed": run.assumed,
        "of_seeds": run.of_seeds or None,
        "run": name or None,
        "summary": f"{run.title}: {run.summary}",
        "totals": totals(run),
        "settlings": settlings(run),
        "rebalances": [
            {**dataclasses.asdict(one), "stopped": stopped.get(one.number, [])}
            for one in run.rebalances
        ],
        "holds": run.holds,
        "gaps": run.gaps,
        "crashed": run.crashed,
    }

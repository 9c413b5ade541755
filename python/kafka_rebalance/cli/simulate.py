"""`kafka-rebalance simulate`: a rebalance in virtual time, before it happens."""

import argparse
import dataclasses
import json
import sys
from typing import Any

from kafka_rebalance.simulator import Run, Scenario, simulate
from kafka_rebalance.simulator.files import load, ready

_VARIANTS = ("eager", "cooperative", "static")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "simulate",
        help="who stops, and for how long: a rebalance in virtual time",
        description="Plays a scenario, a TOML file or a ready one by name, and prints every "
        "rebalance with what was without a reader meanwhile.",
    )
    parser.add_argument("scenario", nargs="?", help="a file, or a ready one's name")
    parser.add_argument("--list", action="store_true", help="the ready scenarios")
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object a run")
    parser.add_argument("--seed", type=int, help="in place of the scenario's own")
    parser.add_argument(
        "--compare",
        metavar="A,B,…",
        help=f"the same with other members, side by side: {', '.join(_VARIANTS)}",
    )
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    if args.list:
        for name in ready():
            print(f"{name:24}{load(name).title}")
        return 0
    if args.scenario is None:
        args.parser.error("a scenario is needed; --list has the ready ones")
    scenario = load(args.scenario)
    if args.seed is not None:
        scenario = dataclasses.replace(scenario, seed=args.seed)
    names = args.compare.split(",") if args.compare else []
    for name in names:
        if name not in _VARIANTS:
            args.parser.error(f"--compare: {name!r} is none of {', '.join(_VARIANTS)}")
    runs = {name: simulate(_variant(scenario, name)) for name in names}
    if not names:
        runs = {"": simulate(scenario)}
    if args.json:
        for name, one in runs.items():
            print(json.dumps(_json(name, one)))
        return 0
    from kafka_rebalance.report.simulate import print_run, print_totals

    if names:
        print(scenario.title)
        print_totals({name: one.totals() for name, one in runs.items()})
    else:
        print_run(runs[""])
    sys.stdout.flush()
    return 0


def _variant(scenario: Scenario, name: str) -> Scenario:
    """Eager, cooperative, or cooperative with instance ids."""
    if name == "eager":
        return scenario.with_protocol(eager=True)
    scenario = scenario.with_protocol(eager=False)
    return scenario.with_static_members() if name == "static" else scenario


def _json(name: str, run: Run) -> dict[str, Any]:
    return {
        "title": run.title,
        "members": name or None,
        "totals": dataclasses.asdict(run.totals()),
        "rebalances": [dataclasses.asdict(one) for one in run.rebalances],
        "holds": [one._asdict() for one in run.holds],
        "gaps": [one._asdict() for one in run.gaps],
        "crashed": dict(run.crashed),
    }

# SPDX-License-Identifier: Apache-2.0
"""Checks groups, or the groups as they are after changes, and fails (exit code 4) if there is a
problem that --fail-on names or that is above a limit. Options not given are taken from the table
[tool.kafka-rebalance] of --config. docs/findings.md explains the kinds of problems.
"""

import argparse
import json
import tomllib
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from kafka_rebalance.bulk.lines import group_id_of
from kafka_rebalance.checks.verdict import (
    ERROR,
    LIMITS,
    SWITCHED,
    Problem,
    SwitchPlan,
    Verdict,
    of_group,
    of_plan,
    of_settings,
    of_switch,
)
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec, first_of
from kafka_rebalance.plans.affected import is_already
from kafka_rebalance.plans.changes.text import change_from_text
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.summary import is_not_known
from kafka_rebalance.present.description import Description
from kafka_rebalance.report.text.sentences import print_note
from kafka_rebalance.settings.clients import LIBRARIES, Client
from kafka_rebalance.settings.files import judge, read_broker, read_clients
from kafka_rebalance.settings.rule import Surroundings
from kafka_rebalance.simulator.typed_values import ms

from . import DONE, FINDINGS_FAIL, SOME_ERRORS
from .applications import add_settings
from .groups import BadGroup, add_changes, add_input, answer
from .lines import numbered, open_input
from .options import add_table, whole
from .tally import Unplayed, unchanged
from .triage import triaged
from .weights import add_weights

_TABLE = "tool.kafka-rebalance"
_FORMATS = ("text", "json", "sarif", "github")
_PLANS = "docs/plans.md"
_KEYS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("fail-on", "change", "settings"), (list, "a list of strings")),
    **dict.fromkeys(
        ("baseline", "client", "processing", "restart", "broker-settings"), (str, "a string")
    ),
    **{f"max-{one}": (int, "a whole number from 0 on") for one in LIMITS},
}
"""Name of an option, as in the TOML table -> the type of its value, and the type in words."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_input(parser, by_patterns=True)
    add_changes(parser)
    add_weights(parser)
    add_settings(parser)
    options = parser.add_argument_group(
        "settings of clients", "Judged by the rules of docs/settings.md, in place of groups."
    )
    table = """
    --settings FILE: properties of Java clients; JSON or YAML of librdkafka or of a Python client
    --client: the library (default: by the file's form and names)
    --processing TIME: the longest time to process what one poll returns, such as 45s
    --restart TIME: how long a client is away when it restarts
    --broker-settings FILE: server.properties (default: Kafka's defaults)
    """
    files = {"nargs": "+", "action": "extend"}
    add_table(options, table, settings=files, client={"choices": LIBRARIES})
    kinds = "error (default), warning, info, or kinds such as idle,uneven (repeatable)"
    add_table(parser, f"--fail-on KIND,…: {kinds}", fail_on={"action": "append"})
    limits = "\n".join(f"--max-{name} N: most {meaning}" for name, meaning in LIMITS.items())
    add_table(parser, limits, **{f"max_{one.replace('-', '_')}": whole(0) for one in LIMITS})
    output = """
    --switched PLAN.json: compare groups with what plan --switch-protocol … --json printed before
    --baseline FILE: the JSON output of an earlier check: its problems are known, and do not fail
    --config FILE: TOML (default: pyproject.toml, if it has the table)
    --format: github: the lines shown beside a pull request
    """
    add_table(parser, output, format={"choices": _FORMATS})


def run(args: argparse.Namespace) -> int:
    given = _limits(args)
    _configure(args)
    for name in given:
        if why := _without_effect(name, args):
            args.parser.error(f"--max-{name}: {why}")
    fail_on = [one.strip() for one in ",".join(args.fail_on or ("error",)).split(",")]
    of = partial(Verdict.of, fail_on=fail_on, known=_known(args.baseline))
    if args.settings:
        count, problems = _of_settings(args)
        return _print(of(count, problems, noun="client"), args, [])
    if args.switched and args.changes:
        args.parser.error("--switched: not with a change")
    planned = _planned_switches(args.switched)
    names, args.group = args.group or [*planned] or None, None
    args.weighed = names[0] if names and len(names) == 1 else None
    limits = _limits(args)
    rows, bad = triaged(args, names, counts="rebalances-per-hour" in limits)
    problems = [Problem.of(one.group_id or "", ERROR, f"{one.place}{one.error}") for one in bad]
    answers, left_out = list[str](), list[list[str]]()
    for one in rows:
        if one.group_id in planned:
            problems += of_switch(one, planned[one.group_id])
        elif args.switched:
            text = f"{args.switched} has no plan of this group"
            problems.append(Problem.of(one.group_id, SWITCHED, text))
        if not args.changes:
            problems += of_group(one, limits)
        elif not isinstance(one.described, Description):
            text = f"not planned, because its state is {one.state}"
            problems += [*of_group(one, limits), Problem.of(one.group_id, ERROR, text, _PLANS)]
        else:
            found, lines = _planned(args, one.described.group, alone=len(rows) == 1)
            left_out.append(lines)
            if isinstance(found, RebalancePlan):
                problems += of_plan(found, limits)
                if not is_not_known(found):
                    answers.append(f"{one.group_id}: {found.summary}")
            elif found is None and any(map(is_already, lines)):
                answers.append(unchanged(one.group_id, lines))
            elif found is not None:
                problems.append(found)
    for change in args.changes:
        reasons = [one for lines in left_out for one in lines if one.startswith(f"{change}: ")]
        if reasons and len(reasons) == len(left_out) and not any(map(is_already, reasons)):
            problems.append(Problem.of("all groups", ERROR, reasons[0], _PLANS))
    return _print(of(len(rows) + len(bad), problems), args, answers)


def _limits(args: argparse.Namespace) -> dict[str, int]:
    """Returns the values of the limits that the options set, by the limits' names."""
    each = {name: getattr(args, f"max_{name}".replace("-", "_")) for name in LIMITS}
    return {name: value for name, value in each.items() if value is not None}


def _without_effect(limit: str, args: argparse.Namespace) -> str:
    """Returns why no group can exceed a limit with these options; "" if one can."""
    if limit in ("moves", "stops"):
        return "" if args.changes else "needs a change, such as --add-members 2"
    if args.changes:
        return "not with a change"
    unknown = {"lag": "lag", "rebalances-per-hour": "history"}.get(limit)
    return f"a file has no {unknown}; give --bootstrap-server" if unknown and args.file else ""


def _planned(
    args: argparse.Namespace, group: GroupSpec, *, alone: bool
) -> tuple[RebalancePlan | Problem | None, list[str]]:
    """Returns the plan of a group, or its problem; None if no change affects it.

    A group that is not `alone` is planned without the changes that do not affect it; the list holds
    the left-out changes, as lines `CHANGE: problem`.
    """
    work = partial(plans_by_leader, engine=args.engine)
    found = answer(group, args, work, alone=alone)
    if isinstance(found, BadGroup):
        return Problem.of(group.group_id, ERROR, found.error, _PLANS), []
    if isinstance(found, Unplayed):
        page = _PLANS if found.kind == ERROR else ""
        return Problem.of(group.group_id, found.kind, found.why, page), []
    led, lines = found
    if led is None:
        return None, lines
    none = Problem.of(group.group_id, "hangs", "no member that may lead has an answer")
    return next((one.plan for one in led if one.plan is not None), none), lines


def _of_settings(args: argparse.Namespace) -> tuple[int, list[Problem]]:
    """Returns the number of clients in the files of `--settings`, and their problems."""
    if args.file is not None or args.bootstrap_server is not None or args.changes:
        args.parser.error("--settings: not with FILE, --bootstrap-server or a change")
    broker = read_broker(args.broker_settings) if args.broker_settings else CoordinatorConfig()
    processing = args.processing and ms("--processing", args.processing)
    around = Surroundings(processing, args.restart and ms("--restart", args.restart), broker)
    clients, problems = list[Client](), list[Problem]()
    for file in args.settings:
        for one in read_clients(file, args.client):
            if isinstance(one, Client):
                clients.append(one)
            else:
                wrong = Problem.of(one.path, ERROR, one.problem, "docs/settings.md")
                problems.append(wrong._replace(file=file))
    for library in dict.fromkeys(one.library for one in clients if args.client is None):
        first, *more = (one.place for one in clients if one.library == library)
        which = f"{first} and {len(more)} more" if more else first
        print_note(f"{which}: read as settings of {library}; --client names another library")
    count = len(clients) + len(problems)
    return count, [*problems, *map(of_settings, judge(clients, around))]


def _configure(args: argparse.Namespace) -> None:
    """Takes the options that are not given from the TOML table."""
    path = Path(args.config or "pyproject.toml")
    if args.config is None and not path.is_file():
        return
    asks_of_groups = args.file or args.bootstrap_server or args.changes
    for key, value in _table(path, is_given=args.config is not None).items():
        where = f"{path}: {_TABLE}.{key}"
        if key not in _KEYS:
            raise GroupError(where, f"is not a key; the keys are {', '.join(_KEYS)}")
        kind, form = _KEYS[key]
        is_text = kind is not list or all(isinstance(one, str) for one in value)
        if type(value) is not kind or not is_text or (kind is int and value < 0):
            raise GroupError(where, f"{quoted(str(value))} is not {form}")
        if key == "client" and value not in LIBRARIES:
            raise GroupError(where, f"{quoted(value)} is not one of {', '.join(LIBRARIES)}")
        name = "changes" if key == "change" else key.replace("-", "_")
        if getattr(args, name) in (None, []) and not (key == "settings" and asks_of_groups):
            setattr(args, name, [*map(change_from_text, value)] if key == "change" else value)


def _table(path: Path, *, is_given: bool) -> dict[str, Any]:
    """Returns the TOML table; {} if the default file does not contain it."""
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GroupError(str(path), f"is not TOML: {error}") from None
    table = tool.get("kafka-rebalance") if isinstance(tool, dict) else None
    if table is None and is_given:
        raise GroupError(str(path), f"has no table [{_TABLE}]")
    if table is not None and not isinstance(table, dict):
        raise GroupError(f"{path}: {_TABLE}", "is not a table")
    return table or {}


def _planned_switches(file: str | None) -> dict[str, SwitchPlan]:
    """Returns the plans in the file of `--switched` by group id; notes which of its groups have
    none.

    Errors   GroupError at `--switched` for a file without a plan.
    """
    if file is None:
        return {}
    try:
        lines = map(json.loads, filter(bytes.strip, Path(file).read_bytes().splitlines()))
        found = {str(one["group_id"]): SwitchPlan.of(one) for one in lines}
    except (ValueError, KeyError, TypeError):
        found = {}
    plans = {group_id: one for group_id, one in found.items() if one is not None}
    if not plans:
        problem = "has no plan; give it the output of plan --switch-protocol … --json"
        raise GroupError(f"--switched {file}", problem)
    if without := [group_id for group_id in found if group_id not in plans]:
        print_note(f"--switched {file}: no plan of {first_of(without, 3)}, which is not compared")
    return plans


def _known(file: str | None) -> Collection[tuple[str, str]]:
    """Returns (group_id, kind) of a baseline's problems. Errors: GroupError at `--baseline`."""
    if file is None:
        return ()
    try:
        problems = json.loads(Path(file).read_bytes())["problems"]
        return {(one["group_id"], one["kind"]) for one in problems}
    except (ValueError, KeyError, TypeError):
        problem = "is not the output of check --format json"
        raise GroupError(f"--baseline {file}", problem) from None


def _placed(verdict: Verdict, file: str | None) -> Verdict:
    """Returns the verdict; if FILE is a file, each problem names it, and its group's line there."""
    if file in (None, "-"):
        return verdict
    lines: dict[str, int] = {}
    with open_input(file or "") as source:
        for number, line in numbered(source):
            try:
                group_id = group_id_of(contract.parse(line or b""))
            except GroupError:
                group_id = ""
            lines.setdefault(group_id or "", number)
    at = (one._replace(file=file, line=lines.get(one.group_id, 1)) for one in verdict.problems)
    return verdict._replace(problems=tuple(at))


def _print(verdict: Verdict, args: argparse.Namespace, answers: Sequence[str]) -> int:
    """Prints the verdict in the format that the options name; returns the exit code."""
    from kafka_rebalance.checks import formats

    form = args.format or ("json" if args.json else "text")
    if form == "json":
        lines: Iterable[str] = [contract.dumps({**verdict.to_dict(), "plans": answers})]
    elif form == "sarif":
        lines = json.dumps(formats.sarif(_placed(verdict, args.file)), indent=2).splitlines()
    elif form == "github":
        lines = formats.github_lines(_placed(verdict, args.file))
    else:
        lines = chain(formats.text_lines(verdict), map(formats.harmless, answers))
    for line in lines:
        # A pipeline's runner takes "##[" for a command to itself. In JSON, the escaped form has the
        # same meaning.
        print(line.replace("##[", "\\u0023#["))
    if verdict.failures:
        return FINDINGS_FAIL
    return DONE if verdict.checked else SOME_ERRORS

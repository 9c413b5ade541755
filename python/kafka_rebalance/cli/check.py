# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance check`: findings, limits and a planned change as a verdict, for pipelines."""

import argparse
import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from kafka_rebalance.bulk.lines import group_id_of
from kafka_rebalance.checks.verdict import LIMITS, CheckLimits, Problem, Verdict, of_group, of_plan
from kafka_rebalance.errors import GroupError, NoMembersLeft
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.findings import see
from kafka_rebalance.plans.affected import as_far_as_affected
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.text import change_from_text
from kafka_rebalance.plans.leaders import LedPlan, plans_by_leader
from kafka_rebalance.present.description import Description
from kafka_rebalance.settings.clients import LIBRARIES

from . import DONE, FINDINGS_FAIL, SOME_ERRORS
from .groups import BadGroup, add_changes, add_input
from .lines import numbered, open_input
from .options import whole
from .patterns import add_patterns
from .settings import KEYS, add_settings, judged
from .triage import triaged

_TABLE = "tool.kafka-rebalance"
_FORMATS = ("text", "json", "sarif", "github")
_KEYS: dict[str, Any] = {
    "fail-on": list,
    "change": list,
    "baseline": str,
    **{f"max-{one}": int for one in LIMITS},
} | KEYS
"""The keys of the table in TOML, named as the options -> the types of their values."""
_TYPES = {list: "a list of strings", str: "a string", int: "a whole number from 0 on"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Checks groups, or the groups as they are after changes, and fails (exit code 4) if there "
        "is a problem that --fail-on names or that is above a limit. Options not given are taken "
        f"from the table [{_TABLE}] of --config. docs/findings.md explains the kinds of problems."
    )
    add_input(parser, add_patterns)
    add_changes(parser)
    add_settings(parser)
    parser.add_argument(
        "--fail-on",
        action="append",
        metavar="KIND",
        help="error (default), warning, info, or a kind such as uneven (repeatable)",
    )
    for name, meaning in LIMITS.items():
        parser.add_argument(f"--max-{name}", type=whole(0), metavar="N", help=f"most {meaning}")
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="the JSON output of an earlier check: its problems are known, and do not fail",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="TOML (default: pyproject.toml, if it has the table)"
    )
    parser.add_argument(
        "--format", choices=_FORMATS, help="github: the lines shown beside a pull request"
    )


def run(args: argparse.Namespace) -> int:
    given = [name for name in LIMITS if getattr(args, f"max_{name}") is not None]
    _configure(args)
    for name in given:
        if why := _without_effect(name, args):
            args.parser.error(f"--max-{name}: {why}")
    limits = CheckLimits(**{name: getattr(args, f"max_{name}") for name in LIMITS})
    known = _known(args.baseline)
    if args.settings:
        return _print(judged(args, known), args, [])
    names, args.group = args.group, None
    rows, unreadable = triaged(args, names)
    problems = [_unreadable(one) for one in unreadable]
    answers: list[str] = []
    left_out: list[str] = []
    for one in rows:
        if args.changes and isinstance(one.described, Description):
            group, alone = one.described.group, len(rows) == 1
            problems += _after(group, args, limits, answers, left_out, alone=alone)
            continue
        problems += of_group(one, limits)
        if args.changes:
            text = f"not planned, because its state is {one.state}"
            problems.append(Problem(one.group_id, "error", "error", text, "docs/plans.md"))
    for change in args.changes:
        reasons = [line for line in left_out if line.startswith(f"{change}: ")]
        if reasons and len(reasons) == sum(isinstance(one.described, Description) for one in rows):
            problems.append(Problem("all groups", "error", "error", reasons[0], "docs/plans.md"))
    verdict = Verdict.of(len(rows) + len(unreadable), problems, args.fail_on or ("error",), known)
    return _print(verdict, args, answers)


def _unreadable(one: BadGroup) -> Problem:
    text = f"{one.place}{one.error}"
    return Problem(one.group_id or "", "error", "error", text, "docs/contract.md")


def _after(
    group: GroupSpec,
    args: argparse.Namespace,
    limits: CheckLimits,
    answers: list[str],
    left_out: list[str],
    *,
    alone: bool,
) -> Iterator[Problem]:
    """Yields the problems of a group after the changes; adds the plan's sentence to `answers`.

    One of several groups is planned without the changes that do not affect it; `left_out` gets a
    line `CHANGE: problem` for each of them.
    """

    def work(changes: Sequence[Change]) -> tuple[LedPlan, ...]:
        return plans_by_leader(group, changes, engine=args.engine)

    group_id = group.group_id
    try:
        if alone:
            led: tuple[LedPlan, ...] | None = work(args.changes)
        else:
            led, lines = as_far_as_affected(work, args.changes, group)
            left_out += lines
    except NoMembersLeft as error:
        yield Problem(group_id, "unread", "error", error.problem, see("unread") or "")
        return
    except GroupError as error:
        yield Problem(group_id, "error", "error", str(error), "docs/plans.md")
        return
    plan = next((one.plan for one in led or () if one.plan is not None), None)
    if plan is not None:
        answers.append(f"{group_id}: {plan.summary}")
        yield from of_plan(plan, limits)
    elif led:
        text = "no member that may lead has an answer"
        yield Problem(group_id, "hangs", "error", text, see("hangs") or "")


def _without_effect(limit: str, args: argparse.Namespace) -> str:
    """Returns why nothing can be above a limit with these options; empty if something can."""
    if limit in ("moves", "stops"):
        return "" if args.changes else "needs a change, such as --add-members 2"
    if args.changes:
        return "not with a change"
    return "a file has no lag; give --bootstrap-server" if limit == "lag" and args.file else ""


def _configure(args: argparse.Namespace) -> None:
    """Sets the options that are not given to the values of the table in TOML."""
    path = Path(args.config or "pyproject.toml")
    if args.config is None and not path.is_file():
        return
    asks_of_groups = args.file or args.bootstrap_server or args.changes
    for key, value in _table(path, is_given=args.config is not None).items():
        where = f"{path}: {_TABLE}.{key}"
        if key not in _KEYS:
            raise GroupError(where, f"is not a key; the keys are {', '.join(_KEYS)}")
        kind = _KEYS[key]
        is_text = kind is not list or all(isinstance(one, str) for one in value)
        if type(value) is not kind or not is_text or (kind is int and value < 0):
            raise GroupError(where, f"{quoted(str(value))} is not {_TYPES[kind]}")
        if key == "client" and value not in LIBRARIES:
            raise GroupError(where, f"{quoted(value)} is not one of {', '.join(LIBRARIES)}")
        name = "changes" if key == "change" else key.replace("-", "_")
        if getattr(args, name) in (None, []) and not (key == "settings" and asks_of_groups):
            setattr(args, name, [*map(change_from_text, value)] if key == "change" else value)


def _table(path: Path, *, is_given: bool) -> dict[str, Any]:
    """Returns the table; empty if a file that nobody has named has none, or is not TOML."""
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


def _known(file: str | None) -> Collection[tuple[str, str]]:
    """Returns (group_id, kind) of the problems in a baseline. Errors: GroupError with its name."""
    if file is None:
        return ()
    try:
        problems = json.loads(Path(file).read_bytes())["problems"]
        return {(one["group_id"], one["kind"]) for one in problems}
    except (ValueError, KeyError, TypeError):
        problem = "is not the output of check --format json"
        raise GroupError(f"--baseline {file}", problem) from None


def _places(file: str | None) -> dict[str, int]:
    """Returns the number of each group's line; empty for standard input and a cluster."""
    if file in (None, "-"):
        return {}
    places: dict[str, int] = {}
    with open_input(file or "") as source:
        for number, line in numbered(source):
            try:
                group_id = group_id_of(contract.parse(line or b""))
            except GroupError:
                group_id = ""
            places.setdefault(group_id or "", number)
    return places


def _print(verdict: Verdict, args: argparse.Namespace, answers: list[str]) -> int:
    """Prints the verdict in the format of the options; returns the exit code."""
    from kafka_rebalance.checks import formats

    form = args.format or ("json" if args.json else "text")
    file = None if args.file == "-" else args.file
    if form == "json":
        lines: Iterable[str] = [contract.dumps({**verdict.to_dict(), "plans": answers})]
    elif form == "sarif":
        log = formats.sarif(verdict, file, _places(file))
        lines = json.dumps(log, indent=2).splitlines()
    elif form == "github":
        lines = formats.github_lines(verdict, file, _places(file))
    else:
        lines = chain(formats.text_lines(verdict), map(formats.harmless, answers))
    for line in lines:
        print(line.replace("##[", "\\u0023#["))  # equal as JSON
    if verdict.failures:
        return FINDINGS_FAIL
    return DONE if verdict.groups else SOME_ERRORS

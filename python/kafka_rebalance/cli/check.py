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
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.findings import see
from kafka_rebalance.plans.affected import as_far_as_affected
from kafka_rebalance.plans.changes import Change, change_from_text
from kafka_rebalance.plans.leaders import LedPlan, plans_by_leader
from kafka_rebalance.present import Description

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
_TYPES = {list: "a list of strings", str: "a string", int: "a whole number"}


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
    _configure(args)
    limits = CheckLimits(**{name: getattr(args, f"max_{name}") for name in LIMITS})
    known = _known(args.baseline)
    if args.settings:
        return _print(judged(args, known), args, [])
    names, args.group = args.group, None
    rows, unreadable = triaged(args, names)
    problems = [_unreadable(one) for one in unreadable]
    answers: list[str] = []
    for one in rows:
        if not args.changes:
            problems += of_group(one, limits)
        elif isinstance(one.described, Description):
            problems += _after(one.described.group, args, limits, answers, alone=len(rows) == 1)
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
    *,
    alone: bool,
) -> Iterator[Problem]:
    """Yields the problems of a group after the changes; adds the plan's sentence to `answers`.

    One of several groups is planned without the changes that do not affect it.
    """

    def work(changes: Sequence[Change]) -> tuple[LedPlan, ...]:
        return plans_by_leader(group, changes, engine=args.engine)

    group_id = group.group_id
    try:
        led = work(args.changes) if alone else as_far_as_affected(work, args.changes, group)[0]
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


def _configure(args: argparse.Namespace) -> None:
    """Sets the options that are not given to the values of the table in TOML."""
    path = Path(args.config or "pyproject.toml")
    if args.config is None and not path.is_file():
        return
    try:
        with path.open("rb") as file:
            table: Any = tomllib.load(file).get("tool", {}).get("kafka-rebalance")
    except tomllib.TOMLDecodeError as error:
        raise GroupError(str(path), f"is not TOML: {error}") from None
    if table is None:
        if args.config is not None:
            raise GroupError(str(path), f"has no table [{_TABLE}]")
        return
    for key, value in table.items():
        where = f"{path}: {_TABLE}.{key}"
        if key not in _KEYS:
            raise GroupError(where, f"is not a key; the keys are {', '.join(_KEYS)}")
        if type(value).__name__ != _KEYS[key].__name__:
            raise GroupError(where, f"{a_type(value)} is not {_TYPES[_KEYS[key]]}")
        name = "changes" if key == "change" else key.replace("-", "_")
        if not getattr(args, name):
            setattr(args, name, [*map(change_from_text, value)] if key == "change" else value)


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

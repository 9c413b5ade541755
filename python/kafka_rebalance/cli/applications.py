# SPDX-License-Identifier: Apache-2.0
"""Options and input of classic Kafka Streams applications, for `describe` and `plan`."""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.registry import STREAM
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.report.text.sentences import print_note

from .lines import Leaderless
from .options import REPEATED, add_table, path, seconds, whole

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.applications.comparison import ComparedSettings
    from kafka_rebalance.applications.measured import Rates
    from kafka_rebalance.applications.plan import ApplicationPlan
    from kafka_rebalance.applications.replayed import Replay
    from kafka_rebalance.notes.findings import Note

_SETTINGS = {
    "standbys": "num.standby.replicas",
    "acceptable_lag": "acceptable.recovery.lag",
    "max_warmups": "max.warmup.replicas",
}


def _numbers(text: str) -> set[int]:
    """Parses whole numbers from 0 on, separated by commas."""
    return {whole(0)(one) for one in text.split(",")}


def add_settings(parser: argparse.ArgumentParser) -> Any:
    """Adds the options for the settings of an application, which no broker knows."""
    options = parser.add_argument_group(
        "classic Kafka Streams applications",
        "No broker knows their settings: they are assumed, checked by playing the last rebalance "
        "again, and set here (docs/streams.md).",
    )
    for name, setting in _SETTINGS.items():
        add_table(options, f"--{name.replace('_', '-')} N: {setting}", **{name: whole(0)})
    table = """
    --stateful N,…: the numbers of the stateful subtopologies, if the replay cannot tell
    --streams-config FILE: the application's properties
    --since FILE: an earlier line of the group, as `snapshot` writes it: how fast copies restore,
      and how much is written, is measured between it and now
    """
    add_table(options, table, stateful=_numbers, streams_config=path, since=path)
    return options


def add_planned(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `add_settings`, and the options that only plans of applications need."""
    planned = """
    --new-setting NAME=VALUE: plan another setting of the leader, such as num.standby.replicas=1;
      `compare` compares each of these options with the present settings, and "A=1 B=2" is one of
      them
    --session-timeout S: session.timeout.ms of the threads, in seconds (default: that of
      --streams-config, or 45)
    --restore-rate N: how many records a copy of a task's state restores a second (default: all of
      them before the next probing rebalance)
    --write-rate N: with --restore-rate: records written for each task a second (default: 0)
    """
    add_table(
        add_settings(parser),
        planned,
        new_setting={**REPEATED, "type": _new_settings},
        session_timeout=seconds,
        restore_rate=whole(1),
        write_rate=whole(0),
    )


def refuse_planned(args: argparse.Namespace) -> None:
    """Refuses the options for applications, for a command that plays no application."""
    names = *_SETTINGS, "stateful", "streams_config", "since", "new_setting"
    for name in (*names, "session_timeout", "restore_rate", "write_rate"):
        if getattr(args, name) not in (None, []):
            option = f"--{name.replace('_', '-')}"
            args.parser.error(f"{option}: only with a classic Kafka Streams application")


def replayed(args: argparse.Namespace, group: GroupSpec, noted: Leaderless) -> "Replay | None":
    """Returns the replay of a classic Kafka Streams group; None for any other group, and for a line
    without the field `application`.

    Errors   GroupError for a bad field or setting, or if the topology cannot be inferred.
    """
    line = noted.applications.get(group.group_id)
    if group.assignor != STREAM or line is None:
        return None
    from kafka_rebalance.applications.replayed import read_replay

    return read_replay(group.group_id, line, given_settings(args), engine=args.engine)


def findings(args: argparse.Namespace, group: GroupSpec, noted: Leaderless) -> Iterable["Note"]:
    """Returns the findings on a classic Kafka Streams group; () for other or unreadable groups."""
    one = rates = None
    with suppress(GroupError):
        one = replayed(args, group, noted)
    if one is None:
        return ()
    from kafka_rebalance.notes.applications import application_findings

    try:
        rates = _measured(args, group, one)
    except GroupError as error:
        print_note(f"{group.group_id}: {error}")
    return application_findings(one, rates)


def planned_application(
    args: argparse.Namespace, group: GroupSpec, one: "Replay", changes: Sequence[Change]
) -> "ApplicationPlan":
    """Returns the application's plan. Errors: GroupError if the replay does not reproduce the
    assignment.
    """
    from kafka_rebalance.applications.plan import plan_application

    new_settings = dict(chain.from_iterable(map(dict.items, args.new_setting)))
    return plan_application(group, one, changes, new_settings, **_options(args, group, one))


def compared_settings(
    args: argparse.Namespace, group: GroupSpec, one: "Replay", changes: Sequence[Change]
) -> "list[ComparedSettings]":
    """Plans the changes under the present settings, and under each `--new-setting` (without this
    option, under those that `compare_settings` tries). Errors: those of `planned_application`.
    """
    from kafka_rebalance.applications.comparison import compare_settings

    return compare_settings(group, one, changes, args.new_setting, **_options(args, group, one))


def _options(args: argparse.Namespace, group: GroupSpec, one: "Replay") -> dict[str, Any]:
    """Returns the arguments of a plan; a rate that no option sets is measured since the line of
    `--since`.
    """
    if one.problem is not None:
        raise GroupError("application", one.problem)
    restore_rate, write_rate = args.restore_rate, args.write_rate
    if found := _measured(args, group, one):
        print_note(str(found))
        restore_rate = found.restore_rate if restore_rate is None else restore_rate
        write_rate = found.write_rate if write_rate is None else write_rate
    options = {"restore_rate": restore_rate, "write_rate": write_rate or 0, "engine": args.engine}
    session = _properties(args).get("session.timeout.ms", "")
    if args.session_timeout is not None:
        options["session_ms"] = round(args.session_timeout * 1000)
    elif re.fullmatch("[0-9]{1,9}", session):
        options["session_ms"] = int(session)
    return options


def _properties(args: argparse.Namespace) -> Mapping[str, str]:
    """Returns the application's properties; those of consumers also without their prefix."""
    if args.streams_config is None:
        return {}
    from kafka_rebalance.live.java_properties import parse_properties

    properties = parse_properties(args.streams_config.read_text(encoding="latin-1"))
    for prefix in ("consumer.", "main.consumer."):
        own = [name for name in properties if name.startswith(prefix)]
        properties |= {name.removeprefix(prefix): properties[name] for name in own}
    return properties


def _measured(args: argparse.Namespace, group: GroupSpec, one: "Replay") -> "Rates | None":
    """Returns the rates since the line of `--since`; None without `--since`. Errors: GroupError."""
    if args.since is None:
        return None
    from kafka_rebalance.applications.measured import measured_rates

    line = _earlier(args.since, group.group_id)
    try:
        return measured_rates(group.group_id, line, one)
    except GroupError as error:
        if error.path == "since":
            raise
        raise GroupError("since", f"{args.since}: {error}") from None


def _earlier(file: "Path", group_id: str) -> Any:
    """Returns the field `application` of the group's line in `file`. Errors: GroupError if no line
    contains it.
    """
    from kafka_rebalance.applications.lines import FIELD

    for text in file.read_bytes().splitlines():
        try:
            line = contract.parse(text)
        except GroupError:
            continue
        if isinstance(line, dict) and line.get("group_id") == group_id and FIELD in line:
            return line[FIELD]
    raise GroupError("since", f"{file} has no line of the application {quoted(group_id)}")


def _new_settings(text: str) -> dict[str, str]:
    """Parses NAME=VALUE, or several of these with spaces between them."""
    pairs = [one.partition("=") for one in re.split(r"\s+(?=[\w.]+=)", text.strip())]
    if not all(name and equals for name, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}


def show_plan(plan: "ApplicationPlan", args: argparse.Namespace) -> None:
    from kafka_rebalance.report.groups.application import (
        print_application_plan,
        print_task,
        summary,
    )

    if args.explain is not None:
        from kafka_rebalance.applications.explanation import explain_task

        explained = explain_task(plan, args.explain)
        if args.json:
            line = {"group_id": plan.group.group_id, **explained._asdict()}
            print(contract.dumps(line), flush=True)
        else:
            print_task(plan, explained)
        return
    if args.json:
        print(contract.dumps(plan.to_dict() | {"summary": summary(plan)}), flush=True)
        return
    print_application_plan(plan, everything=args.all)


def show_settings(compared: "Sequence[ComparedSettings]", *, as_json: bool) -> None:
    from kafka_rebalance.report.groups.application import print_settings

    plan = compared[0].plan
    if as_json:
        told = {
            "group_id": plan.group.group_id,
            "changes": [*map(str, plan.changes)],
            "settings": [one.to_dict() for one in compared],
            "application": plan.replay.to_dict(),
        }
        print(contract.dumps(told), flush=True)
    else:
        print_settings(compared)


def given_settings(args: argparse.Namespace) -> Mapping[str, Any]:
    """Returns the settings that the options set, by their names in Kafka."""
    from kafka_rebalance.assignors.streams.application import Settings

    known = {one.replace("_", ".") for one in Settings._fields}
    found: dict[str, Any] = {n: value for n, value in _properties(args).items() if n in known}
    given = {"stateful": args.stateful}
    given |= {setting: getattr(args, name) for name, setting in _SETTINGS.items()}
    return found | {name: value for name, value in given.items() if value is not None}

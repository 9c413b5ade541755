# SPDX-License-Identifier: Apache-2.0
"""Adds and reads the options that name groups and changes, for all commands that have them."""

import argparse
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

from kafka_rebalance.assignors.registry import FOREIGN, IN_PLACE_OF_STREAM, STREAM
from kafka_rebalance.bulk.line_files import MAX_LINE_BYTES, read_lines
from kafka_rebalance.bulk.lines import group_id_of, line_error
from kafka_rebalance.errors import GroupError, NeverEnds, NotAffected
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans import Endless, as_far_as_affected, endless
from kafka_rebalance.plans.changes import Change, RemoveMembers, apply
from kafka_rebalance.plans.changes import text as changes_text
from kafka_rebalance.plans.leaders import named_leader
from kafka_rebalance.plans.playing import NOT_PLAYED, is_played
from kafka_rebalance.report.text.names import counted

from .exit_codes import SOME_ERRORS, of_errors
from .lines import no_groups, open_input
from .options import add_cluster, add_engine, cluster_configs

GroupAnswer = TypeVar("GroupAnswer")


class BadGroup(NamedTuple):
    """A group without an answer, and the contents of its error line.

    `place` begins the error of a group without an id: `line 3: `, unless the error does.
    """

    group_id: str | None
    error: str
    never_ends: Endless | None = None
    place: str = ""

    def to_dict(self) -> dict[str, Any]:
        found = {} if self.never_ends is None else {"never_ends": self.never_ends.to_dict()}
        return {"group_id": self.group_id, "error": self.error, **found}


class LeftOut(NamedTuple):
    """A group of Kafka Streams for which nothing is played, and the contents of its line."""

    group_id: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        return {"group_id": self.group_id, "left_out": self.why}


OF_APPLICATION = f"its assignor is {FOREIGN[STREAM]}; {IN_PLACE_OF_STREAM}"
_WHY = {
    OF_APPLICATION: "of Kafka Streams, whose assignor is in the application (docs/faq.md)",
    NOT_PLAYED: f"of Kafka Streams under KIP-1071: {NOT_PLAYED}",
}
"""The reason in a group's line -> in the line below a report."""

_MOST_NAMES = 3


def add_arguments(parser: argparse.ArgumentParser, only: Container[str] | None = None) -> None:
    """Adds the options for the input, for changes (`only` as in `add_changes`) and the output."""
    add_input(parser)
    add_changes(parser, only)


def add_input(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the input and the output."""
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="contract lines; - for standard input"
    )
    add_cluster(parser, instead="; its groups are read, not FILE")
    parser.add_argument("--group", metavar="G", help="only this group, in detail")
    parser.add_argument("--json", action="store_true", help="print one answer per line, as JSON")
    add_engine(parser)


def add_changes(parser: argparse.ArgumentParser, only: Container[str] | None = None) -> None:
    """Adds options for all verbs (add-members, …), or those in `only`; all append to `changes`."""
    changes = parser.add_argument_group(
        "changes",
        "Played in the order given; each one settles before the next. MEMBER is a member_id or a "
        'group_instance_id. --change takes any of them as text: --change "partitions orders=24".',
    )
    for verb in (verb for change in changes_text.CHANGES for verb in change.VERBS):
        if only is None or verb.name in only:
            changes.add_argument(
                f"--{verb.name}",
                action=_Append,
                nargs=None if verb.default is None else "?",
                const=verb.default,
                dest="changes",
                metavar=verb.metavar,
                help=verb.help,
            )
    changes.add_argument(
        "--change", action=_Append, dest="changes", metavar="TEXT", help="any change, as text"
    )
    parser.set_defaults(changes=[])


class _Append(argparse.Action):
    """Appends a change, so that changes of different options keep their order."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        verb = (option_string or "").removeprefix("--")
        text = str(values) if verb == "change" else f"{verb}={values}"
        try:
            change = changes_text.change_from_text(text)
        except GroupError as error:
            parser.error(f"argument {option_string}: {error.problem}")
        namespace.changes = [*namespace.changes, change]


def read_groups(args: argparse.Namespace) -> Iterator[GroupSpec | BadGroup]:
    """Yields every group of the input, or only the one with the id in `--group`.

    A file without the group in `--group` yields its error, as a cluster does. If there is no group
    at all, this is said on standard error, because nothing else would be printed.
    """
    if (args.file is None) == (args.bootstrap_server is None):
        args.parser.error("give either FILE or --bootstrap-server")
    found, is_empty = False, True
    for one in _cluster(args) if args.file is None else _file(args.file):
        is_empty = False
        if args.group in (None, one.group_id):
            found = True
            yield one
    if args.group is not None and not found:
        yield BadGroup(args.group, f"group_id: no such group in {args.file}")
    elif is_empty and args.file is not None:
        no_groups(args.file)
    elif is_empty:
        problem = "no group has members that own partitions, so there is nothing to show"
        print(f"kafka-rebalance: {args.bootstrap_server}: {problem}", file=sys.stderr)


def report_bad(group: BadGroup, *, as_json: bool) -> None:
    """Reports the error of a group at once: as a line of the output, or on standard error."""
    if as_json:
        print(contract.dumps(group.to_dict()), flush=True)
    else:
        place = group.place if group.group_id is None else f"{group.group_id}: "
        print(f"{place}{group.error}", file=sys.stderr)


def _file(file: str) -> Iterator[GroupSpec | BadGroup]:
    with open_input(file) as source:
        for number, line in enumerate(read_lines(source, MAX_LINE_BYTES), 1):
            if line is not None and not line.strip():
                continue
            value: Any = None
            try:
                if line is None:
                    raise GroupError("line", f"more than {MAX_LINE_BYTES} bytes")
                value = contract.parse(line)
                yield GroupSpec.from_dict(value)
            except GroupError as error:
                place = "" if error.path == "line" else f"line {number}: "
                yield BadGroup(group_id_of(value), line_error(error, number), place=place)


def _cluster(args: argparse.Namespace) -> Iterator[GroupSpec | BadGroup]:
    from kafka_rebalance.live import snapshot

    groups = None if args.group is None else [args.group]
    for line in snapshot(args.bootstrap_server, groups, configs=cluster_configs(args)):
        try:
            yield GroupSpec.from_dict(line)
        except GroupError as error:
            yield BadGroup(group_id_of(line), str(error))


@dataclass(slots=True)
class Tally:
    """Counts of groups, for the lines below a report and for the exit code.

    bad           groups with an error
    unreadable    bad groups that could not be read
    unaffected    groups that no change affects
    not_affected  change -> the number of groups that it does not affect, and the first reason
    led           groups that have the member of `--leader`, or several with its shortened id
    streams       why groups are left out (`LeftOut`) -> their ids
    """

    groups: int = 0
    bad: int = 0
    unreadable: int = 0
    unaffected: int = 0
    not_affected: dict[str, tuple[int, str]] = field(default_factory=dict)
    led: int = 0
    streams: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, lines: Sequence[str], *, all_of_them: bool) -> None:
        """Counts a group for each change that does not affect it; a line is `CHANGE: problem`."""
        self.unaffected += all_of_them
        for line in lines:
            change = line.partition(": ")[0]
            count, first = self.not_affected.get(change, (0, line))
            self.not_affected[change] = (count + 1, first)

    def lines(self) -> list[str]:
        """Returns lines such as `Not affected by partitions orders=24: 19 groups.`"""
        lines = [
            f"Not affected by {change}: {counted(count, 'group')}."
            for change, (count, _) in self.not_affected.items()
        ]
        return [*lines, *(_left_out(ids, why) for why, ids in self.streams.items())]

    def finish(self, args: argparse.Namespace) -> int:
        """Prints the counts (the number of errors on standard error), and returns the exit code."""
        lines = [] if args.json else self.lines()
        if lines:
            from kafka_rebalance.report.plans.plan import print_wrapped

            for line in lines:
                print_wrapped(line)
        if self.bad:
            problem = f"{self.bad} of {counted(self.groups, 'group')} had errors"
            print(f"kafka-rebalance: {problem}", file=sys.stderr)
        without = self.unaffected + sum(map(len, self.streams.values()))
        if without and without + self.unreadable == self.groups:
            problem = "; ".join(first for _, first in self.not_affected.values())
            left = f"no group is left: {'; '.join(self.streams)}"
            problem = f"no group is affected: {problem}" if problem else left
            print(f"kafka-rebalance: {problem}", file=sys.stderr)
            return SOME_ERRORS
        leader = vars(args).get("leader")
        if leader is not None and not self.led and self.unreadable < self.groups > 1:
            problem = f"no group has a member {quoted(leader)}; the answers are without --leader"
            print(f"kafka-rebalance: {problem}", file=sys.stderr)
            return SOME_ERRORS
        return of_errors(self.bad)


def _left_out(ids: Sequence[str], why: str) -> str:
    more = len(ids) - _MOST_NAMES
    names = ", ".join(ids[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    return f"Left out: {counted(len(ids), 'group')} {_WHY[why]}: {names}."


class AnsweredGroup(NamedTuple, Generic[GroupAnswer]):
    """An answer about a group; `alone` is True if no other group was read."""

    answer: GroupAnswer
    not_affected: list[str]
    alone: bool


def answers(
    args: argparse.Namespace,
    tally: Tally,
    work: Callable[[GroupSpec, Sequence[Change]], GroupAnswer],
) -> Iterator[AnsweredGroup[GroupAnswer]]:
    """Yields the result of `work` for each group; reports the error of a bad group at once.

    A change may refer to a topic, member, client or rack that a group lacks. If there are several
    groups, the change is left out for this group. If there is only one, the change is an error.
    A classic group of Kafka Streams is left out, alone or not, and so is a streams group (KIP-1071)
    for which a change is not played: nothing is wrong with them. It is an error only if no group
    has an answer.
    A group that lacks the member of `--leader` keeps its own leader, if there are several groups.
    """
    groups = read_groups(args)
    first = list(islice(groups, 2))
    for group in chain(first, groups):
        tally.groups += 1
        tally.unreadable += isinstance(group, BadGroup)
        alone = len(first) < 2
        found = _answer(_led(group, args, tally, alone=alone), args, work, alone=alone)
        if isinstance(found, BadGroup):
            tally.bad += 1
            report_bad(found, as_json=args.json)
            if found.never_ends is not None and not args.json:
                from kafka_rebalance.report.plans.never_ends import endless_lines

                print("\n".join(endless_lines(found.never_ends)), file=sys.stderr)
            continue
        if isinstance(found, LeftOut):
            tally.streams.setdefault(found.why, []).append(found.group_id)
            if args.json:
                print(contract.dumps(found.to_dict()), flush=True)
            continue
        answer, left_out = found
        tally.leave_out(left_out, all_of_them=answer is None)
        if answer is not None:
            yield AnsweredGroup(answer, left_out, alone)
        elif args.json:
            line = {"group_id": group.group_id, "not_affected": left_out}
            print(contract.dumps(line), flush=True)


def _led(
    group: GroupSpec | BadGroup, args: argparse.Namespace, tally: Tally, *, alone: bool
) -> GroupSpec | BadGroup:
    """Returns the group with the leader that `--leader` names, if the command has this option.

    A group without this member is an error only if it is `alone`.
    """
    member = vars(args).get("leader")
    if member is None or isinstance(group, BadGroup):
        return group
    try:
        led: GroupSpec | BadGroup = named_leader(group, member)
    except NotAffected as error:
        return BadGroup(group.group_id, str(error)) if alone else group
    except GroupError as error:
        led = BadGroup(group.group_id, str(error))
    tally.led += 1
    return led


def _answer(
    group: GroupSpec | BadGroup,
    args: argparse.Namespace,
    work: Callable[[GroupSpec, Sequence[Change]], GroupAnswer],
    *,
    alone: bool,
) -> tuple[GroupAnswer | None, list[str]] | BadGroup | LeftOut:
    if isinstance(group, BadGroup):
        return group

    def played(changes: Sequence[Change]) -> GroupAnswer | BadGroup:
        try:
            return work(group, changes)
        except NeverEnds as error:
            assignor = vars(args).get("assignor")
            found = endless(group, assignor, changes, engine=args.engine)
            return BadGroup(group.group_id, str(error), found)

    try:
        answer, left_out = (
            (played(args.changes), []) if alone else as_far_as_affected(played, args.changes)
        )
    except GroupError as error:
        if error.path == "assignor" and not alone and (left_out := _unaffected(group, args)):
            return None, left_out  # nobody asks for a rebalance of this group
        own = vars(args).get("assignor") is None
        if own and error.path == "assignor" and group.assignor == STREAM:
            return LeftOut(group.group_id, OF_APPLICATION)
        if not all(is_played(group, change) for change in args.changes):
            return LeftOut(group.group_id, NOT_PLAYED)
        return BadGroup(group.group_id, error_text(error, args.changes) + _hint(error, group, args))
    return answer if isinstance(answer, BadGroup) else (answer, left_out)


def _hint(error: GroupError, group: GroupSpec, args: argparse.Namespace) -> str:
    """Returns the option to use if `--remove-member` names no member, but a client id."""
    if not isinstance(error, NotAffected):
        return ""
    ids = {one for member in group.members for one in (member.member_id, member.group_instance_id)}
    clients = {member.client_id for member in group.members} - {None} - ids
    for change in args.changes:
        if isinstance(change, RemoveMembers) and change.member in clients:
            return f"; it is a client_id: --remove-client {change.member}"
    return ""


def _unaffected(group: GroupSpec, args: argparse.Namespace) -> list[str]:
    """Returns a line for each change if no change affects the group, else an empty list."""

    def edited(changes: Sequence[Change]) -> GroupSpec:
        after = group
        for i, change in enumerate(changes):
            try:
                after = apply(change, after)
            except NotAffected as error:
                raise NotAffected(f"changes[{i}]", error.problem) from None
        return after

    try:
        answer, left_out = as_far_as_affected(edited, args.changes)
    except GroupError:  # a change cannot be applied to this group
        return []
    return left_out if answer is None else []


def error_text(error: GroupError, changes: Sequence[object]) -> str:
    """Returns the text of an error; a path such as `changes[0]` is replaced by the change."""
    for i, change in enumerate(changes):
        if error.path == f"changes[{i}]":
            return f"{change}: {error.problem}"
    return str(error)

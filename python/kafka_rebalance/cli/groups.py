"""Where `plan` and `compare` get groups and changes from: the same options for both."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from kafka_rebalance import contract
from kafka_rebalance.changes.text import VERBS, change_from_text
from kafka_rebalance.errors import GroupError, NeverEnds
from kafka_rebalance.lines import error_line, group_id_of
from kafka_rebalance.model import GroupSpec
from kafka_rebalance.plans import Endless, endless

from .lines import MAX_LINE_BYTES, open_input, read_lines

Answer = TypeVar("Answer")


class BadGroup(NamedTuple):
    """A group that could not be read, as an error line says it."""

    group_id: str | None
    error: str
    never_ends: Endless | None = None

    def to_dict(self) -> dict[str, Any]:
        found = {} if self.never_ends is None else {"never_ends": self.never_ends.to_dict()}
        return {"group_id": self.group_id, "error": self.error, **found}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="contract lines; - for standard input"
    )
    parser.add_argument(
        "--bootstrap-server", metavar="H:P", help="read a live cluster's groups, in place of FILE"
    )
    parser.add_argument("--group", metavar="G", help="only this group, in detail")
    add_changes(parser, VERBS)
    parser.add_argument("--json", action="store_true", help="one answer a line, for programs")
    parser.add_argument("--engine", choices=("rust", "reference"), default="rust")


def add_changes(parser: argparse.ArgumentParser, verbs: Iterable[str]) -> None:
    """Options for changes, kept in their order at `changes`."""
    changes = parser.add_argument_group(
        "changes",
        "What happens, in the order given; each settles before the next. MEMBER is a member_id or "
        'a group_instance_id. The same as a text: --change "partitions orders=24".',
    )
    for name in verbs:
        verb = VERBS[name]
        option = changes.add_argument(
            f"--{name}", action=_Append, dest="changes", metavar=verb.metavar, help=verb.help
        )
        if name == "bounce-members":
            option.nargs, option.const = "?", "*"
    changes.add_argument("--change", action=_Append, dest="changes", metavar="TEXT", help="any")
    parser.set_defaults(changes=[])


class _Append(argparse.Action):
    """Keeps the order of all changes, whatever their options."""

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
            change = change_from_text(text)
        except GroupError as error:
            parser.error(f"argument {option_string}: {error.problem}")
        namespace.changes = [*namespace.changes, change]


def read_groups(args: argparse.Namespace) -> Iterator[GroupSpec | BadGroup]:
    """Every group of the input, or the one that is asked for."""
    if (args.file is None) == (args.bootstrap_server is None):
        args.parser.error("give either FILE or --bootstrap-server")
    found = False
    for one in _cluster(args) if args.file is None else _file(args.file):
        if args.group in (None, one.group_id):
            found = True
            yield one
    if args.group is not None and not found:
        raise GroupError("--group", f"there is no group {args.group}")


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
                answer = json.loads(error_line(group_id_of(value), error, number).line)
                yield BadGroup(answer["group_id"], answer["error"])


def _cluster(args: argparse.Namespace) -> Iterator[GroupSpec | BadGroup]:
    from kafka_rebalance.sources import snapshot

    groups = None if args.group is None else [args.group]
    for line in snapshot(args.bootstrap_server, groups):
        try:
            yield GroupSpec.from_dict(line)
        except GroupError as error:
            yield BadGroup(group_id_of(line), str(error))


@dataclass(slots=True)
class Tally:
    """How many groups there were, and how many of them had errors."""

    groups: int = 0
    bad: int = 0

    def exit_code(self) -> int:
        """Says on standard error how many were bad, if any."""
        if self.bad:
            problem = f"{self.bad} of {self.groups} groups had errors"
            print(f"kafka-rebalance: {problem}", file=sys.stderr)
        return 3 if self.bad else 0


def answers(
    args: argparse.Namespace, tally: Tally, work: Callable[[GroupSpec], Answer]
) -> Iterator[Answer]:
    """What `work` makes of each group; the errors of bad ones are told at once."""
    for group in read_groups(args):
        tally.groups += 1
        answer = _answer(group, args, work)
        if not isinstance(answer, BadGroup):
            yield answer
            continue
        tally.bad += 1
        if args.json:
            print(contract.dumps(answer.to_dict()), flush=True)
        else:
            print(f"{answer.group_id}: {answer.error}", file=sys.stderr)
            if answer.never_ends is not None:
                from kafka_rebalance.report.never_ends import endless_lines

                print("\n".join(endless_lines(answer.never_ends)), file=sys.stderr)


def _answer(
    group: GroupSpec | BadGroup, args: argparse.Namespace, work: Callable[[GroupSpec], Answer]
) -> Answer | BadGroup:
    if isinstance(group, BadGroup):
        return group
    try:
        return work(group)
    except NeverEnds as error:
        found = endless(group, vars(args).get("assignor"), args.changes, engine=args.engine)
        return BadGroup(group.group_id, told(error, args.changes), found)
    except GroupError as error:
        return BadGroup(group.group_id, told(error, args.changes))


def told(error: GroupError, changes: Sequence[object]) -> str:
    """An error of a change, with the change in place of its number."""
    for i, change in enumerate(changes):
        if error.path == f"changes[{i}]":
            return f"{change}: {error.problem}"
    return str(error)

# SPDX-License-Identifier: Apache-2.0
"""Reads the groups and changes that the options name, and runs a command's work on each group."""

import argparse
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka_rebalance.assignors.registry import STREAM, assignor_names
from kafka_rebalance.bulk.lines import group_id_of, line_error
from kafka_rebalance.errors import (
    GroupError,
    NeverEnds,
    NoMembersLeft,
    NotAffected,
    SwitchRefused,
    did_you_mean,
)
from kafka_rebalance.group import contract
from kafka_rebalance.group.group_fields import misspelt
from kafka_rebalance.group.model import shell_option, shell_word
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.notes.grown_sources import STOPS, check_sources, may_stop
from kafka_rebalance.plans.affected import as_far_as_affected
from kafka_rebalance.plans.changes import text as changes_text
from kafka_rebalance.plans.changes.change import Change, apply
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.plans.group_kinds import NOT_PLAYED
from kafka_rebalance.report.text.sentences import (
    counted,
    in_words,
    print_note,
    print_sentence,
    print_wrapped,
)

from .lines import Leaderless, group_lines, no_groups, open_input, required
from .options import add_cluster, add_pasted, add_patterns, add_table, cluster_configs
from .tally import OF_APPLICATION, Tally, Unplayed, unchanged
from .weights import Weigher

if TYPE_CHECKING:
    from kafka_rebalance.live import Listed

GroupAnswer = TypeVar("GroupAnswer")


class BadGroup(NamedTuple):
    """A group with an error. If its line has no group id, `place` is text such as `line 3: `."""

    group_id: str | None
    error: str
    notes: tuple[Note, ...] = ()
    place: str = ""

    def to_dict(self) -> dict[str, Any]:
        notes = {"notes": [one.to_dict() for one in self.notes]} if self.notes else {}
        return {"group_id": self.group_id, "error": self.error, **notes}


def add_input(parser: argparse.ArgumentParser, *, by_patterns: bool = False) -> None:
    """Adds the options for input and output; with `by_patterns`, --group selects several groups."""
    text = "contract lines, or tables of kafka-consumer-groups.sh or rpk; - for standard input"
    add_table(parser, f"file FILE: {text}", file={"nargs": "?"})
    add_cluster(parser, instead="; its groups are read, not FILE")
    if by_patterns:
        add_patterns(parser)
    else:
        add_table(parser, "--group G: only this group, in detail")
    add_table(parser, "--json: print one answer per line, as JSON\n--engine")
    add_pasted(parser)


def add_changes(parser: argparse.ArgumentParser, only: Container[str] | None = None) -> None:
    """Adds an option for each verb (add-members, …), or for those in `only`; all fill `changes`."""
    changes = parser.add_argument_group(
        "changes",
        "Played in the order given, each in a stable group. MEMBER is a member_id or a "
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
    """Appends a change to the list that all options of changes share, in the command line's
    order.
    """

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
            near = _near(error.problem, assignor_names())
            parser.error(f"argument {option_string}: {error.problem}{near}")
        namespace.changes = [*namespace.changes, change]


def read_groups(
    args: argparse.Namespace,
    leaderless: Leaderless | None = None,
    on_left_out: Callable[[str, str], None] | None = None,
) -> Iterator[GroupSpec | BadGroup]:
    """Yields every group of the input, or only the one whose id `--group` names.

    `on_left_out(group_id, why)` is called for groups of a cluster that have no line. `leaderless`
    keeps the partitions without a leader. If the file or the cluster lacks the group that `--group`
    names, an error for that group is yielded. If the input has no group at all, a sentence on
    standard error reports this, because nothing else would be printed.
    """
    if (args.file is None) == (args.bootstrap_server is None):
        args.parser.error("give either FILE or --bootstrap-server")
    found, is_empty = False, True
    there: dict[str, None] = {}
    names = None if args.group is None else [args.group]
    lines = cluster_groups(args, names, on_left_out) if args.file is None else _file(args)
    for one, line in lines:
        is_empty = False
        if args.group is not None and one.group_id is not None and len(there) < _MOST_COMPARED:
            there[one.group_id] = None
        if args.group in (None, one.group_id):
            found = True
            if leaderless is not None:
                leaderless.note(one.group_id, line)
            yield one
    if args.group is not None and not found:
        yield no_such_group(args.group, args.file, [*there])
    elif is_empty and args.file is not None:
        no_groups(args.file)
    elif is_empty:
        problem = "no group has members that own partitions, so there is nothing to show"
        print_note(f"{args.bootstrap_server}: {problem}")


def one_group(
    args: argparse.Namespace, where: str = "", leaderless: Leaderless | None = None
) -> GroupSpec | None:
    """Returns the only group of the input; if it has an error, reports this and returns None."""
    groups = list(islice(read_groups(args, leaderless), 2))
    if len(groups) != 1:
        args.parser.error(f"{where}needs exactly one group; name it with --group")
    if isinstance(groups[0], GroupSpec):
        return groups[0]
    report_bad(groups[0], as_json=args.json)
    return None


_MOST_THERE = 3
_MOST_COMPARED = 10_000


def no_such_group(group_id: str, where: str, there: Sequence[str]) -> BadGroup:
    """Returns the error for a group that does not exist; it names a similar group, else others."""
    if near := did_you_mean(group_id, there):
        return BadGroup(group_id, f"group_id: no such group in {where}{near}")
    some = there[:_MOST_THERE]
    more = " and others" if len(there) > len(some) else ""
    has = f"; it has {', '.join(some) if more else in_words(some)}{more}" if some else ""
    return BadGroup(group_id, f"group_id: no such group in {where}{has}")


def bad_line(value: Any, error: GroupError, number: int, key: str = "group_id") -> BadGroup:
    """Returns the error of a line; `value` is None if the line cannot be parsed."""
    place = "" if error.path == "line" else f"line {number}: "
    return BadGroup(group_id_of(value, key), line_error(error, number), place=place)


def report_bad(group: BadGroup, *, as_json: bool) -> None:
    """Reports a group's error at once: as a line of the output, or on standard error."""
    if as_json:
        print(contract.dumps(group.to_dict()), flush=True)
    else:
        place = group.place if group.group_id is None else f"{group.group_id}: "
        print_sentence(f"{place}{group.error}")


def _file(args: argparse.Namespace) -> Iterator[tuple[GroupSpec | BadGroup, Any]]:
    """Yields each group of the file and its line's JSON value; None for a line that is not JSON."""
    seen, weigher = set[tuple[str, str]](), Weigher(args)
    with open_input(args.file) as source:
        for number, line in group_lines(source, args):
            value: Any = None
            try:
                read = required(line)
                value = contract.parse(read)
                for text in misspelt(value, seen):
                    print_note(f"line {number}: {text}")
                yield weigher(GroupSpec.from_json(read)), value
            except GroupError as error:
                yield bad_line(value, error, number), value
    weigher.finish()


def _hidden_groups(group_id: str, why: str) -> None:
    if group_id == "*":  # groups that the cluster does not list for this user
        print_note(f"left out: {why}")


def cluster_groups(
    args: argparse.Namespace,
    names: Sequence[str] | None,
    on_left_out: Callable[[str, str], None] | None,
    on_listed: Callable[[Mapping[str, "Listed"]], None] | None = None,
) -> Iterator[tuple[GroupSpec | BadGroup, Any]]:
    """Yields each group with its contract line; for the parameters, see `snapshot_lines`."""
    from kafka_rebalance.live import snapshot_lines

    lines = snapshot_lines(
        args.bootstrap_server,
        names,
        configs=cluster_configs(args),
        on_left_out=on_left_out or _hidden_groups,
        on_listed=on_listed,
    )
    weigher = Weigher(args)
    for line in lines:
        try:
            yield weigher(GroupSpec.from_dict(line)), line
        except GroupError as error:
            yield BadGroup(group_id_of(line), str(error)), line
    weigher.finish()


def given(args: argparse.Namespace, group_id: str) -> str:
    """Returns the arguments that select this input and group, quoted for a shell."""
    source = [] if args.file is None else [shell_word(args.file)]
    if args.file is None:
        source.append(shell_option("--bootstrap-server", args.bootstrap_server))
        if args.command_config is not None:
            source.append(shell_option("--command-config", args.command_config))
    source += [shell_option("--topic", one) for one in args.topic]
    source += [shell_option("--assume", one) for one in args.assume]
    return " ".join([*source, shell_option("--group", group_id)])


def answers(
    args: argparse.Namespace,
    tally: Tally,
    work: Callable[[GroupSpec, Sequence[Change]], GroupAnswer],
) -> Iterator[tuple[GroupAnswer, list[str], bool]]:
    """Yields, for each group with an answer: the result of `work`, the changes that do not affect
    the group, and whether it is the only group. Reports the error of a bad group at once.

    If the only group lacks the topic, member, client or rack that a change or `--leader` names,
    this is an error. One of several groups that lacks it is played without the change, or with its
    own leader. A group of Kafka Streams that cannot be played is left out; this is an error only if
    no group has an answer. A group without members after the changes has a result, but no answer.
    """
    groups = read_groups(args, tally.leaderless)
    first = list(islice(groups, 2))
    for group in chain(first, groups):
        tally.groups += 1
        tally.unreadable += isinstance(group, BadGroup)
        alone = len(first) < 2
        found = answer(_led(group, args, tally, alone=alone), args, work, alone=alone)
        if isinstance(found, BadGroup):
            tally.bad += 1
            report_bad(found, as_json=args.json)
            for note in () if args.json else found.notes:
                for sentence in note.text.split("\n"):
                    print_sentence(sentence)
            continue
        if isinstance(found, Unplayed):
            if found.key == "left_out":
                tally.streams.setdefault(found.why, []).append(found.group_id)
            found.show(as_json=args.json)
            continue
        result, left_out = found
        tally.leave_out(left_out, all_of_them=result is None)
        if result is not None:
            yield result, left_out, alone
        elif args.json:
            line = {"group_id": group.group_id, "not_affected": left_out}
            print(contract.dumps(line), flush=True)
        elif alone:
            print_wrapped(unchanged(group.group_id or "", left_out), "", "  ")


def _led(
    group: GroupSpec | BadGroup, args: argparse.Namespace, tally: Tally, *, alone: bool
) -> GroupSpec | BadGroup:
    """Returns the group led by `--leader`; if it is `alone` and lacks this member, an error."""
    member = vars(args).get("leader")
    if member is None or isinstance(group, BadGroup):
        return group
    from kafka_rebalance.plans.leaders import named_leader

    try:
        led: GroupSpec | BadGroup = named_leader(group, member)
    except NotAffected as error:
        return BadGroup(group.group_id, str(error)) if alone else group
    except GroupError as error:
        led = BadGroup(group.group_id, str(error))
    tally.led += 1
    return led


def answer(
    group: GroupSpec | BadGroup,
    args: argparse.Namespace,
    work: Callable[[GroupSpec, Sequence[Change]], GroupAnswer],
    *,
    alone: bool,
) -> tuple[GroupAnswer | None, list[str]] | BadGroup | Unplayed:
    """Returns the result of `work` and the left-out changes (see `answers`), or why none exists."""
    if isinstance(group, BadGroup):
        return group

    def played(changes: Sequence[Change]) -> GroupAnswer | BadGroup:
        check_sources(group, changes)
        try:
            return work(group, changes)
        except NeverEnds as error:
            from kafka_rebalance.notes.never_ends import endless, endless_note

            assignor = vars(args).get("assignor")
            found = endless(group, assignor, changes, engine=args.engine)
            notes = () if found is None else (endless_note(found),)
            return BadGroup(group.group_id, str(error), notes)

    try:
        result, left_out = as_far_as_affected(played, args.changes, group, alone=alone)
    except NoMembersLeft as error:
        return Unplayed(group.group_id, "result", error.problem, "unread")
    except SwitchRefused as error:
        why = f"it cannot switch its protocol: {error.problem}"
        return Unplayed(group.group_id, "result", why)
    except GroupError as error:
        if error.path == "assignor" and not alone and (left_out := _unaffected(group, args)):
            return None, left_out  # no change affects this group, so there is nothing to plan
        own = vars(args).get("assignor") is None
        stops = STOPS if may_stop(group, args.changes) else None
        if own and error.path == "assignor" and group.assignor == STREAM:
            return Unplayed(group.group_id, "left_out", stops or OF_APPLICATION)
        from kafka_rebalance.plans.playing import is_played

        is_left_out = not all(is_played(group, change) for change in args.changes)
        if is_left_out and not isinstance(error, NotAffected):
            return Unplayed(group.group_id, "left_out", stops or NOT_PLAYED)
        return BadGroup(group.group_id, error_text(error, args.changes) + _hint(error, group, args))
    if isinstance(result, BadGroup):
        return result
    return result, [line + _lost_already(line, group) for line in left_out]


def _hint(error: GroupError, group: GroupSpec, args: argparse.Namespace) -> str:
    """Returns advice: on a field of `snapshot`, or on an unknown name; else ""."""
    if error.path.endswith(".topic_id"):
        return "; `snapshot` writes it"
    if not isinstance(error, NotAffected):
        return ""
    if lost := _lost_already(error_text(error, args.changes), group):
        return lost
    ids = {one for member in group.members for one in (member.member_id, member.group_instance_id)}
    clients = {member.client_id for member in group.members} - {None} - ids
    for change in args.changes:
        if isinstance(change, RemoveMembers) and change.member and change.member in clients:
            return f"; it is a client_id: {shell_option('--remove-client', change.member)}"
    members = ((m.member_id, m.group_instance_id, m.client_id, m.rack_id) for m in group.members)
    there = {*chain(*members), *(topic.name for topic in group.topics)} - {None}
    return _near(error.problem, map(str, there))


def _near(problem: str, known: Iterable[str]) -> str:
    """Returns a suggestion if the problem quotes a name that resembles a known one; else ""."""
    found = re.search(r'"(?:[^"\\]|\\.)*"', problem)
    return did_you_mean(json.loads(found[0]), known) if found else ""


def _lost_already(problem: str, group: GroupSpec) -> str:
    """Returns advice for `remove-rack` of an unknown rack if some replicas' racks are unknown.

    Metadata holds no rack for a replica on a broker that is down (MetadataResponse).
    """
    replicas = [r for t in group.topics for racks in t.racks or () for r in racks]
    if not problem.startswith("remove-rack=") or None not in replicas:
        return ""
    return (
        f"; the racks of {counted(replicas.count(None), 'replica')} are unknown, as those of "
        "brokers that are down: if the rack is lost already, remove the members that ran there "
        "with --remove-member, or plan the next rebalance without a change"
    )


def _unaffected(group: GroupSpec, args: argparse.Namespace) -> list[str]:
    """Returns a line `CHANGE: problem` for each change if none affects the group; else []."""

    def edited(changes: Sequence[Change]) -> GroupSpec:
        after = group
        for i, change in enumerate(changes):
            try:
                after = apply(change, after)
            except NotAffected as error:
                raise NotAffected(f"changes[{i}]", error.problem) from None
        return after

    try:
        answer, left_out = as_far_as_affected(edited, args.changes, group)
    except GroupError:  # a change cannot be applied to this group
        return []
    return left_out if answer is None else []


def error_text(error: GroupError, changes: Sequence[object]) -> str:
    """Returns the text of an error; the change replaces a path such as `changes[0]`."""
    for i, change in enumerate(changes):
        if error.path == f"changes[{i}]":
            return f"{change}: {error.problem}"
    return str(error)

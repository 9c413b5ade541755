# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance watch`: says of each rebalance of a live group whether it was as predicted."""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

from kafka_rebalance.assignors.registry import SERVER_SIDE, STREAM
from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.live.consumer_groups import NO_SUCH_GROUP
from kafka_rebalance.live.offsets_log import NoLogError
from kafka_rebalance.live.watched_group import EMPTY, settled_states
from kafka_rebalance.live.watched_log import logged_states
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.report.text.names import counted, member_names, shortened
from kafka_rebalance.report.text.sentences import print_note
from kafka_rebalance.watch.owners import owners
from kafka_rebalance.watch.verdict import (
    NO_CHANGE,
    NO_REBALANCE,
    JudgedRebalance,
    distance,
    is_reached,
    judged_rebalance,
)

from . import SOME_ERRORS, of_errors
from .groups import add_changes, error_text
from .options import add_cluster, add_engine, cluster_configs, seconds, whole
from .tally import OF_APPLICATION


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Follows one group: by its records in __consumer_offsets if the user has Read on this "
        "topic, else by its descriptions. After each rebalance, it prints whether the group ended "
        "as predicted from the state before, with the ids of the members that joined, or else what "
        "made the difference. With changes, it follows the descriptions, plans the changes at the "
        "start, and says once they are made how many partitions have other members than planned. "
        "If the broker of the group's coordinator is down, it waits. Ctrl-C ends it."
    )
    add_cluster(parser)
    parser.add_argument("--group", metavar="G", required=True, help="the group to follow")
    parser.add_argument("--rebalances", type=whole(1), metavar="N", help="end after N rebalances")
    parser.add_argument(
        "--for", type=seconds, metavar="S", dest="for_s", help="end after S seconds"
    )
    parser.add_argument("--json", action="store_true", help="print one answer per line, as JSON")
    add_engine(parser)
    add_changes(parser)


def run(args: argparse.Namespace) -> int:
    before: GroupSpec | None = None
    told: RebalancePlan | None = None
    seen = wrong = 0
    source = ""
    waits: list[str] = []
    for after, sent in _states(args, waits.append):
        was, source = source, "descriptions" if sent is None else "records"
        if source != was:
            print_note(_beginning(after, source))
        if before is None:
            try:
                told = _told(after, args)
            except GroupError as error:
                is_stream = error.path == "assignor" and after.assignor == STREAM
                why = OF_APPLICATION if is_stream else error_text(error, args.changes)
                print_note(f"{after.group_id}: {why}")
                return SOME_ERRORS
        else:
            due = told if told is not None and is_reached(told, after) else None
            was_empty = any(why.startswith(EMPTY) for why in waits)
            wrong += not _report(before, after, sent, due, was_empty, args)
            told = None if due else told
            seen += 1
        before = after
        waits.clear()
        if seen == args.rebalances:
            break
    if before is None:
        print_note(
            f"group {args.group} was never seen settled and with members: nothing was judged"
        )
        return SOME_ERRORS
    print_note(f"{counted(seen, 'rebalance')}, {wrong} not as predicted")
    return of_errors(wrong)


def _states(
    args: argparse.Namespace, on_waiting: Callable[[str], None]
) -> Iterator[tuple[GroupSpec, GroupSpec | None]]:
    """Yields each state, and the group as its leader saw it (None if read from a description).

    Without changes, states come from records, if they can be read. A plan of changes is compared
    with a settled group; a record may show a group between two rounds, so descriptions are read.
    Each reason to wait for members is printed, and passed to `on_waiting`.
    """

    def waiting(why: str) -> None:
        print_note(_waiting(args.group, why))
        on_waiting(why)

    where, began_s = (args.bootstrap_server, args.group), time.monotonic()
    lost = f"{args.group}: its coordinator does not answer"
    how: dict[str, Any] = {
        "configs": cluster_configs(args),
        "for_s": args.for_s,
        "on_waiting": waiting,
        "on_lost": lambda why: print_note(f"{lost} ({why}); waiting"),
        "on_back": lambda: print_note(f"{args.group}: its coordinator answers again"),
    }
    if not args.changes:
        try:
            yield from logged_states(*where, **how)
            return
        except NoLogError as error:
            print_note(f"following descriptions: {error}")
    if args.for_s is not None:
        how["for_s"] = args.for_s - (time.monotonic() - began_s)
    yield from ((after, None) for after in settled_states(*where, **how))


def _waiting(group_id: str, why: str) -> str:
    if why.startswith(NO_SUCH_GROUP):
        more = why.removeprefix(NO_SUCH_GROUP)
        return f"there is no group {group_id} yet{more}; waiting"
    return f"{group_id}: {why}; waiting"


def _beginning(group: GroupSpec, source: str) -> str:
    """Returns a line about the state in which the watch begins."""
    size = f"{counted(len(group.members), 'member')}, {counted(len(owners(group)), _noun(group))}"
    return f"watching {group.group_id} by its {source}: {group.assignor}, {size}"


def _told(group: GroupSpec, args: argparse.Namespace) -> RebalancePlan | None:
    """Returns the plan of the changes, or None without changes.

    Errors: those of `plan`. Without changes, only an error at `assignor` is raised: then no plan
    is possible. But an assignor that throws now may answer later, so that is not an error.
    """
    try:
        led = plans_by_leader(group, args.changes, engine=args.engine)
    except GroupError as error:
        if args.changes or (error.path == "assignor" and not isinstance(error, AssignorThrows)):
            raise
        return None
    return next(one.plan for one in led if one.plan is not None) if args.changes else None


def _report(
    before: GroupSpec,
    after: GroupSpec,
    sent: GroupSpec | None,
    told: RebalancePlan | None,
    was_empty: bool,
    args: argparse.Namespace,
) -> bool:
    """Prints one rebalance; returns whether it was as predicted."""
    try:
        one = judged_rebalance(before, after, sent=sent, was_empty=was_empty, engine=args.engine)
    except GroupError as error:
        print_note(f"{after.group_id}: {error}")
        return False
    far = None if told is None else distance(told, after)
    if args.json:
        more = {} if far is None else {"told_elsewhere": far}
        print(contract.dumps(one.to_dict() | more), flush=True)
    else:
        print(_line(one, before, after, far), flush=True)
    return one.is_predicted


def _line(one: JudgedRebalance, before: GroupSpec, after: GroupSpec, far: int | None) -> str:
    """Returns a line about a rebalance, with the short names of members that `plan` prints."""
    unit = "group epoch" if after.assignor in SERVER_SIDE else "generation"
    generation = "" if one.generation_id is None else f"{unit} {one.generation_id}, "
    if one.is_predicted:
        how = NO_REBALANCE if one.event.startswith("back: ") else f"as predicted ({one.assignor})"
    else:
        noun = counted(one.partitions, _noun(after))
        have = "has" if one.elsewhere == 1 else "have"
        how = f"not as predicted: {one.elsewhere} of {noun} {have} other members than predicted"
        how += f"; cause: {one.cause}"
    told = ""
    if far is not None:
        than = "as" if far == 0 else f"{counted(far, _noun(after))} with other members than"
        told = f"; {than} in the plan of the given changes"
    names = member_names({m.member_id: m.client_id for m in (*before.members, *after.members)})
    return shortened(f"{generation}{_event(one, after)}: {how}{told}", names)


def _event(one: JudgedRebalance, after: GroupSpec) -> str:
    """Returns the event; if no event is visible, how many partitions were revoked and gained."""
    moves = [(one.revoked, "revoked"), (one.gained, "gained")]
    moved = [f"{counted(number, _noun(after))} {what}" for number, what in moves if number]
    if one.event != NO_CHANGE or not moved:
        return one.event
    return f"no member changed ({', '.join(moved)})"


def _noun(group: GroupSpec) -> str:
    return "partition" if group.subtopologies is None else "task"

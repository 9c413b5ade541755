# SPDX-License-Identifier: Apache-2.0
"""Shows all groups, the worst first: groups without members that have a lag, partitions that nobody
reads, idle members (docs/findings.md). Of one group, shows who owns what, on which host and with
which client; how even the assignment is and could be; the lag, if read from a live cluster; what is
wrong; and which command shows more. Changes nothing on the cluster and joins no group. With
--bootstrap-server, also shows consumer groups that the broker assigns (KIP-848), share groups,
streams groups and groups of Kafka Connect.
"""

import argparse
from dataclasses import replace

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.notes.findings import summary
from kafka_rebalance.present.broker_assigned import AssignedByBroker
from kafka_rebalance.present.triage import state_in
from kafka_rebalance.report.text.sentences import print_note, print_wrapped

from . import of_errors
from .applications import add_settings, replayed
from .groups import BadGroup, add_input, given, read_groups, report_bad
from .lines import Leaderless
from .options import add_table, cluster_configs, is_pattern
from .snapshot import note_left_out
from .triage import add_selection, described, show_all
from .weights import add_weights


def add_options(parser: argparse.ArgumentParser) -> None:
    add_input(parser, by_patterns=True)
    what = "every group, also those without findings; of one group, every member and partition"
    add_table(parser, f"--all: show {what}")
    add_selection(parser)
    add_weights(parser)
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    names = args.group
    is_one = names is not None and len(names) == 1 and not is_pattern(names[0])
    args.group = names[0] if is_one else None
    if not is_one:
        return show_all(args, names, _show)
    noted = Leaderless()
    found = list(read_groups(args, noted, note_left_out))
    if args.bootstrap_server:
        one = found[0]
        if isinstance(one, BadGroup) or one.assignor in SERVER_SIDE:
            found = _show_other(args, one)
        if [one] == found and isinstance(one, BadGroup) and state_in(one.error):
            # A group that has no members or is rebalancing is shown as a row: its state and lag.
            return show_all(args, names, _show)
    for one in found:
        if isinstance(one, BadGroup):
            report_bad(one, as_json=args.json)
        else:
            _show(args, one, noted)
    return of_errors(sum(isinstance(one, BadGroup) for one in found))


def _show(args: argparse.Namespace, group: GroupSpec, noted: Leaderless) -> None:
    (one,) = described(args, [group], noted)
    try:
        application = replayed(args, group, noted)
    except GroupError as error:
        application = None
        print_note(f"{group.group_id}: {error}")
    if args.json:
        more = {} if application is None else {"application": application.to_dict()}
        print(contract.dumps(one.to_dict() | more), flush=True)
        return
    from kafka_rebalance.report.groups.description import print_description

    if application is not None:
        from kafka_rebalance.report.groups.application import print_application

        print_application(group, application)
    print_description(one, given(args, group.group_id), everything=args.all)


def _show_other(args: argparse.Namespace, one: GroupSpec | BadGroup) -> list[GroupSpec | BadGroup]:
    """Shows a live group that no classic assignor assigns; returns the groups not yet shown."""
    from kafka_rebalance.live import other_group

    try:
        group = other_group(args.bootstrap_server, args.group, configs=cluster_configs(args))
    except GroupError as error:
        return [BadGroup(args.group, str(error))]
    if group is None:
        return [one]
    if isinstance(group, AssignedByBroker) and isinstance(one, GroupSpec):
        group = replace(group, topics=one.topics)  # with racks, which the coordinator does not know
    found = group.to_dict()
    texts = {one.kind: one.text for one in group.findings}
    said = summary(args.group, texts, empty=not found["members"])
    if args.json:
        print(contract.dumps(found | {"summary": said}), flush=True)
        return []
    from kafka_rebalance.report.groups.other_groups import print_other_group

    print_wrapped(said)
    print_other_group(group, given(args, args.group), everything=args.all)
    return []

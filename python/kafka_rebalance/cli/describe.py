# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance describe`: shows the present state of a group, and its problems."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.present.broker_assigned import AssignedByBroker
from kafka_rebalance.present.description import describe, read_partitions

from . import of_errors
from .groups import BadGroup, add_input, given, read_groups, report_bad
from .lines import Leaderless
from .options import cluster_configs
from .snapshot import note_left_out


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows who owns what, on which host and with which client; how even the assignment is and "
        "could be; the lag, if read from a live cluster; what is wrong; and which command shows "
        "more. Changes nothing on the cluster and joins no group. With --bootstrap-server, also "
        "shows consumer groups that the broker assigns (KIP-848), share groups and streams groups; "
        "with --group, also groups of Kafka Connect."
    )
    add_input(parser)
    parser.add_argument("--all", action="store_true", help="show every member and partition")


def run(args: argparse.Namespace) -> int:
    noted = Leaderless()
    found = list(read_groups(args, noted, note_left_out))
    if args.bootstrap_server and args.group:
        one = found[0]
        if isinstance(one, BadGroup) or one.assignor in SERVER_SIDE:
            found = _show_other(args, one)
    groups = [one for one in found if not isinstance(one, BadGroup)]
    lags, leaderless = _lags(args, groups)
    for one in found:
        if isinstance(one, BadGroup):
            report_bad(one, as_json=args.json)
    described = (
        describe(
            group,
            lags=lags.get(group.group_id),
            leaderless=[*leaderless, *noted.of_group.get(group.group_id, ())],
            engine=args.engine,
        )
        for group in groups
    )
    if args.json:
        for description in described:
            print(contract.dumps(description.to_dict()), flush=True)
    elif groups:
        from kafka_rebalance.report.plans.description import print_description, print_descriptions

        if len(groups) == 1:
            print_description(next(described), given(args, groups[0].group_id), everything=args.all)
        else:
            print_descriptions(list(described))
            print("--group G shows one group in detail.")
    return of_errors(len(found) - len(groups))


def _lags(
    args: argparse.Namespace, groups: Sequence[GroupSpec]
) -> tuple[Mapping[str, Mapping[TopicPartition, int]], list[TopicPartition]]:
    """Returns the lags by group id, and the partitions without a leader; empty for a file."""
    if args.bootstrap_server is None:
        return {}, []
    from kafka_rebalance.live import group_lags

    read = {
        group.group_id: [
            tp for owned in Assignment.owned(group).values() for tp in read_partitions(group, owned)
        ]
        for group in groups
    }
    leaderless: list[TopicPartition] = []
    configs = cluster_configs(args)
    lags = group_lags(args.bootstrap_server, read, configs=configs, on_leaderless=leaderless.append)
    return lags, leaderless


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
        group = replace(group, topics=one.topics)  # a coordinator's description lacks racks
    if args.json:
        print(contract.dumps(group.to_dict()), flush=True)
        return []
    from kafka_rebalance.report.plans.other_groups import print_other_group

    print_other_group(group, given(args, args.group), everything=args.all)
    return []

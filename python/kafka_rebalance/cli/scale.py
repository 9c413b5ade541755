# SPDX-License-Identifier: Apache-2.0
"""Shows which numbers of members help, which bring nothing, and what the step from the present
members to each of them costs: moves, partitions without a reader, seconds.
"""

import argparse
from collections.abc import Mapping

from kafka_rebalance.group import contract
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.scaling.counts import Scaled, scale

from .groups import add_input, answers
from .lines import draw
from .options import add_table, cluster_configs, of_topic, path, whole
from .tally import Tally
from .weights import add_weights

_MOST_COUNTS = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    load = {"type": of_topic, "action": "append"}
    options = """
    --members N..M: such as 1..20, 4..32/4 (4 in each pod) or 4,8,12 (default: to twice the present)
    --rate TOPIC=N: records a second that arrive in a topic
    --lag TOPIC=N: records not yet read in a topic (default: the cluster's, with --group)
    --capacity N: records a second that one member can read
    --leader
    """
    add_table(parser, options, members=_counts, rate=load, lag=load, capacity=whole(1))
    add_weights(parser, of_members=False)
    add_table(parser, "--output FILE.html: draw the counts as an HTML page", output=path)
    parser.set_defaults(changes=[])


def run(args: argparse.Namespace) -> int:
    if args.output is not None and args.output.suffix != ".html":
        args.parser.error("argument --output: name a file that ends in .html")
    if args.weights == "lag":
        args.parser.error("--weights lag: not a rate; the lag of a live group is read by itself")
    tally, found = Tally(), list[Scaled]()

    def work(group: GroupSpec, _: object) -> tuple[GroupSpec, Scaled]:
        return group, _scaled(args, group, in_detail=args.group is not None)

    for (group, one), _, alone in answers(args, tally, work):
        if alone and args.group is None:
            one = _scaled(args, group, in_detail=True)
        if args.json:
            print(contract.dumps(one.to_dict()), flush=True)
        found.append(one)
    if args.output is not None and len(found) > 1:
        args.parser.error("--output needs one group: name it with --group")
    from kafka_rebalance.report.plans.scale import print_scaled, scale_page

    if found and not args.json:
        print_scaled(found)
    if found and args.output is not None:
        draw(args.output, scale_page(found[0]))
    return tally.finish(args)


def _scaled(args: argparse.Namespace, group: GroupSpec, *, in_detail: bool) -> Scaled:
    rate = _weights(group) if args.rate is None else dict(args.rate)
    return scale(
        group,
        args.members,
        rate=rate,
        lag=_lag(args, group) if args.lag is None else dict(args.lag),
        capacity=args.capacity,
        samples=None if in_detail else 0,
        how_long=in_detail,
        engine=args.engine,
    )


def _weights(group: GroupSpec) -> Mapping[TopicPartition, float] | None:
    """Returns the known weights, which count as records a second; None if no weight is known."""
    return {
        TopicPartition(topic.name, p): weight
        for topic in group.topics
        for p, weight in enumerate(topic.weights or ())
        if weight is not None
    } or None


def _lag(args: argparse.Namespace, group: GroupSpec) -> Mapping[TopicPartition, int] | None:
    """Returns the lag of the group of `--group`, if it is live and has no tasks; else None."""
    if args.bootstrap_server is None or args.group is None or group.subtopologies is not None:
        return None
    from kafka_rebalance.live import group_lags

    every = [TopicPartition(one.name, p) for one in group.topics for p in range(one.partitions)]
    lags = group_lags(args.bootstrap_server, {group.group_id: every}, configs=cluster_configs(args))
    return lags.get(group.group_id)


def _counts(text: str) -> list[int]:
    """Parses `1..20`, `4,8,12`, `4..32/4` (every fourth), or several of these with commas."""
    found: list[int] = []
    for part in text.split(","):
        ends, _, every = part.partition("/")
        first, _, last = ends.partition("..")
        each = range(whole(0)(first), whole(0)(last or first) + 1, whole(1)(every or "1"))
        found += each[: _MOST_COUNTS + 1]
    if not 0 < len(found) <= _MOST_COUNTS:
        raise argparse.ArgumentTypeError(f"{text} is not 1 to {_MOST_COUNTS} numbers")
    return found

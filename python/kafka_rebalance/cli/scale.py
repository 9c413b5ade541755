# SPDX-License-Identifier: Apache-2.0
"""`kafka-rebalance scale`: shows which numbers of members help, and what each step costs."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kafka_rebalance.assignors.registry import is_known, unknown
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import Change
from kafka_rebalance.report.text.sentences import print_note
from kafka_rebalance.scaling import Scaled, choose, scale
from kafka_rebalance.scaling.load import Given

from .groups import add_input, answers
from .lines import written
from .options import MOST_DIGITS, add_assignor, cluster_configs, whole
from .tally import Tally

_MOST_COUNTS = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Plays the step from the present members to each number of members, as Kafka would. Shows "
        "how much the fullest member then has to read, what would be possible, and what the step "
        "costs: moves, partitions that stop, seconds. Says which numbers help, and which bring "
        "nothing. Members that leave are those that joined last; ranges are over other choices."
    )
    add_input(parser)
    parser.add_argument(
        "--members",
        type=_counts,
        metavar="N..M",
        help="the numbers of members, such as 1..20 or 4,8,12 (default: 1 to twice the present "
        "number)",
    )
    parser.add_argument(
        "--per-replica",
        type=whole(1),
        default=1,
        metavar="N",
        help="each replica has N members (threads); --members then counts replicas",
    )
    for name, what in (
        ("rate", "records a second that arrive"),
        ("lag", "records not yet read (default: those of the cluster, with --group)"),
    ):
        parser.add_argument(
            f"--{name}",
            type=_of_topic,
            action="append",
            metavar="TOPIC=N",
            help=f"{what} in a topic, spread evenly, or in a partition: orders-3=40",
        )
    parser.add_argument(
        "--capacity", type=whole(1), metavar="N", help="records a second that one member can read"
    )
    add_assignor(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE.html", help="draw the counts as an HTML page"
    )
    parser.set_defaults(run=run, parser=parser, changes=[])


def run(args: argparse.Namespace) -> int:
    if args.assignor is not None and not is_known(args.assignor):
        args.parser.error(f"argument --assignor: {unknown(args.assignor)}")
    if args.output is not None and args.output.suffix != ".html":
        args.parser.error("argument --output: name a file that ends in .html")
    tally = Tally()
    many: list[Scaled] = []
    for (group, scaled), _, alone in answers(args, tally, partial(_answer, args)):
        is_whole = args.group is not None or not alone
        one = scaled if is_whole else _scaled(args, group, in_detail=True)
        if args.json:
            choice = {"choice": choose(one).to_dict()} if one.load.is_known else {}
            print(contract.dumps(one.to_dict() | choice), flush=True)
        elif alone:
            from kafka_rebalance.report.plans.scale import print_scaled

            print_scaled(one)
        else:
            many.append(one)
        if args.output is not None:
            if not alone:
                args.parser.error("--output needs one group: name it with --group")
            from kafka_rebalance.report.plans.scale import scale_page

            with written(args.output) as path:
                path.write_text(scale_page(one), encoding="utf-8")
            print_note(f"drawn to {args.output}")
    if many:
        from kafka_rebalance.report.plans.scale import print_many

        print_many(many)
        print("--group G shows one group in detail.")
    return tally.finish(args)


def _answer(
    args: argparse.Namespace, group: GroupSpec, _: Sequence[Change]
) -> tuple[GroupSpec, Scaled]:
    return group, _scaled(args, group, in_detail=args.group is not None)


def _scaled(args: argparse.Namespace, group: GroupSpec, *, in_detail: bool) -> Scaled:
    return scale(
        group,
        args.members,
        assignor=args.assignor,
        per_replica=args.per_replica,
        rate=None if args.rate is None else dict(args.rate),
        lag=_lag(args, group) if args.lag is None else dict(args.lag),
        capacity=args.capacity,
        samples=None if in_detail else 0,
        how_long=in_detail,
        engine=args.engine,
    )


def _lag(args: argparse.Namespace, group: GroupSpec) -> Given | None:
    """Returns the lag of one live group, whose partitions are not tasks; None otherwise."""
    if args.bootstrap_server is None or args.group is None or group.subtopologies is not None:
        return None
    from kafka_rebalance.live import group_lags

    read = {topic for member in group.members for topic in member.topics}
    partitions = [
        TopicPartition(topic.name, p)
        for topic in group.topics
        if topic.name in read
        for p in range(topic.partitions)
    ]
    of_group, configs = {group.group_id: partitions}, cluster_configs(args)
    return group_lags(args.bootstrap_server, of_group, configs=configs)[group.group_id]


def _counts(text: str) -> list[int]:
    """Parses `1..20`, `4,8,12` or a mix of both."""
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        ends = [first, last] if dots else [first]
        if not all(one.isascii() and one.isdigit() and len(one) <= MOST_DIGITS for one in ends):
            raise argparse.ArgumentTypeError(f"{text} is not a list of numbers, such as 1..20")
        found += range(int(ends[0]), int(ends[-1]) + 1)[: _MOST_COUNTS + 1]
    if not 0 < len(found) <= _MOST_COUNTS:
        problem = f"lists {len(found) or 'no'} numbers, not 1 to {_MOST_COUNTS}"
        raise argparse.ArgumentTypeError(f"{text} {problem}")
    return found


def _of_topic(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not TOPIC=N, such as orders=1200") from None

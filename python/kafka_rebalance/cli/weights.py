# SPDX-License-Identifier: Apache-2.0
"""The options `--weights` and `--capacity`: the sources of the loads of partitions and members.

load     records a second that arrive, plus the lag divided by `CATCH_UP_S`
rate     records a second that arrive: the ends of the partitions are read twice
lag      records not yet consumed
FILE     lines in the format of `group/given_weights.py`, the only source of capacities

`load`, `rate` and `lag` are measured on a live cluster, for one group. Measured weights have two
significant digits: noise must not move a partition. A partition has no weight if its end is unknown
or, for `lag`, its committed offset; `load` counts an unknown lag as 0.
"""

import argparse
import time
from math import floor, log10

from kafka_rebalance.assignors.registry import WEIGHTED
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.given_weights import GivenWeights, Kind, read_weights
from kafka_rebalance.group.line_files import read_text
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.sentences import counted, in_words, print_note

from .options import add_table, cluster_configs, seconds

CATCH_UP_S = 300
_APART_S = 30.0
_LIVE = ("load", "rate", "lag")


def add_weights(parser: argparse.ArgumentParser, *, of_members: bool = True) -> None:
    """Adds the options for the weights of partitions and, if `of_members`, for capacities."""
    given = parser.add_argument_group(
        "weights", "What partitions carry, for all that looks at load (docs/balance.md)."
    )
    weights = f"""
    --weights SOURCE: a FILE of lines TOPIC PARTITION WEIGHT; or of a live group: load (records a
      second and lag / {CATCH_UP_S}), rate, or lag (default: the weights in the group's line)
    """
    add_table(given, weights)
    if of_members:
        what = "what members carry beside the others' 1"
        add_table(given, f"--capacity FILE: lines CLIENT CAPACITY, as `big-* 2`: {what}")
    how = {"type": seconds, "default": _APART_S}
    text = "--seconds S: measure load and rate for S seconds (default: %(default)g)"
    add_table(given, text, seconds=how)


def only_weighted(args: argparse.Namespace) -> None:
    """Raises GroupError if weights are given, but the assignor is not `weighted`."""
    name = (args.assignor or "").partition("?")[0]
    for option in ("weights", "capacity"):
        if getattr(args, option) is not None and name != WEIGHTED:
            raise GroupError(f"--{option}", f"only --assignor {WEIGHTED} has this option")


class Weigher:
    """Puts the weights and capacities of the options into groups; each source is read once."""

    def __init__(self, args: argparse.Namespace) -> None:
        options = vars(args)
        self._only: str | None = options.get("weighed", options.get("group"))
        self.source: str | None = options.get("weights")
        file = options.get("capacity")
        self.args, self._given = args, GivenWeights()
        self._in_none, self._has_read = dict[str, None](), False
        if isinstance(file, str):  # the capacity of `scale` is a number
            self._given.capacities = _of_file(file, "capacity").capacities
        if self.source is not None and self.source not in _LIVE:
            self._given.weights = _of_file(self.source, "weight").weights
            self._in_none = dict.fromkeys(self._given.topics())
        elif self.source is not None and None in (options["bootstrap_server"], self._only):
            how = "give --bootstrap-server and --group, or a FILE of weights"
            raise GroupError(
                "--weights", f"{self.source} is read from one group of a cluster; {how}"
            )

    def __call__(self, group: GroupSpec) -> GroupSpec:
        """Returns the group with the weights. Errors: ClusterError, GroupError."""
        if self.source in _LIVE and group.group_id == self._only and not self._has_read:
            self._given.weights, self._has_read = self._measured(group), True
        for topic in group.topics:
            self._in_none.pop(topic.name, None)
        return self._given.put_in(group) if self._given.weights or self._given.capacities else group

    def line(self, line: bytes) -> bytes:
        """Returns the contract line with the weights in it; a line that is not a valid group is
        returned unchanged.
        """
        if not (self._given.weights or self._given.capacities):
            return line
        try:
            group = self(GroupSpec.from_json(line))
        except GroupError:
            return line
        return contract.dumps(contract.parse(line) | group.to_dict()).encode()

    def finish(self) -> None:
        if self._in_none:
            names = in_words([*self._in_none][:3])
            print_note(
                f"{self.source}: {counted(len(self._in_none), 'topic')} in no group: {names}"
            )

    def _measured(self, group: GroupSpec) -> dict[tuple[str, int | None], float]:
        from kafka_rebalance.live import group_lags
        from kafka_rebalance.live.committed_offsets import partition_ends

        read = {name for member in group.members for name in member.topics}
        every = [
            TopicPartition(topic.name, p)
            for topic in group.topics
            if topic.name in read
            for p in range(topic.partitions)
        ]
        where, configs = self.args.bootstrap_server, cluster_configs(self.args)
        rates, lags = dict[TopicPartition, float](), dict[TopicPartition, int]()
        if self.source != "lag":
            print_note(f"measuring what arrives for {self.args.seconds:g} seconds (--seconds)")
            before, at = partition_ends(where, every, configs=configs), time.monotonic()
            time.sleep(self.args.seconds)
            after, took = partition_ends(where, every, configs=configs), time.monotonic() - at
            both = before.keys() & after.keys()
            rates = {tp: max(0, after[tp] - before[tp]) / took for tp in both}
        if self.source != "rate":
            lags = group_lags(where, {group.group_id: every}, configs=configs)[group.group_id]
        if self.source == "lag":
            loads: dict[TopicPartition, float] = {**lags}
        else:
            loads = {tp: rate + lags.get(tp, 0) / CATCH_UP_S for tp, rate in rates.items()}
        return {(tp.topic, tp.partition): rounded(load) for tp, load in loads.items()}


def rounded(load: float) -> float:
    """Returns the number with two significant digits.

    >>> rounded(1234.0), rounded(0.0876), rounded(0)
    (1200.0, 0.088, 0.0)
    """
    return round(load, 1 - floor(log10(load))) if load > 0 else 0.0


def _of_file(file: str, kind: Kind) -> GivenWeights:
    with open(file, "rb") as source:  # noqa: PTH123  # see `open_input`
        text = read_text(source, f"--{'weights' if kind == 'weight' else kind}", file)
    return read_weights(text.split("\n"), kind, file)

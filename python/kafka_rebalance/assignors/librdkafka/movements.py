# SPDX-License-Identifier: Apache-2.0
"""Records the moves of librdkafka's cooperative-sticky, with the bugs of librdkafka's records.

For each topic and pair (source, destination), a list holds the partitions that moved from the
source to the destination. If a partition is to move from c to d, and another one of its topic moved
from d to c, that other partition moves back instead.

librdkafka keeps pointers into these lists. A dangling pointer usually crashes the leader's
process; here, `AssignorThrows` is raised in these cases:

- A partition is taken from a list to move back, and the list is empty afterwards. (If it is not
  empty, the pointer finds the list's next partition, and that one moves.)
- The first partition of a list has moved on while others are still in the list, and the list is
  looked up again.
- The record of a partition disagrees with its holder (an assertion of librdkafka).
- The record of a partition names a list that has been removed.

A partition that moved back keeps its record, although no list contains it.

Source   librdkafka 2.16 (PartitionMovements_t).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_rebalance.errors import AssignorThrows
from kafka_rebalance.group.model import TopicPartition

NAME = "librdkafka/cooperative-sticky"


class _Pair(NamedTuple):
    source: str
    destination: str


@dataclass(slots=True)
class _Moved:
    """The list of one pair. librdkafka's key for this list points to the record of `keeper`."""

    keeper: TopicPartition
    partitions: list[TopicPartition] = field(default_factory=list)
    key_is_gone: bool = False


class MoveRecords:
    def __init__(self) -> None:
        self._pair_of: dict[TopicPartition, _Pair] = {}
        self._of_topic: dict[str, dict[_Pair, _Moved]] = {}

    def actual(
        self, tp: TopicPartition, holder: str, destination: str
    ) -> tuple[TopicPartition, bool]:
        """Returns the partition that moves instead of `tp`, or `tp`; and whether it moves back."""
        if tp.topic in self._of_topic:
            pair = self._pair_of.get(tp)
            if pair is not None and pair.destination != holder:
                raise dies("the record of a move and the holder of the partition disagree")
            if moved := self._look_up(tp.topic, _Pair(destination, holder)):
                return moved.partitions[0], True
        return tp, False

    def record(
        self, tp: TopicPartition, holder: str, destination: str, *, moves_back: bool
    ) -> TopicPartition:
        """Records the move of `tp`; returns the partition that really moves."""
        source = holder
        left: list[TopicPartition] | None = None
        if (pair := self._pair_of.get(tp)) is not None:
            left = self._forget(tp, pair, stays=pair.source == destination)
            if pair.destination != holder:
                raise dies("the record of a move and the holder of the partition disagree")
            source = pair.source
        if source != destination:
            pair = _Pair(source, destination)
            moved = self._look_up(tp.topic, pair)
            if moved is None:
                moved = self._of_topic.setdefault(tp.topic, {})[pair] = _Moved(tp)
            moved.partitions.append(tp)
            self._pair_of[tp] = pair
        if not moves_back or left is None:
            return tp
        if not left:
            raise dies("the list of the partition that moves back is empty, and its memory is free")
        return left[0]

    def state(self) -> object:
        """Returns a copy of all records, so that two states can be compared."""
        lists = {
            (topic, pair): (moved.keeper, tuple(moved.partitions), moved.key_is_gone)
            for topic, pairs in self._of_topic.items()
            for pair, moved in pairs.items()
        }
        return dict(self._pair_of), lists

    def _look_up(self, topic: str, pair: _Pair) -> _Moved | None:
        moved = self._of_topic.get(topic, {}).get(pair)
        if moved is not None and moved.key_is_gone:
            raise dies("the memory of a list's key is free")
        return moved

    def _forget(self, tp: TopicPartition, pair: _Pair, *, stays: bool) -> list[TopicPartition]:
        """Takes a partition out of its list, and returns the list."""
        moved = self._look_up(tp.topic, pair)
        if moved is None:
            raise dies("a move is recorded that no list has")
        if tp in moved.partitions:
            moved.partitions.remove(tp)
        # librdkafka frees the record of a partition that moves on. If this is the record of
        # `keeper`, the list has lost its key.
        if moved.keeper == tp and not stays:
            moved.key_is_gone = True
        if not moved.partitions:
            del self._of_topic[tp.topic][pair]
            if not self._of_topic[tp.topic]:
                del self._of_topic[tp.topic]
        return moved.partitions


def dies(reason: str) -> AssignorThrows:
    return AssignorThrows.dies(NAME, reason)

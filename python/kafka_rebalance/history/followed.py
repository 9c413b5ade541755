# SPDX-License-Identifier: Apache-2.0
"""The history of all groups while their log is still being written, record by record.

The rows are those of `rebalance_history`, except for `gap_reason`: compaction may have removed
later records, which only a reader of the whole log notices. `rebalance_history` then reports
"compacted", and this module "never recorded". If a record is damaged, the row of a conversion to or
from the consumer protocol can differ, too: this module does not read records of consumer groups.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from sys import intern
from typing import NamedTuple

from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.wire.group_records import OffsetCommitKey, OffsetsRecord

from .all_groups import WholeFrom, group_of, read_key, read_record
from .departures import CommitTimes
from .group_history import BACK_WITHIN_MS, GroupHistory
from .group_log import RecordedGeneration, read_generation
from .recorded import RecordedRebalance

_SWEEP_RECORDS = 100_000


class FollowedRow(NamedTuple):
    """A row, with the generations of its record and of the group's record before it, if any."""

    row: RecordedRebalance
    before: RecordedGeneration | None
    after: RecordedGeneration | None


class FollowedHistory:
    """The histories of the groups that `is_wanted` accepts; memory holds their last generations.

    A deleted group is forgotten once none of its members can come back.
    """

    def __init__(self, is_wanted: Callable[[str], bool] = lambda _: True) -> None:
        self._is_wanted = is_wanted
        self._groups: dict[str, GroupHistory] = {}
        self._changed_ms: dict[str, int] = {}
        self._whole: dict[int, WholeFrom] = defaultdict(WholeFrom)
        self.records = 0

    def add(self, record: OffsetsRecord) -> Iterator[FollowedRow]:
        """Yields the record's row, if any. A partition's records must come in order of offset."""
        self.records += 1
        self._whole[record.partition].add(record.offset)
        try:
            key = read_key(record.key)
            name = group_of(key, record.key)
        except WireError:
            return
        if isinstance(key, OffsetCommitKey):
            known = self._groups.get(key.group_id)
            if record.value is not None and known is not None and known.has_record:
                times = CommitTimes(record.timestamp_ms, record.timestamp_ms)
                tp = TopicPartition(intern(key.topic), key.partition)
                known.commits.add({tp: times})
        elif name is not None and self._is_wanted(name):
            history = self._groups.setdefault(name, GroupHistory(0))
            history.whole_from = self._whole[record.partition].offset
            self._changed_ms[name] = record.timestamp_ms
            before = history.newest
            for row, after in read_record(history, key, record):
                yield FollowedRow(row, before, after)
                if after is not None:  # the undecoded record takes a sixth of the memory
                    history.rest(partial(read_generation, key, record))
        if self.records % _SWEEP_RECORDS == 0:
            self._forget(record.timestamp_ms - BACK_WITHIN_MS)

    def _forget(self, before_ms: int) -> None:
        for name in [one for one, at_ms in self._changed_ms.items() if at_ms < before_ms]:
            if self._groups[name].newest is None:
                del self._groups[name], self._changed_ms[name]

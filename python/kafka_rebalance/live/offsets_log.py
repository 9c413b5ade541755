# SPDX-License-Identifier: Apache-2.0
"""Reads all records of `__consumer_offsets` in a live cluster.

1. The cluster reports the first offset and the end of each partition; records that are written
   later are left out. If a partition's leader does not answer, the partition is left out and
   reported.
2. One consumer without a group reads one partition after another, so the caller can finish each
   partition before the next one begins.

`FollowedLog` keeps reading; after an error, it continues after the last record.

Each broker lists the groups whose partition of this topic it leads. So groups are missing
(`problems`) if a broker does not answer, or if a partition has no leader: the broker that led it is
then no longer in the metadata, and all brokers that are there answer. The ids of these groups are
unknown.

Order    partitions by number; records by offset.
Errors   ClusterError: no connection, or no progress within the request timeout; NotReachedError: no
         leader answers; NoLogError: no permission, or no such topic.
"""

import importlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kafka_rebalance.errors import ClusterError, NotReachedError, WireError
from kafka_rebalance.wire import group_records
from kafka_rebalance.wire.group_records import OffsetsRecord, partition_for

from .cluster import admin_client, consumer_client, kafka_module
from .committed_offsets import NO_LEADER, read_offsets
from .log_records import POLL_MS, IdleLimit, no_partitions, polled

TOPIC = "__consumer_offsets"

_PARTITIONS_NAMED = 10


def problems(silent: Mapping[int, str], offsets_topic: Mapping[str, Any]) -> Iterator[str]:
    """Yields a clause for each reason why groups are missing; `silent` maps broker -> its error."""
    for broker, error in silent.items():
        yield f"broker {broker} does not list its groups ({error}), so they are missing"
    partitions = offsets_topic["partitions"]
    numbers = [int(one["partition_index"]) for one in partitions if one["leader_id"] == NO_LEADER]
    if numbers:
        which = without_leader(numbers, len(partitions))
        yield f"{which}, so the groups of these partitions are missing"


def without_leader(numbers: Iterable[int], total: int) -> str:
    """Returns a clause: how many, and which, partitions of `__consumer_offsets` lack a leader."""
    lost = sorted(numbers)
    more = len(lost) - _PARTITIONS_NAMED
    names = ", ".join(map(str, lost[:_PARTITIONS_NAMED]))
    names += f" and {more} more" if more > 0 else ""
    which = f"{len(lost)} of {total} partitions of {TOPIC} ({names})"
    return f"{which} {'has' if len(lost) == 1 else 'have'} no live leader"


LOOK_AGAIN_S = 30.0
"""After this many seconds, partitions whose leader did not answer are requested again."""
_CONSUMER = {"max_poll_records": 5_000, "max_partition_fetch_bytes": 4 << 20}


class NoLogError(ClusterError):
    """The cluster answers, but without the records: for example, this user may not read them."""


class NoTopicError(NoLogError):
    """The cluster has no topic `__consumer_offsets`; the first group creates it."""


def offsets_records(
    bootstrap_server: str,
    *,
    configs: Mapping[str, Any] | None = None,
    groups: Collection[str] | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    on_missing: Callable[[str], None] | None = None,
    newest: int | None = None,
) -> Iterator[OffsetsRecord]:
    """Yields the topic's records, up to the end of each partition at the first request.

    Given `newest`, only about this many offsets in all are read: the same number at the end of each
    partition.

    Given `groups`, only the partitions with the records of these groups are read. `configs` are
    made by `client_configs`. `on_progress` is called with the number of offsets read so far, and
    their total number; offsets whose records compaction has removed count, too. `on_missing` is
    called with a clause that names the partitions whose leader does not answer, if there are any;
    without it, or if these are all partitions, they are an error.
    """
    ranges = _ranges(bootstrap_server, configs, groups, on_missing)
    if newest is not None:
        most = -(-newest // len(ranges))
        ranges = {one: (max(start, end - most), end) for one, (start, end) in ranges.items()}
    total = sum(end - start for start, end in ranges.values())
    done = 0
    with _consumer(bootstrap_server, configs) as (consumer, idle_s):
        for partition, (start, end) in sorted(ranges.items()):
            place = kafka_module().TopicPartition(TOPIC, partition)
            idle = IdleLimit(idle_s, partition, end)
            for position, records in polled(consumer, place, range(start, end), idle):
                yield from (_record(partition, one) for one in records)
                on_progress(done + position - start, total)
            done += end - start


class FollowedLog:
    """The records of the topic's partitions: those that exist, then new ones as they are written.

    Given `groups`, only the partitions with the records of these groups are read.

    `old_before` maps a partition to its end when it was first read. `missing` names the partitions
    whose leader does not answer; "" if there are none.
    """

    def __init__(
        self,
        bootstrap_server: str,
        configs: Mapping[str, Any] | None,
        groups: Collection[str] | None = None,
    ) -> None:
        self._where, self._groups = (bootstrap_server, configs), groups
        self._next: dict[int, int] = {}
        self.old_before: dict[int, int] = {}
        self.missing = ""

    @property
    def behind(self) -> int:
        """Returns how many offsets that existed at the start are not read yet."""
        return sum(max(0, end - self._next.get(one, 0)) for one, end in self.old_before.items())

    def has_topic(self) -> bool:
        """Returns whether the topic exists. Errors: as in `offsets_records`."""
        try:
            return bool(_ranges(*self._where, self._groups, lambda _: None))
        except NoTopicError:
            return False

    def batches(self) -> Iterator[list[OffsetsRecord]]:
        """Yields the records of each poll, sorted by offset in each partition; [] if there are
        none.

        Each record is yielded once, even if an error makes a second call necessary. If a partition
        is missing, the method ends after LOOK_AGAIN_S, and has to be called again.

        Errors   as in `offsets_records`.
        """
        missing: list[str] = []
        ranges = _ranges(*self._where, self._groups, missing.append)
        self.missing = "".join(missing)
        for partition, (first, end) in ranges.items():
            self._next[partition] = max(first, self._next.get(partition, first))
            self.old_before.setdefault(partition, end)
        ends_s = time.monotonic() + LOOK_AGAIN_S
        places = {kafka_module().TopicPartition(TOPIC, one): self._next[one] for one in ranges}
        with _consumer(*self._where) as (consumer, _):
            consumer.assign(list(places))
            for place, start in places.items():
                consumer.seek(place, start)
            while not self.missing or time.monotonic() < ends_s:
                for place in places:  # uses the position, which moves over transaction markers, too
                    one = place.partition
                    if self._next[one] < self.old_before[one]:
                        self._next[one] = max(self._next[one], consumer.position(place) or 0)
                batch = []
                for place, records in consumer.poll(timeout_ms=POLL_MS).items():
                    self._next[place.partition] = records[-1].offset + 1
                    batch += [_record(place.partition, one) for one in records]
                yield batch


@contextmanager
def _consumer(
    bootstrap_server: str, configs: Mapping[str, Any] | None
) -> Iterator[tuple[Any, float]]:
    """Yields a consumer, and the seconds without progress after which reading ends."""
    idle_s = (configs or {}).get("request_timeout_ms", 30_000) / 1000
    with consumer_client(bootstrap_server, {**(configs or {}), **_CONSUMER}) as one, _permitted():
        yield one, idle_s


def _ranges(
    bootstrap_server: str,
    configs: Mapping[str, Any] | None,
    groups: Collection[str] | None,
    on_missing: Callable[[str], None] | None = None,
) -> dict[int, tuple[int, int]]:
    """Returns partition -> (first offset, end) where a leader answers; `groups` limits them."""
    with admin_client(bootstrap_server, configs) as admin, _permitted():
        [described] = admin.describe_topics([TOPIC])
        errors: Any = importlib.import_module("kafka.errors")
        if described["error_code"] == errors.TopicAuthorizationFailedError.errno:
            raise errors.TopicAuthorizationFailedError
        leaders = {one["partition_index"]: one["leader_id"] for one in described["partitions"]}
        total = len(leaders)
        if not leaders:
            raise NoTopicError(str(no_partitions(TOPIC)))
        if groups is not None:
            of_groups = {partition_for(group_id, total) for group_id in groups}
            leaders = {one: leader for one, leader in leaders.items() if one in of_groups}
        led = {kafka_module().TopicPartition(TOPIC, one): of for one, of in leaders.items()}
        first, _ = read_offsets(admin, led, led, "READ_UNCOMMITTED", "EARLIEST")
        ends, _ = read_offsets(admin, led, first, "READ_UNCOMMITTED")
        ranges = {place.partition: (first[place], end) for place, end in ends.items()}
    if lost := leaders.keys() - ranges.keys():
        problem = without_leader(lost, total)
        if on_missing is None or not ranges:
            raise NotReachedError(f"{bootstrap_server}: {problem}")
        on_missing(problem)
    return ranges


def _record(partition: int, one: Any) -> OffsetsRecord:
    return OffsetsRecord(partition, one.offset, one.timestamp, one.key or b"", one.value)


@contextmanager
def _permitted() -> Iterator[None]:
    errors: Any = importlib.import_module("kafka.errors")
    try:
        yield
    except errors.TopicAuthorizationFailedError:
        raise NoLogError(
            f"no permission: this user needs Describe and Read on Topic {TOPIC}"
        ) from None


def group_leaders(
    bootstrap_server: str, group_ids: Iterable[str], *, configs: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Returns group id -> member id of the group's last leader; DescribeGroups lacks this id.

    The id is in the group's newest metadata record. The partitions with these records are read
    from their beginning, which is slow with many commits. Groups without a leader are left out.
    For `configs`, see `snapshot`. Errors: ClusterError; MissingExtra without kafka-python 3.
    """
    groups = set(group_ids)
    leaders: dict[str, str] = {}
    for record in offsets_records(bootstrap_server, configs=configs, groups=groups):
        if record.key[:2] != b"\0\2":  # most records are commits
            continue
        with suppress(WireError):
            key = group_records.decode_key(record.key)
            value = group_records.decode_value(key, record.value)
            if isinstance(key, group_records.GroupMetadataKey) and key.group_id in groups:
                leaders.pop(key.group_id, None)  # a tombstone removes the group
                if isinstance(value, group_records.GroupMetadataValue) and value.leader:
                    leaders[key.group_id] = value.leader
    return leaders

# SPDX-License-Identifier: Apache-2.0
"""Settings of topics. `records.py` reads those that have an effect: the largest batch, the kind of
time, and whether records need keys (cleanup.policy).

Others are only stored and described: nothing is compacted, compressed or dropped by age.

Source   LogConfig of Kafka 4.4.0: names, types, defaults and bounds.
Differs  `compression.gzip.level` may be 0; lists of throttled replicas are not checked, and
         settings are not compared with each other.
"""

from collections.abc import Mapping

from .batches import Refused
from .cluster import Cluster
from .configs import INT, LONG, Configs, ServedSetting, Value, changed
from .frames import KafkaError

TOPIC = 2
"""The number of the resource type TOPIC."""
_BY_TOPIC = 1
MOST_BYTES, TIMESTAMPS, APPEND_TIME = "max.message.bytes", "message.timestamp.type", "LogAppendTime"
POLICY = "cleanup.policy"
_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _numbers(least: int, most: int, **defaults: int) -> dict[str, ServedSetting]:
    """Returns settings that are integers with these bounds; names have _ in place of dots."""
    return {
        name.replace("_", "."): ServedSetting(one, least, most=most)
        for name, one in defaults.items()
    }


def _switches(*names: str) -> dict[str, ServedSetting]:
    return {name: ServedSetting(default=False) for name in names}


_WEEK_MS = 7 * 24 * 3600 * 1000
SETTINGS = {
    POLICY: ServedSetting(("delete",), choices=("compact", "delete")),
    "compression.type": ServedSetting("producer", choices=_COMPRESSIONS),
    TIMESTAMPS: ServedSetting("CreateTime", choices=("CreateTime", APPEND_TIME)),
    "min.cleanable.dirty.ratio": ServedSetting(0.5, most=1),
    "compression.gzip.level": ServedSetting(-1, -1, most=9),
    "compression.lz4.level": ServedSetting(9, 1, most=17),
    "compression.zstd.level": ServedSetting(3, -131_072, most=22),
    "segment.bytes": ServedSetting(2**30, 2**20),
    "follower.replication.throttled.replicas": ServedSetting(()),
    "leader.replication.throttled.replicas": ServedSetting(()),
    **_numbers(0, INT, max_message_bytes=1_048_588, index_interval_bytes=4096),
    **_numbers(1, INT - 8, max_decompressed_message_bytes=INT - 8),
    **_numbers(1, INT, min_insync_replicas=1),
    **_numbers(4, INT, segment_index_bytes=10 * 2**20),
    **_numbers(1, LONG, segment_ms=_WEEK_MS, max_compaction_lag_ms=LONG, flush_messages=LONG),
    **_numbers(0, LONG, flush_ms=LONG, segment_jitter_ms=0, min_compaction_lag_ms=0),
    **_numbers(0, LONG, delete_retention_ms=_WEEK_MS // 7, file_delete_delay_ms=60_000),
    **_numbers(0, LONG, message_timestamp_after_max_ms=3_600_000),
    **_numbers(0, LONG, message_timestamp_before_max_ms=LONG),
    **_numbers(-1, LONG, retention_ms=_WEEK_MS),
    **_numbers(-LONG, LONG, retention_bytes=-1),
    **_numbers(-1, LONG, remote_copy_lag_ms=0, remote_copy_lag_bytes=-1),
    **_numbers(-2, LONG, local_retention_ms=-2, local_retention_bytes=-2),
    **_switches("preallocate", "unclean.leader.election.enable", "remote.storage.enable"),
    **_switches("remote.log.copy.disable", "remote.log.delete.on.disable"),
    **_switches("errors.deadletterqueue.group.enable"),
}


class TopicConfigs(Configs):
    """The settings of topics, which the cluster stores with each topic."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(SETTINGS, _BY_TOPIC)
        self._cluster = cluster

    def given(self, name: str) -> Mapping[str, Value]:
        topic = self._cluster.topics.get(name)
        if topic is None:
            raise Refused(KafkaError.unknown_topic_or_partition)
        return topic.settings

    def change(
        self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        new = changed(self.settings, self.given(name), changes)
        if not validate_only:
            self._cluster.topics[name] = self._cluster.topics[name]._replace(settings=new)

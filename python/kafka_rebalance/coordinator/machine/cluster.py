# SPDX-License-Identifier: Apache-2.0
"""The cluster's topics, as a coordinator sees them, and the hash of their metadata.

A topic's hash covers its id, name, partitions and racks; a group's hash covers the hashes of its
topics, in the order of their names. A different hash starts the group's next epoch.

Source   CoordinatorMetadataImage, Utils.computeTopicHash, Utils.computeGroupHash (Kafka 4.4.0);
         KIP-1101.
"""

import struct
from collections.abc import Iterable
from dataclasses import field

from kafka_rebalance._core import xxh3
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.java.order import by_name

from .events import ClusterTopic, TopicsChanged

_NO_VERSION = -1


class ClusterTopics(Mutable):
    """The topics by name and id. `created_version` is the version that added the newest topic."""

    version: int = 0
    created_version: int = _NO_VERSION
    topics: dict[str, ClusterTopic] = field(default_factory=dict)
    by_id: dict[Uuid, ClusterTopic] = field(default_factory=dict)
    _hashes: dict[str, int] = field(default_factory=dict)

    def change(self, event: TopicsChanged) -> set[str]:
        """Sets the topics; returns the names of those that were created, changed or deleted."""
        before = self.by_id
        self.topics = {one.name: one for one in event.topics}
        self.by_id = {one.topic_id: one for one in event.topics}
        self.version = event.version
        if self.created_version == _NO_VERSION or self.by_id.keys() - before.keys():
            self.created_version = event.version
        touched = {one.name for one in event.topics if before.get(one.topic_id) != one}
        touched |= {one.name for topic_id, one in before.items() if topic_id not in self.by_id}
        for name in touched:
            self._hashes.pop(name, None)
        return touched

    def ids(self, names: Iterable[str]) -> list[Uuid]:
        """Returns the ids of the topics with these names, in that order; skips unknown names."""
        return [self.topics[name].topic_id for name in names if name in self.topics]

    def hash_of(self, names: Iterable[str]) -> int:
        """Returns the metadata hash of a group with these topics, signed; 0 without topics."""
        known = by_name(name for name in names if name in self.topics)
        if not known:
            return 0
        new = [name for name in known if name not in self._hashes]
        self._hashes |= {name: _topic_hash(self.topics[name]) for name in new}
        hashes = struct.pack(f"<{len(known)}Q", *(self._hashes[name] for name in known))
        return int.from_bytes(xxh3(hashes).to_bytes(8), signed=True)


def _topic_hash(topic: ClusterTopic) -> int:
    parts = [b"\0", struct.pack("<qq", *topic.topic_id), _text(topic.name)]
    parts.append(struct.pack("<i", topic.partitions))
    for partition in range(topic.partitions):
        parts.append(struct.pack("<i", partition))
        for rack in by_name(topic.racks[partition] if partition < len(topic.racks) else ()):
            parts += [struct.pack("<i", len(rack.encode("utf-16-le")) // 2), _text(rack)]
    return xxh3(b"".join(parts))


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le")
    return units + struct.pack("<i", len(units) // 2)

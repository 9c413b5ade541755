# SPDX-License-Identifier: Apache-2.0
"""The offsets at which share groups start to read: Describe-, Alter-, DeleteShareGroupOffsets.

Only an empty group's offsets can be changed. AlterShareGroupOffsets creates an unknown group. A
partition that no member has fetched yet has no offset.

Source   GroupCoordinatorService, GroupMetadataManager (alterShareGroupOffsets,
         sharePartitionsEligibleForOffsetDeletion) (Kafka 4.4.0).
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kafka_rebalance.wire.broker_groups import LEAVE_EPOCH, ShareGroupHeartbeat
from kafka_rebalance.wire.consumer_protocol import by_topic

from .cluster import Cluster
from .frames import Asked, KafkaError
from .share import Shares

_NO_OFFSET = -1
_UNKNOWN = KafkaError.unknown_topic_or_partition


class ShareOffsets(NamedTuple):
    """Answers requests about the offsets of share groups. `groups` are the coordinator's groups."""

    cluster: Cluster
    shares: Shares
    groups: Callable[[], Mapping[str, Any]]

    def makes(self, asked: Asked) -> tuple[ShareGroupHeartbeat, ...]:
        """Returns the heartbeats that create an unknown group: a member joins, and leaves. () if
        the request creates no group.
        """
        makes = asked.api == "alter_share_group_offsets"
        if not makes or asked.error or asked.body.group_id in self.groups():
            return ()
        names = tuple(one.topic_name for one in asked.body.topics)
        who = partial(
            ShareGroupHeartbeat, group_id=asked.body.group_id, member_id=str(uuid.uuid4())
        )
        return who(subscribed_topic_names=names), who(member_epoch=LEAVE_EPOCH)

    @property
    def answers(self) -> dict[str, Callable[[Asked], Mapping[str, Any]]]:
        return {
            "describe_share_group_offsets": self._describe,
            "alter_share_group_offsets": lambda asked: self._changed(asked, self._altered),
            "delete_share_group_offsets": lambda asked: self._changed(asked, self._deleted),
        }

    def _group_error(self, asked: Asked, group_id: str) -> KafkaError:
        group = self.groups().get(group_id)
        is_share = group is not None and group.group_type == "share"
        return asked.error or (KafkaError.none if is_share else KafkaError.group_id_not_found)

    def _describe(self, asked: Asked) -> Mapping[str, Any]:
        return {"groups": [self._described(asked, one) for one in asked.body.groups]}

    def _described(self, asked: Asked, one: Any) -> dict[str, Any]:
        error = self._group_error(asked, one.group_id)
        if error or one.topics is None:
            topics = {} if error else by_topic(sorted(self.shares.places(one.group_id)))
        else:
            topics = {topic.topic_name: topic.partitions for topic in one.topics}
        each = [
            self._topic(name, [self._start(one.group_id, name, p) for p in partitions])
            for name, partitions in topics.items()
        ]
        return {"group_id": one.group_id, "error_code": error, "topics": each}

    def _start(self, group_id: str, name: str, partition: int) -> dict[str, Any]:
        is_there = self.cluster.has(name, partition)
        found = self.shares.position(group_id, (name, partition)) if is_there else None
        start, lag = (_NO_OFFSET, _NO_OFFSET) if found is None else found
        error = KafkaError.none if is_there else _UNKNOWN
        fields = {"partition_index": partition, "error_code": error}
        return {**fields, "start_offset": start, "lag": lag}

    def _changed(
        self, asked: Asked, change: Callable[[str, Any], dict[str, Any]]
    ) -> Mapping[str, Any]:
        group_id = asked.body.group_id
        error = self._group_error(asked, group_id)
        if not error and self.groups()[group_id].members:
            error = KafkaError.non_empty_group
        each = [] if error else [change(group_id, one) for one in asked.body.topics]
        return {"error_code": error, "responses": each}

    def _altered(self, group_id: str, one: Any) -> dict[str, Any]:
        partitions = []
        for each in one.partitions:
            is_there = self.cluster.has(one.topic_name, each.partition_index)
            if is_there:
                place = (one.topic_name, each.partition_index)
                self.shares.start_at(group_id, place, each.start_offset)
            error = KafkaError.none if is_there else _UNKNOWN
            partitions.append({"partition_index": each.partition_index, "error_code": error})
        return self._topic(one.topic_name, partitions)

    def _deleted(self, group_id: str, one: Any) -> dict[str, Any]:
        found = [place for place in self.shares.places(group_id) if place[0] == one.topic_name]
        for place in found:
            self.shares.start_at(group_id, place, None)
        message = None if found else "There is no offset information to delete."
        error = KafkaError.none if found else _UNKNOWN
        return {**self._topic(one.topic_name, ()), "error_code": error, "error_message": message}

    def _topic(self, name: str, partitions: Iterable[Any]) -> dict[str, Any]:
        topic_id = self.cluster.topic_id(name) or uuid.UUID(int=0)
        return {"topic_name": name, "topic_id": topic_id, "partitions": partitions}

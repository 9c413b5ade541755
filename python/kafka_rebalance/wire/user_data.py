# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the user data of the sticky assignors."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_rebalance import _core
from kafka_rebalance.group.model import TopicPartition


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """The partitions that a sticky member owned.

    `generation_id` is None in version 0, and for 0 bytes.
    """

    owned_partitions: tuple[TopicPartition, ...]
    generation_id: int | None


def decode_sticky_user_data(data: bytes) -> StickyUserData:
    """Reads StickyAssignor's version 1 or 0; unreadable bytes mean no partitions, generation -1."""
    read = _core.decode_sticky_user_data(data)
    return StickyUserData(tuple(TopicPartition(*tp) for tp in read.partitions), read.generation_id)


def encode_sticky_user_data(partitions: Sequence[TopicPartition], generation_id: int) -> bytes:
    """Writes version 1; the topics have the order of Kafka's hash map."""
    return _core.encode_sticky_user_data(partitions, generation_id)


def decode_cooperative_user_data(data: bytes) -> int:
    """Reads CooperativeStickyAssignor's generation; -1 for unreadable bytes, as in Kafka."""
    return _core.decode_cooperative_user_data(data)


def encode_cooperative_user_data(generation_id: int) -> bytes:
    """Writes CooperativeStickyAssignor's four bytes; -1 means that there is no generation yet."""
    return generation_id.to_bytes(4, "big", signed=True)

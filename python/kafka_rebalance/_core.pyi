# SPDX-License-Identifier: Apache-2.0
"""The compiled core. Not public: use the functions of `kafka_rebalance` around it."""

from collections.abc import Sequence
from typing import final

from kafka_rebalance.group.ownership import AnomalyKind
from kafka_rebalance.group.spec import GroupSpec

__all__ = [
    "ArrowBatch",
    "Interned",
    "TopicInventory",
    "assign",
    "assign_batch",
    "assign_line_batch",
    "assign_lines",
    "best_possible",
    "connect_eager",
    "connect_incremental",
    "decode_assignment",
    "decode_cooperative_user_data",
    "decode_sticky_user_data",
    "decode_subscription",
    "encode_assignment",
    "encode_sticky_user_data",
    "encode_subscription",
    "groups_from_records",
    "has_its_types",
    "intern",
    "plan_batch",
]

@final
class ArrowBatch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

_Columns = tuple[list[str], bytes, bytes, bytes, list[tuple[AnomalyKind, str, int, str | None]]]

@final
class Interned: ...

def has_its_types(group: object, topic: type, member: type, pair: type) -> bool: ...
def intern(group: GroupSpec) -> Interned: ...
def assign(group: Interned, assignor: str) -> _Columns: ...
def best_possible(
    group: Interned,
) -> tuple[
    int,
    list[tuple[int, int, list[str], list[int], int]],
    _Columns,
    list[tuple[str, int]],
    list[tuple[int, int]],
]: ...
def assign_lines(
    lines: Sequence[bytes],
    first: int,
    assignor: str | None,
    max_partitions: int,
    threads: int,
) -> list[tuple[bytes, bool]]: ...
def assign_batch(
    batch: object, assignor: str | None, max_partitions: int, threads: int
) -> tuple[ArrowBatch, int]: ...
def assign_line_batch(
    batch: object, assignor: str | None, max_partitions: int, threads: int
) -> tuple[ArrowBatch, int]: ...
def plan_batch(
    batch: object,
    assignor: str | None,
    changes: Sequence[str] | None,
    max_partitions: int,
    threads: int,
) -> tuple[ArrowBatch, int]: ...

@final
class TopicInventory:
    def __new__(cls, topics: object) -> TopicInventory: ...

def groups_from_records(
    batch: object, topics: TopicInventory, assume_assigned: bool
) -> ArrowBatch: ...
def decode_subscription(
    data: bytes,
) -> tuple[int, list[str], bytes | None, list[tuple[str, int]], int | None, str | None]: ...
def encode_subscription(
    version: int,
    topics: Sequence[str],
    user_data: bytes | None,
    owned_partitions: Sequence[tuple[str, int]],
    generation_id: int | None,
    rack_id: str | None,
) -> bytes: ...
def decode_assignment(data: bytes) -> tuple[int, list[tuple[str, int]], bytes | None]: ...
def encode_assignment(
    version: int, partitions: Sequence[tuple[str, int]], user_data: bytes | None
) -> bytes: ...
def decode_sticky_user_data(data: bytes) -> tuple[list[tuple[str, int]], int | None]: ...
def encode_sticky_user_data(partitions: Sequence[tuple[str, int]], generation_id: int) -> bytes: ...
def decode_cooperative_user_data(data: bytes) -> int: ...
def connect_eager(workers: Sequence[str], config: str) -> str: ...
def connect_incremental(round: str) -> str: ...

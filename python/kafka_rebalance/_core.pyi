# SPDX-License-Identifier: Apache-2.0
"""The compiled core. Not public: use the functions of `kafka_rebalance` around it."""

from collections.abc import Mapping, Sequence
from typing import Final, final

from kafka_rebalance.assignors.connect.memory import Memory
from kafka_rebalance.assignors.connect.spec import ConnectSpec, Result
from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.group.ownership import AnomalyKind
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import Change
from kafka_rebalance.plans.changes.made_up import Draw
from kafka_rebalance.wire.consumer_protocol import Subscription

VERSION: str

@final
class ArrowBatch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Columns:
    topics: Final[tuple[str, ...]]
    offsets: Final[bytes]
    topic_ids: Final[bytes]
    partitions: Final[bytes]
    anomalies: Final[list[tuple[AnomalyKind, str, int, str | None]]]

@final
class Partitions:
    topics: Final[tuple[str, ...]]
    topic_ids: Final[bytes]
    partitions: Final[bytes]

@final
class Possible:
    least_moves: Final[int]
    levels: Final[list[tuple[int, int, list[str], list[int], int]]]
    assignment: Final[Columns]
    topic_prices: Final[list[tuple[str, int]]]
    member_prices: Final[list[tuple[int, int]]]

@final
class PlanRound:
    generation_id: Final[int]
    is_eager: Final[bool]
    held: Final[Columns]
    assignment: Final[Columns]
    delta: Final[list[Columns]]
    withheld: Final[Columns | None]
    unavailable: Final[Partitions]

@final
class PlanStep:
    change: Final[int | None]
    cause: Final[str | None]
    settled: Final[bool]
    member_ids: Final[tuple[str, ...]]
    came_back: Final[tuple[str, str] | None]
    waiting: Final[Partitions]
    leaderless: Final[Partitions]
    rounds: Final[list[PlanRound]]

@final
class Plan:
    steps: Final[list[PlanStep]]
    newcomers: Final[list[tuple[str, str, str, bool]]]
    places_guessed: Final[bool]
    moves: Final[int]
    rack_share_after: Final[float | None]
    after: Final[Columns]
    possible: Final[Possible | None]
    unavailable: Final[tuple[Partitions, bytes]]

@final
class Interned: ...

def has_its_types(group: object, topic: type, member: type, pair: type) -> bool: ...
def intern(group: GroupSpec) -> Interned: ...
def assign(group: Interned, assignor: str) -> Columns: ...
def best_possible(group: Interned) -> Possible: ...
def plan(
    group: Interned,
    generation_id: int | None,
    assignor: str,
    changes: Sequence[Change],
    draw: Draw,
) -> Plan | None: ...
def assign_lines(
    lines: Sequence[bytes],
    first: int,
    assignor: str | None,
    max_partitions: int,
    threads: int,
) -> list[tuple[bytes, bool]]: ...
def assign_batch(
    batch: object, assignor: str | None, max_partitions: int, threads: int, lines: bool = False
) -> ArrowBatch: ...
def compare_batch(
    batch: object,
    changes: Sequence[str],
    max_partitions: int,
    threads: int,
    lines: bool = False,
) -> ArrowBatch: ...
def plan_batch(
    batch: object,
    assignor: str | None,
    changes: Sequence[str] | None,
    max_partitions: int,
    threads: int,
    lines: bool = False,
) -> ArrowBatch: ...

@final
class TopicInventory:
    def __new__(cls, topics: object) -> TopicInventory: ...

def groups_from_records(
    batch: object, topics: TopicInventory, assume_assigned: bool
) -> ArrowBatch: ...
def commits_from_records(batch: object) -> ArrowBatch: ...
def decode_subscription(
    data: bytes,
) -> tuple[list[str], bytes | None, list[tuple[str, int]], int | None, str | None, int]: ...
def encode_subscription(sent: Subscription) -> bytes: ...
def decode_assignment(data: bytes) -> tuple[list[tuple[str, int]], bytes | None, int]: ...
def encode_assignment(
    version: int, partitions: Sequence[tuple[str, int]], user_data: bytes | None
) -> bytes: ...
def decode_sticky_user_data(data: bytes) -> tuple[list[tuple[str, int]], int | None]: ...
def encode_sticky_user_data(partitions: Sequence[tuple[str, int]], generation_id: int) -> bytes: ...
def decode_cooperative_user_data(data: bytes) -> int: ...
def connect_eager(workers: Sequence[str], config: Mapping[str, int]) -> dict[str, Work]: ...
def connect_incremental(
    memory: Memory, spec: ConnectSpec, now_ms: int
) -> tuple[Memory, Result]: ...

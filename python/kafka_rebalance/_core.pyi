# SPDX-License-Identifier: Apache-2.0
"""The compiled core. It is not public: use the functions of `kafka_rebalance` that call it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Self, final

from kafka_rebalance.assignors.connect.incremental import ConnectSpec, Memory, Result
from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.assignors.streams.application import Application
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.ownership import AnomalyKind
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import Change
from kafka_rebalance.plans.changes.made_up import Draw
from kafka_rebalance.wire.consumer_protocol import Subscription
from kafka_rebalance.wire.group_records import OffsetsRecord

VERSION: str

@final
class ArrowBatch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Anomaly:
    kind: Final[AnomalyKind]
    topic: Final[str]
    partition: Final[int]
    member_id: Final[str | None]

@final
class Columns:
    topics: Final[tuple[str, ...]]
    offsets: Final[bytes]
    topic_ids: Final[bytes]
    partitions: Final[bytes]
    anomalies: Final[list[Anomaly]]
    standby: Final[Columns | None]
    owned_topics: Final[list[tuple[int, list[int]]]]

@final
class Partitions:
    topics: Final[tuple[str, ...]]
    topic_ids: Final[bytes]
    partitions: Final[bytes]

@final
class CommitTimes:
    def __new__(cls, first_ms: int, last_ms: int, commits: int = 1) -> Self: ...
    first_ms: Final[int]
    last_ms: Final[int]
    commits: Final[int]
    @property
    def distance_ms(self) -> float | None: ...
    def __add__(self, value: CommitTimes, /) -> CommitTimes: ...
    def __radd__(self, value: CommitTimes, /) -> CommitTimes: ...

def commits_of(
    assigned: frozenset[TopicPartition],
    since: dict[TopicPartition, CommitTimes],
    of_tasks: dict[TopicPartition, dict[TopicPartition, CommitTimes]],
) -> tuple[int | None, float | None]: ...

@final
class PartitionLog:
    def __new__(cls, name_of: Callable[[bytes], str | None], only: str | None = None) -> Self: ...
    whole_from: Final[int]
    def add(self, records: Iterable[OffsetsRecord]) -> None: ...
    def groups(self) -> list[list[OffsetsRecord | dict[TopicPartition, CommitTimes]]]: ...
    def topic_names(self) -> dict[tuple[int, int], str]: ...

@final
class PartitionLogs:
    def __new__(cls, batches: Sequence[object], name_of: Callable[[bytes], str | None]) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> PartitionLog: ...

@final
class Level:
    load: Final[int]
    extra: Final[int]
    topics: Final[list[str]]
    members: Final[list[int]]
    partitions: Final[int]

@final
class Possible:
    least_moves: Final[int]
    levels: Final[list[Level]]
    assignment: Final[Columns]
    topic_prices: Final[list[tuple[str, int]]]
    member_prices: Final[list[tuple[int, int]]]

@final
class Delta:
    kept: Final[Columns]
    revoked: Final[Columns]
    gained: Final[Columns]
    transferring: Final[Columns]

@final
class PlanRound:
    generation_id: Final[int]
    is_eager: Final[bool]
    held: Final[Columns]
    assignment: Final[Columns]
    delta: Final[Delta]
    withheld: Final[Columns | None]
    unavailable: Final[Partitions]

@final
class PlanStep:
    change: Final[int | None]
    cause: Final[str | None]
    settled: Final[bool]
    member_ids: Final[tuple[str, ...]]
    came_back: Final[str | None]
    came_back_for: Final[str | None]
    waiting: Final[Partitions]
    leaderless: Final[Partitions]
    rounds: Final[list[PlanRound]]

@final
class Unavailable:
    partitions: Final[Partitions]
    rounds: Final[bytes]

@final
class Ends:
    moves: Final[list[int]]
    depends: Final[Partitions]
    partitions: Final[Partitions]
    planned: Final[bytes]
    moved: Final[bytes]
    offsets: Final[bytes]
    owners: Final[bytes]
    draws: Final[bytes]

@final
class Newcomer:
    member_id: Final[str]
    name: Final[str]
    basis: Final[str]
    is_static: Final[bool]

@final
class Plan:
    steps: Final[list[PlanStep]]
    newcomers: Final[list[Newcomer]]
    places_guessed: Final[bool]
    moves: Final[int]
    rack_share_after: Final[float | None]
    after: Final[Columns]
    possible: Final[Possible | None]
    unavailable: Final[Unavailable]

@final
class ResultLine:
    line: Final[bytes]
    is_error: Final[bool]

@final
class FieldTypes:
    def __new__(cls, fields: object) -> Self: ...
    def fit(self, group: object) -> bool: ...

@final
class Interned:
    member_ids: Final[tuple[str, ...]]

def intern(group: GroupSpec) -> Interned: ...
def read_fields(fields: object, max_partitions: object) -> list[Any] | None: ...
def read_line(line: object, max_partitions: object) -> list[Any] | None: ...
def topic_partitions(
    topics: tuple[str, ...],
    topic_ids: Sequence[int],
    partitions: Sequence[int],
    group: Interned | None = None,
) -> tuple[TopicPartition, ...]: ...
def owned_partitions(
    topics: tuple[str, ...],
    offsets: Sequence[int],
    topic_ids: Sequence[int],
    partitions: Sequence[int],
    group: Interned | None = None,
) -> list[tuple[TopicPartition, ...]]: ...
def assign(group: Interned, assignor: str) -> Columns: ...
def best_possible(group: Interned) -> Possible: ...
def balance_curve(group: Interned, most: int) -> tuple[list[list[int]], int]: ...
def plan(
    group: Interned,
    generation_id: int | None,
    assignor: str,
    changes: Sequence[Change],
    draw: Draw,
) -> Plan | None: ...
def play_alone(
    group: Interned,
    generation_id: int | None,
    assignor: str,
    changes: Sequence[Change],
    made: int,
) -> tuple[bool, int] | None: ...
def uuid5(name: str) -> bytes: ...
def sample(
    plan: Plan,
    group: Interned,
    generation_id: int | None,
    assignor: str,
    changes: Sequence[Change],
    draws: Sequence[Draw],
) -> Ends: ...
def assign_lines(
    lines: Sequence[bytes],
    first: int,
    assignor: str | None,
    max_partitions: int,
    threads: int,
) -> list[ResultLine]: ...
def assign_long_line(
    line: bytes,
    number: int,
    assignor: str | None,
    max_partitions: int,
    write: Callable[[bytes], object],
) -> bytes | None: ...
def assign_batch(
    batch: object,
    assignor: str | None,
    max_partitions: int,
    threads: int,
    form: Literal["columns", "lines"] | TopicInventory = "columns",
) -> ArrowBatch: ...
def owners_batch(
    batch: object,
    assignor: str | None,
    max_partitions: int,
    threads: int,
    form: Literal["columns", "lines"] | TopicInventory = "columns",
) -> ArrowBatch: ...
def compare_batch(
    batch: object,
    changes: Sequence[str],
    max_partitions: int,
    threads: int,
    form: Literal["columns", "lines"] | TopicInventory = "columns",
) -> ArrowBatch: ...
def plan_batch(
    batch: object,
    assignor: str | None,
    changes: Sequence[str] | None,
    max_partitions: int,
    threads: int,
    form: Literal["columns", "lines"] | TopicInventory = "columns",
) -> ArrowBatch: ...

@final
class TopicInventory:
    def __new__(cls, topics: object, assume_assigned: bool = False) -> TopicInventory: ...

def groups_from_records(batch: object, topics: TopicInventory) -> ArrowBatch: ...
def commits_from_records(batch: object) -> ArrowBatch: ...
def xxh3(data: bytes) -> int: ...
def decode_subscription(
    data: bytes,
) -> tuple[
    tuple[str, ...],
    bytes | None,
    tuple[TopicPartition, ...],
    int | None,
    str | None,
    int,
]: ...
def encode_subscription(sent: Subscription) -> bytes: ...
def decode_group(
    data: bytes, before: bytes | None = None
) -> tuple[
    str,
    int,
    str | None,
    str | None,
    int,
    list[tuple[str, str | None, str, str, int, int, bytes, bytes]] | None,
]: ...
def decode_assignment(data: bytes) -> tuple[tuple[TopicPartition, ...], bytes | None, int]: ...
def encode_assignment(
    version: int, partitions: Sequence[tuple[str, int]], user_data: bytes | None
) -> bytes: ...
def decode_sticky_user_data(data: bytes) -> tuple[tuple[TopicPartition, ...], int | None]: ...
def encode_sticky_user_data(partitions: Sequence[tuple[str, int]], generation_id: int) -> bytes: ...
def decode_cooperative_user_data(data: bytes) -> int: ...
def connect_eager(workers: Sequence[str], config: Mapping[str, int]) -> dict[str, Work]: ...
def connect_incremental(
    memory: Memory, spec: ConnectSpec, now_ms: int
) -> tuple[Memory, Result]: ...
def assign_application(application: Application, with_lags: bool) -> tuple[Any, ...]: ...

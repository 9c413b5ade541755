# SPDX-License-Identifier: Apache-2.0
"""The compiled core. Not public: use the functions of `kafka_rebalance` around it."""

from collections.abc import Mapping, Sequence
from typing import final

from kafka_rebalance.assignors.connect.memory import Memory
from kafka_rebalance.assignors.connect.spec import ConnectSpec, Result
from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.group.ownership import AnomalyKind
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes import Change
from kafka_rebalance.plans.rebalance_plan import Draw

__all__ = [
    "VERSION",
    "Anomaly",
    "ArrowBatch",
    "Columns",
    "DecodedAssignment",
    "DecodedSubscription",
    "DecodedUserData",
    "Delta",
    "Interned",
    "Level",
    "Newcomer",
    "Partitions",
    "Plan",
    "PlanRound",
    "PlanStep",
    "Possible",
    "ResultLine",
    "TopicInventory",
    "Unavailable",
    "assign",
    "assign_batch",
    "assign_line_batch",
    "assign_lines",
    "best_possible",
    "compare_batch",
    "compare_line_batch",
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
    "plan",
    "plan_batch",
    "plan_line_batch",
]

VERSION: str

@final
class ArrowBatch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Anomaly:
    @property
    def kind(self) -> AnomalyKind: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def member_id(self) -> str | None: ...

@final
class Columns:
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def offsets(self) -> bytes: ...
    @property
    def topic_ids(self) -> bytes: ...
    @property
    def partitions(self) -> bytes: ...
    @property
    def anomalies(self) -> list[Anomaly]: ...

@final
class Partitions:
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def topic_ids(self) -> bytes: ...
    @property
    def partitions(self) -> bytes: ...

@final
class Level:
    @property
    def load(self) -> int: ...
    @property
    def extra(self) -> int: ...
    @property
    def topics(self) -> list[str]: ...
    @property
    def members(self) -> list[int]: ...
    @property
    def partitions(self) -> int: ...

@final
class Possible:
    @property
    def least_moves(self) -> int: ...
    @property
    def levels(self) -> list[Level]: ...
    @property
    def assignment(self) -> Columns: ...
    @property
    def topic_prices(self) -> list[tuple[str, int]]: ...
    @property
    def member_prices(self) -> list[tuple[int, int]]: ...

@final
class Delta:
    @property
    def kept(self) -> Columns: ...
    @property
    def revoked(self) -> Columns: ...
    @property
    def gained(self) -> Columns: ...
    @property
    def transferring(self) -> Columns: ...

@final
class PlanRound:
    @property
    def generation_id(self) -> int: ...
    @property
    def is_eager(self) -> bool: ...
    @property
    def moves(self) -> int: ...
    @property
    def held(self) -> Columns: ...
    @property
    def assignment(self) -> Columns: ...
    @property
    def delta(self) -> Delta: ...
    @property
    def withheld(self) -> Columns | None: ...
    @property
    def unavailable(self) -> Partitions: ...

@final
class PlanStep:
    @property
    def change(self) -> int | None: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def settled(self) -> bool: ...
    @property
    def member_ids(self) -> tuple[str, ...]: ...
    @property
    def came_back(self) -> str | None: ...
    @property
    def came_back_for(self) -> str | None: ...
    @property
    def waiting(self) -> Partitions: ...
    @property
    def leaderless(self) -> Partitions: ...
    @property
    def rounds(self) -> list[PlanRound]: ...

@final
class Unavailable:
    @property
    def partitions(self) -> Partitions: ...
    @property
    def rounds(self) -> bytes: ...

@final
class Newcomer:
    @property
    def member_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def basis(self) -> str: ...
    @property
    def is_static(self) -> bool: ...

@final
class Plan:
    @property
    def steps(self) -> list[PlanStep]: ...
    @property
    def newcomers(self) -> list[Newcomer]: ...
    @property
    def places_guessed(self) -> bool: ...
    @property
    def moves(self) -> int: ...
    @property
    def rack_share_after(self) -> float | None: ...
    @property
    def after(self) -> Columns: ...
    @property
    def possible(self) -> Possible | None: ...
    @property
    def unavailable(self) -> Unavailable: ...

@final
class ResultLine:
    @property
    def line(self) -> bytes: ...
    @property
    def is_error(self) -> bool: ...

@final
class DecodedSubscription:
    @property
    def version(self) -> int: ...
    @property
    def topics(self) -> list[str]: ...
    @property
    def user_data(self) -> bytes | None: ...
    @property
    def owned_partitions(self) -> list[tuple[str, int]]: ...
    @property
    def generation_id(self) -> int | None: ...
    @property
    def rack_id(self) -> str | None: ...

@final
class DecodedAssignment:
    @property
    def version(self) -> int: ...
    @property
    def partitions(self) -> list[tuple[str, int]]: ...
    @property
    def user_data(self) -> bytes | None: ...

@final
class DecodedUserData:
    @property
    def partitions(self) -> list[tuple[str, int]]: ...
    @property
    def generation_id(self) -> int | None: ...

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
) -> list[ResultLine]: ...
def assign_batch(
    batch: object, assignor: str | None, max_partitions: int, threads: int
) -> ArrowBatch: ...
def assign_line_batch(
    batch: object, assignor: str | None, max_partitions: int, threads: int
) -> ArrowBatch: ...
def compare_batch(
    batch: object,
    changes: Sequence[str],
    max_partitions: int,
    threads: int,
) -> ArrowBatch: ...
def compare_line_batch(
    batch: object,
    changes: Sequence[str],
    max_partitions: int,
    threads: int,
) -> ArrowBatch: ...
def plan_line_batch(
    batch: object,
    assignor: str | None,
    changes: Sequence[str],
    max_partitions: int,
    threads: int,
) -> ArrowBatch: ...
def plan_batch(
    batch: object,
    assignor: str | None,
    changes: Sequence[str] | None,
    max_partitions: int,
    threads: int,
) -> ArrowBatch: ...

@final
class TopicInventory:
    def __new__(cls, topics: object) -> TopicInventory: ...

def groups_from_records(
    batch: object, topics: TopicInventory, assume_assigned: bool
) -> ArrowBatch: ...
def decode_subscription(data: bytes) -> DecodedSubscription: ...
def encode_subscription(
    version: int,
    topics: Sequence[str],
    user_data: bytes | None,
    owned_partitions: Sequence[tuple[str, int]],
    generation_id: int | None,
    rack_id: str | None,
) -> bytes: ...
def decode_assignment(data: bytes) -> DecodedAssignment: ...
def encode_assignment(
    version: int, partitions: Sequence[tuple[str, int]], user_data: bytes | None
) -> bytes: ...
def decode_sticky_user_data(data: bytes) -> DecodedUserData: ...
def encode_sticky_user_data(partitions: Sequence[tuple[str, int]], generation_id: int) -> bytes: ...
def decode_cooperative_user_data(data: bytes) -> int: ...
def connect_eager(workers: Sequence[str], config: Mapping[str, int]) -> dict[str, Work]: ...
def connect_incremental(
    memory: Memory, spec: ConnectSpec, now_ms: int
) -> tuple[Memory, Result]: ...

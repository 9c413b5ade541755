# SPDX-License-Identifier: Apache-2.0
"""Groups in bulk, as Arrow record batches: a row a group in, a row a group out."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_rebalance import _core
from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.group.model import MAX_PARTITIONS

if TYPE_CHECKING:
    import pyarrow as pa


def assign_batch(
    batch: object,
    assignor: str | None = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch":
    """Computes every row of a batch of groups; columns in and out as in the contract.

    `batch` is a pyarrow RecordBatch, or anything that speaks the Arrow PyCapsule protocol for one.
    `assignor` None takes each row's own. `threads` None uses all cores.

    Answer   columns group_id, assignor, assignment, anomalies, error; a bad group has its error set
             and a null assignment.
    Errors   TypeError for a column that is missing or of another type; GroupError for an unknown
             `assignor`.
    """
    threads = _threads(threads)
    answers = _core.assign_batch(batch, assignor, max_partitions, threads)
    return _record_batch(answers, "assign_batch")


def plan_batch(
    batch: object,
    assignor: str | None = None,
    changes: Sequence[str] | None = None,
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch":
    """Plans every row of a batch of groups: the figures of `plan`, a row a group.

    `changes` are texts, as `add-members=2`, for every group; None takes each row's own from a
    column `changes`, a list of texts (null: none). The rest as in `assign_batch`.

    Answer   columns group_id, assignor, those of `Figures`, not_affected, error; a bad group, or a
             change that does not fit it, has its error set and null figures. One of `changes` that
             names what a group does not have is left out for it, and stands in not_affected; where
             none is left, the figures are null.
    """
    threads = _threads(threads)
    answers = _core.plan_batch(batch, assignor, changes, max_partitions, threads)
    return _record_batch(answers, "plan_batch")


def _threads(threads: int | None) -> int:
    return os.cpu_count() or 1 if threads is None else threads


def _record_batch(answers: object, part: str) -> "pa.RecordBatch":
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(part, "arrow") from None
    return pa.record_batch(answers)

# SPDX-License-Identifier: Apache-2.0
"""Assigns and plans groups in bulk, as Arrow record batches with one row for each group."""

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
    """Assigns every row of a batch of groups; the columns are those of the contract.

    `batch` is a pyarrow RecordBatch, or any object with the Arrow PyCapsule protocol of one. If
    `assignor` is None, each row's own assignor is used. If `threads` is None, all cores are used.

    Answer   columns group_id, assignor, assignment, anomalies, error, error_kind. A bad group has
             an error and a null assignment; a row that comes with an `error` keeps it.
    Errors   TypeError for a column that is missing or has another type; GroupError for an unknown
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
    """Plans every row of a batch of groups; each answer row has the figures of `plan`.

    `changes` are texts for every group, for example `add-members=2`. If `changes` is None, each row
    has its own changes in a column `changes`, a list of texts (null: no changes). The other
    parameters are those of `assign_batch`.

    Answer   columns group_id, assignor, those of `Figures`, not_affected, error, error_kind. A bad
             group, or a group with a change that does not fit, has an error and null figures. A
             change that refers to a topic, member, client or rack that a group lacks is left out
             for this group and listed in not_affected; if no change is left, the figures are null.
    """
    threads = _threads(threads)
    answers = _core.plan_batch(batch, assignor, changes, max_partitions, threads)
    return _record_batch(answers, "plan_batch")


def compare_batch(
    batch: object,
    changes: Sequence[str] = (),
    *,
    max_partitions: int = MAX_PARTITIONS,
    threads: int | None = None,
) -> "pa.RecordBatch":
    """Compares all built-in assignors for every row of a batch of groups, as `compare` does.

    `changes` are texts for every group, as in `plan_batch`; other parameters are those of
    `assign_batch`.

    Answer   columns group_id, assignor (the group's own), recommended, reason, candidates (the
             figures of each assignor, or its error), not_affected, error, error_kind.
    """
    threads = _threads(threads)
    answers = _core.compare_batch(batch, list(changes), max_partitions, threads)
    return _record_batch(answers, "compare_batch")


def _threads(threads: int | None) -> int:
    return os.cpu_count() or 1 if threads is None else threads


def _record_batch(answers: object, part: str) -> "pa.RecordBatch":
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(part, "arrow") from None
    return pa.record_batch(answers)

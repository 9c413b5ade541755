"""Groups in bulk, as Arrow record batches: a row a group in, a row a group out."""

import os
from typing import TYPE_CHECKING

from kafka_rebalance import _core
from kafka_rebalance.errors import MissingExtra
from kafka_rebalance.model import MAX_PARTITIONS

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
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("assign_batch", "arrow") from None
    answers, _ = _core.assign_batch(
        batch, assignor, max_partitions, os.cpu_count() or 1 if threads is None else threads
    )
    return pa.record_batch(answers)

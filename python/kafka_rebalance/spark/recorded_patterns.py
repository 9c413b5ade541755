# SPDX-License-Identifier: Apache-2.0
"""Finds patterns in the history of each group, with `history/patterns.py`.

    rebalance_patterns(rebalance_history(records)).where("kind = 'storm'").show()

Only one group at a time is in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from kafka_rebalance.history.patterns import STORM, WINDOW_MS, find_patterns
from kafka_rebalance.history.recorded import BackMember, Cause, RecordedRebalance

from .compaction import clusters_in, require_columns
from .recorded_rebalances import HISTORY_SCHEMA
from .schema import answers_type, arrow_schema, with_keys
from .workers import map_in_workers

if TYPE_CHECKING:
    import pyarrow as pa

PATTERNS_SCHEMA = (
    "kind string, group_id string, told string, instead string, generations array<int>, "
    "first_ms bigint, last_ms bigint, spares int"
)
"""The columns of `rebalance_patterns`, after `cluster string` if the history contains it."""

_LISTS = ("idle", "joined", "left", "resubscribed")


def rebalance_patterns(
    history: DataFrame, *, storm: int = STORM, window_ms: int = WINDOW_MS
) -> DataFrame:
    """Returns a row for each pattern of each group: PATTERNS_SCHEMA.

    `history` is the answer of `rebalance_history` or `with_broker_logs`. A storm has more than
    `storm` rebalances in `window_ms`. Errors: SchemaError for a column that is missing.
    """
    clusters = check_history(history)
    keys, schema = [*clusters, "group_id"], with_keys(PATTERNS_SCHEMA, clusters)

    def found(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for one in find_patterns(map(recorded_row, rows), storm=storm, window_ms=window_ms):
            yield {"cluster": rows[0].get("cluster"), **one.to_dict()}

    ordered = history.repartition(*keys).sortWithinPartitions(*keys, "written_ms", "offset")
    return each_group(ordered, keys, found, schema)


def check_history(history: DataFrame) -> list[str]:
    """Returns ["cluster"] if a history contains this column, else []. Errors: SchemaError."""
    expected = answers_type(HISTORY_SCHEMA)
    require_columns(history, {one.name: one.dataType for one in expected.fields}, "history.")
    return clusters_in(history)


def recorded_row(row: dict[str, Any]) -> RecordedRebalance:
    """Returns a RecordedRebalance with the values of a row of HISTORY_SCHEMA."""
    fields = {name: value for name, value in row.items() if name not in ("cluster", "cause")}
    fields |= {name: tuple(row[name]) for name in _LISTS}
    fields["back"] = tuple(BackMember(**one) for one in row["back"])
    fields["causes"] = tuple(
        Cause(**{**one, "members": tuple(one["members"])}) for one in row["causes"]
    )
    return RecordedRebalance(**fields)


def each_group(
    frame: DataFrame,
    keys: Sequence[str],
    answer: Callable[[list[dict[str, Any]]], Iterator[dict[str, Any]]],
    schema: str,
) -> DataFrame:
    """Returns the rows of `answer`, which is called with all rows of one group at a time.

    Rows with equal `keys` must be next to each other; a group may continue in the next batch.
    """
    arrow = arrow_schema(schema)

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        rows = (row for one in batches for row in one.to_pylist())
        for _, group in groupby(rows, key=itemgetter(*keys)):
            if found := list(answer(list(group))):
                yield pa.RecordBatch.from_pylist(found, arrow)

    return map_in_workers(frame, run, schema)

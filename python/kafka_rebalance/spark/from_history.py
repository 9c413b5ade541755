# SPDX-License-Identifier: Apache-2.0
"""Works on the rows of `rebalance_history`, one group at a time: patterns, and causes in logs.

    rebalance_patterns(rebalance_history(records)).where("kind = 'storm'").show()
    history = with_broker_logs(rebalance_history(records), spark.read.text("server.log*"))

`history/patterns.py` finds the patterns. Causes in the brokers' logs are found in four steps:

1. Each line is read by itself (`history/coordinator_log.py`).
2. For each cluster, the zone of the lines' times is the median difference between the time of an
   "assigned" line and that of its record, rounded to a quarter of an hour.
3. A line about late writes names no group; it belongs to each group whose name its timer contains.
4. Rows and lines of a group are sorted together by time, then by position; a line without a time
   takes the time of the line before it. `history/log_causes.py` reads them in this order, one group
   at a time.
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kafka_rebalance.history.coordinator_log import CoordinatorEvent, message_of, read_message
from kafka_rebalance.history.log_causes import ZONES_MS, with_events
from kafka_rebalance.history.patterns import STORM, WINDOW_MS, find_patterns
from kafka_rebalance.history.recorded import BackMember, Cause, RecordedRebalance

from .consumer_offsets import clusters_in, require_columns
from .recorded_rebalances import HISTORY_SCHEMA
from .schema import answers_type, arrow_schema, with_keys
from .workers import Batches, Row, each_group, map_in_workers

PATTERNS_SCHEMA = (
    "kind string, group_id string, told string, instead string, generations array<int>, "
    "first_ms bigint, last_ms bigint, spares int"
)
"""The columns of `rebalance_patterns`, after `cluster string` if the history has that column."""

EVENTS_SCHEMA = (
    "place bigint, ordered_ms bigint, message string, event string, time_ms bigint, "
    "group_id string, generation_id int, member_id string, group_instance_id string, "
    "cause string, said string, fields map<string, string>"
)
"""The columns of `coordinator_events`, after `cluster string` if the lines contain that column."""

_EVENT = [one.name for one in fields(CoordinatorEvent)]
_LISTS = ("idle", "joined", "left", "resubscribed")


def rebalance_patterns(
    history: DataFrame, *, storm: int = STORM, window_ms: int = WINDOW_MS
) -> DataFrame:
    """Returns a row for each pattern of each group: PATTERNS_SCHEMA.

    `history` is the answer of `rebalance_history` or `with_broker_logs`. A storm has more than
    `storm` rebalances in `window_ms`. Errors: SchemaError for a column that is missing.
    """
    clusters = _checked(history)
    keys, schema = [*clusters, "group_id"], with_keys(PATTERNS_SCHEMA, clusters)

    def found(rows: list[Row]) -> Iterator[Row]:
        patterns = find_patterns(map(_recorded, rows), storm=storm, window_ms=window_ms)
        return (one.to_dict() for one in patterns)

    ordered = history.repartition(*keys).sortWithinPartitions(*keys, "written_ms", "offset")
    return each_group(ordered, keys, found, schema)


def coordinator_events(lines: DataFrame) -> DataFrame:
    """Returns a row for each line of a coordinator: EVENTS_SCHEMA.

    `lines` contains a column `value`, as `spark.read.text` makes it. If no known pattern matches
    such a line, its `event` is null. Lines of other parts of the broker have no row.

    Errors: SchemaError without that column.
    """
    require_columns(lines, {"value": t.StringType()}, "lines.")
    keys = clusters_in(lines)
    placed = lines.withColumn("place", f.monotonically_increasing_id())
    placed = placed.select(*keys, "place", "value")
    answered = with_keys(EVENTS_SCHEMA, keys)
    return map_in_workers(placed, partial(_read, arrow_schema(answered)), answered)


def with_broker_logs(history: DataFrame, lines: DataFrame) -> DataFrame:
    """Returns the history with the causes that the brokers' lines show: HISTORY_SCHEMA.

    Rows to which no line belongs are unchanged. If the history contains a column `cluster`, the
    lines need it, too. Errors: SchemaError for a column that is missing.
    """
    keys = _checked(history)
    require_columns(lines, {name: t.StringType() for name in keys}, "lines.")
    group = [*keys, "group_id"]
    events = coordinator_events(lines).where("event is not null")
    found = _of_groups(_shifted(events, history, keys), history.select(*group).distinct(), keys)
    # 4.
    rows = history.select(
        *group,
        f.col("written_ms").alias("at"),
        f.col("offset").alias("place"),
        f.struct(*history.columns).alias("row"),
    )
    said = found.select(
        *group, f.col("ordered_ms").alias("at"), "place", f.struct(*_EVENT).alias("event")
    )
    ordered = rows.unionByName(said, allowMissingColumns=True).repartition(*group)
    ordered = ordered.sortWithinPartitions(*group, "at", "place")
    return each_group(ordered, group, _caused, with_keys(HISTORY_SCHEMA, keys))


def _shifted(events: DataFrame, history: DataFrame, keys: list[str]) -> DataFrame:
    """Returns the events with their times moved into the time zone of the records."""
    # 2.
    generation = [*keys, "group_id", "generation_id"]
    written = history.groupBy(*generation).agg(
        f.min("written_ms").alias("written_ms"), f.count("*").alias("records")
    )
    assigned = events.where("event = 'assigned' and time_ms is not null")
    differences = assigned.join(written.where("records = 1"), generation)
    zone = f.rint(f.median(f.col("written_ms") - f.col("time_ms")) / ZONES_MS) * ZONES_MS
    zones = differences.groupBy(*keys).agg(zone.cast("bigint").alias("zone"))
    joined = events.join(f.broadcast(zones), keys, "left") if keys else events.crossJoin(zones)
    more = f.coalesce("zone", f.lit(0))
    return joined.withColumn("time_ms", f.col("time_ms") + more).drop("zone")


def _of_groups(events: DataFrame, groups: DataFrame, keys: list[str]) -> DataFrame:
    """Returns the events that belong to a group, each with the group's id."""
    # 3.
    late = events.where("group_id is null and event = 'write_stuck'").drop("group_id")
    timer = "contains(concat(fields['timer'], '-'), concat('-', group_id, '-'))"
    joined = late.join(groups, keys) if keys else late.crossJoin(groups)
    return events.where("group_id is not null").unionByName(joined.where(f.expr(timer)))


def _caused(rows: list[Row]) -> Iterator[Row]:
    """Returns one group's rows; causes in its log lines are added, or replace inferred causes."""
    history = [_recorded(one["row"]) for one in rows if one["row"] is not None]
    events = [
        CoordinatorEvent(**{**one["event"], "fields": dict(one["event"]["fields"])})
        for one in rows
        if one["event"] is not None
    ]
    return (row.to_dict() for row in with_events(history, events))


def _read(schema: pa.Schema, batches: Batches) -> Batches:
    # 1.
    ordered_ms = 0
    for batch in batches:
        found = []
        for row in batch.to_pylist():
            line = message_of(row["value"] or "")
            if line is None:
                continue
            message, time_ms = line
            ordered_ms = ordered_ms if time_ms is None else time_ms
            event = read_message(message, time_ms)
            read = {name: getattr(event, name, None) for name in _EVENT}
            found.append({**row, **read, "message": message, "ordered_ms": ordered_ms})
        if found:
            yield pa.RecordBatch.from_pylist(found, schema)


def _checked(history: DataFrame) -> list[str]:
    """Returns ["cluster"] if a history has this column, else []. Errors: SchemaError."""
    expected = answers_type(HISTORY_SCHEMA)
    require_columns(history, {one.name: one.dataType for one in expected.fields}, "history.")
    return clusters_in(history)


def _recorded(row: Row) -> RecordedRebalance:
    """Returns a RecordedRebalance with the values of a row of HISTORY_SCHEMA."""
    values = {name: value for name, value in row.items() if name not in ("cluster", "cause")}
    values |= {name: tuple(row[name]) for name in _LISTS}
    values["back"] = tuple(BackMember(**one) for one in row["back"])
    values["causes"] = tuple(
        Cause(**{**one, "members": tuple(one["members"])}) for one in row["causes"]
    )
    return RecordedRebalance(**values)

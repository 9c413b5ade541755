# SPDX-License-Identifier: Apache-2.0
"""Reads the present groups from records of `__consumer_offsets`, to assign or plan them.

    records = spark.read.parquet("lake/consumer_offsets")
    assign_groups(current_groups(records, topics).where("kind = 'consumer'"))
    assign_groups(GroupRecords(records, topics))

The core reads the record of a classic group. A broker-assigned group has many records: Python
reads them (`live/recorded_groups.py`), if `topics` has a column `topic_id`.

`GroupRecords` is faster than `current_groups`, because it makes no rows of classic groups. Its
answers are equal, but contain no rows for groups that have nothing to assign.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as t

import kafka_rebalance._core as _core
from kafka_rebalance.bulk.calls import Call
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.live.recorded_groups import RecordedGroups

from .consumer_offsets import (
    BROKER_KEYS,
    GROUP_KEYS,
    check_records,
    group_bytes,
    last_records,
    require_columns,
)
from .schema import GROUPS_SCHEMA, arrow_schema, with_keys
from .workers import Batches, Row, each_group, map_in_workers


def current_groups(
    records: DataFrame, topics: DataFrame, *, assume_assigned: bool = False
) -> DataFrame:
    """Returns the groups in the records as contract rows: GROUPS_SCHEMA.

    `topics` is the inventory: name, partitions, and optionally racks (a list for each partition)
    and topic_id. Without topic ids, only classic groups are returned: the records of a group whose
    broker assigns contain no names of topics. If a classic group subscribes to a topic that the
    inventory lacks, its row has an `error`; with `assume_assigned`, the topic's number of
    partitions is inferred from the assignments instead.

    Errors: SchemaError for a column that is missing or of another type, before anything runs. An
    unreadable record becomes a row with an `error`, and the job continues.
    """
    source = GroupRecords(records, topics, assume_assigned)
    classic = source.answers("groups_from_records", [("", ())], GROUPS_SCHEMA)
    others = source.by_brokers
    return classic if others is None else classic.union(others)


class GroupRecords(Frozen):
    """The groups with members in records of `__consumer_offsets`, without those of Connect.

    `assign_groups`, `assign_owners`, `plan_groups`, `plan_each_change` and `compare_groups` take
    one instead of a DataFrame of groups. For the fields and errors, see `current_groups`.
    """

    records: DataFrame
    topics: DataFrame
    assume_assigned: bool = False

    @property
    def has_cluster(self) -> bool:
        """Returns whether the records have a `cluster`. Errors: SchemaError for wrong columns."""
        there = {one.name for one in self.topics.schema if not isinstance(one.dataType, t.NullType)}
        texts = ["name", *(one for one in ("cluster", "topic_id") if one in there)]
        expected = dict.fromkeys(texts, t.StringType()) | {"partitions": t.IntegerType()}
        require_columns(self.topics, expected, "topics.")
        return bool(check_records(self.records))

    @property
    def by_brokers(self) -> DataFrame | None:
        """Returns the broker-assigned groups: GROUPS_SCHEMA; None if the topics have no ids."""
        if "topic_id" not in self.topics.columns:
            return None
        keys = ["cluster"] if self.has_cluster else []
        inventories = Inventories(self.topics.toArrow(), assume_assigned=False)
        readers: dict[str | None, RecordedGroups] = {}
        latest = last_records(self.records, BROKER_KEYS, keys)
        rows = latest.select(
            *keys, group_bytes().alias("group"), "partition", "offset", "key", "value"
        )
        ordered = rows.repartition(*keys, "group").sortWithinPartitions(
            *keys, "group", "partition", "offset"
        )

        def read(records: list[Row]) -> Iterator[Row]:
            cluster = records[0].get("cluster")
            group_id = records[0]["group"].decode(errors="replace")
            pairs = [(one["key"], one["value"]) for one in records]
            try:
                if cluster not in readers:
                    topics = inventories.topics_of(cluster).to_pylist()
                    readers[cluster] = RecordedGroups(topics)
                row = readers[cluster].line(group_id, pairs)
            except GroupError as error:
                row = {"group_id": group_id, "error": str(error)}
            return iter([] if row is None else [row])

        return each_group(ordered, [*keys, "group"], read, with_keys(GROUPS_SCHEMA, keys))

    def answers(
        self, function: str, calls: Sequence[Call], schema: str, labels: Sequence[str] = ()
    ) -> DataFrame:
        """Returns a core function's answers for each group's last record, for each of `calls`.

        `schema` lists the answers' columns. The columns in `labels` contain the call's label.
        """
        keys = ["cluster"] if self.has_cluster else []
        known = ("cluster", "name", "partitions", "racks")
        topics = self.topics.select([name for name in known if name in self.topics.columns])
        inventories = Inventories(topics.toArrow(), self.assume_assigned)
        columns_of = arrow_schema(schema)

        def run(batches: Batches) -> Batches:
            work = getattr(_core, function)
            for batch in batches:
                for cluster, records, inventory in inventories.parts(batch):
                    for text, arguments in calls:
                        answers = pa.record_batch(work(records, *arguments, inventory))
                        named = dict.fromkeys(keys, cluster) | dict.fromkeys(labels, text)
                        columns = [
                            pa.array([one] * len(answers), pa.string()) for one in named.values()
                        ]
                        names = [*named, *columns_of.names]
                        columns += _columns(answers, columns_of)
                        yield pa.RecordBatch.from_arrays(columns, names)

        latest = last_records(self.records, GROUP_KEYS, keys).select(*keys, "key", "value")
        return map_in_workers(latest, run, with_keys(schema, [*keys, *labels]))


def _columns(answers: pa.RecordBatch, wanted: pa.Schema) -> list[pa.Array]:
    """Returns the answers' columns with the wanted types; null if the core does not write one."""
    known = answers.schema.names
    return [
        answers[one.name].cast(one.type) if one.name in known else pa.nulls(len(answers), one.type)
        for one in wanted
    ]


class Inventories:
    """The topics of all clusters. An executor makes a cluster's inventory at its first use."""

    def __init__(self, topics: pa.Table, assume_assigned: bool) -> None:
        self._topics = topics
        self._assume_assigned = assume_assigned
        self._made: dict[str | None, _core.TopicInventory] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_made": {}}

    def parts(
        self, batch: "pa.RecordBatch"
    ) -> Iterator[tuple[str | None, pa.RecordBatch, _core.TopicInventory]]:
        """Yields (cluster, its records, its topics); without a column `cluster`, it is None."""
        if "cluster" not in batch.schema.names:
            yield None, batch, self._of(None)
            return
        clusters = batch["cluster"]
        for cluster in clusters.unique().to_pylist():
            same = pc.is_null(clusters) if cluster is None else pc.equal(clusters, cluster)
            yield cluster, batch.filter(same), self._of(cluster)

    def topics_of(self, cluster: str | None) -> pa.Table:
        """Returns a cluster's topics; all topics if `cluster` is None, or if the inventory has no
        column `cluster`.
        """
        if cluster is None or "cluster" not in self._topics.column_names:
            return self._topics
        return self._topics.filter(pc.equal(self._topics["cluster"], cluster))

    def _of(self, cluster: str | None) -> "_core.TopicInventory":
        if cluster not in self._made:
            topics = self.topics_of(cluster)
            whole = topics.combine_chunks()
            batches = whole.to_batches() or [pa.RecordBatch.from_pylist([], schema=whole.schema)]
            self._made[cluster] = _core.TopicInventory(batches[0], self._assume_assigned)
        return self._made[cluster]

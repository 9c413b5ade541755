# SPDX-License-Identifier: Apache-2.0
"""Answers about groups straight from records of `__consumer_offsets`.

    assign_groups(GroupRecords(records, topics))

The result equals `assign_groups(current_groups(records, topics))`, without the rows of groups that
have nothing to assign. It is faster, because no rows of groups are made in between.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as t

import kafka_rebalance._core as _core
from kafka_rebalance.bulk.calls import Call

from .compaction import GROUP_KEYS, check_records, last_records, require_columns
from .schema import with_keys
from .workers import map_in_workers

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class GroupRecords:
    """The consumer groups with members in records of `__consumer_offsets`; others are left out.

    `assign_groups`, `assign_owners`, `plan_groups`, `plan_each_change` and `compare_groups` take
    one in place of a DataFrame of groups. Fields and errors are those of `current_groups`.
    """

    records: DataFrame
    topics: DataFrame
    assume_assigned: bool = False

    @property
    def has_cluster(self) -> bool:
        """Whether the records contain a column `cluster`. Errors: SchemaError for wrong columns."""
        require_columns(
            self.topics, {"name": t.StringType(), "partitions": t.IntegerType()}, "topics."
        )
        return check_records(self.records)

    def answers(
        self, function: str, calls: Sequence[Call], schema: str, labels: Sequence[str] = ()
    ) -> DataFrame:
        """Calls a function of the core with the last record of each group, once for each call.

        `schema` has the columns of its answers. The columns in `labels` contain the call's label.
        """
        keys = ["cluster"] if self.has_cluster else []
        known = ("cluster", "name", "partitions", "racks")
        topics = self.topics.select([name for name in known if name in self.topics.columns])
        inventories = Inventories(topics.toArrow(), self.assume_assigned)

        def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            import pyarrow as pa

            import kafka_rebalance._core as _core

            work = getattr(_core, function)
            for batch in batches:
                for cluster, records, inventory in inventories.parts(batch):
                    for text, arguments in calls:
                        answers = pa.record_batch(work(records, *arguments, inventory))
                        named = dict.fromkeys(keys, cluster) | dict.fromkeys(labels, text)
                        columns = [
                            pa.array([one] * len(answers), pa.string()) for one in named.values()
                        ]
                        names = [*named, *answers.schema.names]
                        yield pa.RecordBatch.from_arrays([*columns, *answers.columns], names)

        latest = last_records(self.records, GROUP_KEYS, has_cluster=bool(keys))
        found = latest.select(*keys, "key", "value")
        return map_in_workers(found, run, with_keys(schema, [*keys, *labels]))


class Inventories:
    """The topics of all clusters. An executor makes a cluster's inventory when first needed."""

    def __init__(self, topics: "pa.Table", assume_assigned: bool) -> None:
        self._topics = topics
        self._assume_assigned = assume_assigned
        self._made: dict[str | None, _core.TopicInventory] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_made": {}}

    def parts(
        self, batch: "pa.RecordBatch"
    ) -> "Iterator[tuple[str | None, pa.RecordBatch, _core.TopicInventory]]":
        """Yields each cluster, its records and its topics; the cluster is None without a column."""
        import pyarrow.compute as pc

        if "cluster" not in batch.schema.names:
            yield None, batch, self._of(None)
            return
        clusters = batch["cluster"]
        for cluster in clusters.unique().to_pylist():
            same = pc.is_null(clusters) if cluster is None else pc.equal(clusters, cluster)
            yield cluster, batch.filter(same), self._of(cluster)

    def _of(self, cluster: str | None) -> "_core.TopicInventory":
        """Returns a cluster's topics; all topics if it is None, or if they have no `cluster`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if cluster not in self._made:
            topics = self._topics
            if cluster is not None and "cluster" in topics.column_names:
                topics = topics.filter(pc.equal(topics["cluster"], cluster))
            whole = topics.combine_chunks()
            batches = whole.to_batches() or [pa.RecordBatch.from_pylist([], schema=whole.schema)]
            self._made[cluster] = _core.TopicInventory(batches[0], self._assume_assigned)
        return self._made[cluster]

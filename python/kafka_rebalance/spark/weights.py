# SPDX-License-Identifier: Apache-2.0
"""Puts the weights of partitions, which are rows of another DataFrame, into the groups' topics."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kafka_rebalance.errors import SchemaError
from kafka_rebalance.group.field_paths import a_type

from . import schema

_COLUMNS = ("topic", "partition", "weight")


def with_weights(groups: object, weights: DataFrame | None) -> DataFrame:
    """Returns the groups with the rows of `weights` in `topics[].weights`; None changes nothing.

    `weights` contains columns `topic`, `partition` and `weight`, and `cluster` if the groups have
    one. A row whose `partition` is null sets the weight of each other partition of the topic. The
    groups' own weights are kept where no row replaces them. Each group's topics are joined with the
    weights in one shuffle of the groups.

    Errors   SchemaError for groups that are not rows with `topics`, and for missing columns. The
             job fails if two rows name one partition.
    """
    if weights is None:
        return groups  # type: ignore[return-value]
    if not isinstance(groups, DataFrame) or "topics" not in groups.columns:
        raise SchemaError(f"weights: {a_type(groups)} has no column topics to put them into")
    schema.check(groups.schema)
    keys = ["cluster"] if "cluster" in groups.columns else []
    for name in (*keys, *_COLUMNS):
        if name not in weights.columns:
            raise SchemaError(f"weights.{name}: missing; give {', '.join((*keys, *_COLUMNS))}")
    partition, weight = f.col("partition").cast("int"), f.col("weight").cast("double")
    of_topic = weights.groupBy(*(f.col(one).alias(f"w_{one}") for one in (*keys, "topic"))).agg(
        f.map_from_entries(
            f.collect_list(f.when(partition.isNotNull(), f.struct(partition, weight)))
        ).alias("w_each"),
        f.max(f.when(partition.isNull(), weight)).alias("w_every"),
    )
    numbered = groups.select(  # a number for each group, not for each topic
        f.struct(*[f.col(f"`{name}`") for name in groups.columns if name != "topics"]).alias(
            "rest"
        ),
        f.monotonically_increasing_id().alias("row"),
        "topics",
    )
    one = f.posexplode_outer("topics").alias("place", "one")
    rows = numbered.select("rest", "row", f.col("topics").isNull().alias("none"), one)
    same = [f.col("one.name") == f.col("w_topic")]
    same += [f.col(f"rest.{one}").eqNullSafe(f.col(f"w_{one}")) for one in keys]
    topic = f.col("one").withField("weights", _weights(groups.schema))
    placed = f.when(f.col("place").isNotNull(), f.struct("place", topic.alias("topic")))
    whole = rows.join(of_topic, same, "left").groupBy("row")
    found = whole.agg(
        f.first("rest").alias("rest"),
        f.first("none").alias("none"),
        f.array_sort(f.collect_list(placed)).alias("placed"),
    )
    topics = f.transform("placed", lambda one: one["topic"])
    return found.select("rest.*", f.when(~f.col("none"), topics).alias("topics"))


def _weights(groups: t.StructType) -> Column:
    """Returns a column: the weights of the topic in column `one`, from the joined rows or, where
    these lack a weight, the topic's own.
    """
    of = groups["topics"].dataType
    assert isinstance(of, t.ArrayType)
    assert isinstance(of.elementType, t.StructType)
    own = f.col("one.weights") if "weights" in of.elementType.names else None

    def at(p: Column) -> Column:
        given = [f.col("w_each")[p], f.col("w_every")]
        return f.coalesce(*given, *([] if own is None else [f.get(own, p).cast("double")]))

    count = f.col("one.partitions").cast("int")
    known = f.col("w_topic").isNotNull() & (count > 0)
    found = f.when(known, f.transform(f.sequence(f.lit(0), count - 1), at))
    return found if own is None else f.coalesce(found, own.cast("array<double>"))

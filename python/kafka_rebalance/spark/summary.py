# SPDX-License-Identifier: Apache-2.0
"""Turns answers of many groups into rows by partition, and plans into totals and histograms."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kafka_rebalance.bulk.plan_totals import GROUP, PERCENTILES, SPREADS, SUMS
from kafka_rebalance.errors import NO_MEMBERS, GroupError

from . import schema

_ACCURACY = 10_000
"""The accuracy of `percentile_approx`: ranks have a relative error of at most 1 / _ACCURACY."""

WORST = 20


def explode_assignment(answers: DataFrame) -> DataFrame:
    """Returns one row for each assigned partition: ASSIGNMENT_SCHEMA, after `cluster` if present.

    `answers` come from `assign_groups`. A member without partitions and a group with an error
    have no rows. Raises SchemaError for other columns.
    """
    clusters = schema.keys(answers.schema)
    schema.check_answers(answers.schema)
    pairs = f.expr(
        "flatten(transform(partitions, run -> "
        "transform(run.partitions, one -> named_struct('topic', run.topic, 'partition', one))))"
    )
    members = answers.select(*clusters, "group_id", f.inline("assignment"))
    rows = members.select(*clusters, "group_id", "member_id", f.posexplode(pairs))
    return rows.select(
        *clusters, "group_id", "member_id", f.col("pos").alias("position"), "col.topic",
        "col.partition",
    )  # fmt: skip


def fleet_summary(plans: DataFrame, *, worst: int = WORST) -> DataFrame:
    """Returns totals, percentiles and the worst groups: SUMMARY_SCHEMA.

    `plans` come from `plan_groups` or `plan_each_change`. The result has one row for each
    `cluster` and `change` (if the plans contain these columns), else one row. The plans are read
    once; besides totals and percentiles, only the rows of the `worst` groups leave their tasks.

    Raises SchemaError for other columns; GroupError for a `worst` below 1.
    """
    if worst < 1:
        raise GroupError("worst", f"{worst} is less than 1")
    keys = schema.keys(plans.schema, "change")
    schema.check_plans(plans.schema)
    spreads = {when: spread(f"balance_{when}") for when in SPREADS}
    counted = {
        "groups": f.count(f.lit(1)),
        "errors": f.count_if(failed()),
        "never_ends": f.count_if(f.col("error_kind") == "never-ends"),
        "throws": f.count_if(f.col("error_kind") == "throws"),
        "not_affected": f.count_if(f.isnull("moves") & f.isnull("error")),
        "without_members": f.count_if(f.col("error_kind") == NO_MEMBERS),
        "unsettled": f.count_if(~f.col("settled")),
        "uneven": f.count_if(spreads["after"] > spreads["possible"]),
        **{name: f.coalesce(f.sum(name), f.lit(0).cast("bigint")) for name in SUMS},
        **{f"with_{name}": f.count_if(f.col(name) > 0) for name in SUMS[2:]},
        **{f"spread_{when}": _percentiles(column) for when, column in spreads.items()},
        "group_moves": _percentiles(f.col("moves")),
        "worst": _worst(spreads, worst),
    }
    return plans.groupBy(*keys).agg(*[column.alias(name) for name, column in counted.items()])


def fleet_histogram(plans: DataFrame) -> DataFrame:
    """Counts groups by spread (before, after, possible) and by moves: HISTOGRAM_SCHEMA.

    The bins are 0, 1, 2 to 3, 4 to 7 and so on, because most figures are small and few are large.
    Bins without groups are left out; rows have no order; clusters are counted together.
    """
    keys = [name for name in schema.keys(plans.schema, "change") if name != "cluster"]
    schema.check_plans(plans.schema)
    figures = {f"spread_{when}": spread(f"balance_{when}") for when in SPREADS}
    figures["moves"] = f.col("moves")
    pairs = [f.struct(f.lit(name).alias("figure"), c.alias("n")) for name, c in figures.items()]
    known = plans.where("moves is not null").select(*keys, f.inline(f.array(*pairs)))
    low = f.expr("if(n < 2, n, shiftleft(1L, length(bin(n)) - 1))")
    binned = known.select(*keys, "figure", low.alias("low"))
    counted = binned.groupBy(*keys, "figure", "low").agg(f.count(f.lit(1)).alias("groups"))
    high = f.when(f.col("low") < 2, f.col("low")).otherwise(f.col("low") * 2 - 1)
    return counted.select(*keys, "figure", "low", high.alias("high"), "groups")


def failed() -> Column:
    """Returns the condition that a row has an error whose kind is not "no-members"."""
    kind = f.coalesce(f.col("error_kind"), f.lit(""))
    return f.isnotnull("error") & (kind != NO_MEMBERS)


def spread(balance: str) -> Column:
    """Returns a column: the fullest member's number of partitions minus the emptiest one's."""
    return (f.col(f"{balance}.max") - f.col(f"{balance}.min")).cast("bigint")


def _percentiles(column: Column) -> Column:
    shares = f.percentile_approx(column, [*PERCENTILES.values()], _ACCURACY)
    return f.struct(*[shares[i].alias(name) for i, name in enumerate(PERCENTILES)])


def _worst(spreads: dict[str, Column], count: int) -> Column:
    """Returns a column: the `count` groups whose spreads are furthest above their best possible
    ones.
    """
    named = [column.alias(f"spread_{when}") for when, column in spreads.items()]
    group = f.struct("group_id", *named, *GROUP)
    above = spreads["after"] - spreads["possible"]
    stopped = f.col("unavailable_rounds") + f.col("waiting") + f.col("leaderless")
    order = f.struct(above, stopped, "moves", "group_id")
    known = f.col("moves").isNotNull()
    return f.max_by(f.when(known, group), f.when(known, order), count)


def racks_of(groups: DataFrame) -> DataFrame:
    """Returns each `rack` and its number of groups: those with a member or a replica in it.

    "" is the rack of members that send none; replicas without a rack are in no row.
    """
    if schema.is_lines(groups.schema):
        read = f.from_json(f.col("line").cast("string"), _RACKS)
        groups = groups.select(read.alias("group")).select("group.*")
    lists = [f.array().cast("array<string>")]
    if members := _fields(groups, "members"):
        rack = "coalesce(one.rack_id, '')" if "rack_id" in members else "''"
        lists.append(f.expr(f"transform(members, one -> {rack})"))
    if "racks" in _fields(groups, "topics"):
        replicas = f.expr("flatten(flatten(transform(topics, one -> one.racks)))")
        lists.append(f.filter(replicas, lambda rack: rack != ""))
    found = f.array_distinct(f.concat(*[f.coalesce(one, f.array()) for one in lists]))
    return groups.select(f.explode(found).alias("rack")).groupBy("rack").count()


def _fields(groups: DataFrame, column: str) -> Sequence[str]:
    kind = groups.schema[column].dataType if column in groups.columns else None
    return getattr(getattr(kind, "elementType", None), "names", ())


_RACKS = "members array<struct<rack_id: string>>, topics array<struct<racks: array<array<string>>>>"

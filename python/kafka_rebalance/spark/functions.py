# SPDX-License-Identifier: Apache-2.0
"""DataFrame functions that call the Rust core with Arrow batches of groups."""

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.bulk.calls import (
    NOT_COMPARED,
    Call,
    assign_call,
    compare_call,
    known,
    not_planned,
    plan_call,
    texts_of,
    unread,
)
from kafka_rebalance.bulk.one_by_one import answers as answers_of
from kafka_rebalance.errors import GroupError, SchemaError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted
from kafka_rebalance.plans.changes.change import Change

from . import schema
from .group_records import GroupRecords
from .weights import with_weights
from .workers import Batches, map_in_workers


def assign_groups(
    groups: DataFrame | GroupRecords,
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
    weights: DataFrame | None = None,
) -> DataFrame:
    """Returns the assignment of every row's group: from INPUT_SCHEMA to OUTPUT_SCHEMA.

    With GroupRecords instead of a DataFrame, the groups are read from records in the same pass.

    If `assignor` is None, each row's own is used. A bad group has an `error`; the job continues.
    With `assignor`, columns that this assignor does not read are not validated (docs/contract.md).
    If the groups have a column `cluster`, it is the first column of the answers, too.

    `keep` names other columns of the groups, which become the last columns of the answers,
    unchanged. By default there are none, because each kept column is copied to the worker and back.
    `weights` is for the assignor weighted. It has a row for each partition, with the columns
    `topic`, `partition` (null: all other partitions of the topic), `weight`, and `cluster` if the
    groups have it.

    Raises SchemaError, before the job runs, for columns that do not fit the contract, and for
    columns that cannot be kept; GroupError for an unknown assignor. A group is one row, and must
    fit into a task's memory.
    """
    one, groups = assign_call(assignor, max_partitions), with_weights(groups, weights)
    return _in_workers(groups, unread(assignor), "assign", [one], schema.OUTPUT_SCHEMA, keep=keep)


def assign_owners(
    groups: DataFrame | GroupRecords,
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Assigns every group as `assign_groups` does; returns each partition's owner: OWNERS_SCHEMA.

    This form holds one number for each partition. It lacks the order of a member's partitions, the
    anomalies, and partitions that do not exist, to which sticky assignors keep claims. If sticky
    gives a partition to two members, the later member is the owner here.

    Errors: as in `assign_groups`; GroupError for share/simple and streams/sticky, under which a
    partition has no single owner.
    """
    if assignor in SERVER_SIDE and SERVER_SIDE[assignor].shares:
        what = "assigns tasks" if assignor.startswith("streams/") else "shares partitions"
        problem = f"{quoted(assignor)} {what}; use assign_groups"
        raise GroupError("assignor", problem)
    one = assign_call(assignor, max_partitions)
    return _in_workers(groups, unread(assignor), "owners", [one], schema.OWNERS_SCHEMA, keep=keep)


def assign_lines(
    lines: DataFrame, *, assignor: str | None = None, max_partitions: int = MAX_PARTITIONS
) -> DataFrame:
    """Assigns every group of a DataFrame with one column of contract lines, binary or string.

    Rust parses the lines. A line that is not JSON or not UTF-8 has an `error`, like any bad group.
    Binary is faster than string. For the answers and the parameters, see `assign_groups`.
    """
    if len(lines.columns) != 1:
        raise SchemaError(f"{', '.join(lines.columns)}: expected one column of contract lines")
    named = lines.select(_named(lines.columns[0]).alias("line"))
    return assign_groups(named, assignor=assignor, max_partitions=max_partitions)


def plan_groups(
    groups: DataFrame | GroupRecords,
    *,
    assignor: str | None = None,
    changes: Iterable[Change | str] | None = None,
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
    weights: DataFrame | None = None,
) -> DataFrame:
    """Returns the plan of every row's group: from INPUT_SCHEMA to PLAN_SCHEMA.

    `changes` apply to every group, as objects or strings (`add-members=2`); if None, each row has
    its own in a column `changes array<string>`. The figures are as in `kafka_rebalance.plan`. A
    change that does not fit a group is that row's `error`. But if the group lacks the topic,
    member, client or rack to which one of the call's `changes` refers, the change is left out for
    this group, and listed in `not_affected`. A column `cluster` is the first column of the answers;
    for `keep` and `weights`, see `assign_groups`.

    Raises SchemaError for columns that do not fit the contract; GroupError for an unknown assignor,
    or at `changes[i]` for a change that cannot be read.
    """
    one, groups = plan_call(assignor, changes, max_partitions), with_weights(groups, weights)
    own = changes is None
    return _in_workers(
        groups, not_planned([one]), "plan", [one], schema.PLAN_SCHEMA, own_changes=own, keep=keep
    )


def plan_each_change(
    groups: DataFrame | GroupRecords,
    changes: Iterable[Change | str],
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Plans each change by itself for every group, a row for each pair: EACH_CHANGE_SCHEMA.

    The plan of a change equals `plan_groups(groups, changes=[change])`; the change "" is the next
    rebalance without a change. Each group is read once for all changes. Parameters and errors are
    as in `plan_groups`.
    """
    known(assignor)
    given = list(changes)
    texts = iter(texts_of([change for change in given if change != ""]))
    labels = ["" if change == "" else next(texts) for change in given]
    calls: list[Call] = [
        (text, (assignor, [text] if text else [], max_partitions, 1)) for text in labels
    ]
    return _in_workers(
        groups, not_planned(calls), "plan", calls, schema.PLAN_SCHEMA, label="change", keep=keep
    )


def compare_groups(
    groups: DataFrame | GroupRecords,
    *,
    changes: Iterable[Change | str] = (),
    max_partitions: int = MAX_PARTITIONS,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Plans the changes for every group under each assignor, and recommends one: COMPARE_SCHEMA.

    The rule is the rule of `kafka_rebalance.compare`, in short: the most even result wins. Ties are
    broken by the fewest partition-rounds without a reader, then the fewest moves, then the largest
    share of partitions read in the rack of a replica, then the group's own assignor. If a group
    lacks the topic, member, client or rack to which a change refers, the change is left out for
    this group. A column `cluster` is the first column of the answers; for `keep`, see
    `assign_groups`.

    Raises SchemaError for columns that do not fit the contract; GroupError at `changes[i]` for a
    change that cannot be read or that switches the assignor.
    """
    one = compare_call(changes, max_partitions)
    return _in_workers(groups, NOT_COMPARED, "compare", [one], schema.COMPARE_SCHEMA, keep=keep)


def _in_workers(
    groups: DataFrame | GroupRecords,
    drop: set[str],
    verb: str,
    calls: Sequence[Call],
    answers_schema: str,
    *,
    label: str | None = None,
    own_changes: bool = False,
    keep: Sequence[str] = (),
) -> DataFrame:
    """Returns the answers of a bulk function of the core: one for each group and call."""
    labels = [] if label is None else [label]
    if isinstance(groups, GroupRecords):
        if own_changes:
            raise SchemaError("changes: records have none; name them in the call")
        if keep:
            raise SchemaError("keep: records have no other columns; join the answers with yours")
        answers = groups.answers(f"{verb}_batch", calls, answers_schema, labels)
        if (by_brokers := groups.by_brokers) is None:
            return answers
        there = by_brokers.where("error is not null or size(members) > 0")
        return answers.union(_in_workers(there, drop, verb, calls, answers_schema, label=label))
    if not hasattr(groups, "mapInArrow"):
        others = "kafka_rebalance.bulk.assign_batch answers lists of GroupSpec"
        raise SchemaError(f"groups: {a_type(groups)} is not a DataFrame of Spark; {others}")
    schema.check(groups.schema)
    lines = schema.is_lines(groups.schema)
    if own_changes:
        if lines:
            raise SchemaError("changes: contract lines have none; name them in the call")
        schema.check_changes(groups.schema)
    clusters = schema.keys(groups.schema)
    answered = schema.answers_type(schema.with_keys(answers_schema, [*clusters, *labels]))
    kept = schema.kept_fields(keep, groups.schema, answered)
    needed = [f.col("line")] if lines else _selected(groups.schema, drop)
    needed += [f.col("changes")] if own_changes else []
    work = _work(verb, calls, "lines" if lines else "columns", clusters, labels, len(needed))
    # The kept columns get new names: mapInArrow refuses names with dots, and matches the columns of
    # answers by position.
    copied = [_named(field.name).alias(f"kept_{i}") for i, field in enumerate(kept)]
    wanted = groups.select(*clusters, *needed, *copied)
    return map_in_workers(wanted, work, t.StructType([*answered, *kept]))


def _work(
    verb: str, calls: Sequence[Call], form: str, clusters: list[str], labels: list[str], needed: int
) -> Callable[[Batches], Batches]:
    """Returns the function that answers batches in a task.

    A batch has the columns `clusters`, then `needed` columns of groups, then the columns to keep.
    """
    first, last = len(clusters), len(clusters) + needed

    def run(batches: Batches) -> Batches:
        for batch in batches:
            names, columns = batch.schema.names, batch.columns
            rows = pa.RecordBatch.from_arrays(columns[first:last], names[first:last])
            for text, arguments in calls:
                answers = answers_of(verb, rows, arguments, form)
                keys = columns[:first] + [pa.array([text] * len(rows), pa.string()) for _ in labels]
                named = [*clusters, *labels, *answers.schema.names, *names[last:]]
                whole = [*keys, *answers.columns, *columns[last:]]
                yield pa.RecordBatch.from_arrays(whole, named)

    return run


def _named(name: str) -> Column:
    """Returns the column of this name, which may contain dots."""
    quoted_name = name.replace("`", "``")
    return f.col(f"`{quoted_name}`")


def _selected(found: t.StructType, drop: set[str]) -> list[Column]:
    wanted = schema.contract()
    columns = [
        _pruned(f.col(field.name), field.dataType, field.name, wanted, drop).alias(field.name)
        for field in found.fields
        if field.name in wanted.names and field.name not in drop
    ]
    more = ["error", *([] if "assignor" in drop else ["application"])]
    return [*columns, *(f.col(name) for name in more if name in found.names)]


def _pruned(
    column: Column, found: t.DataType, path: str, wanted: t.StructType, drop: set[str]
) -> Column:
    """Returns a column; of a list of structs, only the fields that are in `wanted`, and not in
    `drop`.
    """
    if not (isinstance(found, t.ArrayType) and isinstance(found.elementType, t.StructType)):
        return column
    struct = wanted[path].dataType
    assert isinstance(struct, t.ArrayType)
    assert isinstance(struct.elementType, t.StructType)
    names = [
        name
        for name in found.elementType.names
        if name in struct.elementType.names and f"{path}[].{name}" not in drop
    ]
    if set(names) == set(found.elementType.names):
        return column
    return f.transform(column, lambda one: f.struct(*[one[name].alias(name) for name in names]))

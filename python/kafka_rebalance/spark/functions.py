# SPDX-License-Identifier: Apache-2.0
"""DataFrame functions that call the Rust core with Arrow batches of groups."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kafka_rebalance.assignors.registry import BUILT_IN, SERVER_SIDE, in_brokers, in_core
from kafka_rebalance.errors import GroupError, SchemaError
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted
from kafka_rebalance.plans.changes import Change, SwitchAssignor
from kafka_rebalance.plans.rebalance_plan import parse_changes

from . import schema
from .compaction import with_cluster
from .group_records import GroupRecords
from .schema import COMPARE_SCHEMA, OUTPUT_SCHEMA, OWNERS_SCHEMA, PLAN_SCHEMA, contract
from .session import use_this_python

if TYPE_CHECKING:
    import pyarrow as pa


def assign_groups(
    groups: DataFrame | GroupRecords,
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
) -> DataFrame:
    """Assigns every group of a DataFrame, one in each row: INPUT_SCHEMA in, OUTPUT_SCHEMA out.

    With GroupRecords in place of a DataFrame, the groups are read from records in the same pass.

    If `assignor` is None, each row's own is used. A bad group has an `error`; the job continues. If
    the groups have a column `cluster`, it is the first column of the answers, too.

    Raises SchemaError, before the job runs, for columns that do not fit the contract; GroupError
    for an unknown assignor. A group is one row, and must fit into a task's memory.
    """
    known(assignor)
    one = ("", (assignor, max_partitions, 1))
    return _in_workers(groups, _unread(assignor), "assign", [one], OUTPUT_SCHEMA)


def assign_owners(
    groups: DataFrame | GroupRecords,
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
) -> DataFrame:
    """Assigns every group, like `assign_groups`, and returns each partition's owner: OWNERS_SCHEMA.

    This form has one number for each partition. It lacks the order of a member's partitions, the
    anomalies, and partitions that do not exist, although sticky assignors keep claims to them. If
    sticky gives a partition to two members, the later member is the owner here.

    Errors: those of `assign_groups`, and GroupError for share/simple and streams/sticky: a
    partition has no single owner.
    """
    known(assignor)
    if assignor in SERVER_SIDE and SERVER_SIDE[assignor].shares:
        what = "assigns tasks" if assignor.startswith("streams/") else "shares partitions"
        problem = f"{quoted(assignor)} {what}; use assign_groups"
        raise GroupError("assignor", problem)
    one = ("", (assignor, max_partitions, 1))
    return _in_workers(groups, _unread(assignor), "owners", [one], OWNERS_SCHEMA)


def assign_lines(
    lines: DataFrame, *, assignor: str | None = None, max_partitions: int = MAX_PARTITIONS
) -> DataFrame:
    """Assigns every group of a DataFrame with one column of contract lines, as binary or text.

    Rust parses the lines. A line that is not JSON or not UTF-8 has an `error`, like any bad group.
    Binary is faster than text. Output and parameters are those of `assign_groups`.
    """
    if len(lines.columns) != 1:
        raise SchemaError(f"{', '.join(lines.columns)}: expected one column of contract lines")
    named = lines.select(f.col(f"`{lines.columns[0]}`").alias("line"))
    return assign_groups(named, assignor=assignor, max_partitions=max_partitions)


def plan_groups(
    groups: DataFrame | GroupRecords,
    *,
    assignor: str | None = None,
    changes: Iterable[Change | str] | None = None,
    max_partitions: int = MAX_PARTITIONS,
) -> DataFrame:
    """Plans every group of a DataFrame, one in each row: INPUT_SCHEMA in, PLAN_SCHEMA out.

    `changes` apply to every group, as objects or texts (`add-members=2`); if None, each row has its
    own in a column `changes array<string>`. The figures are those of `kafka_rebalance.plan`. A
    change that does not fit a group is that row's `error`. But if the group lacks the topic,
    member, client or rack to which one of the call's `changes` refers, the change is left out for
    this group, and listed in `not_affected`. A column `cluster` is the first column of the answers.

    Raises SchemaError for columns that do not fit the contract; GroupError for an unknown assignor,
    or at `changes[i]` for a change that cannot be read.
    """
    planned(assignor)
    if changes is not None:
        one: _Call = ("", (assignor, _texts(changes), max_partitions, 1))
        return _in_workers(groups, _HOST, "plan", [one], PLAN_SCHEMA)
    if isinstance(groups, GroupRecords):
        raise SchemaError("changes: records have none; name them in the call")
    schema.check(groups.schema)
    if schema.is_lines(groups.schema):
        raise SchemaError("changes: contract lines have none; name them in the call")
    schema.check_changes(groups.schema)
    one = ("", (assignor, None, max_partitions, 1))
    return _in_workers(groups, _HOST, "plan", [one], PLAN_SCHEMA, more=("changes",))


def plan_each_change(
    groups: DataFrame | GroupRecords,
    changes: Iterable[Change | str],
    *,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
) -> DataFrame:
    """Plans each change alone for every group: a row for each group and change, EACH_CHANGE_SCHEMA.

    The plan of a change is that of `plan_groups(groups, changes=[change])`; the change "" is the
    next rebalance without a change. Each group is read once for all changes. Parameters and errors
    are those of `plan_groups`.
    """
    planned(assignor)
    given = list(changes)
    texts = iter(_texts([change for change in given if change != ""]))
    labels = ["" if change == "" else next(texts) for change in given]
    calls: list[_Call] = [
        (text, (assignor, [text] if text else [], max_partitions, 1)) for text in labels
    ]
    return _in_workers(groups, _HOST, "plan", calls, PLAN_SCHEMA, label="change")


def compare_groups(
    groups: DataFrame | GroupRecords,
    *,
    changes: Iterable[Change | str] = (),
    max_partitions: int = MAX_PARTITIONS,
) -> DataFrame:
    """Plans the changes of every group by every assignor, and recommends one: COMPARE_SCHEMA.

    The rule is that of `kafka_rebalance.compare`, in short: the most even result wins; ties are
    broken by the fewest partition-rounds without a reader, then the fewest moves, then the largest
    share of partitions read in the rack of a replica, then the group's own assignor. If a group
    lacks the topic, member, client or rack to which a change refers, the change is left out for
    this group. A column `cluster` is the first column of the answers.

    Raises SchemaError for columns that do not fit the contract; GroupError at `changes[i]` for a
    change that cannot be read or that switches the assignor.
    """
    parsed = parse_changes(changes)
    for i, change in enumerate(parsed):
        if isinstance(change, SwitchAssignor):
            problem = "a comparison asks every assignor as it is; leave the switch out"
            raise GroupError(f"changes[{i}]", problem)
    one = ("", (_texts(parsed), max_partitions, 1))
    return _in_workers(groups, _HOST, "compare", [one], COMPARE_SCHEMA)


def known(assignor: str | None) -> None:
    """Raises GroupError for an assignor that the core does not have."""
    if assignor is not None and assignor not in in_core():
        raise GroupError(
            "assignor",
            f"{quoted(assignor)} is not built in; Spark's workers know {', '.join(in_core())}",
        )


def planned(assignor: str | None) -> None:
    """Raises GroupError for an assignor whose rounds the core does not plan."""
    known(assignor)
    if assignor in SERVER_SIDE:
        raise GroupError("assignor", in_brokers(assignor))


def _texts(changes: Iterable[Change | str]) -> list[str]:
    return [str(change) for change in parse_changes(changes)]


_HOST = {"members[].client_host"}

_Call = tuple[str, tuple[Any, ...]]
"""A label, and the arguments of the core's function that follow the batch."""


def _in_workers(
    groups: DataFrame | GroupRecords,
    drop: set[str],
    verb: str,
    calls: Sequence[_Call],
    answers_schema: str,
    *,
    label: str | None = None,
    more: Sequence[str] = (),
) -> DataFrame:
    """Runs a bulk function of the core on the groups, once for each call, with mapInArrow.

    A column `cluster` of the groups is copied to the answers. The core runs in one thread, because
    a Spark task has one core. The pickled function imports its modules itself, so that executors do
    not need this module.
    """
    if isinstance(groups, GroupRecords):
        return _from_records(groups, verb, calls, answers_schema, label=label)
    schema.check(groups.schema)
    clusters = schema.keys(groups.schema)
    lines = schema.is_lines(groups.schema)
    needed = [f.col("line")] if lines else _selected(groups.schema, drop)
    needed += [f.col(name) for name in more]
    labels = [] if label is None else [label]

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from kafka_rebalance import _core

        work = getattr(_core, f"{verb}_batch")
        form = "lines" if lines else "columns"
        for batch in batches:
            rows = batch.select(batch.schema.names[len(clusters) :])
            for text, arguments in calls:
                answers = pa.record_batch(work(rows, *arguments, form))
                keys = [batch.column(i) for i in range(len(clusters))]
                keys += [pa.array([text] * len(rows), pa.string()) for _ in labels]
                names = [*clusters, *labels, *answers.schema.names]
                yield pa.RecordBatch.from_arrays([*keys, *answers.columns], names)

    keyed = schema.with_keys(answers_schema, [*clusters, *labels])
    use_this_python(groups.sparkSession)
    return groups.select(*clusters, *needed).mapInArrow(run, keyed)


def _from_records(
    source: GroupRecords,
    verb: str,
    calls: Sequence[_Call],
    answers_schema: str,
    *,
    label: str | None,
) -> DataFrame:
    """Runs a bulk function of the core on the last record of each group."""
    has_cluster, inventories = source.has_cluster, source.inventories()
    labels = [] if label is None else [label]

    def run(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        from kafka_rebalance import _core

        work = getattr(_core, f"{verb}_batch")
        for batch in batches:
            for cluster, records, inventory in inventories.parts(batch):
                for text, arguments in calls:
                    answers = pa.record_batch(work(records, *arguments, inventory))
                    keys = {"cluster": cluster} if has_cluster else {}
                    keys |= dict.fromkeys(labels, text)
                    columns = [pa.array([key] * len(answers), pa.string()) for key in keys.values()]
                    names = [*keys, *answers.schema.names]
                    yield pa.RecordBatch.from_arrays([*columns, *answers.columns], names)

    keyed = with_cluster(schema.with_keys(answers_schema, labels), has_cluster)
    latest = source.latest()
    use_this_python(latest.sparkSession)
    return latest.mapInArrow(run, keyed)


def _unread(assignor: str | None) -> set[str]:
    """Returns the columns and fields that the assignor does not read; they are not validated."""
    drop = {"members[].client_id", "members[].client_host"}
    if assignor is not None:
        drop.add("assignor")
    row = BUILT_IN.get(assignor or "")
    if row is not None:
        drop |= {"topics[].topic_id", "topics[].initialized"}
        drop |= {"subtopologies", "num_standby_replicas", "members[].process_id"}
        drop |= {f"members[].{name}" for name in ("active_tasks", "standby_tasks", "task_offsets")}
    if row is not None and row.ignores_racks:
        drop |= {"topics[].racks", "members[].rack_id"}
    if row is not None and not row.remembers:
        drop |= {"members[].owned_partitions", "members[].generation_id"}
    return drop


def _selected(found: t.StructType, drop: set[str]) -> list[Column]:
    wanted = contract()
    columns = [
        _pruned(f.col(field.name), field.dataType, field.name, wanted, drop).alias(field.name)
        for field in found.fields
        if field.name in wanted.names and field.name not in drop
    ]
    return [*columns, *([f.col("error")] if "error" in found.names else [])]


def _pruned(
    column: Column, found: t.DataType, path: str, wanted: t.StructType, drop: set[str]
) -> Column:
    """Returns a list of structs without unwanted fields; other columns are returned unchanged."""
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

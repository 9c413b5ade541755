# SPDX-License-Identifier: Apache-2.0
"""Registers functions for SQL: table functions, and functions of columns.

    register_functions(spark)
    spark.sql("select * from kafka_assign_table(TABLE(groups), 'sticky')")

A table function needs as much CPU as the DataFrame function, a column function 1.6 to 1.8 times as
much. Both run on classic Spark and on Spark Connect.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.functions import arrow_udf

from kafka_rebalance.bulk.calls import known
from kafka_rebalance.group.model import MAX_PARTITIONS

from .schema import OUTPUT_SCHEMA, PLAN_SCHEMA
from .session import use_this_python
from .workers import core_importer

_Refused = Callable[[int, str], pa.RecordBatch]


def register_functions(spark: SparkSession) -> None:
    """Registers the functions for `spark.sql`, in this session.

        kafka_assign_table(TABLE(groups), assignor)     rows of OUTPUT_SCHEMA
        kafka_plan_table(TABLE(groups), changes)        rows of PLAN_SCHEMA
        kafka_assign(group_id, topics, members, assignor)
        kafka_plan(group_id, topics, members, assignor, changes)

    `groups` contains the columns of INPUT_SCHEMA. Spark passes it as one struct, so select only
    needed columns: `TABLE(select group_id, assignor, topics, members from …)`. If `assignor` is
    null or left out, the row's own is used; without `changes`, the next rebalance is played. An
    unknown assignor is an error in each row, and so are a wrong change and wrong arguments, because
    Spark cannot refuse them before the job. `changes` are separated by "; ", or an array:
    'add-members=1; partitions orders=24'; "" is the next rebalance. `kafka_assign` and `kafka_plan`
    return these columns as a struct. They take an assignor for each row. `kafka_plan` takes
    `changes` as an array of strings; if one refers to something that the group lacks, the row has
    an error.
    """
    use_this_python(spark)
    spark.udtf.register("kafka_assign_table", _assign_table())
    spark.udtf.register("kafka_plan_table", _plan_table())
    spark.udf.register("kafka_assign", _column("assign", ["assignor"], OUTPUT_SCHEMA))
    spark.udf.register("kafka_plan", _column("plan", ["assignor", "changes"], PLAN_SCHEMA))


def assign_udf(
    assignor: str | None = None, *, max_partitions: int = MAX_PARTITIONS
) -> Callable[..., Column]:
    """Returns `assign_groups` as a column function for `withColumn`: a struct of OUTPUT_SCHEMA.

        groups.withColumn("result", assign_udf("sticky")("group_id", "topics", "members"))

    The function takes the columns `group_id`, `topics`, `members` and, if `assignor` is None,
    `assignor`, in this order. It needs up to 1.8 times the CPU of `assign_groups`, so prefer
    `assign_groups` if you need no other columns. `spark.udf.register(name, assign_udf("sticky"))`
    makes it a function of SQL. Errors are those of `assign_groups`, but the columns' types are
    checked when the job runs.
    """
    known(assignor)
    if (active := SparkSession.getActiveSession()) is not None:
        use_this_python(active)  # before spark.udf.register, which stores this path
    more = [] if assignor is not None else ["assignor"]
    names = ["group_id", "topics", "members", *more]
    udf = _column("assign", more, OUTPUT_SCHEMA, assignor, max_partitions)

    @functools.wraps(udf)  # spark.udf.register reads its attributes
    def column(*columns: Any) -> Column:
        if len(columns) != len(names):
            raise TypeError(f"{len(columns)} columns in place of {', '.join(names)}")
        if (spark := SparkSession.getActiveSession()) is not None:
            use_this_python(spark)
        result: Column = udf(*columns)
        return result

    return column


def _column(
    verb: str,
    more: list[str],
    schema: str,
    assignor: str | None = None,
    max_partitions: int = MAX_PARTITIONS,
) -> Any:
    """Returns a bulk function of the core as a column function."""
    names = ["group_id", "topics", "members", *more]
    answers_of, refused = _in_core(verb)

    # Spark reads these annotations to find out which kind of function this is.
    def run(*columns: pa.Array) -> pa.Array:
        problem = f"{len(columns)} arguments; give {', '.join(names)}"
        if not columns:
            raise TypeError(problem)  # the number of rows is unknown, so no row can report it
        if len(columns) == len(names):
            is_text = "changes" in names and pa.types.is_string(columns[-1].type)
            problem = _ONE_TEXT if is_text else ""
        if problem:
            return refused(len(columns[0]), problem).to_struct_array()
        batch = pa.record_batch(list(columns), names=names)
        before = (assignor, None) if "changes" in names else (assignor,)
        return answers_of(batch, *before, max_partitions, 1).to_struct_array()

    make_udf: Any = arrow_udf  # no overload accepts a function of any number of columns
    return make_udf(run, f"struct<{schema}>")


def _in_core(verb: str) -> tuple[Callable[..., pa.RecordBatch], _Refused]:
    """Returns the core function, and a function that makes error rows (error_kind `call`), one for
    each input row.

    For wrong columns, the error's text is the text of the SchemaError for frames. Spark pickles
    these closures by value for the workers: they load `schema` only for an error.
    """

    core = core_importer()

    def refused(rows: int, problem: str) -> pa.RecordBatch:
        text = pa.string()
        topic = pa.struct({"name": text, "partitions": pa.int32()})
        member = pa.struct({"member_id": text, "topics": pa.list_(text)})
        types = {"group_id": text, "topics": pa.list_(topic), "members": pa.list_(member)}
        nulls = pa.record_batch({name: pa.nulls(rows, one) for name, one in types.items()})
        changes: list[list[str]] = [[]] if verb == "plan" else []
        answers = pa.record_batch(getattr(core(), f"{verb}_batch")(nulls, None, *changes, 1, 1))
        for name, value in (("error", problem), ("error_kind", "call")):
            place = answers.schema.get_field_index(name)
            answers = answers.set_column(place, name, pa.array([value] * rows, text))
        return answers

    def answers_of(batch: pa.RecordBatch, *arguments: Any) -> pa.RecordBatch:
        core()
        from kafka_rebalance.bulk.one_by_one import answers

        try:
            return answers(verb, batch, arguments)
        except TypeError:
            from pyspark.sql.pandas.types import from_arrow_schema

            from kafka_rebalance.errors import SchemaError
            from kafka_rebalance.spark.schema import check

            try:
                check(from_arrow_schema(batch.schema))
            except SchemaError as error:
                return refused(len(batch), str(error))
            raise

    return answers_of, refused


_NO_TABLE = "groups: not a table; give one, as TABLE(groups)"
_TOO_MANY = "too many arguments; give TABLE(groups) and {}"
_ONE_TEXT = "changes: a text; give an array of texts, as array('add-members=1')"


def _assign_table() -> Any:
    most, (answers_of, refused) = MAX_PARTITIONS, _in_core("assign")
    no_table, too_many = _NO_TABLE, _TOO_MANY.format("one assignor")

    class AssignTable:
        def eval(
            self, groups: Any = None, assignor: pa.Array | None = None, *more: pa.Array
        ) -> Iterator[pa.Table]:
            if more or not isinstance(groups, pa.RecordBatch):
                yield pa.Table.from_batches([refused(1, too_many if more else no_table)])
                return
            name = assignor[0].as_py() if assignor else None
            if name is not None:  # set in each row, so that each row reports an unknown assignor
                columns = dict(zip(groups.schema.names, groups.columns, strict=True))
                columns["assignor"] = pa.array([str(name)] * len(groups), pa.string())
                columns.pop("rebalance_protocol", None)  # that of the replaced assignor
                groups = pa.record_batch(columns)
            yield pa.Table.from_batches([answers_of(groups, None, most, 1)])

    return arrow_udtf(AssignTable, returnType=OUTPUT_SCHEMA)


def _plan_table() -> Any:
    most, (answers_of, refused) = MAX_PARTITIONS, _in_core("plan")
    no_table, too_many = _NO_TABLE, _TOO_MANY.format("changes in one text or array")

    class PlanTable:
        def eval(
            self, groups: Any = None, changes: pa.Array | None = None, *more: pa.Array
        ) -> Iterator[pa.Table]:
            if more or not isinstance(groups, pa.RecordBatch):
                yield pa.Table.from_batches([refused(1, too_many if more else no_table)])
                return
            given = changes[0].as_py() if changes else None
            if given is None:
                given = []
            # Changes of other types become strings, so that each row reports the error of a wrong
            # change.
            each = given if isinstance(given, list) else str(given).split(";")
            texts = [text for text in (str(one).strip() for one in each) if text]
            yield pa.Table.from_batches([answers_of(groups, None, texts, most, 1)])

    return arrow_udtf(PlanTable, returnType=PLAN_SCHEMA)

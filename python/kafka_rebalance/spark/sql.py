# SPDX-License-Identifier: Apache-2.0
"""The functions for SQL: table functions, and functions of columns.

    register_functions(spark)
    spark.sql("select * from kafka_assign_table(TABLE(groups), 'sticky')")

A table function needs as much CPU as the DataFrame function, a column function 1.6 to 1.8 times as
much. Both run on classic Spark and on Spark Connect.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.functions import arrow_udf

from kafka_rebalance.group.model import MAX_PARTITIONS

from .calls import known
from .schema import OUTPUT_SCHEMA, PLAN_SCHEMA
from .session import use_this_python

if TYPE_CHECKING:
    pass


def register_functions(spark: SparkSession) -> None:
    """Registers the functions for `spark.sql`, in this session.

        kafka_assign_table(TABLE(groups), assignor)     rows of OUTPUT_SCHEMA
        kafka_plan_table(TABLE(groups), changes)        rows of PLAN_SCHEMA
        kafka_assign(group_id, topics, members, assignor)
        kafka_plan(group_id, topics, members, assignor, changes)

    `groups` has the columns of INPUT_SCHEMA. Spark passes it as one struct, so select only needed
    columns: `TABLE(select group_id, assignor, topics, members from …)`. If `assignor` is null, the
    row's own is used. `changes` are separated by "; ": 'add-members=1; partitions orders=24'; "" is
    the next rebalance. The last two functions return these columns as a struct. They take an
    assignor for each row. `kafka_plan` takes `changes` as an array of texts; if one refers to
    something that the group lacks, the row has an error.
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
    `assignor`, in this order. It needs up to 1.8 times the CPU of `assign_groups`, so prefer that
    one if you need no other columns. Errors are those of `assign_groups`, but the columns' types
    are checked when the job runs.
    """
    known(assignor)
    more = [] if assignor is not None else ["assignor"]
    names = ["group_id", "topics", "members", *more]
    udf = _column("assign", more, OUTPUT_SCHEMA, assignor, max_partitions)

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
    function = f"{verb}_batch"

    import pyarrow as pa

    # Spark reads these annotations to find out which kind of function this is.
    def run(*columns: pa.Array) -> pa.Array:
        from kafka_rebalance import _core

        if len(columns) != len(names):
            raise TypeError(f"{len(columns)} arguments in place of {', '.join(names)}")
        batch = pa.record_batch(list(columns), names=names)
        before = (assignor, None) if "changes" in names else (assignor,)
        answers = getattr(_core, function)(batch, *before, max_partitions, 1)
        return pa.record_batch(answers).to_struct_array()

    make_udf: Any = arrow_udf  # no overload accepts a function of any number of columns
    return make_udf(run, f"struct<{schema}>")


def _assign_table() -> Any:
    import pyarrow as pa

    most = MAX_PARTITIONS

    class AssignTable:
        def eval(self, groups: pa.RecordBatch, assignor: pa.Array) -> Iterator[pa.Table]:
            from kafka_rebalance import _core

            name = assignor[0].as_py() if len(assignor) else None
            answers = pa.record_batch(_core.assign_batch(groups, name, most, 1))
            yield pa.Table.from_batches([answers])

    return arrow_udtf(AssignTable, returnType=OUTPUT_SCHEMA)


def _plan_table() -> Any:
    import pyarrow as pa

    most = MAX_PARTITIONS

    class PlanTable:
        def eval(self, groups: pa.RecordBatch, changes: pa.Array) -> Iterator[pa.Table]:
            from kafka_rebalance import _core

            given = (changes[0].as_py() if len(changes) else None) or ""
            texts = [text.strip() for text in given.split(";") if text.strip()]
            answers = pa.record_batch(_core.plan_batch(groups, None, texts, most, 1))
            yield pa.Table.from_batches([answers])

    return arrow_udtf(PlanTable, returnType=PLAN_SCHEMA)

# SPDX-License-Identifier: Apache-2.0
"""Runs functions in the Python workers of Spark, whose Python may lack this package."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.cloudpickle import dumps
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from .schema import arrow_schema
from .session import HELP, use_this_python

Row = dict[str, Any]

Batches = Iterator[pa.RecordBatch]


def map_in_workers(
    frame: DataFrame, work: "Callable[[Batches], Batches]", schema: str | t.StructType
) -> DataFrame:
    """Returns `frame.mapInArrow(work, schema)`, whose workers run this Python (`use_this_python`).

    If the package is missing in a worker, its ImportError is one sentence with the host, the Python
    and a remedy. So `work` is sent as pickled bytes, because loading it may import this package.
    """
    pickle_whole: Any = dumps  # pyspark does not declare its type
    core, pickled = core_importer(), pickle_whole(work)

    def run(batches: "Batches") -> "Batches":
        import pickle

        core()
        answers: Batches = pickle.loads(pickled)(batches)
        return answers

    use_this_python(frame.sparkSession)
    return frame.mapInArrow(run, schema)


def each_group(
    frame: DataFrame,
    keys: Sequence[str],
    answer: Callable[[list[Row]], Iterator[Row]],
    schema: str,
) -> DataFrame:
    """Returns the rows of `answer`, which is called with all rows of one group at a time.

    `frame` holds rows with equal `keys` next to each other; a group may go on in the next batch. A
    row that `answer` returns without a `cluster` gets the group's cluster.
    """
    arrow = arrow_schema(schema)

    def run(batches: "Batches") -> "Batches":
        rows = (row for one in batches for row in one.to_pylist())
        for _, group in groupby(rows, key=itemgetter(*keys)):
            given = list(group)
            cluster = given[0].get("cluster")
            if found := [{"cluster": cluster, **row} for row in answer(given)]:
                yield pa.RecordBatch.from_pylist(found, arrow)

    return map_in_workers(frame, run, schema)


def core_importer() -> Callable[[], Any]:
    """Returns a closure that imports the core in a worker; its ImportError contains advice."""
    advice = HELP

    def core() -> Any:
        try:
            import kafka_rebalance._core as _core
        except ImportError as error:
            import socket
            import sys

            where = f"on an executor ({socket.gethostname()}, {sys.executable})"
            raise ImportError(f"{error} {where}: {advice}") from None
        return _core

    return core

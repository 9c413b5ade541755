# SPDX-License-Identifier: Apache-2.0
"""Runs functions in the Python workers of Spark, whose Python may lack this package."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.cloudpickle import dumps
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from .session import HELP, use_this_python

if TYPE_CHECKING:
    import pyarrow as pa

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

# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the command line."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_rebalance.errors import KafkaRebalanceError, SparkFailedError

ARROW_BYTES = "4m"
"""The size of one batch: with Spark's default of 64m, giant groups need much more memory."""


LOG4J = Path(__file__).with_name("log4j2.properties")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turns an exception of Spark into a SparkFailedError with a single line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        first = str(error).strip().partition("\n")[0]
        raise SparkFailedError(f"Spark: {first}") from error


def session(name: str, *, master: str = "local[*]", progress: bool = False) -> SparkSession:
    """Returns a quiet local session; `progress` shows Spark's own bar on standard error."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise KafkaRebalanceError("Spark needs Java 17 or newer, and there is no java on the path")
    # Without an activated environment, Spark would start its workers with the system's Python.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark: SparkSession = (
        SparkSession.builder.master(master)
        .appName(f"kafka-rebalance {name}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", str(progress).lower())
        .config("spark.sql.execution.arrow.maxBytesPerBatch", ARROW_BYTES)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={LOG4J.as_uri()}")
        .getOrCreate()
    )
    return spark

# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the command."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_rebalance.errors import KafkaRebalanceError, SparkFailedError

ARROW_BYTES = "4m"
"""The largest size of an Arrow batch; Spark's default, 64m, needs more memory for giant groups."""

HELP = "ship the environment with the job, see docs/cluster.md"

LOG4J = Path(__file__).with_name("log4j2.properties")

_WORKERS_PYTHON = "spark.sql.execution.pyspark.python"

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for a session of about a minute: less compilation, fewer threads."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turns an exception of Spark into a SparkFailedError with a message of one line."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailedError(f"Spark: {sentence(str(error))}") from error


def sentence(text: str) -> str:
    """Returns one line: the cause, which is often far below the first line of Spark's message."""
    if found := re.search(r"No module named '[\w.]+' on an executor \(.*\): .*", text):
        return found[0]
    if found := re.search(r"No module named '([\w.]+)'", text):
        return f"the executors' Python has no module {found[1]}: {HELP}"
    if found := re.search(r'Cannot run program "([^"]+)"', text):
        return (
            f"the executors have no Python {found[1]}: name one that exists on every machine, "
            "see docs/cluster.md"
        )
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if "Traceback (most recent call last)" in text:
        python = re.findall(
            r"^((?:\w+\.)*\w*(?:Error|Exception|Throws|Ends)\b.*)$", text, re.MULTILINE
        )
        if python:
            return str(python[-1])
    if lines and lines[0].startswith("An error occurred while calling"):
        return ": ".join(lines[1:2]).removeprefix(": ") or lines[0]
    return lines[0] if lines else "no message"


_CONNECT_PORT = 15_002  # Spark Connect's default
_CONNECT_S = 10.0


def _check_server(remote: str) -> None:
    """Raises an error if no server answers, because Spark's client would try for minutes."""
    url = urlsplit(remote)
    if url.scheme != "sc" or not url.hostname:
        return  # Spark itself reports what is wrong with the URL
    try:
        socket.create_connection((url.hostname, url.port or _CONNECT_PORT), _CONNECT_S).close()
    except OSError as error:
        raise KafkaRebalanceError(f"{remote}: no Spark Connect server there: {error}") from None


def session(
    name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    progress: bool = False,
    brief: bool = False,
) -> SparkSession:
    """Returns a quiet session; `progress` shows Spark's own bar on standard error.

    `brief` is for a session of about a minute on this machine: it starts faster, but a long job
    would run slower.

    With `remote` (`sc://host:port`), the session uses Spark Connect. Otherwise, under spark-submit
    or if a session is already running, no master, memory or Python is set here, because settings in
    code would override the options of spark-submit. In all other cases the session uses `master`,
    by default local[*]: this machine.
    """
    builder = SparkSession.builder.appName(f"kafka-rebalance {name}").config(
        "spark.sql.execution.arrow.maxBytesPerBatch", ARROW_BYTES
    )
    if remote is not None:
        _check_server(remote)
        connected: SparkSession = builder.remote(remote).getOrCreate()
        return connected
    if is_submitted():
        running: SparkSession = builder.getOrCreate()
        return running
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise KafkaRebalanceError("Spark needs Java 17 or newer, and there is no java on the path")
    if master is None or master.startswith("local"):
        builder = _on_this_machine(builder)
    java = f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"
    spark: SparkSession = (
        builder.master(master or "local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", str(progress).lower())
        .config("spark.driver.memory", "4g")
        .config("spark.driver.extraJavaOptions", f"{java} {BRIEF}" if brief else java)
        .getOrCreate()
    )
    return spark


def _on_this_machine(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Makes driver and workers run this Python, and connect to each other on this machine only."""
    # Without an activated environment, Spark would start its workers with the system's Python.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return builder.config("spark.driver.host", "127.0.0.1")


def use_this_python(spark: SparkSession) -> None:
    """Makes the workers of a session on this machine run this Python, if no other is set.

    Otherwise they run the first python3 on the PATH. A session on a cluster, or with a Connect
    server elsewhere, is not changed. A Connect server that this process started applies the setting
    to functions, but not to data sources.
    """
    if "PYSPARK_PYTHON" in os.environ:
        return
    if isinstance(spark, SparkSession):
        context = spark.sparkContext
        is_default = context.pythonExec == "python3"
        if is_default and str(context.master).startswith("local"):
            context.pythonExec = sys.executable
    elif "SPARK_LOCAL_REMOTE" in os.environ and spark.conf.get(_WORKERS_PYTHON, None) is None:
        spark.conf.set(_WORKERS_PYTHON, sys.executable)


def check_sources_python(spark: SparkSession) -> None:
    """Raises SparkFailedError if a data source would run in a python3 that cannot load it.

    A Connect server that this process started takes the path of the data sources' Python from its
    environment, not from the session.
    """
    is_own = not isinstance(spark, SparkSession) and "SPARK_LOCAL_REMOTE" in os.environ
    if not is_own or "PYSPARK_PYTHON" in os.environ:
        return
    version = tuple(sys.version_info[:2])
    code = f"import sys, kafka_rebalance; sys.exit(sys.version_info[:2] != {version})"
    try:
        ran = subprocess.run(["python3", "-c", code], capture_output=True, check=False)
        is_fit = ran.returncode == 0
    except FileNotFoundError:
        is_fit = False
    if not is_fit:
        raise SparkFailedError(
            "Spark: the data source would run in python3 of the path, which is another Python or "
            'lacks this package: os.environ["PYSPARK_PYTHON"] = sys.executable before the session '
            "starts"
        )


def is_submitted() -> bool:
    """Returns whether spark-submit started this process, or a session is already running in it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or SparkSession.getActiveSession() is not None

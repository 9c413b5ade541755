# SPDX-License-Identifier: Apache-2.0
"""A Python member in its own process: kafka-python or aiokafka with our plug-in, or librdkafka.

The member obeys its parent process (`piped_consumer.py`), and ends when that has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING, Any

from kafka_rebalance.clients import aiokafka as for_aiokafka
from kafka_rebalance.clients import kafka_python as for_kafka_python
from tests.prediction.python_member import CLASSES
from tests.support.piped_consumer import run_aiokafka, run_kafka_python, run_librdkafka

from .cast import AIOKAFKA, COMMIT_MS, HEARTBEAT_MS, KAFKA_PYTHON, LIBRDKAFKA, MOST_POLL_MS

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from .cast import Part


def run(pipe: Connection, part: Part, bootstrap_server: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    logging.disable(logging.CRITICAL)
    libraries = {KAFKA_PYTHON: _kafka_python, AIOKAFKA: _aiokafka, LIBRDKAFKA: _librdkafka}
    with contextlib.suppress(EOFError):  # the parent process has ended
        libraries[part.library](part, bootstrap_server, pipe)


def _settings(part: Part, bootstrap_server: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap_server,
        "group_id": part.group_id,
        "client_id": part.client_id,
        "group_instance_id": part.group_instance_id,
        "session_timeout_ms": part.session_timeout_ms,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "max_poll_interval_ms": MOST_POLL_MS,
        "metadata_max_age_ms": 1_000,
        "enable_auto_commit": part.commits,
        "auto_commit_interval_ms": COMMIT_MS,
        "auto_offset_reset": "earliest",
    }


def _kafka_python(part: Part, bootstrap_server: str, pipe: Connection) -> None:
    assignor = getattr(for_kafka_python, CLASSES[part.assignor])
    run_kafka_python([assignor], part.topics, _settings(part, bootstrap_server), pipe)


def _aiokafka(part: Part, bootstrap_server: str, pipe: Connection) -> None:
    assignor = getattr(for_aiokafka, CLASSES[part.assignor])
    settings = {**_settings(part, bootstrap_server), "rebalance_timeout_ms": MOST_POLL_MS}
    asyncio.run(run_aiokafka([assignor], part.topics, settings, pipe))


def _librdkafka(part: Part, bootstrap_server: str, pipe: Connection) -> None:
    settings = _settings(part, bootstrap_server)
    settings["enable_auto_commit"] = str(part.commits).lower()
    settings["topic_metadata_refresh_interval_ms"] = settings.pop("metadata_max_age_ms")
    settings["partition_assignment_strategy"] = part.assignor
    configs = {name.replace("_", "."): one for name, one in settings.items() if one is not None}
    run_librdkafka(part.topics, configs, pipe)

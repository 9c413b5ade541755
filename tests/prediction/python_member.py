# SPDX-License-Identifier: Apache-2.0
"""A member that uses a Python client, in its own process, so that it can be killed.

The member obeys its parent process (`piped_consumer.py`), and ends when that has ended. If the
client raises an error, the member sends the error's last line and ends.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import signal
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_rebalance.clients import aiokafka as for_aiokafka
from kafka_rebalance.clients import kafka_python as for_kafka_python
from tests.support.piped_consumer import run_aiokafka, run_kafka_python, run_librdkafka

from .cast import AIOKAFKA, LIBRDKAFKA, OWN_AIOKAFKA, OWN_KAFKA_PYTHON

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from .cast import Part

CLASSES = {
    "range": "Range",
    "roundrobin": "RoundRobin",
    "sticky": "Sticky",
    "cooperative-sticky": "CooperativeSticky",
}
OWN_CLASSES = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}
OWN_PACKAGES = {OWN_KAFKA_PYTHON: "kafka", OWN_AIOKAFKA: "aiokafka"}


def run(
    pipe: Connection,
    part: Part,
    bootstrap_server: str,
    most_poll_ms: int,
    stacks: Path,
    commits: bool = False,
) -> None:
    """Polls until `close` arrives in the pipe; SIGUSR1 writes the call stacks to `stacks`, once
    this file exists.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    new = stacks.with_suffix(".new")
    faulthandler.register(signal.SIGUSR1, new.open("w"))
    new.rename(stacks)
    logging.disable(logging.CRITICAL)
    settings = {
        "bootstrap_servers": bootstrap_server,
        "group_id": part.group_id,
        "client_id": part.client_id,
        "group_instance_id": part.group_instance_id,
        "session_timeout_ms": part.session_timeout_ms,
        "heartbeat_interval_ms": 500,
        "max_poll_interval_ms": most_poll_ms,
        "metadata_max_age_ms": 1_000,
        "enable_auto_commit": commits,
        "auto_offset_reset": "earliest",
    }
    if part.rack_id is not None:
        settings["client_rack"] = part.rack_id
    try:
        if part.library == LIBRDKAFKA:
            _librdkafka(part, settings, pipe)
        elif part.library in (AIOKAFKA, OWN_AIOKAFKA):
            settings["rebalance_timeout_ms"] = most_poll_ms
            _aiokafka(part, settings, pipe)
        else:
            _kafka_python(part, settings, pipe)
    except EOFError:
        pass  # the parent process has ended
    except Exception as error:
        pipe.send(traceback.format_exception_only(error)[-1].strip())


def _classes(part: Part, plug_ins: Any) -> list[Any]:
    """Returns the assignors of the list: the library's own classes, or our plug-ins."""
    if part.library not in OWN_PACKAGES:
        return [getattr(plug_ins, CLASSES[one])(rack_id=part.rack_id) for one in part.assignors]
    package = f"{OWN_PACKAGES[part.library]}.coordinator.assignors"
    own = (OWN_CLASSES[one] for one in part.assignors)
    return [getattr(import_module(f"{package}.{module}"), name) for module, name in own]


def _librdkafka(part: Part, settings: dict[str, Any], pipe: Connection) -> None:
    names = {"bootstrap_servers": "bootstrap.servers"}
    left_out = ("metadata_max_age_ms",)
    configs = {
        names.get(name, name.replace("_", ".")): value
        for name, value in settings.items()
        if value is not None and name not in left_out
    }
    configs["topic.metadata.refresh.interval.ms"] = 1_000
    configs["partition.assignment.strategy"] = ",".join(part.assignors)
    run_librdkafka(part.subscription, configs, pipe)


def _kafka_python(part: Part, settings: dict[str, Any], pipe: Connection) -> None:
    run_kafka_python(_classes(part, for_kafka_python), part.subscription, settings, pipe)


def _aiokafka(part: Part, settings: dict[str, Any], pipe: Connection) -> None:
    classes = _classes(part, for_aiokafka)
    asyncio.run(run_aiokafka(classes, part.subscription, settings, pipe))

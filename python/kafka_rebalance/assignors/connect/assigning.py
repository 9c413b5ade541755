# SPDX-License-Identifier: Apache-2.0
"""Both engines of Connect's assignors behind one entry each."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kafka_rebalance import _core
from kafka_rebalance.assignors.registry import Engine, check_engine

from . import eager, incremental
from .memory import Memory
from .spec import ConnectSpec, Result
from .work import Work


def handle(
    memory: Memory, spec: ConnectSpec, now_ms: int, *, engine: Engine = "rust"
) -> tuple[Memory, Result]:
    """One round of the incremental cooperative leader; `Memory()` is a new leader's.

    Errors   AssignorThrows without workers.
    """
    if check_engine(engine) == "reference":
        return incremental.handle(memory, spec, now_ms)
    round_ = {"memory": memory.to_dict(), "spec": spec.to_dict(), "now_ms": now_ms}
    answer = json.loads(_core.connect_incremental(json.dumps(round_)))
    result = answer["result"]
    return Memory.from_dict(answer["memory"]), Result(
        _works(result["assigned"]),
        _works(result["revoked"]),
        result["delay_ms"],
        result["scheduled_rebalance_ms"],
    )


def assign_eager(
    workers: Sequence[str], config: Mapping[str, int], *, engine: Engine = "rust"
) -> dict[str, Work]:
    """The eager assignor; `workers` in member order, `config` is connector -> number of tasks."""
    if check_engine(engine) == "reference":
        return eager.assign(workers, config)
    works = json.loads(_core.connect_eager(workers, json.dumps(config)))
    return {w: Work.from_dict(work) for w, work in zip(workers, works, strict=True)}


def _works(entries: list[tuple[str, dict[str, Any]]]) -> dict[str, Work]:
    return {worker: Work.from_dict(work) for worker, work in entries}

# SPDX-License-Identifier: Apache-2.0
"""Runs the assignors of Connect's leader in the core or in the reference."""

from collections.abc import Mapping, Sequence

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.registry import Engine, check_engine

from . import eager, incremental
from .incremental import ConnectSpec, Memory, Result
from .work import Work


def handle(
    memory: Memory, spec: ConnectSpec, now_ms: int, *, engine: Engine = "rust"
) -> tuple[Memory, Result]:
    """Runs one round of the incremental leader: returns its new memory, and the round's result.

    The memory of a new leader is `Memory()`.
    """
    if check_engine(engine) == "reference":
        return incremental.handle(memory, spec, now_ms)
    return _core.connect_incremental(memory, spec, now_ms)


def assign_eager(
    workers: Sequence[str], config: Mapping[str, int], *, engine: Engine = "rust"
) -> dict[str, Work]:
    """Runs the eager assignor; `workers` are in member order, `config` is as in `ConnectSpec`."""
    if check_engine(engine) == "reference":
        return eager.assign(workers, config)
    return _core.connect_eager(workers, config)

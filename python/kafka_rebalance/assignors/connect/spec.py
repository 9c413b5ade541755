# SPDX-License-Identifier: Apache-2.0
"""The input of Connect's incremental leader in one round, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from .work import Work


@dataclass(frozen=True, slots=True)
class ConnectSpec:
    """The workers in member order, each with the work that it reports to run.

    `config` is connector -> number of tasks; `max_delay_ms` is
    scheduled.rebalance.max.delay.ms; the generations are the group's.
    """

    running: Mapping[str, Work]
    config: Mapping[str, int]
    max_delay_ms: int
    generation_id: int
    last_completed_generation_id: int


@dataclass(frozen=True, slots=True)
class Result:
    """The work that each worker starts and stops, and when the leader wants the next round.

    `delay_ms` 0 means no wait; `scheduled_rebalance_ms` 0 means that none is scheduled.
    """

    assigned: Mapping[str, Work]
    revoked: Mapping[str, Work]
    delay_ms: int
    scheduled_rebalance_ms: int

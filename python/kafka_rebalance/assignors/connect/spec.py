# SPDX-License-Identifier: Apache-2.0
"""What Connect's incremental leader is told in one round, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from .work import Work


@dataclass(frozen=True, slots=True)
class ConnectSpec:
    """Workers in member order, each with what it reports to run.

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
    """What each worker starts and stops, and when the leader wants the next round.

    `delay_ms` 0 is no wait; `scheduled_rebalance_ms` 0 is none scheduled.
    """

    assigned: Mapping[str, Work]
    revoked: Mapping[str, Work]
    delay_ms: int
    scheduled_rebalance_ms: int

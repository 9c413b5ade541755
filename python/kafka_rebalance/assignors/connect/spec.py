# SPDX-License-Identifier: Apache-2.0
"""The input of one round of Connect's incremental leader, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass

from .work import Work


@dataclass(frozen=True, slots=True)
class ConnectSpec:
    """The input of a round: the workers in member order, each with the work that it reports.

    `config` maps each connector to its number of tasks. `max_delay_ms` is the setting
    scheduled.rebalance.max.delay.ms. `generation_id` is the generation that this round makes;
    `last_completed_generation_id` is the newest one whose assignment the leader has received.
    """

    running: Mapping[str, Work]
    config: Mapping[str, int]
    max_delay_ms: int
    generation_id: int
    last_completed_generation_id: int


@dataclass(frozen=True, slots=True)
class Result:
    """The work that each worker starts and stops; the next round follows after `delay_ms`.

    `scheduled_rebalance_ms` is the time of that round. If none is scheduled, both are 0.
    """

    assigned: Mapping[str, Work]
    revoked: Mapping[str, Work]
    delay_ms: int
    scheduled_rebalance_ms: int

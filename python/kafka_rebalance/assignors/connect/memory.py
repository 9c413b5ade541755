# SPDX-License-Identifier: Apache-2.0
"""The data that Connect's incremental leader keeps from one round to the next."""

from dataclasses import dataclass

from .work import NOTHING, Work


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a leader after a round; the memory of a new leader is `Memory()`.

    assigned                the work of all workers, and the waiting lost work; sorted
    revoked                 the work that the round revoked; sorted
    candidates              the workers that had no work in some round while lost work waited
    scheduled_rebalance_ms  the time of the next round in ms; 0 if none is scheduled
    """

    assigned: Work = NOTHING
    revoked: Work = NOTHING
    generation_id: int = -1
    members: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    scheduled_rebalance_ms: int = 0
    delay_ms: int = 0
    revoked_in_previous: bool = False
    revoking_rounds: int = 0

# SPDX-License-Identifier: Apache-2.0
"""What Connect's incremental leader remembers from one round to the next."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .work import NOTHING, Work


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a leader after a round; the memory of a new leader is `Memory()`.

    assigned                the work of all workers, with the lost work that waits; sorted
    revoked                 the work that the round revoked; sorted
    candidates              the workers that returned without work, in the order of their return
    scheduled_rebalance_ms  the time of the next round; 0 if the leader waits for nothing
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

    def to_dict(self) -> dict[str, Any]:
        """Returns a form for JSON, which `from_dict` reads."""
        work = {"assigned": self.assigned.to_dict(), "revoked": self.revoked.to_dict()}
        return {**asdict(self), **work}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Memory":
        work = {name: Work.from_dict(fields[name]) for name in ("assigned", "revoked")}
        lists = {name: tuple(fields[name]) for name in ("members", "candidates")}
        return cls(**{**fields, **work, **lists})

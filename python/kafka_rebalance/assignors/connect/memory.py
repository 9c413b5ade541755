# SPDX-License-Identifier: Apache-2.0
"""The memory of Connect's incremental leader from one round to the next."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .work import NOTHING, Work


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a leader; that of a new leader is `Memory()`. All but `candidates` is sorted.

    `assigned` is the work of each worker after the last round, including lost work that waits;
    `revoked` is the work that this round took away; `candidates` are the workers, in order, that
    came back without work; `scheduled_rebalance_ms` is 0 if the leader waits for nothing.
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

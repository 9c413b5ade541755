# SPDX-License-Identifier: Apache-2.0
"""What Connect's incremental leader remembers from one round to the next."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .work import NOTHING, Work


@dataclass(frozen=True, slots=True)
class Memory:
    """A new leader's memory is `Memory()`. Sets are kept sorted, `candidates` in order.

    `assigned` is what ran where after the last round, what is lost and waits included; `revoked`
    what that round took away; `candidates` are workers that came back with nothing to run;
    `scheduled_rebalance_ms` is 0 when nothing is waited for.
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
        """For JSON; `from_dict` reads it back."""
        work = {"assigned": self.assigned.to_dict(), "revoked": self.revoked.to_dict()}
        return {**asdict(self), **work}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Memory":
        work = {name: Work.from_dict(fields[name]) for name in ("assigned", "revoked")}
        lists = {name: tuple(fields[name]) for name in ("members", "candidates")}
        return cls(**{**fields, **work, **lists})

# SPDX-License-Identifier: Apache-2.0
"""Draws the delays of the simulation's messages; messages of one connection arrive in order."""

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The delays: a message takes `delay_ms` plus up to `spread_ms`, an append takes `log_ms`."""

    delay_ms: int = 2
    spread_ms: int = 1
    log_ms: int = 2


@dataclass(eq=False, slots=True)
class Wire:
    """Draws arrival times; a message never overtakes an older message of its connection."""

    network: Network
    rng: random.Random
    last_ms: dict[tuple[str, str], int] = field(default_factory=dict)  # by sender and receiver

    def arrival_ms(self, sender: str, receiver: str, now_ms: int) -> int:
        """Returns the arrival time of a message that leaves the sender at `now_ms`."""
        delay = self.network.delay_ms + self.rng.randint(0, self.network.spread_ms)
        at = max(now_ms + delay, self.last_ms.get((sender, receiver), 0))
        self.last_ms[sender, receiver] = at
        return at

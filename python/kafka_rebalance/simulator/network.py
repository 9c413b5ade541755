# SPDX-License-Identifier: Apache-2.0
"""Message delays, drawn from a seed; messages of one connection arrive in order."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The delays: a message takes `delay_ms` plus up to `spread_ms`, an append takes `log_ms`."""

    delay_ms: int = 2
    spread_ms: int = 1
    log_ms: int = 2


class Wire:
    """Draws arrival times; a message never overtakes an older message of its connection."""

    def __init__(self, network: Network, rng: random.Random) -> None:
        self._network = network
        self._rng = rng
        self._last: dict[tuple[str, str], int] = {}

    def arrival_ms(self, sender: str, receiver: str, now_ms: int) -> int:
        """Returns when a message that is sent now arrives."""
        delay = self._network.delay_ms + self._rng.randint(0, self._network.spread_ms)
        at = max(now_ms + delay, self._last.get((sender, receiver), 0))
        self._last[sender, receiver] = at
        return at

# SPDX-License-Identifier: Apache-2.0
"""Chooses the delays of messages at random; messages of one connection arrive in order."""

import random
from dataclasses import field

from kafka_rebalance.frozen import Message, Mutable
from kafka_rebalance.group.declared_types import check_fields, check_times


class Network(Message):
    """The delays: a message takes `delay_ms` plus up to `spread_ms`, an append takes `log_ms`.

    Errors: GroupError for a negative delay.
    """

    delay_ms: int = 2
    spread_ms: int = 1
    log_ms: int = 2

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)


class Wire(Mutable):
    """Chooses arrival times; a message never overtakes an older message of its connection."""

    network: Network
    rng: random.Random
    last_ms: dict[tuple[str, str], int] = field(default_factory=dict)  # by (sender, receiver)

    def arrival_ms(self, sender: str, receiver: str, now_ms: int) -> int:
        """Returns the arrival time of a message that leaves the sender at `now_ms`."""
        # This chooses like `randrange(delays)`, in a tenth of the time.
        delays = self.network.spread_ms + 1
        bits = delays.bit_length()
        while (extra := self.rng.getrandbits(bits)) >= delays:
            pass
        connection = (sender, receiver)
        at = now_ms + self.network.delay_ms + extra
        at = self.last_ms[connection] = max(at, self.last_ms.get(connection, 0))
        return at

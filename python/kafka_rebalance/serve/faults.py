# SPDX-License-Identifier: Apache-2.0
"""Rules for faulty answers: a kind's n-th request is refused, or its answer is late, lost or cut.

    Fault("OffsetCommit", nth=2, error="NOT_COORDINATOR")
    Fault("Heartbeat", client_id="a", times=3, delay_ms=5_000)

A rule counts the requests of its kind from the moment it is added. If several rules apply to a
request, the rule that was added last counts.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.wire.messages import Response

from .frames import APIS, Asked, KafkaError


class Fault(NamedTuple):
    """A rule for the requests number `nth` to `nth + times - 1` of a kind.

    `api` is Kafka's name, such as "OffsetCommit"; `client_id` None means every client. With
    `error`, a request is refused and not carried out; without `error`, it is carried out. The
    answer is sent `delay_ms` later by the server's clock. If the answer is `lost`, the connection
    stays open, but no later request on it is read. With `cut_at`, the connection is closed after
    that many bytes of the answer.
    """

    api: str
    nth: int = 1
    times: int = 1
    client_id: str | None = None
    error: str | int | None = None
    delay_ms: int = 0
    lost: bool = False
    cut_at: int | None = None

    def checked(self) -> "Fault":
        """Returns the rule with this package's spelling of `api`, and with `error` as a number.

        Errors: GroupError at the wrong field.
        """
        api = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.api).lower()
        if api not in APIS:
            raise GroupError("api", f"{self.api!r} is not a request that is answered here")
        if self.nth < 1 or self.times < 1:
            raise GroupError("nth, times", f"{self.nth}, {self.times}: both count from 1")
        for field, number in (("delay_ms", self.delay_ms), ("cut_at", self.cut_at or 0)):
            if number < 0:
                raise GroupError(field, f"{number} is less than 0")
        if (self.error, self.delay_ms, self.lost, self.cut_at) == (None, 0, False, None):
            raise GroupError("error", "give one of error, delay_ms, lost and cut_at")
        if self.error is None:
            return self._replace(api=api)
        try:
            name = self.error
            code = KafkaError[name.lower()] if isinstance(name, str) else KafkaError(name)
            if code is KafkaError.none:
                raise ValueError
        except (KeyError, ValueError):
            known = "Kafka's name or number, as NOT_COORDINATOR or 16"
            raise GroupError("error", f"{self.error!r} is not an error; give {known}") from None
        return self._replace(api=api, error=int(code))


class Broken(NamedTuple):
    """An answer that is cut after its first bytes; the connection then closes, or hangs."""

    fields: Mapping[str, Any] | Response
    sent: int
    hangs: bool


class Faults:
    """The rules of a server, each with a counter of its requests."""

    def __init__(self) -> None:
        self._rules: list[tuple[Fault, Iterator[int]]] = []

    def add(self, fault: Fault) -> None:
        """Adds a rule. Errors: GroupError."""
        self._rules.append((fault.checked(), count(1)))

    def clear(self) -> None:
        self._rules.clear()

    def of(self, asked: Asked) -> Fault | None:
        """Counts a request; returns the rule that applies to it, or None."""
        found = None
        for rule, numbers in self._rules:
            is_about = rule.api == asked.api and rule.client_id in (None, asked.client_id)
            if is_about and rule.nth <= next(numbers) < rule.nth + rule.times:
                found = rule
        return found

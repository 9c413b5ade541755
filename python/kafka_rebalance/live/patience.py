# SPDX-License-Identifier: Apache-2.0
"""Repeats refused requests, and waits while a watched group's coordinator is down (`Patience`).

1. The first failure is reported, and so is the next successful read. Failures between are not.
2. After each failure, a new connection is tried. While any bootstrap server answers, the wait goes
   on: another broker may become the coordinator, or the coordinator's broker may come back.
3. The wait ends with the error if no server has answered for PATIENCE_S. Before the group has been
   read for the first time, it ends at once if no server answers, and after PATIENCE_S in any case:
   the address may be wrong. Until then, a failed attempt and the new connection have one timeout.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka_rebalance.errors import NotReachedError

from .cluster import admin_client

_T = TypeVar("_T")

RETRY_S = 10.0
"""For how many seconds a request is repeated: a new leader or coordinator may first refuse it."""


def retried(call: Callable[[], _T], is_retriable: Callable[[Exception], bool]) -> _T:
    """Repeats a call for at most RETRY_S, while it raises errors that `is_retriable` accepts."""
    deadline = time.monotonic() + RETRY_S
    while True:
        try:
            return call()
        except Exception as error:
            if not is_retriable(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


PATIENCE_S = 60.0
"""For how many seconds a cluster may be silent; a broker restarts in less time."""

_LEAST_S = 0.5
"""A new connection has at least this many seconds."""


class Patience:
    """Repeats the requests of one watch. `for_s` are the seconds of the whole watch, if limited.

    `on_lost` is called with the reason when the group cannot be read any more, `on_back` when it
    has been read again. The reason lacks the bootstrap servers, because other servers may fail.
    """

    def __init__(
        self,
        bootstrap_server: str,
        configs: Mapping[str, Any] | None,
        *,
        every_s: float = 0.5,
        for_s: float | None = None,
        on_lost: Callable[[str], None] = lambda _: None,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._where = bootstrap_server, configs
        self.every_s = every_s
        self._heard_s = self._asked_s = time.monotonic()
        self._ends_s = None if for_s is None else self._heard_s + for_s
        self._on_lost, self._on_back = on_lost, on_back
        self._has_begun = self._is_lost = False

    @property
    def is_over(self) -> bool:
        """Returns whether the time of the watch is over."""
        return self._ends_s is not None and time.monotonic() >= self._ends_s

    def asked(self, call: Callable[[], _T]) -> _T | None:
        """Repeats `call` until it succeeds; returns its value, or None if the watch ends first."""
        while True:
            try:
                answer = call()
            except NotReachedError as error:
                self.wait(error)
                if self.is_over:
                    return None
            else:
                self.reached()
                return answer

    def reached(self) -> None:
        """Records that the group has been read."""
        self._has_begun = True
        self._heard_s = self._asked_s = time.monotonic()
        if self._is_lost:
            self._is_lost = False
            self._on_back()

    def wait(self, error: NotReachedError) -> None:
        """Waits before another attempt; raises the error if no other attempt is worth it."""
        # 2.
        answers = not error.none_answered and self._answers()
        if answers and self._has_begun:
            self._heard_s = time.monotonic()
        # 3.
        is_hopeless = not answers and not self._has_begun
        if is_hopeless or time.monotonic() - self._heard_s > PATIENCE_S:
            raise error
        # 1.
        if not self._is_lost:
            self._is_lost = True
            self._on_lost(str(error).removeprefix(f"{self._where[0]}: "))
        time.sleep(self.every_s)
        self._asked_s = time.monotonic()

    def _answers(self) -> bool:
        server, configs = self._where
        if not self._has_begun and configs is not None:
            left_s = configs["request_timeout_ms"] / 1000 - (time.monotonic() - self._asked_s)
            left_ms = int(1000 * max(_LEAST_S, left_s))
            configs = {**configs, "bootstrap_timeout_ms": left_ms, "request_timeout_ms": left_ms}
        try:
            with admin_client(server, configs):
                return True
        except NotReachedError:
            return False

# SPDX-License-Identifier: Apache-2.0
"""Repeats requests that a new leader or coordinator may first refuse."""

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

RETRY_S = 10.0
"""The number of seconds for which a request is repeated."""


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

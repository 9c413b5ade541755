# SPDX-License-Identifier: Apache-2.0
"""Repeats requests that a cluster refuses for a short time."""

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

RETRY_S = 10.0
"""How many seconds a request is repeated: a new leader or coordinator refuses requests at first."""


def retried(call: Callable[[], _T], is_retriable: Callable[[Exception], bool]) -> _T:
    """Repeats a call that fails while the cluster changes leaders, at most for RETRY_S.

    `is_retriable` is False for a call whose time was over: it has waited for the cluster itself.
    """
    deadline = time.monotonic() + RETRY_S
    while True:
        try:
            return call()
        except Exception as error:
            if not is_retriable(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.1)

# SPDX-License-Identifier: Apache-2.0
"""Waits for events; the deadline is far away, because a slow machine must not fail a test."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FAR_S = 240.0
"""Nothing that happens at all takes this long, not even the start of a JVM on a busy machine."""

_LOOK_AGAIN_S = 0.05


def until(what: str, happened: Callable[[], object]) -> None:
    """Waits until `happened()`. Errors: AssertionError that names `what`, after FAR_S."""
    deadline = time.monotonic() + FAR_S
    while not happened():
        assert time.monotonic() < deadline, f"not within {FAR_S:.0f} s: {what}"
        time.sleep(_LOOK_AGAIN_S)

# SPDX-License-Identifier: Apache-2.0
"""Polls of kafka-python's consumer that end when another thread closes it, not by a timeout.

If a poll of kafka-python 3.0.12 ends while the consumer waits for its assignment, the consumer can
lose that assignment for good. So a poll here is long, and stopping must not wait for its end.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_MS = 60_000


def poll_until(
    ended: threading.Event, consumer: Any, use: Callable[[dict[Any, Any]], object] | None = None
) -> None:
    """Polls until `ended` is set, then closes the consumer; `use` is called with the records."""

    def close() -> None:
        ended.wait()
        consumer.close()

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    try:
        while not ended.is_set():
            records = consumer.poll(POLL_MS)
            if use is not None:
                use(records)
    except Exception:  # the poll of a consumer that is closed meanwhile can raise any error
        if not ended.is_set():
            raise
    closing.join()

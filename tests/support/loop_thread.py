# SPDX-License-Identifier: Apache-2.0
"""An event loop in a thread of its own, whose tasks all end before the loop is closed.

If a coroutine still waits when its loop has ended, Python's garbage collector ends the coroutine at
any later time: its `finally` cannot wait then, and an unrelated test reports the error.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Coroutine

_CANCELS = 2
"""The first cancellation may end a poll, and begin the client's stop; the second ends a hanging
stop.
"""


class LoopThread:
    """Runs coroutines; `close` gives them `patience_s` to end, then cancels them."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Ends all tasks, also those that the clients have started, and closes the loop."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(FAR_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(FAR_S)
        self._loop.close()

    async def _end(self) -> None:
        await self._await_others()
        for _ in range(_CANCELS):
            for task in self._others():
                task.cancel()
            await self._await_others()
        await self._loop.shutdown_asyncgens()

    async def _await_others(self) -> None:
        if others := self._others():
            await asyncio.wait(others, timeout=self._patience_s)

    def _others(self) -> set[asyncio.Task[Any]]:
        return asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}

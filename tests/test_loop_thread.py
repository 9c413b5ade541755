# SPDX-License-Identifier: Apache-2.0
"""Python members in tests end with their test: none is left to the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any, Self

import pytest

from tests.support import live_members, plug_in_members
from tests.support.long_polls import poll_until
from tests.support.waiting import FAR_S

aiokafka = pytest.importorskip("aiokafka", reason="not installed: pip install -e '.[aiokafka]'")


class SlowConsumer:
    """A consumer whose broker is too slow: a call waits longer than a test may take."""

    started = threading.Event()
    waits_in: str

    def __init__(self, *_: object, **__: object) -> None:
        self.pending = asyncio.get_running_loop().create_task(asyncio.sleep(600))

    async def start(self) -> None:
        self.started.set()
        await self._wait("start")

    async def getmany(self, timeout_ms: int) -> None:
        await self._wait("getmany")
        await asyncio.sleep(timeout_ms / 1000)

    async def stop(self) -> None:
        await self._wait("stop")
        self.pending.cancel()

    def subscribe(self, topics: list[str]) -> None:
        pass

    def assignment(self) -> set[Any]:
        return set()

    async def _wait(self, where: str) -> None:
        if where in self.waits_in:
            await asyncio.sleep(600)

    @classmethod
    def that_waits_in(cls, where: str) -> type[Self]:
        return type("Slow", (cls,), {"waits_in": where, "started": threading.Event()})


@pytest.mark.parametrize("where", ["start", "getmany", "stop", "getmany and stop"])
@pytest.mark.parametrize("members", ["plug-ins", "clients"])
def test_a_member_that_is_too_slow_is_ended(
    monkeypatch: pytest.MonkeyPatch, members: str, where: str
) -> None:
    """Python would report `coroutine ignored GeneratorExit`, during some later test."""
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    consumer = SlowConsumer.that_waits_in(where)
    monkeypatch.setattr(aiokafka, "AIOKafkaConsumer", consumer)
    monkeypatch.setattr(plug_in_members, "CLOSE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(live_members, "_CLOSE_TIMEOUT_S", 0.3)
    if members == "plug-ins":
        ours = plug_in_members.PlugInMembers("localhost:1")
        ours.add("aiokafka", "g", "m", object, ["t"])
    else:
        theirs = live_members.PythonMembers("localhost:1")
        theirs.add("aiokafka", "g", "m", "range", ["t"])
    assert consumer.started.wait(FAR_S)
    if members == "plug-ins":
        ours.close()
        del ours
    else:
        theirs.close()
        del theirs
    gc.collect()
    assert [str(one.exc_value) for one in reports] == []


class PolledConsumer:
    """A consumer whose poll lasts until it is closed, and then raises, or raises at once."""

    def __init__(self, *, fails: bool = False) -> None:
        self.polls, self.closed, self._fails = threading.Event(), threading.Event(), fails

    def poll(self, timeout_ms: int) -> dict[Any, Any]:
        self.polls.set()
        if not self._fails:
            self.closed.wait(timeout_ms / 1000)
        raise RuntimeError("closed" if self.closed.is_set() else "failed")

    def close(self) -> None:
        self.closed.set()


def test_a_long_poll_ends_with_its_consumer() -> None:
    ended, consumer = threading.Event(), PolledConsumer()
    polling = threading.Thread(target=poll_until, args=(ended, consumer), daemon=True)
    polling.start()
    assert consumer.polls.wait(FAR_S)
    ended.set()
    polling.join(FAR_S)
    assert not polling.is_alive()
    with pytest.raises(RuntimeError, match="failed"):
        poll_until(threading.Event(), PolledConsumer(fails=True))

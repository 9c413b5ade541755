# SPDX-License-Identifier: Apache-2.0
"""Runs a client's process for `probe`: starts it, restarts it when it dies, and ends it."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Self

from kafka_rebalance.errors import GroupError

from .probe import Probe, Result
from .probe_cases import ProbeCase
from .probe_workers import CONSUMERS, PATIENCE_S, REFETCHES

_MOST_ASKED = 64


class ProbedClient:
    """A client's process and the probe that it connects to.

    async with ProbedClient("range", library="kafka-python") as client:
        async for result in client.results(cases):
            …
    """

    def __init__(
        self,
        assignor: str,
        *,
        library: str | None = None,
        command: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.probe = Probe(refetches=library in REFETCHES)
        self._assignor, self._library, self._command = assignor, library, command
        self._patience_s = patience_s
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.probe.__aenter__()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            await _kill(self._process)
        await self.probe.__aexit__()

    async def results(self, cases: Iterable[ProbeCase]) -> AsyncIterator[Result]:
        """Yields the fields of a result line (docs/contract.md) for each case, in order.

        Errors: GroupError if the client cannot run.
        """
        asked: deque[asyncio.Task[Result]] = deque()
        for case in cases:
            asked.append(asyncio.create_task(self.probe.ask(case)))
            if len(asked) == _MOST_ASKED:
                yield await self._first(asked)
        while asked:
            yield await self._first(asked)

    async def _first(self, asked: deque[asyncio.Task[Result]]) -> Result:
        assert self._running is not None
        await asyncio.wait((asked[0], self._running), return_when=asyncio.FIRST_COMPLETED)
        if not asked[0].done():
            self._running.result()  # raises the GroupError if the client cannot run
        return await asked.popleft()

    def _words(self) -> Sequence[str]:
        """Returns the command line, with the values of {address} and {assignor}."""
        address, assignor, library = self.probe.address, self._assignor, self._library
        if self._command is not None:
            words = shlex.split(self._command)
            return [
                one.replace("{address}", address).replace("{assignor}", assignor) for one in words
            ]
        assert library is not None
        worker = [sys.executable, "-m", f"{__package__}.probe_workers"]
        return [*worker, library, address, assignor, str(CONSUMERS[library])]

    async def _run(self) -> None:
        while True:
            process = self._process = await self._started()
            assert process.stderr is not None
            last = asyncio.create_task(_last_line(process.stderr))
            problem = await self._watch(process)
            ended = problem or f"{_ended(await process.wait())}: {await last}".rstrip(": ")
            if not self.probe.in_flight:
                raise GroupError(self._option(), ended)
            await self.probe.client_died(ended)

    def _option(self) -> str:
        return "--client" if self._command is None else "--command"

    async def _started(self) -> asyncio.subprocess.Process:
        words = self._words()
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            problem = f"{words[0]} cannot be started: {error.strerror}"
            raise GroupError(self._option(), problem) from None

    async def _watch(self, process: asyncio.subprocess.Process) -> str | None:
        """Waits until the process has ended; returns the problem if it was killed as too slow."""
        oldest: dict[Any, float] = {}
        clock = asyncio.get_running_loop().time
        while process.returncode is None:
            with contextlib.suppress(TimeoutError):  # it still runs: check the age of its cases
                await asyncio.wait_for(process.wait(), 0.2)
            oldest = {job: oldest.get(job, clock()) for job in self.probe.in_flight}
            if any(clock() - since > self._patience_s for since in oldest.values()):
                await _kill(process)
                return f"no answer in {self._patience_s:.0f} s"
        return None


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kills the process and its child processes, which would keep its pipes open."""
    with contextlib.suppress(ProcessLookupError):  # the process has already ended
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _last_line(stream: asyncio.StreamReader) -> str:
    last = ""
    async for line in stream:
        last = line.decode(errors="replace").strip() or last
    return last


def _ended(code: int) -> str:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"the client's process ended with {how}"

# SPDX-License-Identifier: Apache-2.0
"""Runs members of Python clients, each in its own process, so that it can be killed."""

from __future__ import annotations

import contextlib
import multiprocessing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

CLOSE_TIMEOUT_S = 10.0
"""The time in which a member's process closes its consumer, or ends after it was killed."""


class MemberProcesses:
    """The members by name: `running` holds their processes, each with the pipe to it."""

    def __init__(self, run: Callable[..., None]) -> None:
        """Starts no member; a member's process calls `run(pipe, *arguments of start)`."""
        self.running: dict[str, tuple[ForkServerProcess, Connection]] = {}
        self._run = run
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([run.__module__])

    def start(self, name: str, *arguments: Any) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=self._run, args=(theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        self.running[name] = process, ours

    def subscribe(self, name: str, topics: tuple[str, ...]) -> None:
        _send(self.running[name][1], ("subscribe", topics))

    def close(self, name: str) -> None:
        """Lets a member close its consumer; returns when it has closed, or after a timeout."""
        process, pipe = self.running.pop(name)
        _send(pipe, ("close", ()))
        process.join(CLOSE_TIMEOUT_S)
        _kill(process, pipe)

    def kill(self, name: str) -> None:
        """Ends a member without a LeaveGroup."""
        _kill(*self.running.pop(name))

    def kill_all(self) -> None:
        for name in list(self.running):
            self.kill(name)


def _send(pipe: Connection, command: tuple[str, tuple[str, ...]]) -> None:
    """Sends a command to a member's process; if the member has ended, does nothing."""
    with contextlib.suppress(OSError):
        pipe.send(command)


def _kill(process: ForkServerProcess, pipe: Connection) -> None:
    process.kill()
    process.join(CLOSE_TIMEOUT_S)
    pipe.close()

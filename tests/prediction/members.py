# SPDX-License-Identifier: Apache-2.0
"""Runs the members: all Java members in one JVM, each Python member in its own process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from tests.support.live_members import JavaMembers
from tests.support.member_processes import MemberProcesses

from . import python_member
from .cast import JAVA

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .cast import Part

WRITING_S = 0.5
FRAMES = 6
LIBRARY = re.compile(r'".*/(?:site-packages|lib/python[\d.]+)/|"')
MOST_POLL_MS = 15_000
"""The maximum poll interval: a client that hangs longer than this leaves its group."""

# Metadata are renewed every second, so that a leader soon sees new partitions.
JAVA_CONFIGS = {
    "group.protocol": "classic",
    "heartbeat.interval.ms": "500",
    "max.poll.interval.ms": str(MOST_POLL_MS),
    "metadata.max.age.ms": "1000",
    "enable.auto.commit": "false",
}


class Members:
    """All members of a run. Any thread may call it; the end of `with` ends every member."""

    def __init__(self, bootstrap_server: str, directory: Path) -> None:
        """Starts no member; the members' logs will go to `directory`."""
        self._server = bootstrap_server
        self._directory = directory
        self._java = JavaMembers(bootstrap_server, directory / "java.log")
        self._lock = threading.Lock()
        self._python = MemberProcesses(python_member.run)
        self._in_java: set[str] = set()

    def start(self, part: Part) -> None:
        if part.library == JAVA:
            self._in_java.add(part.name)
            self._tell(add=[_described(part)])
            return
        self._python.start(part.name, part, self._server, MOST_POLL_MS, self._stacks(part))

    def close(self, part: Part) -> None:
        """Makes the member leave its group; returns when it has left, or after a timeout."""
        if part.library == JAVA:
            self._in_java.remove(part.name)
            self._tell(close=[part.name])
            return
        self._python.close(part.name)

    def kill(self, part: Part) -> None:
        """Ends the member without a LeaveGroup, if it was started."""
        if part.name in self._in_java:
            self._in_java.remove(part.name)
            self._tell(kill=[part.name])
        elif part.name in self._python.running:
            self._python.kill(part.name)

    def subscribe(self, part: Part) -> None:
        """Subscribes the member to the part's present topics; a pattern follows them by itself."""
        if part.pattern is not None:
            return
        if part.library == JAVA:
            self._tell(subscribe={part.name: part.topics})
        else:
            self._python.subscribe(part.name, part.topics)

    def failures(self, parts: Iterable[Part]) -> dict[str, str]:
        """Returns name -> error, for each member that has ended by itself."""
        parts = list(parts)
        failures: dict[str, str] = self._tell()["failures"]
        found = {part.name: failures[part.name] for part in parts if part.name in failures}
        for part in parts:
            if part.name in self._python.running:
                process, pipe = self._python.running[part.name]
                with contextlib.suppress(EOFError, OSError):
                    if pipe.poll():
                        found[part.name] = pipe.recv()
                if not process.is_alive():
                    found.setdefault(part.name, f"ended with {process.exitcode}")
        return found

    def where(self, part: Part) -> str:
        """Returns the call stack of a Python member's main thread, to show where it hangs."""
        if part.name not in self._python.running:
            return "unknown"
        if not self._stacks(part).exists():  # the signal would end it
            return "its start"
        pid = self._python.running[part.name][0].pid
        assert pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
        time.sleep(WRITING_S)
        frames = [
            line.strip().removeprefix("File ")
            for line in self._stacks(part).read_text().rpartition("Current thread")[2].splitlines()
            if line.startswith("  File")
        ]
        return " < ".join(LIBRARY.sub("", frame) for frame in frames[:FRAMES])

    def _stacks(self, part: Part) -> Path:
        return self._directory / f"{part.name.replace('/', '-')}.txt"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._python.kill_all()
        self._java.close()

    def _tell(self, **command: Any) -> dict[str, Any]:
        with self._lock:
            return self._java.send(wait=False, **command)


def _described(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "group_id": part.group_id,
        "client_id": part.client_id,
        "group_instance_id": part.group_instance_id,
        "client_rack": part.rack_id,
        "assignors": part.assignors,
        "topics": part.subscription,
        "configs": {**JAVA_CONFIGS, "session.timeout.ms": str(part.session_timeout_ms)},
    }

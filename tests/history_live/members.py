# SPDX-License-Identifier: Apache-2.0
"""Runs the members: each has its own process, except that some Java members share a JVM."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Self

from tests.support.live_members import JavaMembers
from tests.support.member_processes import MemberProcesses

from . import python_member
from .cast import COMMIT_MS, HEARTBEAT_MS, JAVA, MOST_POLL_MS, OWN_JVM

if TYPE_CHECKING:
    from pathlib import Path

    from .cast import Part


class Members:
    """All members of a run, for calls from any thread; the end of `with` ends every member."""

    def __init__(self, bootstrap_server: str, directory: Path) -> None:
        """Starts no member yet; the JVMs' logs go to `directory`."""
        self._server = bootstrap_server
        self._directory = directory
        self._java = JavaMembers(bootstrap_server, directory / "java.log")
        self._lock = threading.Lock()
        self._python = MemberProcesses(python_member.run)
        self._own: dict[str, JavaMembers] = {}

    def start(self, part: Part) -> None:
        if part.library == JAVA:
            self._tell(add=[_described(part)])
        elif part.library == OWN_JVM:
            log = self._directory / f"{part.client_id}.log"
            self._own[part.client_id] = JavaMembers(self._server, log)
            self._own[part.client_id].send(wait=False, add=[_described(part)])
        else:
            self._python.start(part.client_id, part, self._server)

    def close(self, part: Part) -> None:
        """Closes the member's consumer: a dynamic member sends LeaveGroup."""
        if part.library == JAVA:
            self._tell(close=[part.client_id])
        elif part.library == OWN_JVM:
            member = self._own.pop(part.client_id)
            member.send(wait=False, close=[part.client_id])
            member.close()
        else:
            self._python.close(part.client_id)

    def kill(self, part: Part) -> None:
        """Ends the member without a LeaveGroup: its process is killed, unless it shares a JVM."""
        if part.library == JAVA:
            self._tell(kill=[part.client_id])
        elif part.library == OWN_JVM:
            member = self._own.pop(part.client_id)
            os.kill(member.pid, signal.SIGKILL)
            member.close()
        else:
            self._python.kill(part.client_id)

    def subscribe(self, part: Part) -> None:
        """Subscribes the member to the part's present topics."""
        if part.library == JAVA:
            self._tell(subscribe={part.client_id: part.topics})
        elif part.library == OWN_JVM:
            self._own[part.client_id].send(wait=False, subscribe={part.client_id: part.topics})
        else:
            self._python.subscribe(part.client_id, part.topics)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._python.kill_all()
        for member in self._own.values():
            member.close()
        self._java.close()

    def _tell(self, **command: Any) -> None:
        with self._lock:
            self._java.send(wait=False, **command)


def _described(part: Part) -> dict[str, Any]:
    return {
        "client_id": part.client_id,
        "group_id": part.group_id,
        "group_instance_id": part.group_instance_id,
        "assignors": [part.assignor],
        "topics": part.topics,
        "configs": {
            "group.protocol": "classic",
            "session.timeout.ms": str(part.session_timeout_ms),
            "heartbeat.interval.ms": str(HEARTBEAT_MS),
            "max.poll.interval.ms": str(MOST_POLL_MS),
            "metadata.max.age.ms": "1000",
            "enable.auto.commit": str(part.commits).lower(),
            "auto.commit.interval.ms": str(COMMIT_MS),
        },
    }

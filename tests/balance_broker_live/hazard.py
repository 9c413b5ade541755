# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.balance_broker_live.hazard`: a broker that lacks the plug-in coordinates groups.

Two members of a group read through a broker that has the jar. The broker is started again without
it, as after a rollback, or as if a broker that was forgotten became the coordinator. Then a third
member joins, which names no assignor. Prints the members that have ended, and the others' targets.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from kafka_rebalance.live import snapshot_lines
from tests.modern_live.__main__ import PROPERTIES
from tests.modern_live.judge import settled
from tests.modern_live.members import JAVA, LEARNT_S, LIBRDKAFKA, SELDOM_MS, Client, Members
from tests.support.broker import BALANCED, Broker, BrokerError

from .__main__ import CLASS, WITH_BALANCED

_WAIT_S = 25.0
"""Longer than a member's full heartbeat, which follows a reconnection, and than a session."""


class Seen(NamedTuple):
    """`failures` by member name; at the end, the group's assignor and its numbers of partitions."""

    failures: dict[str, str]
    assignor: str
    partitions: list[int]


def restarted_without(assignor: str | None, *, newcomer_first: bool = False) -> Seen:
    """Returns what happens to a group whose first two members name this assignor (None: none).

    With `newcomer_first`, the third member sends its first heartbeat before the others send theirs.
    """
    group = "g"
    first = [
        Client(library, group, library, ("t",), assignor=assignor) for library in (JAVA, LIBRDKAFKA)
    ]
    third = Client("third", group, LIBRDKAFKA, ("t",))
    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(properties=WITH_BALANCED, first=[BALANCED]) as broker,
        Members(broker.bootstrap_server, Path(directory)) as members,
    ):
        members.create({"t": 6})
        for client in first:
            members.start(client)
        before = settled(members.server, group, 2)
        assert before.assignor == "consumer/balanced", before.assignor
        if newcomer_first:
            members.set_heartbeats("consumer", group, SELDOM_MS)
            time.sleep(LEARNT_S)
        broker.restart(PROPERTIES)
        members.start(third)
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline and len(members.failures()) < 3:
            time.sleep(0.5)
        (line,) = snapshot_lines(members.server, [group])
        partitions = [
            sum(len(run["partitions"]) for run in member["owned_partitions"])
            for member in line.get("members", [])
        ]
        return Seen(members.failures(), line.get("assignor", line.get("error", "")), partitions)


def starts_without_the_jar() -> str:
    """Returns the end of the log of a broker whose configuration names a class that it lacks."""
    try:
        with Broker(properties=WITH_BALANCED):
            return "the broker starts"
    except BrokerError as error:
        lines = [line for line in str(error).splitlines() if CLASS in line]
        return lines[0] if lines else str(error)


def main() -> int:
    print(f"class named, jar missing: {starts_without_the_jar()}", flush=True)
    for assignor, newcomer_first in ((None, False), ("balanced", False), ("balanced", True)):
        seen = restarted_without(assignor, newcomer_first=newcomer_first)
        who = ", newcomer first" if newcomer_first else ""
        print(f"members that name {assignor or 'none'}, broker without the plug-in{who}:")
        print(f"  ended: {seen.failures or 'nobody'}")
        print(f"  the group: {seen.assignor}, partitions a member: {seen.partitions}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

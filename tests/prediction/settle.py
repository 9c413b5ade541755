# SPDX-License-Identifier: Apache-2.0
"""Waits until three conditions show that a group has settled:

1. The newest record contains exactly the expected members with their subscriptions; a restarted
   member has a new id.
2. The coordinator describes the group as Stable with these members, twice in a row.
3. No newer record has arrived for some time. This time is longer if some partition has no owner,
   because a cooperative group may be between its two rounds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .cast import Part
    from .log import OffsetsLog, Written

QUIET_S = 2.5
QUIET_WITH_HOLES_S = 8.0
TIMEOUT_S = 45.0
LOOK_AGAIN_S = 0.25


@dataclass(frozen=True)
class Expected:
    """The expected state of a group after a change.

    `at_least` is the number of records before the change; only newer records count. The member ids
    in `replaced` must be gone. The members in `staying` must be in every generation since the
    change, those in `keeping` with their present ids.
    """

    parts: Sequence[Part]
    partitions: Mapping[str, int]
    replaced: Collection[str] = ()
    at_least: int = 0
    staying: Sequence[Part] = ()
    keeping: Collection[str] = ()

    def problem(self, records: Sequence[Written]) -> str | None:
        """Returns the reason why condition 1 does not hold, or None if it holds."""
        if len(records) <= self.at_least:
            return "no newer record"
        members = records[-1].value.members
        there = {member.session_timeout_ms for member in members}
        wanted = {part.session_timeout_ms: part for part in self.parts}
        if there != set(wanted):
            return f"members {sorted(there)} in place of {sorted(wanted)} (session timeouts)"
        old = [member.member_id for member in members if member.member_id in self.replaced]
        if old:
            return f"{old[0]} has not restarted"
        subscribed = records[-1].subscribed()
        for member in members:
            if subscribed[member.member_id] != set(wanted[member.session_timeout_ms].topics):
                return f"{member.member_id} has not subscribed anew"
        return None

    def away(self, records: Sequence[Written]) -> str | None:
        """Returns a sentence about a `staying` member that a later generation lacks, or None.

        On a busy machine, a member can miss its heartbeats; then it is removed and joins again,
        with another id, perhaps even in the same generation.
        """
        wanted = {part.session_timeout_ms: part.name for part in self.staying}
        for record in records[self.at_least :]:
            there = {member.session_timeout_ms for member in record.value.members}
            for number in wanted.keys() - there:
                return f"{wanted[number]} was away in generation {record.generation_id}"
            for lost in {*self.keeping} - {member.member_id for member in record.value.members}:
                return f"{lost} has another id in generation {record.generation_id}"
        return None

    def holes(self, record: Written) -> int:
        """Returns the number of partitions of subscribed topics without an owner."""
        subscribed = {topic for part in self.parts for topic in part.topics}
        assigned = {tp for owned in record.assigned().values() for tp in owned}
        return sum(
            (topic, p) not in assigned
            for topic in subscribed
            for p in range(self.partitions[topic])
        )


class NotSettledError(Exception):
    """The group did not settle in time, was disturbed, or the run ended; the message states which
    of these.
    """


def settle(
    group_id: str,
    expected: Expected,
    log: OffsetsLog,
    describe: Callable[[str], Any],
    stop: threading.Event,
) -> Written:
    """Waits, and returns the record in which the group has settled. Errors: NotSettledError."""
    deadline = time.monotonic() + TIMEOUT_S
    last = None
    problem: str | None = "nothing"
    while time.monotonic() < deadline and not stop.wait(LOOK_AGAIN_S):
        records = log.of(group_id)
        problem = expected.problem(records)
        if problem:
            last = None
            continue
        # 2.
        described = describe(group_id)
        if described is None:
            problem = "the coordinator does not answer"
            continue
        ids = sorted(member["member_id"] for member in described["members"])
        same, last = described == last, described
        if described["group_state"] != "Stable" or ids != sorted(records[-1].assigned()):
            problem = f"{described['group_state']}, with {len(ids)} members"
            continue
        # 3.
        holes = expected.holes(records[-1])
        quiet_s = log.quiet_s(group_id)
        if same and quiet_s >= (QUIET_WITH_HOLES_S if holes else QUIET_S):
            disturbed = expected.away(records)
            if disturbed:
                raise NotSettledError(f"disturbed: {disturbed}")
            return records[-1]
        problem = f"{holes} partitions without a member, and quiet for {quiet_s:.1f} s"
    if stop.is_set():
        raise NotSettledError("the run was ended")
    raise NotSettledError(problem)

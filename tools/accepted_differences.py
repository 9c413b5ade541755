# SPDX-License-Identifier: Apache-2.0
"""The accepted differences between our coordinator and Kafka's.

Either Kafka's choice is random, or our answer is better. `differential_coordinator` removes these
differences from the answers before it compares, and counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.generate_commands import Command

# The errors of a request whose append failed.
TAKEN_BACK = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "UNKNOWN_SERVER_ERROR")


def refused(answer: Command) -> Command:
    """Evens out two fields of refused joins, which vary in Kafka's own answers.

    The protocol name is "" or null. If the coordinator moves, the answer contains the member id or
    not, depending on an append in flight.
    """
    for event in answer.get("events", ()):
        if event["ev"] == "join" and event["err"] != "NONE":
            event["proto"] = event["proto"] or None
            if event["err"] == "NOT_COORDINATOR":
                event["member"] = ""
    return answer


class Accepted:
    """The intended differences; everything else must be equal.

    1. Kafka never answers a waiting SyncGroup whose member is removed; the client's own timeout
       ends it. We answer UNKNOWN_MEMBER_ID.
    2. If the coordinator moves away while an append is in flight, Kafka answers the SyncGroup of
       difference 1, and any JoinGroup or SyncGroup that a newer request of its member has replaced.
       We have already answered or dropped these requests.
    3. If the append of a group's first record fails, Kafka's join timer of the group keeps running.
       When it runs out, it increases the generation of the next group of that name, although no
       rebalance ends. Our timer has no effect on that group.
    4. For DeleteGroups, Kafka first asks its share groups, which wait for appends in flight. We
       delete at once. The answers are equal, but the run ends there.
    5. Kafka's ListGroups lists a group twice if a failed append has undone the group's removal.
    6. In a group without a record, Kafka never answers a waiting JoinGroup if the append of the
       group's first record fails. We answer with the append's error.
    """

    def __init__(self) -> None:
        self._settled: set[int] = set()
        self.holding = False

    def without(self, number: int, command: Command, ours: Command, theirs: Command) -> list[str]:
        """Removes differences 1, 2, 5 and 6 from the answers; returns the names of the differences
        found.
        """
        names = [*self._listed_twice(theirs), *self._taken_back(number, command, ours, theirs)]
        if command["op"] in ("hold", "release"):
            self.holding = command["op"] == "hold"
        there = {event["id"] for event in theirs.get("events", ()) if "id" in event}
        for event in list(ours.get("events", ())):
            if "id" not in event:
                continue
            self._settled.add(event["id"])
            if event["ev"] == "drop":  # Kafka sends no such event
                ours["events"].remove(event)
            late = event["ev"] == "sync" and event["id"] not in {number, *there}
            if late and event["err"] == "UNKNOWN_MEMBER_ID":
                ours["events"].remove(event)
                names.append("1. sync of a removed member answered")
        here = {event["id"] for event in ours.get("events", ()) if "id" in event}
        for event in list(theirs.get("events", ())):
            sent_away = "id" in event and event["err"] == "NOT_COORDINATOR"
            if sent_away and event["id"] in self._settled - here:
                theirs["events"].remove(event)
                names.append(f"2. {event['ev']} of a removed or replaced one answered late")
        return names

    def _listed_twice(self, theirs: Command) -> list[str]:
        listed = theirs.get("groups", [])
        once = [one for at, one in enumerate(listed) if one not in listed[:at]]
        if once:
            theirs["groups"] = once
        return ["5. a group listed twice"] * (len(listed) - len(once))

    def _taken_back(
        self, number: int, command: Command, ours: Command, theirs: Command
    ) -> list[str]:
        there = {event["id"] for event in theirs.get("events", ()) if event["ev"] == "join"}
        names = []
        for event in list(ours.get("events", ())):
            late = event["ev"] == "join" and event["id"] not in {number, *there}
            if late and event["err"] in TAKEN_BACK and command["op"] not in ("unload", "reload"):
                ours["events"].remove(event)
                names.append("6. join of a group that is taken back answered")
        return names


def counts_a_missing_generation(
    groups: Sequence[str], ours: list[Command], theirs: list[Command], answer: Command
) -> bool:
    """Returns whether Kafka's Empty group is one generation ahead (accepted difference 3)."""
    timers = {event["key"] for event in answer.get("events", ()) if event["ev"] == "timer"}
    return any(
        f"join-{group}" in timers
        and one["state"] == other["state"] == "Empty"
        and other["gen"] == one["gen"] + 1
        for group, one, other in zip(groups, ours, theirs, strict=True)
    )


def leaders(answer: Command, states: list[Command]) -> dict[Any, str]:
    """Returns the leader that each group, JoinGroup response and record names, by its place."""
    found: dict[Any, Any] = {
        ("group", number): state.get("leader") for number, state in enumerate(states)
    }
    for number, event in enumerate(answer.get("events", ())):
        if event["ev"] == "join":
            found["join", event["id"]] = event["leader"]
        elif "leader" in event:
            found["record", event["key"], event["gen"], number] = event["leader"]
    return {place: leader for place, leader in found.items() if leader}

# SPDX-License-Identifier: Apache-2.0
"""Where our coordinator is not Kafka's, and may be: what is arbitrary there, or better here.

`differential_coordinator` takes this out of the answers before it compares them, and counts it.
"""

from __future__ import annotations

from typing import Any

from tests.support.generate_commands import GROUPS, Command

# What a failed append is to those who waited for it.
TAKEN_BACK = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "UNKNOWN_SERVER_ERROR")


def refused(answer: Command) -> Command:
    """An answer whose refused joins say no more than that.

    Kafka's have an empty protocol name or none; sent away as the coordinator moves, they have their
    member id or not, by whether an append was under way when they came.
    """
    for event in answer.get("events", ()):
        if event["ev"] == "join" and event["err"] != "NONE":
            event["proto"] = event["proto"] or None
            if event["err"] == "NOT_COORDINATOR":
                event["member"] = ""
    return answer


class Accepted:
    """What our coordinator does otherwise on purpose; everything else has to be equal.

    1. A SyncGroup that waits when its member is removed is never answered by Kafka, and the client
       finds out by its own timeout. We answer UNKNOWN_MEMBER_ID.
    2. Such a one, and a JoinGroup or SyncGroup that a newer one of the member has replaced, Kafka
       answers after all when the coordinator moves away while an append is under way. Ours is
       answered, or gone.
    3. The join timer of a group whose first record failed goes on in Kafka: in the next group of
       that name it counts a generation that never is. Ours does nothing then.
    4. DeleteGroups first asks Kafka's share groups, which waits for appends that are under way;
       ours deletes at once. Its answer is the same; runs end there.
    5. ListGroups of Kafka names a group twice whose removal a failed append has taken back.
    6. A JoinGroup that waits in a group without a record is never answered by Kafka where an append
       fails that would have brought the group into the log. We answer the append's error.
    """

    def __init__(self) -> None:
        self._settled: set[int] = set()
        self.holding = False

    def without(self, number: int, command: Command, ours: Command, theirs: Command) -> list[str]:
        """Takes 1., 2., 5. and 6. out of the answers; the names of what was there."""
        names = [*self._listed_twice(theirs), *self._taken_back(number, command, ours, theirs)]
        if command["op"] in ("hold", "release"):
            self.holding = command["op"] == "hold"
        there = {event["id"] for event in theirs.get("events", ()) if "id" in event}
        for event in list(ours.get("events", ())):
            if "id" not in event:
                continue
            self._settled.add(event["id"])
            if event["ev"] == "drop":  # Kafka's drops say nothing
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


def counts_what_never_is(ours: list[Command], theirs: list[Command], answer: Command) -> bool:
    """3. of `Accepted`: a join timer, and an Empty group of Kafka's is a generation further."""
    timers = {event["key"] for event in answer.get("events", ()) if event["ev"] == "timer"}
    return any(
        f"join-{group}" in timers
        and one["state"] == other["state"] == "Empty"
        and other["gen"] == one["gen"] + 1
        for group, one, other in zip(GROUPS, ours, theirs, strict=True)
    )


def leaders(answer: Command, states: list[Command]) -> dict[Any, str]:
    """Where a leader is named, and which: of groups, of joins, of records."""
    found: dict[Any, Any] = {
        ("group", number): state.get("leader") for number, state in enumerate(states)
    }
    for number, event in enumerate(answer.get("events", ())):
        if event["ev"] == "join":
            found["join", event["id"]] = event["leader"]
        elif "leader" in event:
            found["record", event["key"], event["gen"], number] = event["leader"]
    return {place: leader for place, leader in found.items() if leader}

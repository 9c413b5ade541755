# SPDX-License-Identifier: Apache-2.0
"""Counts the cases that random runs of `generate_heartbeats` reach on Kafka's own coordinator.

    python -m tools.heartbeat_coverage --sequences 2000 --seed 1

The table lists the errors of each command, types of records and tombstones, states of groups and
members, timers that ran, and changes of a group's type. If a case of WANTED has the count 0, the
tool fails.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import Any

from tests.support.coordinator_oracle import CoordinatorOracle
from tests.support.generate_commands import Command
from tests.support.generate_heartbeats import GROUPS, HeartbeatCommands
from tools.differential_coordinator import RUNS, Side, commands_of
from tools.member_ids import Ids

WANTED = (
    *(
        f"chb {error}"
        for error in (
            "NONE",
            "INVALID_REQUEST",
            "UNSUPPORTED_ASSIGNOR",
            "GROUP_ID_NOT_FOUND",
            "GROUP_MAX_SIZE_REACHED",
            "UNKNOWN_MEMBER_ID",
            "FENCED_MEMBER_EPOCH",
            "UNRELEASED_INSTANCE_ID",
            "FENCED_INSTANCE_ID",
            "INVALID_REGULAR_EXPRESSION",
            "UNKNOWN_SERVER_ERROR",
            "COORDINATOR_NOT_AVAILABLE",
            "NOT_COORDINATOR",
        )
    ),
    *(
        f"commit {error}"
        for error in (
            "NONE",
            "STALE_MEMBER_EPOCH",
            "UNKNOWN_MEMBER_ID",
            "ILLEGAL_GENERATION",
            "UNSUPPORTED_VERSION",
            "GROUP_ID_NOT_FOUND",
        )
    ),
    "txncommit STALE_MEMBER_EPOCH",
    *(
        f"classic join {error}"
        for error in (
            "NONE",
            "INCONSISTENT_GROUP_PROTOCOL",
            "MEMBER_ID_REQUIRED",
            "FENCED_INSTANCE_ID",
        )
    ),
    *(
        f"classic sync {error}"
        for error in (
            "NONE",
            "REBALANCE_IN_PROGRESS",
            "ILLEGAL_GENERATION",
            "INCONSISTENT_GROUP_PROTOCOL",
            "UNKNOWN_MEMBER_ID",
        )
    ),
    *(
        f"classic hb {error}"
        for error in ("NONE", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")
    ),
    "classic leave NONE",
    "classic leave of two members",
    "classic join of version 0",
    "classic join of version 1",
    "classic join of version 2",
    "list of filtered consumer groups",
    "cdescribe NONE",
    "cdescribe GROUP_ID_NOT_FOUND",
    "delete_group NON_EMPTY_GROUP",
    *(
        f"record {kind}{end}"
        for kind in (
            "CONSUMER_GROUP_METADATA",
            "CONSUMER_GROUP_MEMBER_METADATA",
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA",
            "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER",
            "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT",
            "CONSUMER_GROUP_REGULAR_EXPRESSION",
        )
        for end in ("", " tombstone")
    ),
    *(f"group {state}" for state in ("Empty", "Assigning", "Reconciling", "Stable")),
    *(
        f"{protocol} member {state}"
        for protocol in ("classic", "consumer")
        for state in ("STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS")
    ),
    "consumer member away",
    "old epoch served within the interval",
    "answer with partitions at an unchanged epoch",
    "subscription HETEROGENEOUS",
    "subscription HOMOGENEOUS",
    "timer session-timeout of a consumer group",
    "timer rebalance-timeout",
    "timer join of a consumer group",
    "timer sync of a consumer group",
    "absent -> consumer",
    "classic -> consumer",
    "consumer -> classic",
    "classic -> consumer with members",
    "consumer -> classic with members",
    "consumer -> absent",
)


class Coverage:
    """Counts the cases that the answers of a coordinator show."""

    def __init__(self) -> None:
        self.met: Counter[str] = Counter()
        self._last: dict[str, Any] = {}

    def begin(self) -> None:
        """Starts a run: all groups are absent."""
        self._last = {group: {"type": "absent"} for group in GROUPS}

    def see(self, command: Command, answer: Command) -> None:
        """Counts one answer, which holds the groups' states as `states`."""
        of_consumers = self._last.get(command.get("g", "g"), {}).get("type") == "consumer"
        op = f"classic {command['op']}" if command["op"] in ("hb", "leave") else command["op"]
        if "err" in answer and (of_consumers or not op.startswith("classic")):
            self.met[f"{op} {answer['err']}"] += 1
        if of_consumers and len(answer.get("members", ())) > 1 and command["op"] == "leave":
            self.met["classic leave of two members"] += 1
        if of_consumers and command["op"] == "join" and command["v"] < 3:
            self.met[f"classic join of version {command['v']}"] += 1
        if command["op"] == "list" and command.get("states"):
            listed = (one["type"] == "consumer" for one in answer.get("groups", ()))
            self.met["list of filtered consumer groups"] += any(listed)
        for event in answer["events"]:
            if event["ev"] in ("join", "sync") and of_consumers:
                self.met[f"classic {event['ev']} {event['err']}"] += 1
            if event["ev"] == "timer":
                self._timer(event["key"])
        for record in answer["records"]:
            tombstone = " tombstone" if record["vb"] is None else ""
            self.met[f"record {record['type']}{tombstone}"] += 1
        for group, state in zip(GROUPS, answer["states"], strict=True):
            self._changed(self._last[group], state)
            self._last[group] = state
        self._answered(command, answer)

    def _timer(self, key: str) -> None:
        kind, _, rest = key.partition("-")
        if key.startswith("rebalance-timeout"):
            self.met["timer rebalance-timeout"] += 1
        elif key.startswith("session-timeout"):
            self.met["timer session-timeout of a consumer group"] += 1
        elif kind in ("join", "sync") and "-" in rest:
            self.met[f"timer {kind} of a consumer group"] += 1

    def _changed(self, before: Any, state: Any) -> None:
        if before["type"] != state["type"]:
            change = f"{before['type']} -> {state['type']}"
            self.met[change] += 1
            if state.get("state") not in ("Empty", None) and before.get("state") != "Empty":
                self.met[f"{change} with members"] += 1
        if state["type"] != "consumer":
            return
        self.met[f"group {state['state']}"] += 1
        self.met[f"subscription {state['subscription']}"] += 1
        for member in state["members"].values():
            protocol = "classic" if member["classic"] else "consumer"
            self.met[f"{protocol} member {member['state']}"] += 1
            self.met[f"{protocol} member away"] += member["epoch"] == -2

    def _answered(self, command: Command, answer: Command) -> None:
        if command["op"] != "chb" or answer.get("err") != "NONE":
            return
        state = self._last.get(command["g"], {})
        if state.get("state") == "Assigning" and answer["epoch"] >= 0:
            self.met["old epoch served within the interval"] += 1
        if answer["asg"] and answer["epoch"] == command["epoch"]:
            self.met["answer with partitions at an unchanged epoch"] += 1


def main() -> int:
    """Plays the runs on Kafka's coordinator and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    coverage = Coverage()
    with CoordinatorOracle() as oracle:
        for number in range(chosen.sequences):
            play(
                Side(oracle.commands, RUNS["assigning"]),
                chosen.seed * 1_000_000 + number,
                coverage,
            )
    names = sorted({*WANTED, *coverage.met})
    for name in names:
        print(f"{coverage.met[name]:9,}  {name}{'' if name in WANTED else '  (not in WANTED)'}")
    missing = [name for name in WANTED if not coverage.met[name]]
    print(f"{chosen.sequences} sequences, seed {chosen.seed}: {len(missing)} cases not reached")
    return 1 if missing else 0


def play(side: Side, seed: int, coverage: Coverage) -> None:
    """Plays one run, and counts its cases."""
    rng = random.Random(seed)
    drawn = HeartbeatCommands(rng)
    ids = Ids()
    coverage.begin()
    for number, command in commands_of(drawn, rng):
        answer, _ = side.play(number, ids.concrete(command))
        ids.seen(number, answer)
        coverage.see(command, answer)
        drawn.told(number, ids.shown(answer))


if __name__ == "__main__":
    sys.exit(main())

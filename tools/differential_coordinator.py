"""The coordinator twice: Kafka's own and ours, on random runs of commands in virtual time.

    python tools/differential_coordinator.py --sequences 20000 --seed 1

Every answer is compared: responses and their times, states, generations, members, timers, records
and their bytes. Member ids are drawn by each side, so they are compared by the command that they
were given to. What is arbitrary in Kafka, or wrong there and better here, is accepted in
`_accepted` and nowhere else, and counted. A difference is shrunk to the commands that it takes.
Exit codes: 0 equal, 1 different, 2 not run.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from coordinator_oracle import CoordinatorOracle  # noqa: E402
from generate_commands import METADATA_MAX, Command, Commands, settings  # noqa: E402
from kafka_rebalance.coordinator.driver import Driver  # noqa: E402
from oracle import OracleError  # noqa: E402

GROUPS = ("g", "h", "s")
BLOCK = 500
REPLAYS = 20
SYMBOL = re.compile(r"@\d+x*")
MEMBER_ID = re.compile(r"\w+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Coordinator(Protocol):
    """Anything that speaks the driver protocol."""

    def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """One command."""
        ...


class Side:
    """One coordinator. Takes and gives symbols for member ids: `@7` was seen first at command 7."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._ids: dict[str, str] = {}
        self._symbols: dict[str, str] = {}
        self._numbers: dict[int, int] = {}

    def play(self, number: int, command: Command) -> tuple[Command, list[Command]]:
        """One command of a run: its answer, and the state of every group after it."""
        if command["op"] == "init":
            self._ids.clear()
            self._symbols.clear()
        concrete = SYMBOL.sub(
            lambda found: self._ids.get(found[0], f"gone{found[0][1:]}"), json.dumps(command)
        )
        answer = self._coordinator.command(json.loads(concrete))
        if "id" in answer:
            self._numbers[answer.pop("id")] = number
        for event in answer.get("events", ()):
            if "id" in event:
                event["id"] = self._numbers[event["id"]]
            if event.get("members") and "vb" in event:
                del event["vb"]  # ids in it; its fields are compared
        states = [
            self._coordinator.command({"op": "state", "g": group})["state"] for group in GROUPS
        ]
        shown = MEMBER_ID.sub(
            lambda found: self._symbol(number, found[0]), json.dumps([answer, states])
        )
        answer, states = json.loads(shown)
        return _sorted(answer), [_sorted(state) for state in states]

    def _symbol(self, number: int, member_id: str) -> str:
        symbol = self._symbols.get(member_id)
        if symbol is None:
            symbol = f"@{number}"
            while symbol in self._ids:
                symbol += "x"
            self._symbols[member_id] = symbol
            self._ids[symbol] = member_id
        return symbol


def _sorted(answer: Command) -> Command:
    """Lists whose order is a hash map's in Kafka, in an order of their own."""
    for name in ("events", "members", "pending_sync"):
        if name in answer:
            answer[name] = sorted(
                (_sorted(one) if isinstance(one, dict) else one for one in answer[name]),
                key=json.dumps,
            )
    if "timers" in answer:
        answer["timers"] = dict(sorted(answer["timers"].items()))
    return answer


def _refused(answer: Command) -> Command:
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
    2. Such a one, and one that a newer SyncGroup of the member has replaced, Kafka answers after
       all when the coordinator moves away while an append is under way. Ours is answered, or gone.
    3. The join timer of a group whose first record failed goes on in Kafka: in the next group of
       that name it counts a generation that never is. Ours does nothing then.
    4. A commit of which nothing is stored leaves an empty group behind, without a record; Kafka
       describes it from its next append on, we at once.
    5. DeleteGroups first asks Kafka's share groups, which waits for appends that are under way;
       ours deletes at once. Its answer is the same; runs end there.
    """

    def __init__(self) -> None:
        self._settled: set[int] = set()
        self._left_behind: set[str] = set()
        self.holding = False
        self._newest: dict[tuple[str, str], int] = {}

    def without(self, number: int, command: Command, ours: Command, theirs: Command) -> list[str]:
        """Takes 1. and 2. out of the answers; the names of what was there."""
        names = []
        if command["op"] in ("hold", "release"):
            self.holding = command["op"] == "hold"
        if len(command.get("md", "")) > METADATA_MAX:
            self._left_behind.add(command["g"])
        if command.get("g") in self._left_behind and theirs.get("state") == "Dead":
            for name in ("state", "ptype", "members"):
                ours[name] = theirs[name]
            names.append("4. a group without a record described")
        if command["op"] == "sync":
            whose = (command["g"], command["m"])
            if whose in self._newest:
                self._settled.add(self._newest[whose])
            self._newest[whose] = number
        there = {event["id"] for event in theirs.get("events", ()) if event["ev"] == "sync"}
        for event in list(ours.get("events", ())):
            if event["ev"] != "sync":
                continue
            self._settled.add(event["id"])
            late = event["id"] not in {number, *there}
            if late and event["err"] == "UNKNOWN_MEMBER_ID":
                ours["events"].remove(event)
                names.append("1. sync of a removed member answered")
        here = {event["id"] for event in ours.get("events", ()) if event["ev"] == "sync"}
        for event in list(theirs.get("events", ())):
            sent_away = event["ev"] == "sync" and event["err"] == "NOT_COORDINATOR"
            if sent_away and event["id"] in self._settled - here:
                theirs["events"].remove(event)
                names.append("2. sync of a removed member answered late")
        return names


def _counts_what_never_is(ours: list[Command], theirs: list[Command], answer: Command) -> bool:
    """3. of `Accepted`: a join timer, and an Empty group of Kafka's is a generation further."""
    timers = {event["key"] for event in answer.get("events", ()) if event["ev"] == "timer"}
    return any(
        f"join-{group}" in timers
        and one["state"] == other["state"] == "Empty"
        and other["gen"] == one["gen"] + 1
        for group, one, other in zip(GROUPS, ours, theirs, strict=True)
    )


def _leaders(answer: Command, states: list[Command]) -> list[str]:
    """Everywhere where a leader is named."""
    named = [one.get("leader") for one in (*answer.get("events", ()), *states) if "leader" in one]
    return sorted(str(one) for one in named)


class Pair:
    """Both sides, in lock step."""

    def __init__(self, ours: Coordinator, theirs: Coordinator) -> None:
        self.ours, self.theirs = Side(ours), Side(theirs)
        self.accepted = Accepted()
        self.met: Counter[str] = Counter()

    def run(self, seed: int) -> list[Command] | None:
        """One run, drawn; gives its commands where it ends in a difference."""
        rng = random.Random(seed)
        drawn = Commands(rng)
        commands = [settings(rng)]
        length = rng.randint(10, 60)
        while len(commands) <= length:
            outcome = self._step(len(commands), commands[-1])
            if outcome is None:
                break
            ours, theirs = outcome
            self.met["commands"] += 1
            if ours != theirs:
                return None if self._is_arbitrary(commands) else commands
            drawn.told(len(commands), ours[0])
            commands.append(drawn.draw(len(commands) + 1))
        return None

    def _is_arbitrary(self, commands: list[Command]) -> bool:
        """Whether Kafka answers the same commands now so, now otherwise, and once as we do.

        Timers of several members that are due at the same moment run in the order in which a hash
        map of random ids armed them.
        """
        arbitrary = any(self.differ(commands) is None for _ in range(REPLAYS))
        self.met["order of a hash map"] += arbitrary
        return arbitrary

    def differ(self, commands: list[Command]) -> tuple[int, Any, Any] | None:
        """Plays commands; the number of the first answered differently, and both answers."""
        for number, command in enumerate(commands, 1):
            outcome = self._step(number, command)
            if outcome is None:
                return None
            if outcome[0] != outcome[1]:
                return number, *outcome
        return None

    def _step(self, number: int, command: Command) -> tuple[Any, Any] | None:
        """Both answers; None where the run has come to something arbitrary."""
        if number == 1:
            self.accepted = Accepted()
        ours, our_states = self.ours.play(number, command)
        theirs, their_states = self.theirs.play(number, command)
        ours, theirs = _refused(ours), _refused(theirs)
        self.met.update(self.accepted.without(number, command, ours, theirs))
        if _counts_what_never_is(our_states, their_states, theirs):
            self.met["3. a generation that never is"] += 1
            return None
        if command["op"] == "delete_group" and self.accepted.holding and ours != theirs:
            self.met["5. groups deleted later"] += 1
            return None
        if _leaders(ours, our_states) != _leaders(theirs, their_states):
            # Who leads after a leader's loss is the order of a hash map of random ids.
            self.met["another leader"] += 1
            return None
        for event in ours.get("events", ()):
            self.met[str(event.get("err", event["ev"]))] += 1
        return (ours, our_states), (theirs, their_states)


def shrink(pair: Pair, commands: list[Command]) -> list[Command]:
    """As few of the commands as still end in a difference; numbers stay, so symbols do."""
    kept = list(commands)
    nothing = {"op": "advance", "ms": 0}
    for place in range(len(kept) - 1, 0, -1):
        tried = [*kept[:place], nothing, *kept[place + 1 :]]
        if kept[place] != nothing and all(pair.differ(tried) is not None for _ in range(3)):
            kept = tried
    return kept


def report(pair: Pair, seed: int, commands: list[Command]) -> None:
    """A difference, so that it can be read."""
    found = pair.differ(commands)
    print(f"seed {seed}:")
    for number, command in enumerate(commands, 1):
        if command != {"op": "advance", "ms": 0}:
            print(f"  {number:2} {json.dumps(command)}")
    if found is None:
        print("  does not happen again")
        return
    number, ours, theirs = found
    for path, one, other in _differences("", list(ours), list(theirs)):
        print(f"  at {number}{path}: ours {json.dumps(one)}, Kafka's {json.dumps(other)}")


def _differences(path: str, one: Any, other: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        pairs = [(f"{path}.{name}", one.get(name), other.get(name)) for name in names]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{at}]", *both) for at, both in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [(path, one, other)]
    return [found for each in pairs for found in _differences(*each)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="differences to show")
    args = parser.parse_args()
    started = time.monotonic()
    differences = 0
    met: Counter[str] = Counter()
    try:
        for first in range(0, args.sequences, BLOCK):
            # A new process now and then: Kafka keeps something of every coordinator that it made.
            with CoordinatorOracle() as oracle:
                pair = Pair(Driver(), oracle)
                for number in range(first, min(first + BLOCK, args.sequences)):
                    seed = args.seed * 1_000_000 + number
                    commands = pair.run(seed)
                    if commands is not None:
                        differences += 1
                        if differences <= args.show:
                            report(pair, seed, shrink(pair, commands))
                met += pair.met
    except OracleError as error:
        print(f"not run: {error}", file=sys.stderr)
        return 2
    took = time.monotonic() - started
    print("met: " + ", ".join(f"{name} {count:,}" for name, count in sorted(met.items())))
    print(f"{args.sequences:,} sequences: ours = Kafka's, {differences} differences ({took:.0f} s)")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

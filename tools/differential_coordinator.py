# SPDX-License-Identifier: Apache-2.0
"""Compares our coordinator with Kafka's own on random runs of commands in virtual time.

    python -m tools differential-coordinator --sequences 20000 --seed 1
    python -m tools differential-coordinator --groups assigning --sequences 20000 --seed 1

Without --groups, each kind of runs is played, until one has a difference; logs a tenth as often.
The runs are those of classic groups (`generate_commands`), of consumer groups that change their
type or of share groups (`generate_heartbeats`), or of streams groups
(`generate_streams_heartbeats`); or they begin with a log that another coordinator wrote
(`generate_logs`). Every answer is compared: responses and their times, states, generations,
members, timers, and the bytes of records. Our coordinator gets the member ids that Kafka chooses
from the run's seed, so that bytes can be equal. The commands of a run contain symbols in place of
ids, so that the run can be played again with other ids. `accepted_differences` lists the
differences that are accepted and counted. A run with any other difference is reduced to the
commands that cause it.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kafka_rebalance.group.model import id_text
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.wire.group_records import (
    GroupMetadataValue,
    decode_key,
    decode_value,
    encode_value,
)
from tests.support.coordinator_oracle import CoordinatorOracle
from tests.support.generate_commands import GROUPS, Command, Commands
from tests.support.generate_heartbeats import GROUPS as HEARTBEAT_GROUPS
from tests.support.generate_heartbeats import HeartbeatCommands, ShareCommands
from tests.support.generate_logs import LoadedLogs
from tests.support.generate_streams_heartbeats import StreamsCommands
from tools import judge
from tools.accepted_differences import Accepted, counts_a_missing_generation, leaders, refused
from tools.judge import Block, Outcome
from tools.member_ids import Ids

BLOCK = 500
# Ids that our coordinator drew for a loaded log: it counts them, and they are text or base64.
OWN_ID = re.compile(r"\b0{8}(?:-0{4}){3}-[0-9a-f]{12}\b|\bA{18}[\w-]{4}\b", re.ASCII)


class Coordinator(Protocol):
    """A coordinator that plays JSON commands."""

    def command(self, command: dict[str, Any]) -> dict[str, Any]:
        """Plays one command and returns the answer."""
        ...


Play = Callable[[list[Command]], list[Command]]
"""Plays commands one after another, and returns their answers."""


class Drawn(Protocol):
    """A generator of one run's commands; `prepared` further commands of the run are not random."""

    prepared: int

    def settings(self) -> Command:
        """Returns the command that makes a new coordinator."""
        ...

    def draw(self, number: int) -> Command:
        """Makes the command with this number."""
        ...

    def told(self, number: int, answer: Command) -> None:
        """Receives the answer to the command with this number."""
        ...


def commands_of(drawn: Drawn, rng: random.Random) -> Iterator[tuple[int, Command]]:
    """Generates one random run: yields each command with its number.

    The caller passes each answer to `drawn.told` before it takes the next command.
    """
    command = drawn.settings()
    for number in range(1, rng.randint(10, 60) + drawn.prepared + 1):
        yield number, command
        command = drawn.draw(number + 1)


class Runs(NamedTuple):
    """A kind of runs: its generator, and the groups whose state is compared.

    `assigning` are the groups that may have any type. `replays`: how often a run is played again to
    find out whether Kafka's answers vary, and one of them equals ours. In the rarest case of 20,000
    classic runs, one play in twelve equalled ours.
    """

    generator: Callable[[random.Random], Drawn]
    groups: tuple[str, ...]
    assigning: tuple[str, ...] = ()
    replays: int = 200


RUNS = {
    "classic": Runs(Commands, GROUPS),
    "assigning": Runs(HeartbeatCommands, HEARTBEAT_GROUPS, HEARTBEAT_GROUPS, replays=10),
    "share": Runs(ShareCommands, HEARTBEAT_GROUPS, HEARTBEAT_GROUPS, replays=10),
    "streams": Runs(StreamsCommands, HEARTBEAT_GROUPS, HEARTBEAT_GROUPS, replays=10),
    "logs": Runs(LoadedLogs, HEARTBEAT_GROUPS, HEARTBEAT_GROUPS, replays=10),
}


class Side:
    """One of the two coordinators; it puts the run's command numbers into its answers' events.

    The order of records is compared only in runs of groups whose brokers assign. There, the answers
    also contain the states of these groups.
    """

    def __init__(self, play: Play, runs: Runs) -> None:
        self._play = play
        self._is_assigning = bool(runs.assigning)
        self._questions = [{"op": "state", "g": group} for group in runs.groups]
        self._questions += [{"op": "mstate", "g": group} for group in runs.assigning]
        self._classic = len(runs.groups)
        self._numbers: dict[int, int] = {}

    def play(self, number: int, command: Command) -> tuple[Command, list[Command]]:
        """Plays one command; returns its answer and the state of every group after it."""
        answer, *described = self._play([command, *self._questions])
        states = [one["state"] for one in described]
        if "id" in answer:
            self._numbers[answer.pop("id")] = number
        for event in answer.get("events", ()):
            if "id" in event:
                event["id"] = self._numbers[event["id"]]
            if event.get("members") and "vb" in event:
                event["vb"] = with_members_sorted(event)
        records = [one for one in answer.get("events", ()) if one["ev"] == "record"]
        answer = _sorted(answer)
        if self._is_assigning:
            # The bytes of a record show all its fields.
            shown = ("ev", "t", "type", "kb", "vb")
            answer["records"] = [{name: one[name] for name in shown} for one in records]
            if command["op"] == "topics" or len(command.get("members", ())) > 1:
                # Tombstones of a deleted topic's offsets, and of several members that leave, are in
                # the order of hash tables: docs/behaviour/consumer-groups.md#10-differences.
                answer["records"].sort(key=lambda one: str(one["kb"]))
            if command["op"] == "cleanup":
                # A sweep goes through the groups in the order of a hash map of their ids.
                answer["records"].sort(key=lambda one: _group_id(one["kb"]))
            answer["events"] = [one for one in answer["events"] if one["ev"] != "record"]
            answer["states"] = states[self._classic :]
        answer.pop("msg", None)
        return answer, [_sorted(state) for state in states[: self._classic]]


def _group_id(key: str) -> str:
    """Returns the group id in a record's key, which is hex: a type, a length, and the id."""
    return bytes.fromhex(key)[4 : 4 + int(key[4:8], 16)].decode()


def with_members_sorted(event: Command) -> str:
    """Returns a group record's bytes in hex, with members sorted: Kafka's are in hash order."""
    data = bytes.fromhex(event["vb"])
    value = decode_value(decode_key(bytes.fromhex(event["kb"])), data)
    if not isinstance(value, GroupMetadataValue) or encode_value(value) != data:
        raise ValueError(f"{event['vb']} is not written again as it was read")
    return encode_value(replace(value, members=tuple(sorted(value.members, key=str)))).hex()


def _sorted(answer: Command) -> Command:
    """Sorts the lists whose order in Kafka is that of a hash map."""
    for name in ("events", "members", "pending_sync"):
        if name in answer:
            answer[name] = sorted(
                (_sorted(one) if isinstance(one, dict) else one for one in answer[name]),
                key=json.dumps,
            )
    if "timers" in answer:
        answer["timers"] = dict(sorted(answer["timers"].items()))
    return answer


class Pair:
    """Plays each command on both coordinators; `wrap` can replace ours, for tests."""

    def __init__(
        self,
        theirs: CoordinatorOracle,
        wrap: Callable[[Coordinator], Coordinator] = lambda ours: ours,
        runs: Runs = RUNS["classic"],
    ) -> None:
        self.ids = Ids()
        self.runs = runs
        ours = wrap(Driver(self.ids.draw))
        self.ours = Side(lambda commands: [ours.command(one) for one in commands], runs)
        self.theirs = Side(theirs.commands, runs)
        self.accepted = Accepted()
        self.met: Counter[str] = Counter()

    def run(self, seed: int) -> list[Command] | None:
        """Draws and plays a run; returns its commands if it ends in a difference, else None."""
        rng = random.Random(seed)
        drawn = self.runs.generator(rng)
        commands = []
        for number, command in commands_of(drawn, rng):
            commands.append(command | ({"seed": seed} if number == 1 else {}))
            outcome = self._step(number, commands[-1])
            if outcome is None:
                break
            ours, theirs = outcome
            self.met["commands"] += 1
            if ours != theirs:
                return None if self._is_arbitrary(commands) else commands
            drawn.told(number, self.ids.shown(ours[0]))
        return None

    def _is_arbitrary(self, commands: list[Command]) -> bool:
        """Returns whether Kafka's own answers to these commands vary, and one of them equals ours.

        In Kafka, timers of several members that are due at one moment run in the order of a hash
        map of random ids. So the commands are played again with other ids, also in a loaded log.
        """
        first, *others = commands
        arbitrary = any(
            self.differ([first | {"seed": seed}, *with_other_ids(others, seed)]) is None
            for seed in range(self.runs.replays)
        )
        self.met["order of a hash map"] += arbitrary
        return arbitrary

    def differ(self, commands: list[Command]) -> tuple[int, Any, Any] | None:
        """Plays commands; returns the number of the first difference and both answers, or None."""
        for number, command in enumerate(commands, 1):
            outcome = self._step(number, command)
            if outcome is None:
                return None
            if outcome[0] != outcome[1]:
                return number, *outcome
        return None

    def _step(self, number: int, command: Command) -> tuple[Any, Any] | None:
        """Plays a command; returns both answers, or None if later answers cannot be compared.

        They cannot be compared if Kafka chose a leader at random, and after accepted difference 3
        or 4.
        """
        if number == 1:
            self.accepted = Accepted()
            self.ids.clear()
        command = self.ids.concrete(command)
        theirs, their_states = self.theirs.play(number, command)
        self.ids.seen(number, [theirs, their_states])
        try:
            ours, our_states = self.ours.play(number, command)
        except Exception as error:  # any error inside our coordinator is a difference
            return ({"crash": repr(error)}, []), (theirs, their_states)
        ours, theirs = refused(ours), refused(theirs)
        self.met.update(self.accepted.without(number, command, ours, theirs))
        if counts_a_missing_generation(self.runs.groups, our_states, their_states, theirs):
            self.met["3. a generation that never is"] += 1
            return None
        if command["op"] == "delete_group" and self.accepted.holding:
            self.met["4. groups deleted later"] += 1
            return None
        here, there = leaders(ours, our_states), leaders(theirs, their_states)
        if any(here[place] != there[place] for place in here.keys() & there.keys()):
            # Kafka chooses the next leader in the order of a hash map of random ids.
            self.met["another leader"] += 1
            return None
        for event in ours.get("events", ()):
            self.met[str(event.get("err", event["ev"]))] += 1
        return (ours, our_states), (theirs, their_states)


def with_other_ids(commands: list[Command], seed: int) -> list[Command]:
    """Replaces the ids that our coordinator drew for a loaded log, in names and in raw bytes."""
    rng = random.Random(seed)
    text = json.dumps(commands)
    raw = [
        bytes.fromhex(one[part] or "") for one in commands if one["op"] == "raw" for part in "kv"
    ]
    places = " ".join([text, *(one.decode("latin-1") for one in raw)])
    for drawn in sorted(set(OWN_ID.findall(places))):
        other = str(UUID(int=rng.getrandbits(128)))
        if len(drawn) < len(other):
            other = id_text(rng.randbytes(16))
        text = text.replace(drawn, other).replace(drawn.encode().hex(), other.encode().hex())
    return list(json.loads(text))


def shrink(pair: Pair, commands: list[Command]) -> list[Command]:
    """Removes commands while the run still ends in a difference.

    A removed command is replaced by one without effect, so that numbers and symbols stay valid. A
    reload after a raw record is not removed, because the record has no effect without it.
    """
    kept = list(commands)
    nothing = {"op": "advance", "ms": 0}
    for place in (*range(len(kept) - 1, 0, -1), *range(len(kept) - 1, 0, -1)):
        tried = [*kept[:place], nothing, *kept[place + 1 :]]
        reads = kept[place]["op"] == "reload" and any(
            one["op"] in ("raw", "rawend") for one in kept[:place]
        )
        if not reads and tried != kept and pair.differ(tried) is not None:
            kept = tried
    return kept


def described(pair: Pair, seed: int, commands: list[Command]) -> dict[str, Any]:
    """Returns a difference with its commands, for people and for another run."""
    lines = [
        f"  {number:2} {json.dumps(command)}"
        for number, command in enumerate(commands, 1)
        if command != {"op": "advance", "ms": 0}
    ]
    found = pair.differ(commands)
    if found is None:
        lines.append("  does not happen again")
    else:
        number, ours, theirs = found
        lines += [
            f"  at {number}{path}: ours {json.dumps(one)}, Kafka's {json.dumps(other)}"
            for path, one, other in _differences("", *pair.ids.shown([ours, theirs]))
        ]
    return {"name": f"run {seed}", "difference": "\n".join(["", *lines]), "case": commands}


def _differences(path: str, one: Any, other: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        pairs = [(f"{path}.{name}", one.get(name), other.get(name)) for name in names]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{at}]", *both) for at, both in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [(path, one, other)]
    return [found for each in pairs for found in _differences(*each)]


def compare(block: Block, *, show: int, groups: str) -> Outcome:
    """Plays one block of runs; reduces only the block's first `show` runs with a difference."""
    outcome = Outcome(block.cases)
    number, seed = block.seed % 100_000, block.seed // 100_000
    first = seed * 1_000_000 + number * BLOCK
    # A new process for each block, because Kafka never frees all memory of a coordinator.
    with CoordinatorOracle() as oracle:
        pair = Pair(oracle, runs=RUNS[groups])
        for drawn in range(first, first + block.cases):
            commands = pair.run(drawn)
            if commands is not None:
                few = len(outcome.differences) < show
                commands = shrink(pair, commands) if few else commands
                outcome.differences.append(described(pair, drawn, commands))
    outcome.met.update(pair.met)
    return outcome


def main() -> int:
    """Parses the command line, plays, prints a report; returns the exit code."""
    parser = judge.options(__doc__, "sequences", 20_000, "coordinator-differences.jsonl")
    parser.set_defaults(show=5)
    parser.add_argument("--groups", choices=RUNS, help="only this kind of runs")
    chosen = parser.parse_args()
    if chosen.groups is not None:
        return _played(chosen)
    for groups in RUNS:
        cases = chosen.cases // 10 if groups == "logs" else chosen.cases
        print(f"{groups}:")
        if code := _played(
            argparse.Namespace(**{**vars(chosen), "groups": groups, "cases": cases})
        ):
            return code
    return 0


def _played(chosen: argparse.Namespace) -> int:
    return judge.run(
        functools.partial(compare, show=chosen.show, groups=chosen.groups),
        chosen,
        block=BLOCK,
        equal="ours = Kafka's",
        details=lambda met: ", ".join(f"{name} {n:,}" for name, n in sorted(met.items())),
    )


if __name__ == "__main__":
    sys.exit(main())

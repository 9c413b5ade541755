# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.scale_live [--steps N] [--seed N]`: real groups grow and shrink as told.

Starts a broker and one group of each kind in GROUPS, which change side by side. In each step, a
snapshot of a group is scaled, then one or two of its members join or leave, any of them. When the
group has settled, the partitions of its fullest member, the moves and the rebalances are compared
with the answer:

    as told    they are the figures of the step
    in range   they are in the ranges of the step; or there was one rebalance more, which a note
               on the plan announces
    in turn    the members came or went in several rebalances: then with one step for each of them
    wrong      all else

A generation in which no partition and no member changed is idle, and not counted: members join
again for reasons of their own. Prints a line for each step. The exit code is 0 if no step was
wrong, else 1.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kafka_rebalance import Assignment, plan, scale
from kafka_rebalance.notes import plan_notes
from tests.modern_live.__main__ import PROPERTIES
from tests.modern_live.judge import TIMEOUT_S, owned, settled
from tests.modern_live.members import JAVA, LIBRDKAFKA, Client, Members
from tests.prediction.log import OffsetsLog, generations
from tests.support.broker import Broker
from tests.support.prompt import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_rebalance import GroupSpec
    from kafka_rebalance.scaling import Count
    from tests.prediction.log import Written

GROUPS = {
    "java-range": (JAVA, "classic", "range"),
    "java-sticky": (JAVA, "classic", "sticky"),
    "java-cooperative": (JAVA, "classic", "cooperative-sticky"),
    "librdkafka-range": (LIBRDKAFKA, "classic", "range"),
    "librdkafka-cooperative": (LIBRDKAFKA, "classic", "cooperative-sticky"),
    "modern": (JAVA, "consumer", None),
}
_FEWEST, _MOST = 1, 7
_SAMPLES = 64
"""So many plays that every pair of seven members leaves in one of them."""

_QUIET_S = 2.5
_ONE_MORE = ("missed", "lower bound")


@dataclass
class Stage:
    """A group: its kind, its topics with their numbers of partitions, and its clients."""

    group_id: str
    topics: dict[str, int]
    clients: list[Client] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)


@dataclass(frozen=True)
class Seen:
    """What a step did: partitions of the fullest member, moves, rebalances that changed something,
    idle ones, and the numbers of members in all generations.
    """

    fullest: int
    moves: int
    rebalances: int
    idle: int = 0
    sizes: tuple[int, ...] = ()


def run(steps: int, seed: int) -> Counter[str]:
    """Returns how many steps had each verdict."""
    counts: Counter[str] = Counter()
    turn = threading.Lock()

    def play(name: str, steps: int) -> Stage:
        random = Random(f"{seed}/{name}")
        stage = _stage(members, random, name)
        for _ in range(steps):
            what, verdict = _step(members, log, random, stage)
            with turn:
                counts[verdict.partition(":")[0]] += 1
                print(f"{stage.group_id}, {what}: {verdict}", flush=True)
        return stage

    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(properties=PROPERTIES) as broker,
        Members(broker.bootstrap_server, Path(directory)) as members,
        OffsetsLog(broker.bootstrap_server) as log,
        ThreadPoolExecutor(len(GROUPS)) as pool,
    ):
        shares = [len(range(n, steps, len(GROUPS))) for n in range(len(GROUPS))]
        stages = list(pool.map(play, GROUPS, shares))
        counts["by command"] = _by_command(broker.bootstrap_server, stages[0])
    return counts


def _by_command(server: str, stage: Stage) -> int:
    """Returns 1 if the command, which also reads the lag, answers as Python does."""
    arguments = ("--bootstrap-server", server, "--group", stage.group_id, "--capacity", 9)
    ran = command("scale", "--json", *arguments)
    assert ran.returncode == 0, ran.stderr
    line = json.loads(ran.stdout)
    assert all(one["lag"] is not None for one in line["counts"])
    return 1


def _stage(members: Members, random: Random, name: str) -> Stage:
    topics = {f"{name}.{x}": random.randint(3, 11) for x in "ab"}
    stage = Stage(name, topics)
    members.create(topics)
    for _ in range(random.randint(2, 4)):
        _start(members, stage)
    return stage


def _start(members: Members, stage: Stage) -> None:
    library, protocol, assignor = GROUPS[stage.group_id]
    number = next(stage.numbers)
    if protocol == "consumer":
        library = (JAVA, LIBRDKAFKA)[number % 2]
    name = f"{stage.group_id}-{number}"
    topics = tuple(sorted(stage.topics))
    client = Client(name, stage.group_id, library, topics, protocol, assignor)
    stage.clients.append(client)
    members.start(client)


def _step(members: Members, log: OffsetsLog, random: Random, stage: Stage) -> tuple[str, str]:
    before = _rested(members, log, stage)
    now = len(stage.clients)
    start = len(generations(log.of(stage.group_id)))
    is_classic = GROUPS[stage.group_id][1] == "classic"
    reach = (-2, -1, -1, 1, 1, 2) if is_classic else (-1, 1)
    more = random.choice([n for n in reach if _FEWEST <= now + n <= _MOST])
    (told,) = (
        one for one in scale(before, [now + more], samples=_SAMPLES).counts if one.members != now
    )
    for _ in range(more):
        _start(members, stage)
    for client in random.sample(stage.clients, max(0, -more)):
        stage.clients.remove(client)
        members.close(client)
    after = _rested(members, log, stage)
    if is_classic:
        found = generations(log.of(stage.group_id))[start - 1 :]
        seen = _in_log(found)
    else:
        epochs = (after.generation_id or 0) - (before.generation_id or 0)
        seen = Seen(Assignment.owned(after).balance.max, _moved(before, after), epochs)
    what = f"{now} to {now + more} members"
    return what, _verdict(before, more, told, seen)


def _rested(members: Members, log: OffsetsLog, stage: Stage) -> GroupSpec:
    """Returns the group when it has settled, every partition has an owner, and the log is quiet.

    On a busy machine, the log is read late: it is quiet, and lacks the last round. So the newest
    generation that was read must be the group's.
    """
    is_classic = GROUPS[stage.group_id][1] == "classic"
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        group = settled(members.server, stage.group_id, len(stage.clients))
        held = sum(map(len, Assignment.owned(group).values()))
        is_quiet = log.quiet_s(stage.group_id) > _QUIET_S
        newest = [_sets(one) for one in generations(log.of(stage.group_id))[-1:]]
        is_read = not is_classic or newest == [owned(group)]
        if held == sum(stage.topics.values()) and is_quiet and is_read:
            return group
        if time.monotonic() > deadline:
            raise TimeoutError(f"{stage.group_id}: {held} partitions have an owner, {is_read=}")


def _moved(before: GroupSpec, after: GroupSpec) -> int:
    held = owned(before)
    return sum(len(found - held.get(member, frozenset())) for member, found in owned(after).items())


def _in_log(records: Sequence[Written]) -> Seen:
    """Returns what the generations after the first one did."""
    moves, idle, held = 0, 0, _sets(records[0])
    for record in records[1:]:
        after = _sets(record)
        moves += sum(len(after[one] - held.get(one, frozenset())) for one in after)
        idle += after == held
        held = after
    sizes = tuple(len(record.value.members) for record in records)
    return Seen(max(map(len, held.values())), moves, len(records) - 1 - idle, idle, sizes)


def _sets(record: Written) -> dict[str, frozenset[tuple[str, int]]]:
    return {member: frozenset(owned) for member, owned in record.assigned().items()}


def _verdict(before: GroupSpec, more: int, told: Count, seen: Seen) -> str:
    figures = {name: getattr(seen, name) for name in ("fullest", "moves", "rebalances")}
    if all(getattr(told, name) == value for name, value in figures.items()):
        return f"as told: {seen.idle} idle" if seen.idle else "as told"
    late = seen.rebalances > told.rebalances and _may_be_late(before, more)
    on_time = figures | {"rebalances": seen.rebalances - late}
    if all(_in_range(told, name, value) for name, value in on_time.items()):
        return "in range: with one rebalance more" if late else "in range"
    between = {*seen.sizes} - {len(before.members), told.members}
    if between and seen.fullest in _in_turn(before, more):
        return "in turn"
    expected = {name: (getattr(told, name), told.ranges.get(name)) for name in figures}
    return f"wrong: {expected} is {figures}, sizes {seen.sizes}, before {before.to_json()}"


def _in_range(told: Count, name: str, value: int) -> bool:
    planned = getattr(told, name)
    least, most = told.ranges.get(name, (planned, planned))
    return bool(least <= value <= most)


def _may_be_late(before: GroupSpec, more: int) -> bool:
    """Returns whether a note on the plan announces one rebalance more."""
    verb = f"add-members={more}" if more > 0 else f"remove-members={-more}"
    return any(one.kind in _ONE_MORE for one in plan_notes(plan(before, None, [verb])))


def _in_turn(before: GroupSpec, more: int) -> Iterator[int]:
    """Yields what the fullest member has after one step for each member."""
    verb = "add-members=1" if more > 0 else "remove-members=1"
    yield plan(before, None, [verb] * abs(more)).after.balance.max


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale_live")
    parser.add_argument("--steps", type=int, default=60, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    arguments = parser.parse_args()
    counts = run(arguments.steps, arguments.seed)
    print(f"\n$ python -m tests.scale_live --steps {arguments.steps} --seed {arguments.seed}")
    for what, count in sorted(counts.items()):
        print(f"{what}: {count}")
    return bool(counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())

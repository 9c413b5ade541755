# SPDX-License-Identifier: Apache-2.0
"""Prints the figures and traces of docs/never-ends.md again.

    python -m tools.never_ends trace                    # the smallest case, move by move
    python -m tools.never_ends smallest --seconds 60    # looks for a smaller case
    python -m tools.never_ends shares --groups 2000     # how often groups hang, by shape and size
    python -m tools.never_ends judge --groups 200       # compares with Kafka's class
    python -m tools.never_ends mended --groups 200      # plays groups with the corrected rule

All commands except `trace` draw groups from `--seed`. `judge` needs the oracle (`make judges`).
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import kafka_rebalance as kr
from kafka_rebalance.assignors.classic.claims import sent_by_sticky, settle
from kafka_rebalance.assignors.classic.general import GeneralBuild
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.bulk.lines import assign_lines
from tests.support.oracle import Oracle, ask_once

from .smaller_groups import changed, owns, parts_left_out, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kafka_rebalance.group.model import TopicPartition

ROOT = Path(__file__).resolve().parent.parent

Group = dict[str, Any]  # a contract line
_B = TypeVar("_B", bound=GeneralBuild)

SMALLEST = ROOT / "tests" / "vectors" / "never_ends_smallest.jsonl"
MOST_WORK = 5_000_000
"""The most partitions, over all groups, that are generated for one row of the table."""

PATIENCE_S = 2
"""How long to wait for Kafka's class and the start of its JVM; an answer takes about 1 ms."""


def hanging(groups: Iterable[Group]) -> list[Group]:
    """Returns the groups on which Kafka's assignor never ends."""
    asked = list(groups)
    answers = assign_lines([json.dumps(group).encode() for group in asked])
    return [group for group, one in zip(asked, answers, strict=True) if b"never ends" in one.line]


# The smallest case, move by move ------------------------------------------------------------------


class Told(GeneralBuild):
    """The reference's balancing, which also prints each move."""

    def relocate(self, tp: TopicPartition, destination: str) -> None:
        owner = self.owner[tp]
        moved = self.movements.actual(tp, owner, destination)
        source = self.owner[moved]
        super().relocate(tp, destination)
        instead = f"; sent back in its place: {moved} {source}>{destination}"
        sizes = " ".join(str(len(self.current[m])) for m in sorted(self.current))
        print(f"  {sizes}   {tp} {owner}>{destination}{'' if moved == tp else instead}")

    def _reassign(self, partitions: Sequence[TopicPartition]) -> bool:
        print(f"  again and again: {' '.join(map(str, partitions))}")
        return super()._reassign(partitions)


def started(group: kr.GroupSpec, kind: type[_B]) -> tuple[_B, list[TopicPartition]]:
    """Runs steps 1 to 5 of the reference; returns the build and the unassigned partitions."""
    claims = settle(group, {m.member_id: sent_by_sticky(m) for m in group.members})
    build = kind("sticky", claims, Racks.of(group, claims))
    build.sort_partitions()
    build.remember_previous()
    unassigned = build.keep_owned()
    build.assign_unassigned(unassigned)
    build.take_out_fixed()
    return build, unassigned


def trace() -> None:
    """Prints the moves in the smallest groups that never end, until a state occurs again.

    Each line shows the members' numbers of partitions after a move, and then the move.
    """
    for line in SMALLEST.read_bytes().splitlines():
        group = kr.GroupSpec.from_json(line)
        build, unassigned = started(group, Told)
        print(f"{group.group_id}, before partitions are moved:")
        for member_id, held in sorted(build.current.items()):
            print(f"  {member_id}: {' '.join(map(str, held))}")
        try:
            build.balance(unassigned, initializing=False)
        except kr.NeverEnds as error:
            print(error)


# Looking for a smaller case -----------------------------------------------------------------------


def smaller(group: Group, rng: random.Random) -> Group:
    """Removes parts while the group still hangs, until every further removal makes it end."""
    while True:
        tried = list(parts_left_out(group))
        rng.shuffle(tried)
        parts = (tried[i : i + 64] for i in range(0, len(tried), 64))
        found = next((hits for part in parts if (hits := hanging(part))), None)
        if found is None:
            return group
        group = found[0]


def smallest(seed: int, seconds: int) -> None:
    """Searches for smaller groups that never end: edits random groups, and the smallest known."""
    rng = random.Random(seed)
    known = [json.loads(line) for line in SMALLEST.read_bytes().splitlines()]
    until = time.monotonic() + seconds
    tried, starts = 0, 0
    best: dict[bool, Group] = {owns(group): group for group in known}
    while time.monotonic() < until:
        starts += 1
        found = rng.choice(known) if starts % 2 else _any_that_hangs(rng, until)
        if found is None:
            break
        found = smaller(found, rng)
        stale = 0
        while stale < 100 and time.monotonic() < until:
            drawn = [changed(found, rng) for _ in range(128)]
            tried += len(drawn)
            # A slightly larger group is accepted, too, because it can lead to a smaller one.
            most = size(found)[1] + rng.choice([0, 0, 1, 3])
            hits = [one for one in hanging(drawn) if size(one)[1] <= most]
            other = smaller(rng.choice(hits), rng) if hits else found
            stale = 0 if size(other) < size(found) else stale + 1
            found = other if size(other) <= size(found) else found
        has_owned = owns(found)
        if size(found) < size(best[has_owned]):
            best[has_owned] = found
            print(json.dumps(found))
    for has_owned, group in best.items():
        members, partitions, topics, *_ = size(group)
        what = "some owned" if has_owned else "nothing owned"
        print(f"{what}: {members} members, {partitions} partitions, {topics} topics")
    print(f"{starts} starts, {tried:,} changed groups in {seconds} s (seed {seed})")


def _any_that_hangs(rng: random.Random, until: float) -> Group | None:
    while time.monotonic() < until:
        members = rng.randint(6, 20)
        drawn = []
        for _ in range(300):
            shape = rng.choice(list(SHAPES))
            drawn.append(drawn_group(rng, shape, members, rng.choice([50, 100, 200])))
        found = hanging(drawn)
        if found:
            return found[0]
    return None


# How often groups hang ----------------------------------------------------------------------------


def _some(most: int) -> Callable[[random.Random, int, int], list[int]]:
    return lambda rng, _, topics: rng.sample(range(topics), min(most, topics))


# Each function returns the topics of member n; there are as many topics as members.
SHAPES: dict[str, Callable[[random.Random, int, int], list[int]]] = {
    "2 random topics each": _some(2),
    "3 random topics each": _some(3),
    "a common and a team's": lambda _, n, topics: [0, 1 + n % max(1, topics // 5)],
    "the first n topics": lambda _, n, topics: list(range(1 + n % topics)),
    "9 of 10 random topics": lambda rng, _, topics: rng.sample(range(topics), topics * 9 // 10),
}


def drawn_group(rng: random.Random, shape: str, members: int, partitions: int) -> Group:
    """Draws a group with as many topics as members and without owned partitions."""
    return {
        "group_id": "drawn",
        "assignor": "sticky",
        "topics": [{"name": f"t{t}", "partitions": partitions} for t in range(members)],
        "members": [
            {
                "member_id": f"{rng.getrandbits(64):016x}",
                "topics": [f"t{t}" for t in SHAPES[shape](rng, n, members)],
            }
            for n in range(members)
        ],
    }


def _next(rng: random.Random, group: Group, answer: bytes) -> Group:
    """Returns the next group: members own their assigned partitions, and one joins or leaves."""
    held = json.loads(answer)["assignment"]
    new = copy.deepcopy(group)
    new["generation_id"] = 1
    for member in new["members"]:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in held[member["member_id"]]:
            by_topic.setdefault(topic, []).append(partition)
        member["generation_id"] = 1
        member["owned_partitions"] = [
            {"topic": topic, "partitions": each} for topic, each in by_topic.items()
        ]
    if rng.random() < 0.5:
        new["members"].pop(rng.randrange(len(new["members"])))
    else:
        like = rng.choice(group["members"])
        new["members"].append({**like, "member_id": f"{rng.getrandbits(64):016x}"})
    return new


def shares(seed: int, groups: int) -> None:
    """Prints how many groups hang, by shape and size.

    It counts first assignments, and assignments after a member has joined or left.
    """
    print("| shape | members | partitions a topic | groups | first never ends | next never ends |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    total: Counter[str] = Counter()
    for shape in SHAPES:
        for members in (5, 20, 50, 100):
            for partitions in (10, 50, 200):
                count = min(groups, MOST_WORK // (members * partitions))
                rng = random.Random(f"{seed}/{shape}/{members}/{partitions}")
                row = Counter(groups=count)
                for _ in range(row["groups"]):
                    group = drawn_group(rng, shape, members, partitions)
                    answer = assign_lines([json.dumps(group).encode()])[0].line
                    if b"never ends" in answer:
                        row["first"] += 1
                    else:
                        row["next"] += len(hanging([_next(rng, group, answer)]))
                total += row
                cells = (f"{row[k]} ({row[k] / row['groups']:.1%})" for k in ("first", "next"))
                text = f"{shape} | {members} | {partitions} | {row['groups']:,}"
                print(f"| {text} | {' | '.join(cells)} |", flush=True)
    print(
        f"{total['groups']:,} groups; never end: {total['first']} first assignments, "
        f"{total['next']} next ones (seed {seed})"
    )


# Comparing with Kafka's class ---------------------------------------------------------------------


def around_the_smallest(seed: int, count: int) -> tuple[list[Group], list[Group]]:
    """Draws variants of the known cases: `count` that never end, and `count` that end."""
    rng = random.Random(seed)
    known = [json.loads(line) for line in SMALLEST.read_bytes().splitlines()]
    drawn: dict[bool, dict[str, Group]] = {True: {}, False: {}}
    at = known
    while min(map(len, drawn.values())) < count:
        tried = [changed(rng.choice(at), rng) for _ in range(400)]
        hits = {id(group) for group in hanging(tried)}
        for group in tried:
            drawn[id(group) in hits].setdefault(json.dumps(group), group)
        at = [*known, *rng.sample(list(drawn[True].values()), min(20, len(drawn[True])))]
    return list(drawn[True].values())[:count], list(drawn[False].values())[:count]


def judge(seed: int, groups: int) -> int:
    """Compares our answers with those of Kafka's class, on variants of the known cases.

    For half of the variants, we report that they never end: Kafka's class must not answer those.
    For the other half, its answers must equal ours. Returns the number of differences.
    """
    hang, end = around_the_smallest(seed, groups // 2)
    count: Counter[str] = Counter()
    with Oracle() as oracle:
        for group in end:
            answer = json.loads(assign_lines([json.dumps(group).encode()])[0].line)
            count["end"] += 1
            kafkas = oracle.ask(group)
            count["otherwise"] += kafkas.get("assignment") != answer.get("assignment")
    for group in hang:
        count["never end"] += 1
        count["answered"] += ask_once(group, within_s=PATIENCE_S) is not None
    print(
        f"{count['end']} groups that end: Kafka's class answers otherwise in {count['otherwise']}\n"
        f"{count['never end']} groups that never end: Kafka's class answers {count['answered']} "
        f"within {PATIENCE_S} s (seed {seed})"
    )
    return count["otherwise"] + count["answered"]


class Mended(GeneralBuild):
    """The corrected reference: `relocate` moves a partition back only if `owner` holds it."""

    moves = 0

    def relocate(self, tp: TopicPartition, destination: str) -> None:
        owner = self.owner[tp]
        moved = self.movements.actual(tp, owner, destination)
        moved = moved if self.owner[moved] == owner else tp
        self.movements.record(moved, owner, destination)
        self._take(owner, moved)
        self.give(destination, moved)
        self.moves += 1


def mended(seed: int, groups: int) -> int:
    """Balances, with `Mended`, groups that never end; returns how many still do not end."""
    hang, _ = around_the_smallest(seed, groups)
    left, most = 0, 0
    for group in [*hang, *(json.loads(line) for line in SMALLEST.read_bytes().splitlines())]:
        build, unassigned = started(kr.GroupSpec.from_dict(group), Mended)
        try:
            build.balance(unassigned, initializing=False)
        except kr.NeverEnds:
            left += 1
        most = max(most, build.moves)
    print(f"{len(hang) + 2} groups that never end: {left} do not by the rule, {most} moves at most")
    return left


def main() -> int:
    """Parses the command line and runs the chosen command."""
    parser = argparse.ArgumentParser(
        description="Prints the figures and traces of docs/never-ends.md."
    )
    parser.add_argument("what", choices=("trace", "smallest", "shares", "judge", "mended"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    if options.what == "trace":
        trace()
    elif options.what == "smallest":
        smallest(options.seed, options.seconds)
    elif options.what == "shares":
        shares(options.seed, options.groups)
    elif options.what == "judge":
        return min(1, judge(options.seed, options.groups))
    else:
        return min(1, mended(options.seed, options.groups))
    return 0


if __name__ == "__main__":
    sys.exit(main())

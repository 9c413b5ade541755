# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.balance_laws [FILE…]`: both rounds of `Balanced` and `Weighted`, case by case.

Reads judged groups (`tests/vectors` without a FILE), plays two rounds of each with a leader that
stays and with one that is new in the second round, and checks:

    withheld    a partition is left out only if its reader does not claim it and another member
                does; one of those members then loses it, so a second round comes
    second      a second round takes nothing and hands out everything, also by a new leader
    unweighed   without weights, `weighted` takes nothing from an owner
    restarted   static members with new member ids get the partitions that they had

Prints for each law how often it was checked, and the groups that break it; the exit code is 1 then.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.clients.balance import LastAnswer, Leading, PlugInOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_rebalance.clients.balance import Weights
    from kafka_rebalance.clients.leader import LegalAnswer

VECTORS = Path(__file__).resolve().parent / "vectors"
FILES = [VECTORS / f"{name}.jsonl.gz" for name in ("balanced", "weighted", "balance_curve")]
SETTINGS = {"balanced": ("", "budget=5%"), "weighted": ("", "budget=none")}


def groups(file: Path) -> Iterator[GroupSpec]:
    for line in gzip.decompress(file.read_bytes()).splitlines():
        case = json.loads(line)
        yield GroupSpec.from_dict(case.get("case", case))


def taken(members: Sequence[Member], answer: LegalAnswer) -> set[TopicPartition]:
    """Returns the partitions that do not go to their present owner."""
    owners: dict[TopicPartition, list[tuple[int, Member]]] = {}
    for one in members:
        for tp in one.owned_partitions:
            generation = -1 if one.generation_id is None else one.generation_id
            owners.setdefault(tp, []).append((generation, one))
    lost = set()
    for tp, claims in owners.items():
        newest = max(generation for generation, _ in claims)
        owner, *more = [one for generation, one in claims if generation == newest]
        if not more and tp.topic in owner.topics and tp not in answer[owner.member_id]:
            lost.add(tp)
    return lost


def owning(members: Sequence[Member], answer: LegalAnswer) -> tuple[Member, ...]:
    newest = max((one.generation_id or 0 for one in members), default=0)
    return tuple(one.owning(tuple(answer[one.member_id]), newest + 1) for one in members)


def _leader(options: PlugInOptions) -> Leading:
    """Returns a member that led before, so it is not new."""
    one = Leading(options, lambda: None)
    one._last = LastAnswer("g", (), (), {}, {}, withheld=False, since=-1e9)
    return one


def laws(group: GroupSpec) -> Iterator[tuple[str, bool]]:
    """Yields (law, whether it holds) for each check."""
    topics = tuple(replace(topic, weights=None) for topic in group.topics)
    known: Mapping[tuple[str, int], float] = {
        (topic.name, p): weight
        for topic in group.topics
        for p, weight in enumerate(topic.weights or ())
        if weight is not None
    }
    read = {name for one in group.members for name in one.topics}
    every = {
        TopicPartition(t.name, p) for t in topics if t.name in read for p in range(t.partitions)
    }
    for assignor, given in SETTINGS.items():
        weights: Weights | None = known if assignor == "weighted" else None
        for settings in given:
            options = PlugInOptions(assignor, settings, weights, is_cooperative=True)
            yield from _rounds(options, topics, group.members, every)
    unweighed = PlugInOptions("weighted", "budget=none", None, is_cooperative=True)
    answer = _leader(unweighed).decide("g", topics, group.members, "")
    yield "unweighed", not taken(group.members, answer) & every
    for assignor in SETTINGS:
        options = PlugInOptions(assignor, "", known, is_cooperative=True)
        answers = []
        for renamed in ("a{:03}", "b{:03}"):
            # The new member ids sort in the other direction.
            ids = [
                renamed.format(n if "a" in renamed else 999 - n) for n in range(len(group.members))
            ]
            static = tuple(
                replace(one, member_id=ids[n], group_instance_id=f"i{n:03}")
                for n, one in enumerate(group.members)
            )
            answer = _leader(options).decide("g", topics, static, "")
            answers.append([sorted(answer[who]) for who in ids])
        yield "restarted", answers[0] == answers[1]


def _rounds(
    options: PlugInOptions,
    topics: tuple[Topic, ...],
    members: tuple[Member, ...],
    every: set[TopicPartition],
) -> Iterator[tuple[str, bool]]:
    for is_new in (False, True):
        one = _leader(options)
        first = one.decide("g", topics, members, "")
        assert one._last
        target = one._last.target
        claims = {m.member_id: set(m.owned_partitions) for m in members}
        withheld = every.difference(*first.values())
        for who, tps in target.items():
            others = set().union(*(tps for m, tps in claims.items() if m != who))
            yield (
                "withheld",
                withheld & set(tps) == {tp for tp in tps if tp in others - claims[who]},
            )
        yield "withheld", all(any(tp in c for c in claims.values()) for tp in withheld)
        if withheld:
            second = owning(members, first)
            answer = (Leading(options, lambda: None) if is_new else one).decide(
                "g", topics, second, ""
            )
            found = Counter(tp for tps in answer.values() for tp in tps)
            name = f"second, {options.named}, " + ("a new leader" if is_new else "the same leader")
            yield name, not taken(second, answer) and found == Counter(every)


def main(files: Sequence[Path]) -> int:
    checked, broken = Counter[str](), Counter[str]()
    for file in files:
        for group in groups(file):
            for law, holds in laws(group):
                checked[law] += 1
                if not holds:
                    broken[law] += 1
                    print(f"{group.group_id} breaks: {law}")
    for law, count in sorted(checked.items()):
        print(f"{law}: {count - broken[law]} of {count}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or FILES))

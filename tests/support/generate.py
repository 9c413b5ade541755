# SPDX-License-Identifier: Apache-2.0
"""Generates random groups for the comparison of engines; a seed always generates the same groups.

Groups are difficult on purpose. Every assignor has its own random sequence of stories. A story is
one group in one to eight rounds: members own the partitions of the round before, and between two
rounds events (`EVENTS`) change the group. In the first round, names (`FAMILIES`: some collide in
Java's hash tables), subscriptions (`SHAPES`) and racks (`PLACES`) are chosen. Some members send
data that only faulty clients send: topics listed twice, partitions that do not exist.

    case --assign--> answer --own--> members --events--> next case

A seed determines the groups, because each story has one source of random numbers, and no loop runs
over a set. Groups are valid by the contract: no negative partition, no two topics of one name, no
two members of one id.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.support import generate_streams
from tests.support.generated_events import EVENTS, claim_beyond, own_a_stride, repeat_topics
from tests.support.generated_groups import Case, Story, is_server_side
from tests.support.generated_names import pick

Assign = Callable[[Case], dict[str, Any]]


def generate(seed: int, count: int, assignors: Sequence[str], assign: Assign) -> Iterator[Case]:
    """Yields `count` cases, the assignors in turn; `assign` answers a case for the next round."""
    streams = [
        generate_streams.stories(seed, assignor, assign)
        if assignor.startswith("streams/")
        else _stories(seed, assignor, assign)
        for assignor in assignors
    ]
    for n in range(count):
        yield next(streams[n % len(streams)])


def _stories(seed: int, assignor: str, assign: Assign) -> Iterator[Case]:
    rng = random.Random(f"{seed}/{assignor}")
    # Range and roundrobin must ignore owned partitions; a second round is enough to test this.
    most_rounds = 8 if "sticky" in assignor or is_server_side(assignor) else 2
    number = itertools.count()
    while True:
        story = Story(rng, assignor)
        if rng.random() < 0.08:
            repeat_topics(story)
        if rng.random() < 0.04:
            claim_beyond(story)
        for _ in range(rng.randint(1, most_rounds)):
            case = story.case(f"gen-{seed}-{assignor}-{next(number):06d}")
            yield case
            answer = assign(case)
            if "assignment" not in answer:
                break
            story.own(answer["assignment"])
            if story.tangled:
                story.tangle()
                continue
            for _ in range(pick(rng, {0: 1, 1: 6, 2: 3, 3: 1})):
                rng.choice(EVENTS)(story)
            if story.is_server_side and rng.random() < 0.15:
                own_a_stride(story)

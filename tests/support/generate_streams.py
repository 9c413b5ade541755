# SPDX-License-Identifier: Apache-2.0
"""Generates random streams groups for the comparison of engines, always the same for a seed.

A story is one group in one to eight rounds, as in `generate.py`: its members have the tasks of the
round before, and between two rounds events (`EVENTS`) change the group. Members run in few or many
processes. Some members report offsets of tasks that they no longer have, as a restarted process
does; some have tasks that the topology does not contain.

    case --assign--> answer --own--> members --events--> next case
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.generated_names import CROWDED, FAMILIES, names, pick

Case = dict[str, Any]
Assign = Callable[[Case], dict[str, Any]]
Task = tuple[str, int]

# Few values, so that many offsets are equal; Kafka itself reports no negative offset.
OFFSETS = [0, 0, 1, 2, 100, 100, 5_000, -1, 2**63 - 1, -(2**63)]


def stories(seed: int, assignor: str, assign: Assign) -> Iterator[Case]:
    """Yields cases without end; in the next round, members own what `assign` gave them."""
    rng = random.Random(f"{seed}/{assignor}")
    number = itertools.count()
    while True:
        story = _Story(rng, assignor)
        for _ in range(rng.randint(1, 8)):
            case = story.case(f"gen-{seed}-{assignor}-{next(number):06d}")
            yield case
            answer = assign(case)
            if "assignment" not in answer:
                break
            story.own(answer)
            for _ in range(pick(rng, {0: 1, 1: 6, 2: 3, 3: 1})):
                rng.choice(EVENTS)(story)


@dataclass
class _Member:
    member_id: str
    process_id: str
    active: list[Task] = field(default_factory=list)
    standby: list[Task] = field(default_factory=list)
    offsets: dict[Task, int] = field(default_factory=dict)


class _Story:
    """One group and its random source. Events change the group in place; `case` returns it."""

    def __init__(self, rng: random.Random, assignor: str) -> None:
        self.rng = rng
        self.assignor = assignor
        family = pick(rng, FAMILIES)
        self.member_names = names(rng, [family])
        process_family = pick(rng, FAMILIES)
        self.process_names = names(rng, [process_family])
        self.subtopology_names: Iterator[str] = map(str, itertools.count())
        if rng.random() < 0.4:
            self.subtopology_names = names(rng, [pick(rng, FAMILIES)])
        self.replicas = rng.choice([0, 1, 1, 1, 2, 2, 3, 5])
        self.stateful = rng.choice([0.3, 0.7, 1, 1])
        # Few stateful tasks: the quotas with and without standby replicas are equal, or nearly.
        self.few_stateful = rng.random() < 0.2
        self.subtopologies: list[dict[str, Any]] = []
        for _ in range(pick(rng, {1: 60, 2: 60, 3: 40, rng.randint(4, 8): 20, 0: 1})):
            self.add_subtopology()
        crowded = family in CROWDED or process_family in CROWDED
        sizes = {rng.randint(1, 4): 4, rng.randint(5, 12): 4, rng.randint(13, 40): 2 + 2 * crowded}
        members = pick(rng, sizes)
        # The probability that a new member gets a new process.
        self.new_process = rng.choice([0.1, 0.3, 0.5, 1])
        self.members: list[_Member] = []
        for _ in range(members):
            self.add_member()
        if rng.random() < 0.5:
            self.own_at_random(rng.choice([0.3, 0.8]))

    def add_subtopology(self) -> None:
        tasks = self.rng.randint(1, pick(self.rng, {3: 2, 8: 4, 40: 2}))
        stateful = tasks <= 3 if self.few_stateful else self.rng.random() < self.stateful
        name = next(self.subtopology_names)
        self.subtopologies.append({"subtopology_id": name, "tasks": tasks, "stateful": stateful})

    def add_member(self) -> _Member:
        processes = sorted({member.process_id for member in self.members})
        process = next(self.process_names)
        if processes and self.rng.random() >= self.new_process:
            process = self.rng.choice(processes)
        member = _Member(next(self.member_names), process)
        self.members.insert(self.rng.randint(0, len(self.members)), member)
        return member

    def tasks(self, beyond: int = 0) -> list[Task]:
        """Returns all tasks, and for each subtopology `beyond` tasks that do not exist."""
        return [
            (one["subtopology_id"], number)
            for one in self.subtopologies
            for number in range(one["tasks"] + beyond)
        ]

    def own_at_random(self, share: float) -> None:
        beyond = self.rng.choice([0, 0, 0, 2])
        for task in self.tasks(beyond):
            if self.rng.random() < share:
                self.rng.choice(self.members).active.append(task)
            for _ in range(self.rng.randint(0, 3)):
                if self.rng.random() < share:
                    self.rng.choice(self.members).standby.append(task)

    def own(self, answer: dict[str, Any]) -> None:
        for member in self.members:
            member.active = [(s, n) for s, n in answer["assignment"][member.member_id]]
            member.standby = [(s, n) for s, n in answer["standby"][member.member_id]]

    def case(self, group_id: str) -> Case:
        return {
            "group_id": group_id,
            "assignor": self.assignor,
            "topics": [],
            "members": [_line(member) for member in self.members],
            "subtopologies": [dict(one) for one in self.subtopologies],
            "num_standby_replicas": self.replicas,
        }


def _line(member: _Member) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "topics": [],
        "process_id": member.process_id,
        "active_tasks": _by_subtopology(member.active),
        "standby_tasks": _by_subtopology(member.standby),
        "task_offsets": [
            {"subtopology_id": subtopology, "partition": number, "offset": offset}
            for (subtopology, number), offset in member.offsets.items()
        ],
    }


def _by_subtopology(tasks: list[Task]) -> list[dict[str, Any]]:
    lists: dict[str, list[int]] = {}
    for subtopology, number in tasks:
        lists.setdefault(subtopology, []).append(number)
    return [{"subtopology_id": one, "partitions": numbers} for one, numbers in lists.items()]


# Events -------------------------------------------------------------------------------------------


def _join(story: _Story) -> None:
    for _ in range(story.rng.choice([1, 1, 1, 2, 5])):
        story.add_member()


def _leave(story: _Story) -> None:
    for _ in range(story.rng.choice([1, 1, 1, 2, 5])):
        if len(story.members) > 1:
            story.members.remove(story.rng.choice(story.members))


def _end_process(story: _Story) -> None:
    """Lets all members of a process leave if other members remain."""
    process = story.rng.choice(story.members).process_id
    left = [member for member in story.members if member.process_id != process]
    story.members = left or story.members


def _restart_process(story: _Story) -> None:
    """Replaces the members of a process by new ones, which report the offsets of their state."""
    process = story.rng.choice(story.members).process_id
    for member in story.members:
        if member.process_id == process:
            state = member.active + member.standby
            member.offsets = {task: story.rng.choice(OFFSETS) for task in state}
            member.member_id = next(story.member_names)
            member.active, member.standby = [], []


def _report(story: _Story) -> None:
    """Lets some members report offsets of their tasks; some of these report other tasks, too."""
    for member in story.members:
        if story.rng.random() < 0.5:
            tasks = member.active + member.standby
            if story.rng.random() < 0.5:
                tasks += story.rng.sample(story.tasks(1), min(6, len(story.tasks(1))))
            member.offsets = {task: story.rng.choice(OFFSETS) for task in tasks}


def _forget(story: _Story) -> None:
    member = story.rng.choice(story.members)
    member.active, member.standby, member.offsets = [], [], {}


def _claim(story: _Story) -> None:
    """Gives a member all tasks of another member, too: as active or as standby tasks."""
    member, other = (story.rng.choice(story.members) for _ in range(2))
    kept = member.active if story.rng.random() < 0.5 else member.standby
    kept += [task for task in other.active + other.standby if task not in kept]


def _swap_roles(story: _Story) -> None:
    member = story.rng.choice(story.members)
    member.active, member.standby = member.standby, member.active


def _hoard(story: _Story) -> None:
    """Gives one member most active tasks."""
    member = story.rng.choice(story.members)
    member.active = [task for task in story.tasks() if story.rng.random() < 0.8]
    for other in story.members:
        if other is not member:
            other.active = [task for task in other.active if task not in member.active]


def _own_at_random(story: _Story) -> None:
    _forget(story)
    story.own_at_random(story.rng.choice([0.1, 0.5]))


def _change_topology(story: _Story) -> None:
    """Adds or removes a subtopology, or changes its number of tasks or whether it is stateful."""
    chosen = story.rng.randrange(4)
    if chosen == 0 or not story.subtopologies:
        return story.add_subtopology()
    one = story.rng.choice(story.subtopologies)
    if chosen == 1 and len(story.subtopologies) > 1:
        story.subtopologies.remove(one)
    elif chosen == 2:
        one["stateful"] = not one["stateful"]
    else:
        one["tasks"] = max(1, one["tasks"] + story.rng.choice([-3, -1, 1, 4]))
    return None


def _change_replicas(story: _Story) -> None:
    story.replicas = story.rng.choice([0, 1, 1, 2, 3])


def _shuffle(story: _Story) -> None:
    story.rng.shuffle(story.members)


EVENTS = (
    _join,
    _join,
    _leave,
    _leave,
    _end_process,
    _restart_process,
    _report,
    _report,
    _forget,
    _claim,
    _swap_roles,
    _hoard,
    _own_at_random,
    _change_topology,
    _change_replicas,
    _shuffle,
)

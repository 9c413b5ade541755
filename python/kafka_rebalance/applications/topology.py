# SPDX-License-Identifier: Apache-2.0
"""Infers the subtopologies of an application from its present assignment.

1. The user data that the leader sent holds the tasks of assigned partitions, and the partitions of
   standby tasks. This shows the subtopology of each source topic: each topic is read by a task.
2. A subtopology is stateful if a thread reported an offset sum for one of its tasks, or has a
   standby task of it, or if `known_stateful` contains its number.
3. A changelog `<group>-…-changelog` belongs to a stateful subtopology with as many tasks as the
   changelog has partitions. If several fit, it belongs to the one that reads a topic with the name
   of the changelog's store (`<group>-STORE-repartition`); without one, each of them is a candidate,
   and `replayed` chooses. If none is stateful (no thread has reported anything yet), all that have
   as many tasks are candidates, first those that read a repartition topic.
4. A stateful subtopology without a changelog uses its source topics as changelogs
   (`topology.optimization`).

Errors   GroupError if no task of a source topic is assigned.
"""

from collections.abc import Collection, Mapping
from itertools import islice, product
from typing import NamedTuple

from kafka_rebalance.assignors.streams.application import Application, ThreadAssignment, TopicsInfo
from kafka_rebalance.errors import GroupError
from kafka_rebalance.java.order import by_name, name_key
from kafka_rebalance.wire.streams_protocol import TaskId

from .lines import FIELD, SentAssignment

CHANGELOG, _REPARTITION = "-changelog", "-repartition"
_MOST_CANDIDATES = 64


class ThreadTasks(NamedTuple):
    """The active and the standby tasks of a thread, each sorted."""

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()

    def all(self) -> tuple[TaskId, ...]:
        return *self.active, *self.standby


def topologies(
    group_id: str,
    application: Application,
    assigned: Mapping[str, SentAssignment],
    known_stateful: Collection[int] = (),
) -> list[tuple[TopicsInfo, ...]]:
    """Returns the topologies that fit, at most 64, the likeliest first; usually there is one."""
    # 1. and 2.
    sources, stateful = _seen(application, assigned)
    stateful |= {*known_stateful} & sources.keys()
    counts = {topic: len(partitions) for topic, partitions in application.racks.items()}
    tasks = {one: max(counts.get(topic, 0) for topic in of) for one, of in sources.items()}
    # 3.
    changelogs = by_name(
        one for one in application.end_offsets or () if one.startswith(f"{group_id}-")
    )
    places: list[list[int | None]] = []
    for name in changelogs:
        fitting = [one for one in sources if tasks[one] == counts.get(name)]
        known = [one for one in fitting if one in stateful] or fitting
        twin = f"{name.removesuffix(CHANGELOG)}{_REPARTITION}"
        named = [one for one in known if twin in sources[one]] or sorted(
            known, key=lambda one: not any(t.endswith(_REPARTITION) for t in sources[one])
        )
        places.append([*named] or [None])
    found = []
    for chosen in islice(product(*places), _MOST_CANDIDATES):
        own: dict[int, list[str]] = {one: [] for one in sources}
        for name, place in zip(changelogs, chosen, strict=True):
            if place is not None:  # else it is a changelog of an earlier topology
                own[place].append(name)
        # 4.
        copies = {one: sources[one] for one in stateful if not own[one]}
        infos = tuple(
            TopicsInfo(
                one,
                tuple(of),
                tuple(own[one]),
                tuple(t for t in copies.get(one, ()) if not t.endswith(_REPARTITION)),
            )
            for one, of in sources.items()
        )
        found.append((len(copies), infos))
    return [infos for _, infos in sorted(found, key=lambda one: one[0])]


def _seen(
    application: Application, assigned: Mapping[str, SentAssignment]
) -> tuple[dict[int, list[str]], set[int]]:
    """Returns subtopology number -> its source topics, and the numbers of the stateful ones."""
    of_topic: dict[str, int] = {}
    stateful = set()
    for one in assigned.values():
        partitions = sorted(one.partitions, key=lambda tp: (name_key(tp.topic), tp.partition))
        for tp, task in zip(partitions, one.info.active_tasks, strict=False):
            of_topic[tp.topic] = task.subtopology_id
        for standby in one.info.standby_tasks:
            of_topic |= dict.fromkeys((tp.topic for tp in standby.partitions), standby.task[0])
            stateful.add(standby.task.subtopology_id)
    sums = (task for one in application.threads for task in one.info.offset_sums())
    stateful |= {task.subtopology_id for task in sums} & {*of_topic.values()}
    read = [one for one in application.racks if not one.endswith(CHANGELOG)]
    unknown = [one for one in read if one not in of_topic]
    if unknown:
        problem = f"{', '.join(unknown)}: no task of it is assigned, so its subtopology is unknown"
        raise GroupError(f"{FIELD}.topics", f"{problem}; ask again when the group is stable")
    sources: dict[int, list[str]] = {one: [] for one in sorted({*of_topic.values()})}
    for topic in by_name(of_topic):
        sources[of_topic[topic]].append(topic)
    return sources, stateful


def answered_tasks(answer: ThreadAssignment) -> ThreadTasks:
    return ThreadTasks(tuple(sorted({*answer.active_tasks})), tuple(sorted(answer.standby_tasks)))


def present_tasks(assigned: Mapping[str, SentAssignment]) -> dict[str, ThreadTasks]:
    return {
        member_id: ThreadTasks(
            tuple(sorted({task.task_id for task in one.info.active_tasks})),
            tuple(sorted(standby.task.task_id for standby in one.info.standby_tasks)),
        )
        for member_id, one in assigned.items()
    }

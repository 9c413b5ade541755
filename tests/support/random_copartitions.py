# SPDX-License-Identifier: Apache-2.0
"""Draws an application's demands on the partitions of its topics, for `RandomTopology`.

A repartition topic may have a number of partitions that the application gives. A co-partition group
lists topics of one subtopology that must have equally many partitions, by their indexes in the
subtopology's lists. Some topics can agree, some cannot; two groups can share a topic. No real
client sends some of these topologies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .random_topics import Command

if TYPE_CHECKING:
    import random

    from .random_topics import RandomTopics

MORE = "q"
"""A second repartition topic of a subtopology."""


def alike(rng: random.Random, topics: RandomTopics) -> None:
    """Makes the users' topics again with one of two numbers of partitions: many of them agree."""
    few = rng.sample((1, 2, 3, 4, 6), 2)
    for name in topics.topics:
        topics.made += 1
        count = rng.choices(few, (9, 1))[0]
        topics.topics[name] = {"partitions": count, "id": f"{name}#{topics.made}"}


def copartition(rng: random.Random, topics: RandomTopics, subtopologies: Command) -> None:
    """Adds numbers of partitions and co-partition groups to subtopologies."""
    counts = [topic["partitions"] for topic in topics.topics.values()]
    if rng.random() < 0.5:
        _read_another(rng, subtopologies)
    for one in subtopologies.values():
        if one.get("repartition_sources"):
            given = [_with_count(rng, name, counts) for name in one["repartition_sources"]]
            one["repartition_sources"] = given
        if rng.random() < 0.85:
            groups = rng.choice((1, 1, 1, 2, 2, 3))
            one["copartition_groups"] = [_group(rng, one) for _ in range(groups)]
    if rng.random() < 0.06:
        _misuse(rng, rng.choice(list(subtopologies.values())))


def _read_another(rng: random.Random, subtopologies: Command) -> None:
    """Lets subtopologies read one more repartition topic, which the first subtopology writes, or
    nobody.
    """
    for one in rng.choices(list(subtopologies.values()), k=rng.choice((1, 1, 1, 2))):
        one["repartition_sources"] = [*one.get("repartition_sources", ()), MORE]
        if rng.random() < 0.5:
            one["repartition_sources"].reverse()
    if rng.random() < 0.9:
        first = subtopologies["0"]
        first["repartition_sinks"] = [*first.get("repartition_sinks", ()), MORE]


def _with_count(rng: random.Random, name: str, counts: list[int]) -> str | Command:
    if rng.random() < 0.7:
        return name
    return {"name": name, "partitions": rng.choice((*counts * 3, 2, 3, 6))}


def _group(rng: random.Random, subtopology: Command) -> Command:
    """Draws a group: all topics of the subtopology, or some, or none."""
    group: Command = {}
    for key in ("sources", "repartition_sources"):
        places = range(len(subtopology.get(key, ())))
        some = rng.sample(places, rng.randint(0, len(places)))
        group[key] = list(places) if rng.random() < 0.5 else some
    if rng.random() < 0.1:
        group["regexes"] = [0]  # Kafka does not read these indexes
    return group


def _misuse(rng: random.Random, subtopology: Command) -> None:
    """Makes a topology that is refused, or whose indexes are outside their lists."""
    sources = len(subtopology.get("sources", ()))
    group = rng.choice(({"sources": [sources]}, {"sources": [-1]}, {"repartition_sources": [7]}))
    wrong: Command = rng.choice(
        (
            {"regexes": ["t.*"]},
            {"changelogs": [{"name": "c", "partitions": 2}]},
            {"repartition_sources": [{"name": "r", "partitions": -1}]},
            {"repartition_sources": ["r", "r"]},
            {"copartition_groups": [*subtopology.get("copartition_groups", ()), group]},
        )
    )
    subtopology |= wrong

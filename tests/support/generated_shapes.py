# SPDX-License-Identifier: Apache-2.0
"""Random subscriptions of members and racks of replicas, for generated groups."""

# ruff: noqa: ARG001 -- all shapes have one signature, and all placements have one

from __future__ import annotations

import random

# Subscription shapes: each returns the topics of member n -----------------------------------------


def _same(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    return list(names)


def _nearly_same(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    return names[:-1] if n == members // 2 else list(names)


def _disjoint(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    teams = max(1, min(len(names), members // 2))
    return names[n % teams :: teams]


def _windows(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    """Each member has about half of the topics; the half of the next member begins one topic
    later.
    """
    width = max(1, len(names) // 2)
    return [names[(n + k) % len(names)] for k in range(width)] if names else []


def _nested(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    return names[: 1 + n % len(names)] if names else []


def _random(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    return rng.sample(names, rng.randint(1, len(names))) if names else []


def some_idle(rng: random.Random, names: list[str], n: int, members: int) -> list[str]:
    """Some members have no topics; the assignor leaves them out of its balancing."""
    return [] if rng.random() < 0.3 else _random(rng, names, n, members)


SHAPES = (
    *(_same, _same, _same, _nearly_same, _disjoint, _windows, _nested, _random, _random),
    some_idle,
)


def repeat_one(rng: random.Random, names: list[str]) -> None:
    """Lists a topic a second time, which only faulty clients do."""
    names.insert(rng.randint(0, len(names)), rng.choice(names))


# Replica placements: each returns the racks of partition p ----------------------------------------


def _everywhere(rng: random.Random, racks: list[str], p: int) -> list[str | None]:
    return list(racks)


def _rotating(rng: random.Random, racks: list[str], p: int) -> list[str | None]:
    """Two replicas in successive racks, as Kafka places replicas."""
    return [racks[(p + k) % len(racks)] for k in range(min(2, len(racks)))]


def _scattered(rng: random.Random, racks: list[str], p: int) -> list[str | None]:
    return list(rng.sample(racks, rng.randint(1, len(racks))))


def _holey(rng: random.Random, racks: list[str], p: int) -> list[str | None]:
    """Up to three replicas, each in a random rack, without a rack, or with an empty rack name."""
    return rng.choices([*racks, None, ""], k=rng.randint(0, 3))


PLACES = (_everywhere, _rotating, _scattered, _scattered, _holey)

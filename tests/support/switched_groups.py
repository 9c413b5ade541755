# SPDX-License-Identifier: Apache-2.0
"""Settled groups, and the rebalances of their switches between assignors in simulated runs."""

from __future__ import annotations

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.simulator import (
    Happening,
    Kind,
    MemberPlan,
    Scenario,
    TopicPlan,
    simulate,
)

TOPICS = (Topic("a", 7), Topic("b", 4), Topic("c", 3))
UUID = "0b5c2d1e-0000-4000-8000-12345678900"


def running(
    assignor: str, members: int = 3, client: str | None = None, static: tuple[int, ...] = ()
) -> GroupSpec:
    """Returns a group that has settled under an assignor."""
    there = tuple(
        Member(
            f"j{n}-{UUID}{n}",
            ("a", "b", "c"),
            client_id=client,
            group_instance_id=f"s{n}" if n in static else None,
        )
        for n in range(members)
    )
    group = GroupSpec("g", TOPICS, there, assignor)
    return group.owning(kr.assign(group))


def played(members: int, first: tuple[str, ...], lists: list[tuple[str, ...]]) -> list[int]:
    """Returns the number of rebalances of each bounce in a simulated run."""

    def config(names: tuple[str, ...]) -> ConsumerConfig:
        return ConsumerConfig(partition_assignment_strategy=names)

    names = [f"j{n}" for n in range(members)]
    happenings, at = [], 60_000
    starts = []
    for assignors in lists:
        starts.append(at)
        for name in names:
            happenings += [
                Happening(at_ms=at, kind=Kind.STOP, member=name),
                Happening(
                    at_ms=at + 20_000, kind=Kind.START, member=name, config=config(assignors)
                ),
            ]
            at += 60_000
    run = simulate(
        Scenario(
            title="switch",
            topics={topic.name: TopicPlan(partitions=topic.partitions) for topic in TOPICS},
            members=tuple(
                MemberPlan(name=name, config=config(first), topics=("a", "b", "c"), start_ms=n * 10)
                for n, name in enumerate(names)
            ),
            happenings=tuple(happenings),
            until_ms=at,
        )
    )
    ends = [*starts[1:], at]
    return [
        sum(one.rounds for one in run.rebalances if start <= one.from_ms < end)
        for start, end in zip(starts, ends, strict=True)
    ]

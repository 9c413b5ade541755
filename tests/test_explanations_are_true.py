# SPDX-License-Identifier: Apache-2.0
"""Every fact of an explanation is true: a second, logged run of the reference confirms it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, TopicPartition
from kafka_rebalance.explain import facts
from kafka_rebalance.explain import sticky as sticky_facts
from kafka_rebalance.explain.facts import Fact
from kafka_rebalance.explain.general_sticky import NewestClaim, SameInstance
from kafka_rebalance.explain.reasons import reasons
from tests.support.fact_checks import CHECKS
from tests.support.generate import generate
from tests.support.reference_log import Log

if TYPE_CHECKING:
    from tests.support.seeds import Seeds

VECTORS = Path(__file__).resolve().parent / "vectors"


def _cases(seed: int, count: int, assignor: str) -> Iterator[GroupSpec]:
    def answer(case: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"assignment": kr.assign(GroupSpec.from_dict(case)).to_dict()}
        except kr.GroupError as error:
            return {"error": str(error)}

    for case in generate(seed, count, (assignor,), answer):
        group = GroupSpec.from_dict(case)
        if sum(group.partition_counts().values()) * len(group.members) < 3_000:
            yield group


def _told(
    group: GroupSpec, assignor: str, *, moved_only: bool = False
) -> Iterator[tuple[Log, TopicPartition, list[Fact]]]:
    """Yields a logged run, a partition and its facts, for some partitions of the group.

    These are the partitions of the last six moves and, unless `moved_only`, the first and the last
    partition of each of the first six topics.
    """
    try:
        log = Log(group, assignor)
    except kr.GroupError:
        return
    ends = {
        TopicPartition(topic, p) for topic, n in list(log.counts.items())[:6] for p in (0, n - 1)
    }
    moved = {went for _, went, *_ in log.moved[-6:]}
    for tp in sorted(moved if moved_only else ends | moved):
        if log.subscribers(tp.topic):
            yield log, tp, reasons(group, assignor, tp)


OF_RANGE = {facts.FairShares, facts.RackPass, facts.NoRackPass, facts.RangeOf}
OF_ROUND_ROBIN = {facts.Dealt, facts.NextInCircle}
OF_STICKY = set(CHECKS) - OF_RANGE - OF_ROUND_ROBIN - {NewestClaim, SameInstance}
# Assignor -> the kinds of facts that must occur.
EVERY = {
    "range": OF_RANGE,
    "roundrobin": OF_ROUND_ROBIN,
    "sticky": OF_STICKY - {sticky_facts.Withheld},
    "cooperative-sticky": OF_STICKY,
    "librdkafka/cooperative-sticky": {
        *(NewestClaim, sticky_facts.Held, sticky_facts.Smallest, sticky_facts.Fixed),
        *(sticky_facts.Moved, sticky_facts.Balanced, sticky_facts.Withheld, SameInstance),
    },
}


# Assignor -> the seed of a few groups in which all these kinds occur.
SEEDS = dict.fromkeys(EVERY, 1) | {"sticky": 3, "librdkafka/cooperative-sticky": 4}


@pytest.mark.parametrize("assignor", EVERY)
def test_every_fact_is_true_of_the_run(assignor: str) -> None:
    seen = _check_facts(_cases(SEEDS[assignor], 50, assignor), assignor)
    assert {variant[0] for variant in seen} == EVERY[assignor]


@pytest.mark.soak
@pytest.mark.seeds(quick=8, whole=40)
@pytest.mark.parametrize("assignor", EVERY)
def test_every_fact_is_true_of_fresh_groups(assignor: str, seeds: Seeds) -> None:
    for seed in seeds:
        _check_facts(_cases(seed, 5, assignor), assignor)


def _check_facts(groups: Iterable[GroupSpec], assignor: str) -> Counter[Any]:
    """Checks the facts of some partitions of each group; returns how often each kind occurs."""
    seen: Counter[Any] = Counter()
    for group in groups:
        for log, tp, found in _told(group, assignor):
            for fact in found:
                CHECKS[type(fact)](log, tp, fact)
                assert str(fact)
            seen.update(_variant(fact) for fact in found)
            _ends_where_it_is(log, tp, found)
    return seen


@pytest.mark.soak
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_every_fact_is_true_of_the_vectors(assignor: str) -> None:
    """Checks partitions that moved in small vectors, in which every reason for a move occurs."""
    with gzip.open(VECTORS / f"{assignor}.jsonl.gz", "rt", encoding="utf-8") as vectors:
        cases = [json.loads(line)["case"] for line in vectors]
    seen: Counter[Any] = Counter()
    for case in cases:
        if case["members"] and len(json.dumps(case)) < 4_000:
            for log, tp, found in _told(GroupSpec.from_dict(case), assignor, moved_only=True):
                for fact in found:
                    CHECKS[type(fact)](log, tp, fact)
                seen.update(_variant(fact) for fact in found)
    assert set(seen) >= {(sticky_facts.Moved, why) for why in ("previous", "smallest", "instead")}


def _variant(fact: Fact) -> tuple[object, ...]:
    match fact:
        case sticky_facts.Moved(why=why):
            return sticky_facts.Moved, why
    return (type(fact),)


def _ends_where_it_is(log: Log, tp: TopicPartition, found: list[Fact]) -> None:
    """Checks that the last fact names the new owner, and is Withheld if that owner has to wait."""
    target = log.holders(log.target if "sticky" in log.assignor else log.answer, tp)
    if len(target) == 1 and not isinstance(found[-1], SameInstance):
        last = found[-1]
        holder = getattr(last, "destination", None) or getattr(last, "member_id", None)
        assert [holder] == target
        assert isinstance(last, sticky_facts.Withheld) == (log.holders(log.answer, tp) == [])

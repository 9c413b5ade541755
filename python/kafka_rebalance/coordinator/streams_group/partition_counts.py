# SPDX-License-Identifier: Apache-2.0
"""Decides how many partitions the internal topics of a topology have.

1. A repartition topic has the number that the application gave it. Else it has as many partitions
   as the largest source topic, or repartition source, of the subtopology that writes into it. This
   is repeated until all are known; loops are STREAMS_INVALID_TOPOLOGY.
2. Topics of one co-partition group have equally many partitions: as many as its source topics have,
   which must agree; without source topics, as many as the given ones, which must agree; without
   given ones, as many as the largest.
3. A changelog has as many partitions as the largest source topic, or repartition source, of its
   subtopology.

Where a number is read, a topic that exists has its own, whatever was decided.

Order    subtopologies have the order of a default `HashMap` of their ids: the last one decides if
         several give a topic different numbers. In 1, a subtopology whose largest source is not
         known yet can give a smaller number, which stays.
Source   RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics (Kafka 4.4.0).
"""

from collections.abc import Iterable, Mapping

from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.streams_topology import StreamsSubtopology, StreamsTopology

from ..broker_assigned.members import RequestRefused

Counts = Mapping[str, int]


class WronglyPartitioned(ValueError):
    """Topics of a co-partition group cannot have equally many partitions."""


def all_counts(topology: StreamsTopology, existing: Counts) -> dict[str, int]:
    """Returns the numbers of all internal topics; the places in co-partition groups are checked.

    Errors: WronglyPartitioned, RequestRefused.
    """
    decided = _repartition(topology, existing)
    for subtopology in in_hash_order(topology):
        for names in _copartitioned(subtopology):
            decided |= _copartition(topology, names, {**decided, **existing})
    changelogs: dict[str, int] = {}
    for subtopology in in_hash_order(topology):
        # 3.
        known = {**decided, **existing}
        repartition = (one.name for one in subtopology.repartition_source_topics)
        inputs = [*subtopology.source_topics, *repartition]
        if not inputs:
            raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY)
        largest = max(known[name] for name in inputs)
        changelogs |= {one.name: largest for one in subtopology.state_changelog_topics}
    return decided | changelogs


def refuse_wrong_places(topology: StreamsTopology) -> None:
    """Refuses a place in a co-partition group that is not in its list, as Kafka's exception does.

    Errors: RequestRefused.
    """
    for one in topology.subtopologies:
        for group in one.copartition_groups:
            for places, topics in (
                (group.source_topics, one.source_topics),
                (group.repartition_source_topics, one.repartition_source_topics),
            ):
                if any(not 0 <= at < len(topics) for at in places):
                    raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)


def in_hash_order(topology: StreamsTopology) -> list[StreamsSubtopology]:
    by_id = {one.subtopology_id: one for one in topology.subtopologies}
    return [by_id[one] for one in java_hash_order(list(by_id))]


def _repartition(topology: StreamsTopology, existing: Counts) -> dict[str, int]:
    # 1.
    sources = [one for each in in_hash_order(topology) for one in each.repartition_source_topics]
    decided = {one.name: one.partitions for one in sources if one.partitions}
    is_complete = False
    while not is_complete:
        is_complete, has_progress = True, False
        for subtopology in in_hash_order(topology):
            for sink in subtopology.repartition_sink_topics:
                if sink in decided:
                    continue
                count = _largest_input(subtopology, decided, existing)
                if count is None:
                    is_complete = False
                else:
                    decided[sink] = count
                    has_progress = True
        if not is_complete and not has_progress:
            raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY)
    if any(one.name not in decided for one in sources):
        raise RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY)
    return decided


def _largest_input(
    subtopology: StreamsSubtopology, decided: Counts, existing: Counts
) -> int | None:
    repartition = (one.name for one in subtopology.repartition_source_topics)
    known = [decided[name] for name in repartition if name in decided]
    known += [existing[name] for name in subtopology.source_topics if name in existing]
    return max(known, default=None)


def _copartitioned(subtopology: StreamsSubtopology) -> Iterable[frozenset[str]]:
    for group in subtopology.copartition_groups:
        names = [subtopology.source_topics[at] for at in group.source_topics]
        repartition = subtopology.repartition_source_topics
        names += [repartition[at].name for at in group.repartition_source_topics]
        yield frozenset(names)


def _copartition(topology: StreamsTopology, names: frozenset[str], known: Counts) -> dict[str, int]:
    # 2.
    sources = [one for each in topology.subtopologies for one in each.repartition_source_topics]
    internal = names & {one.name for one in sources}
    fixed = {one.name for one in sources if one.partitions}
    if not names:
        return {}
    if internal != names:
        numbers = {known[name] for name in names - internal}
    elif fixed:
        numbers = {known[name] for name in fixed}  # quirk: those of all co-partition groups
    else:
        numbers = {max(known[name] for name in internal)}
    if len(numbers) > 1:
        raise WronglyPartitioned
    number = numbers.pop()
    if any(known[name] != number for name in internal & fixed):
        raise WronglyPartitioned
    return dict.fromkeys(internal, number)

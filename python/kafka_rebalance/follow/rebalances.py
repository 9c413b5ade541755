# SPDX-License-Identifier: Apache-2.0
"""Rebalances of live groups, each with its causes and with the verdict of `watch`.

    from records        the row of `history` for a classic group's record; no rebalance is missed
    from descriptions   a row of the differences between two descriptions, for broker-assigned
                        groups, and for all groups if no records can be read

Differs  two descriptions show neither when the rebalance happened nor why a member is missing, and
         several rebalances between them are one row, whose `gap` counts the other epochs.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.group.contract import topic
from kafka_rebalance.group.model import Topic
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.history.all_groups import FollowedRow
from kafka_rebalance.history.group_log import CONSUMER, RecordedGeneration
from kafka_rebalance.history.recorded import Cause, RecordedRebalance, by_rank, moves_of
from kafka_rebalance.history.replayed import recorded_group
from kafka_rebalance.live.classic_groups import subscribed_protocol
from kafka_rebalance.watch.owners import Owners, owners_in
from kafka_rebalance.watch.verdict import UNKNOWN, JudgedRebalance, differences, judged_rebalance

BETWEEN = "between two descriptions"
_CAUSES = {
    "joined": "joined",
    "left": "gone",
    "back": "static restart",
    "assignor": "assignor switch",
    "subscribed anew": "resubscription",
    "partitions": "partitions added",
    "created": "partitions added",
}


class FollowedRebalance(NamedTuple):
    """A rebalance that has ended. `judged` is None if no plan could be compared with it.

    `before` and `after` are the group's states, None where they are unknown.
    """

    row: RecordedRebalance
    judged: JudgedRebalance | None = None
    before: GroupSpec | None = None
    after: GroupSpec | None = None


def topics_read(found: FollowedRow) -> frozenset[str]:
    """Returns the topics whose partition counts `from_record` needs."""
    generations = [one for one in (found.before, found.after) if one is not None]
    return frozenset[str]().union(*(one.topics for one in generations))


def from_record(
    found: FollowedRow, topics: Mapping[str, Mapping[str, Any]], engine: Engine = "rust"
) -> FollowedRebalance:
    """Judges a row with the present `topics`: name -> topic, as in a line of docs/contract.md.

    A topic may have grown since the rebalance: if the present partition counts do not predict it,
    the counts that the record shows are tried, too.
    """
    row, _, after = found
    if after is None or not after.members or after.protocol_type != CONSUMER:
        return FollowedRebalance(row)
    if not {tp.topic for tp in after.owners} <= topics.keys():
        return FollowedRebalance(row)
    one = _judged(found, topics, {}, engine)
    if one.judged is None or one.judged.is_predicted:
        return one
    again = _judged(found, topics, after.partition_counts, engine)
    return one if again.judged is None or again.judged.cause == UNKNOWN else again


def _judged(
    found: FollowedRow,
    topics: Mapping[str, Mapping[str, Any]],
    at_most: Mapping[str, int],
    engine: Engine,
) -> FollowedRebalance:
    """Judges a row by the present topics, each cut to at most its partition count in `at_most`."""
    row, before, after = found
    assert after is not None
    try:
        present = {name: topic(dict(one), "topics") for name, one in topics.items()}
        known = {name: _smaller(one, at_most.get(name, 0)) for name, one in present.items()}
        now, sent = _states(after, known)
        if row.cause == "started":
            judged = judged_rebalance(now, now, sent=sent, was_empty=True, engine=engine)
            return FollowedRebalance(row, judged, after=now)
        if before is None or row.cause == "written again":
            return FollowedRebalance(row, after=now)
        then, _ = _states(before, known)
        judged = judged_rebalance(then, now, sent=sent, engine=engine)
    except KafkaRebalanceError:  # a record may hold any bytes and numbers
        return FollowedRebalance(row)
    return FollowedRebalance(row, judged, then, now)


def _smaller(one: Topic, at_most: int) -> Topic:
    if not 0 < at_most < one.partitions:
        return one
    return replace(one, partitions=at_most, racks=one.racks and one.racks[:at_most])


def _states(one: RecordedGeneration, known: Mapping[str, Topic]) -> tuple[GroupSpec, GroupSpec]:
    """Returns the group twice: with the generation's assignment, and as the assignor read it."""
    topics = [known[name] for name in sorted(one.topics) if name in known]
    sent = recorded_group(one, topics).edited(leader=one.leader)
    given = {m.member_id: m.assignment.partitions if m.assignment else () for m in one.members}
    assigned = sum(map(len, given.values()))
    protocol = subscribed_protocol(one.group_id, one.protocol or "", sent.members, assigned)
    members = [m.owning(given[m.member_id], one.generation_id) for m in sent.members]
    return sent.edited(members=tuple(members), rebalance_protocol=protocol), sent


def from_descriptions(
    before: GroupSpec | None, after: GroupSpec, now_ms: int, engine: Engine = "rust"
) -> FollowedRebalance:
    """Returns the rebalance between two descriptions; `before` is None if the group was empty."""
    was_empty, then = before is None, before or after
    parts = differences(then, after, was_empty=was_empty)
    causes = by_rank(
        Cause(kind, "unknown" if kind == "gone" else "exact", tuple(parts[part]))
        for part, kind in _CAUSES.items()
        if parts[part]
    )
    if was_empty:
        causes = (Cause("started", members=tuple(parts["joined"])),)
    had, has = {} if was_empty else _owners(then), _owners(after)
    moves = moves_of(had, has)
    is_known = None not in (then.generation_id, after.generation_id)
    epochs = (after.generation_id or 0) - (then.generation_id or 0) if is_known else 1
    missed = max(0, epochs - 1)
    row = RecordedRebalance(
        after.group_id, -1, -1, now_ms, now_ms,
        -1 if after.generation_id is None else after.generation_id,
        CONSUMER, after.assignor, after.leader, after.leader_library,
        len(after.members), len(has),
        tuple(name for name, owned in Assignment.owned(after).items() if not owned),
        tuple(parts["joined"]), tuple(parts["left"]),
        moved=moves.moved, gained=moves.gained, revoked=moves.revoked,
        gap=missed, gap_reason=BETWEEN if missed else "",
        causes=causes or (Cause("requested", "unknown"),),
    )  # fmt: skip
    judged = None
    with suppress(KafkaRebalanceError):  # for example, no known assignor plays it
        judged = judged_rebalance(then, after, was_empty=was_empty, engine=engine)
    return FollowedRebalance(row, judged, before, after)


def _owners(group: GroupSpec) -> Owners:
    """Returns the owners of each partition or task, without the members that hold standbys."""
    return owners_in(Assignment.of(Assignment.owned(group)))

# SPDX-License-Identifier: Apache-2.0
"""Judges the history of a run: causes against the script, and each rebalance computed again."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_rebalance.errors import WireError
from kafka_rebalance.history.all_groups import read_key, recorded_generations
from kafka_rebalance.history.coordinator_log import read_coordinator_log
from kafka_rebalance.history.log_causes import with_log
from kafka_rebalance.history.replayed import replay
from kafka_rebalance.wire.group_records import GroupMetadataKey
from tests.prediction.log import Written

from .cast import KINDS, LIBRDKAFKA
from .truth import causes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_rebalance.history.group_log import RecordedGeneration
    from kafka_rebalance.history.recorded import RecordedRebalance
    from kafka_rebalance.history.records import OffsetsRecord

    from .run import Evidence

RIGHT, UNKNOWN, WRONG = "right", "not known", "wrong"
_SAME = {"follow-up": "second round", "gone": UNKNOWN, "first record": UNKNOWN}

Place = tuple[str, int, int]
"""A record's group, partition and offset."""


@dataclass
class Judgement:
    """`told` counts (cause, verdict on the reported cause); `differences` lists the wrong ones."""

    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def share(self, how: str) -> float:
        return self.count(how) / self.total

    def count(self, how: str) -> int:
        return sum(n for (_, one), n in self.told.items() if one == how)

    @property
    def total(self) -> int:
        return self.told.total()


@dataclass(frozen=True)
class Verdict:
    """The results of a run.

    `quiet`         the causes from records alone, for groups on quiet topics.
    `busy`          the causes from records alone, for all other groups; `from_records` holds both.
    `not_scripted`  rebalances that the script did not cause, such as an expiry on a busy machine.
    `replayed`      (who led, whether its answer was equal), counted.
    `unequal`       a sentence about each answer that was not equal.
    """

    from_records: Judgement
    quiet: Judgement
    busy: Judgement
    with_lines: Judgement
    not_scripted: int
    unknown_lines: int
    replayed: Counter[tuple[str, bool]]
    unequal: tuple[str, ...]


def judge(evidence: Evidence) -> Verdict:
    truth = _truth(evidence)
    recorded = recorded_generations(evidence.records)
    rows = [row for row, _ in recorded]
    log = read_coordinator_log(evidence.lines)
    libraries = {
        (group_id, part.session_timeout_ms): part.library
        for group_id, acted in evidence.scripts.items()
        for one in acted
        for part in one.step.starts
    }
    scripted = [one for _, one in recorded if one is not None and one.group_id in evidence.scripts]
    replayed, unequal = _replayed(scripted, libraries)
    quiet = {kind.name for kind in KINDS if kind.is_quiet}
    return Verdict(
        _judged(rows, truth),
        _judged([row for row in rows if row.group_id in quiet], truth),
        _judged([row for row in rows if row.group_id not in quiet], truth),
        _judged(with_log(rows, log), truth),
        sum(cause is None for cause in truth.values()),
        log.unknown,
        replayed,
        tuple(unequal),
    )


def _truth(evidence: Evidence) -> dict[Place, str | None]:
    """Returns the cause of each record of a rebalance; None if the script did not cause it."""
    groups: dict[str, list[OffsetsRecord]] = defaultdict(list)
    for record in sorted(evidence.records, key=lambda one: (one.partition, one.offset)):
        try:
            key = read_key(record.key)
        except WireError:
            continue
        if isinstance(key, GroupMetadataKey) and record.value is not None:
            groups[key.group_id].append(record)
    found: dict[Place, str | None] = {}
    for group_id, records in groups.items():
        written = [Written(one.timestamp_ms, one.value or b"") for one in records]
        known = causes(written, evidence.scripts.get(group_id, ()))
        for record, cause in zip(records, known, strict=True):
            if cause != "":
                found[group_id, record.partition, record.offset] = cause
    return found


def _judged(rows: Iterable[RecordedRebalance], truth: dict[Place, str | None]) -> Judgement:
    judgement = Judgement()
    for row in rows:
        cause = truth.get((row.group_id, row.partition, row.offset))
        if cause is None:
            continue
        told = _SAME.get(row.cause, row.cause)
        how = told if told == UNKNOWN else RIGHT if told == cause else WRONG
        judgement.told[cause, how] += 1
        if how != RIGHT:
            named = f"{row.group_id} generation {row.generation_id}: {cause}, told {row.causes}"
            judgement.differences.append(f"{how}: {named}")
    return judgement


def _replayed(
    generations: Sequence[RecordedGeneration], libraries: dict[tuple[str, int], str]
) -> tuple[Counter[tuple[str, bool]], list[str]]:
    """Counts the answers by the leader's library, which the script knows.

    Unless librdkafka led, only the answer of Kafka's own assignor can count as equal.
    """
    leaders = {
        (one.group_id, one.joined_ms): libraries[one.group_id, number]
        for one in generations
        if (number := _leader(one)) is not None
    }
    counts: Counter[tuple[str, bool]] = Counter()
    unequal = []
    for one in replay(generations):
        library = leaders[one.group_id, one.time_ms]
        is_own = library == LIBRDKAFKA or one.computed_by == one.protocol
        is_equal = one.equal is True and is_own
        counts[library, is_equal] += 1
        if not is_equal:
            unequal.append(f"{one.group_id}, led by {library}: {one}")
    return counts, unequal


def _leader(one: RecordedGeneration) -> int | None:
    leader = one.by_id.get(one.leader or "")
    return leader.session_timeout_ms if leader else None


def report(verdict: Verdict) -> str:
    """Returns the counts as a string."""
    kinds = sorted({cause for cause, _ in verdict.from_records.told})
    heads = f"{'records: right':>16}{'not known':>11}{'wrong':>7}{'log: right':>12}"
    lines = [f"{'cause':<20}{'n':>5}{heads}"]
    for kind in [*kinds, None]:
        alone, log = (_counts(one, kind) for one in (verdict.from_records, verdict.with_lines))
        total = sum(alone)
        lines.append(
            f"{kind or 'all':<20}{total:>5}{alone[0]:>16}{alone[1]:>11}{alone[2]:>7}{log[0]:>12}"
        )
    quiet = ", ".join(f"{verdict.quiet.count(how)} {how}" for how in (RIGHT, UNKNOWN, WRONG))
    lines.append(f"on quiet topics, from records alone: {quiet}")
    lines.append(f"not caused by the script: {verdict.not_scripted}")
    lines.append(f"lines of the coordinator that are not known: {verdict.unknown_lines}")
    for (library, is_equal), count in sorted(verdict.replayed.items()):
        lines.append(f"led by {library}: {count} {'equal' if is_equal else 'NOT EQUAL'}")
    return "\n".join(lines)


def _counts(judgement: Judgement, kind: str | None) -> Sequence[int]:
    if kind is None:
        return [judgement.count(how) for how in (RIGHT, UNKNOWN, WRONG)]
    return [judgement.told[kind, how] for how in (RIGHT, UNKNOWN, WRONG)]

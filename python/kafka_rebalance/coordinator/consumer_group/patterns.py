# SPDX-License-Identifier: Apache-2.0
"""Patterns of topics that members subscribe to, and when the broker resolves them.

A resolution finds the topics of all patterns of the group. Its result is appended separately, after
the request that asked for it. A request asks for a resolution if

1. it contains a pattern that no member has, or
2. the number of resolved patterns differs from the number of the members' patterns, or
3. topics were created since the last resolution, or
4. the refresh interval is over;

but not while another resolution is pending, and not within 10 s after the last one.

Source   GroupMetadataManager (maybeUpdateRegularExpressions, handleRegularExpressionsResult),
         TopicRegexResolver (Kafka 4.4.0); docs/behaviour/consumer-groups.md#7-patterns.
"""

from collections.abc import Iterable
from enum import Enum

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.hash_map import HashMap, slots_for
from kafka_rebalance.java.order import string_hash
from kafka_rebalance.java.regular_expressions import InvalidPattern, compiled
from kafka_rebalance.wire.error_codes import ErrorCode

from ..broker_assigned import log
from ..broker_assigned.members import RequestRefused
from ..broker_assigned.table_order import name_set
from ..broker_assigned.target import EpochChange
from ..machine.events import PatternsDue
from ..machine.state import Shard, of_kind
from .group import ConsumerGroup, ResolvedPattern, count_pattern

_MIN_INTERVAL_MS = 10_000


class PatternChange(Enum):
    """How a request changes a pattern; in heartbeats, only UPDATED_AND_RESOLVED starts an epoch."""

    NONE = 0
    UPDATED = 1
    UPDATED_AND_RESOLVED = 2


class PatternUpdate(Frozen):
    """A request's change to a pattern, and the group's patterns to resolve after the request."""

    change: PatternChange
    to_resolve: tuple[str, ...] = ()


def update(state: Shard, change: EpochChange) -> PatternUpdate:
    """Returns how a request changes patterns. Errors: RequestRefused for an invalid new pattern."""
    group, old, new = change.group, change.old, change.member
    effect, is_due = PatternChange.NONE, False
    if old.subscribed_topic_regex != new.subscribed_topic_regex:
        effect = PatternChange.UPDATED
        if old.pattern is not None and group.patterns.get(old.pattern) == 1:
            change.records.append(group.pattern_record(old.pattern, None))
        if new.pattern is None:
            if old.pattern is not None:
                effect = PatternChange.UPDATED_AND_RESOLVED
        elif new.pattern not in group.patterns:
            is_due = True  # 1.
            try:
                compiled(new.pattern)
            except InvalidPattern as error:
                raise RequestRefused(ErrorCode.INVALID_REGULAR_EXPRESSION) from error
        elif new.pattern in group.resolved:
            effect = PatternChange.UPDATED_AND_RESOLVED
    last = next(iter(group.resolved.values()), None)
    is_recent = last is not None and state.now_ms <= last.timestamp_ms + _MIN_INTERVAL_MS
    has_patterns = is_due or len(group.patterns)
    if not has_patterns or is_recent or group.group_id in state.resolving:
        return PatternUpdate(effect)
    patterns = list(group.patterns_with(old, new))
    refresh_ms = state.config.group_consumer_regex_refresh_interval_ms
    is_due = (
        is_due
        or len(patterns) != len(group.resolved)  # 2.
        or (0 if last is None else last.version) < state.cluster.created_version  # 3.
        or last is None
        or state.now_ms > last.timestamp_ms + refresh_ms  # 4.
    )
    return PatternUpdate(effect, tuple(patterns) if is_due else ())


def ask(state: Shard, group_id: str, patterns: tuple[str, ...]) -> None:
    """Emits PatternsDue for the patterns, if any: they are resolved after this request."""
    if patterns:
        state.resolving.add(group_id)
        state.effects.append(PatternsDue(group_id, patterns))


def resolve(state: Shard, group_id: str, patterns: Iterable[str]) -> None:
    """Appends the patterns' topics, and the next epoch if the topics or their metadata changed."""
    state.resolving.discard(group_id)
    group = of_kind(state.groups.get(group_id), ConsumerGroup)
    if group is None:
        return
    records: log.Records = []
    counts, is_new = dict(group.counts), False
    for pattern in _order(list(patterns)):
        if pattern not in group.patterns:
            continue
        topics = name_set(_matched(pattern, state.cluster.topics))
        before = group.resolved.get(pattern)
        known = () if before is None else before.topics
        if set(known) != set(topics):
            is_new = True
            count_pattern(counts, known, -1)
            count_pattern(counts, topics, 1)
        resolved = ResolvedPattern(topics, state.cluster.version, state.now_ms)
        records.append(group.pattern_record(pattern, resolved))
    metadata_hash = state.cluster.hash_of(counts)
    if is_new or metadata_hash != group.metadata_hash:
        epoch = group.epoch + 1
        records.append(group.epoch_record(epoch, metadata_hash))
        group.refreshed(state.now_ms, epoch)
    log.write(state, group_id, records, None)


def _matched(pattern: str, topics: Iterable[str]) -> list[str]:
    try:
        matcher = compiled(pattern)
    except InvalidPattern:
        return []  # a pattern from the log may be invalid
    return [name for name in topics if matcher.matches(name)]


def _order(patterns: list[str]) -> list[str]:
    """Returns the patterns in the order of their records, which comes from Kafka's hash maps."""
    for _ in range(2):  # Kafka copies them from one map into a second one
        table = HashMap[str, None](string_hash, slots_for(len(patterns)))
        for pattern in patterns:
            table.put(pattern, None)
        patterns = list(table)
    return patterns

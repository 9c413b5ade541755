# SPDX-License-Identifier: Apache-2.0
"""The metrics of groups, as lines of OpenMetrics.

Each group keeps its lines, and only the lines of groups that changed are rebuilt: with 10,000
groups, making an object for each sample would take seconds per page.

Source   OpenMetrics 1.0. Labels name groups, never members; a name is written as `shown` writes it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_rebalance.assignors.registry import SERVER_SIDE, is_known
from kafka_rebalance.errors import GroupError, shown
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.history.patterns import WINDOW_MS, Pattern, find_patterns
from kafka_rebalance.history.recorded import RecordedRebalance
from kafka_rebalance.notes.findings import severity_of
from kafka_rebalance.notes.listed import is_cooperative
from kafka_rebalance.plans.rounds import subscribed_partitions, without_reader
from kafka_rebalance.present.description import Description
from kafka_rebalance.scaling.counts import scale

from .rebalances import FollowedRebalance

PREFIX = "kafka_rebalance_"
FAMILIES = {
    "group": ("info", "The kind of the group and its assignor."),
    "rebalances": ("counter", "Rebalances, by their main cause."),
    "unseen_generations": ("counter", "Generations or epochs between two that were seen."),
    "moved_partitions": ("counter", "Partitions that got another member, or a member again."),
    "member_changes": ("counter", "Members that joined, left, timed out, are gone or came back."),
    "unread_partition_seconds": ("counter", "Seconds without a reader, summed over partitions."),
    "rebalance_seconds": ("summary", "From the last join to the last assignment of a rebalance."),
    "unpredicted_rebalances": ("counter", "Rebalances that did not end as the plan predicts."),
    "last_rebalance_as_predicted": ("gauge", "1 if the last rebalance ended as predicted, else 0."),
    "last_rebalance_timestamp_seconds": ("gauge", "When the last rebalance ended."),
    "generation": ("gauge", "The generation, or the epoch of a group that the broker assigns."),
    "rebalancing": ("gauge", "1 if the group was rebalancing when it was last described."),
    "members": ("gauge", "Members of the group."),
    "idle_members": ("gauge", "Members without a partition."),
    "member_partitions": ("gauge", "Partitions of the member with the least, or the most."),
    "possible_member_partitions": ("gauge", "The same under the best possible assignment."),
    "unread_partitions": ("gauge", "Subscribed partitions without a member."),
    "findings": ("gauge", "Findings of describe, by kind; docs/findings.md explains each."),
    "stopped_lag": ("gauge", "Lag of a group without members, in records."),
    "pattern": ("gauge", "1 if the last ten minutes show this pattern of history."),
    "one_more_member": ("gauge", "The step to one more member: what it brings, what it costs."),
    "groups": ("gauge", "Groups with metrics."),
    "groups_left_out": ("gauge", "Groups without metrics: there are more than --max-groups."),
    "source": ("gauge", "1 for the place where rebalances are read."),
    "descriptions_age_seconds": ("gauge", "Since all groups were last described; -1: never."),
    "log_offsets_behind": ("gauge", "Offsets of the log's past that are still to be read."),
}
_COUNTED = {"joined": "joined", "started": "joined", "rejoined": "back", "static restart": "back"}
_COUNTED |= {"left": "left", "timed out": "timed out", "gone": "gone"}
_MOST_RECENT = 200
_NEVER_WARM = "never warm"
_FOLLOWS = ("second round", "follow-up")

_SECONDS, _NUMBER = ("rebalance_seconds", "_sum"), ("rebalance_seconds", "_count")
_AT_FIRST: dict[tuple[str, str], float] = {_NUMBER: 0, _SECONDS: 0.0}

Sample = tuple[str, str, float]
"""A metric family, the suffix of the sample's name (further labels after a space), the value."""


@dataclass(slots=True)
class UnreadTime:
    """The number of partitions that nobody reads `now`, and the sum of the `seconds` that
    partitions have been unread so far.
    """

    now: int = 0
    since_ms: int = 0
    seconds: float = 0.0

    def becomes(self, number: int, at_ms: int) -> None:
        """Called if `number` partitions have no reader at `at_ms`, which can be before the last
        call's time, because clocks differ.
        """
        self.seconds += self.now * max(0, at_ms - self.since_ms) / 1000
        self.now, self.since_ms = number, max(at_ms, self.since_ms)


@dataclass(slots=True)
class GroupMetrics:
    """The metrics of one group. `changed` is set when its lines have to be written again."""

    group_id: str
    values: dict[tuple[str, str], float] = field(default_factory=_AT_FIRST.copy)
    members: int | None = None
    described: tuple[Sample, ...] = ()
    unread: UnreadTime = field(default_factory=UnreadTime)
    recent: list[RecordedRebalance] = field(default_factory=list)
    partitions: int = 0
    patterns: list[Pattern] = field(default_factory=list)
    changed: bool = True
    lines: dict[str, str] = field(default_factory=dict)

    def rebalanced(self, one: FollowedRebalance, now_ms: int, *, is_old: bool = False) -> None:
        """Called for each row; those from before the exporter began (`is_old`) are not counted."""
        row, values, self.changed = one.row, self.values, True
        if row.generation_id >= 0:
            values["generation", ""] = row.generation_id
        if not row.is_rebalance:
            return
        if not is_old:
            self._follow_unread(one)
        elif self.members is None:  # not described yet; the time counts from now on
            self.unread = UnreadTime(0 if row.members else self.partitions, now_ms)
        since_ms, recent = now_ms - 6 * WINDOW_MS, [*self.recent[1 - _MOST_RECENT :], row]
        self.recent = [each for each in recent if each.time_ms >= since_ms]
        newest = [each for each in self.recent if each.time_ms >= now_ms - 2 * WINDOW_MS]
        self.patterns = [one for one in find_patterns(newest) if one.kind != _NEVER_WARM]
        self.partitions = row.partitions
        if row.cause == "probing":  # these are ten minutes apart, so `newest` holds too few
            runs = (one for one in find_patterns(self.recent) if one.kind == _NEVER_WARM)
            self.patterns += [one for one in runs if one.last_ms == row.time_ms]
        values["last_rebalance_timestamp_seconds", ""] = row.written_ms / 1000
        if is_old:
            return
        self._count("rebalances", 1, f' cause="{row.cause}"')
        for cause in row.causes:
            if change := _COUNTED.get(cause.kind):
                self._count("member_changes", len(cause.members), f' change="{change}"')
        self._count("unseen_generations", row.gap)
        self._count("moved_partitions", row.moved + row.gained)
        seconds, number = (row.written_ms - row.time_ms) / 1000, 1
        if row.cause in _FOLLOWS and row.seconds is not None and values[_NUMBER]:
            seconds, number = seconds + row.seconds, 0
        values[_SECONDS] += seconds
        values[_NUMBER] += number
        if one.judged is not None:
            values["last_rebalance_as_predicted", ""] = one.judged.is_predicted
            self._count("unpredicted_rebalances", not one.judged.is_predicted)

    def _count(self, family: str, number: int, labels: str = "") -> None:
        key = family, f"_total{labels}"
        self.values[key] = self.values.get(key, 0) + number

    def _follow_unread(self, one: FollowedRebalance) -> None:
        row, unread = one.row, self.unread
        if one.before is not None and row.is_rebalance and _stops_all(row.protocol):
            unread.becomes(len([*subscribed_partitions(one.before)]), row.time_ms)
        if one.after is not None:
            unread.becomes(
                len(without_reader(one.after, Assignment.owned(one.after))), row.written_ms
            )
        elif not row.members:
            unread.becomes(self.partitions, row.written_ms)

    def shown(self, one: Description, now_ms: int) -> None:
        """Called with a new description of the group."""
        self.changed = True
        self.described = tuple(_described(one))
        self.values["rebalancing", ""], self.members = 0, len(one.group.members)
        # Descriptions show only a lower bound of a classic group's generation; records show it
        # exactly.
        if (least := one.group.generation_id) is not None:
            self.values["generation", ""] = max(self.values.get(("generation", ""), -1), least)
        self.unread.becomes(len(without_reader(one.group, one.assignment)), now_ms)

    def without_description(self, why: str, now_ms: int) -> None:
        """Called if the group cannot be described: usually it is empty or rebalancing."""
        self.changed = True
        self.values["rebalancing", ""] = "rebalancing" in why
        if why.startswith(("state: Empty", "state: Dead")):
            self.members = 0
            self.described = tuple(one for one in self.described if one[0] == "group")

    def stopped(self, lag: int) -> None:
        """Called for a group without members, with its lag in records."""
        self.changed = True
        kept = (one for one in self.described if one[0] == "group")
        finding = [_finding("stopped", 1)] if lag else []
        self.described = (*kept, ("stopped_lag", "", lag), *finding)

    def text(self, now_ms: int) -> Mapping[str, str]:
        """Returns metric family -> its lines for this group."""
        if self.changed or self.unread.now or self.patterns:
            self.unread.becomes(self.unread.now, now_ms)
            self.patterns = [one for one in self.patterns if one.last_ms >= now_ms - _lasts_ms(one)]
            group = f'group="{escaped(self.group_id)}"'
            lines: dict[str, str] = {}
            for family, more, value in self._samples():
                suffix, _, labels = more.partition(" ")
                labels = f"{group},{labels}" if labels else group
                lines[family] = lines.get(family, "") + line(family + suffix, value, labels)
            self.lines, self.changed = lines, False
        return self.lines

    def _samples(self) -> Iterator[Sample]:
        for (family, more), value in self.values.items():
            yield family, more, value
        if self.members is not None:
            yield "members", "", self.members
        yield "unread_partition_seconds", "_total", self.unread.seconds
        yield "unread_partitions", "", self.unread.now
        for kind in sorted({one.kind for one in self.patterns}):
            yield _finding(kind, 1) if severity_of(kind) else ("pattern", f' kind="{kind}"', 1)
        yield from self.described


def _lasts_ms(one: Pattern) -> int:
    """Returns how long (ms) a pattern is shown after its last rebalance. `never warm` is shown
    until the next probing rebalance, which may show it again.
    """
    if one.kind != _NEVER_WARM:
        return WINDOW_MS
    return WINDOW_MS + (one.last_ms - one.first_ms) // (len(one.generations) - 1)


def _stops_all(protocol: str | None) -> bool:
    """Returns whether members stop reading before they join, as under an eager assignor."""
    is_classic = protocol is not None and is_known(protocol) and protocol not in SERVER_SIDE
    return is_classic and not is_cooperative(protocol)


def _described(one: Description) -> Iterator[Sample]:
    group, now, possible = one.group, one.balance, one.possible
    yield "group", f'_info assignor="{escaped(group.assignor or "")}"', 1
    yield "idle_members", "", sum(not owned for owned in one.assignment.values())
    for family, balance in (("member_partitions", now), ("possible_member_partitions", possible)):
        yield family, ' bound="least"', balance.min
        yield family, ' bound="most"', balance.max
    for kind, number in Counter(finding.kind for finding in one.findings).items():
        yield _finding(kind, number)
    yield from _one_more(group)


def _finding(kind: str, number: int) -> Sample:
    return "findings", f' kind="{kind}",severity="{severity_of(kind)}"', number


def _one_more(group: GroupSpec) -> Iterator[Sample]:
    try:
        now, *more = scale(group, [len(group.members) + 1], samples=0).counts
    except GroupError:  # no plan can play this group
        return
    for count in more:
        for name in ("fullest", "moves", "stops"):
            yield "one_more_member", f' figure="{name}"', getattr(count, name)
        yield "one_more_member", ' figure="useful"', count.busiest < now.busiest


def escaped(name: str) -> str:
    """Returns a label's value: a name from outside, with its control characters made visible."""
    text = shown(name).replace("\\", "\\\\").replace('"', '\\"')
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def line(name: str, value: float, labels: str = "") -> str:
    labels = f"{{{labels}}}" if labels else ""
    return f"{PREFIX}{name}{labels} {float(value)!r}\n"


def page(texts: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yields the lines of all groups, family by family, without OpenMetrics' end mark."""
    for family, (kind, help) in FAMILIES.items():
        lines = [text[family] for text in texts if family in text]
        if lines:
            head = f"# TYPE {PREFIX}{family} {kind}\n# HELP {PREFIX}{family} {help}\n"
            yield "".join((head, *lines))

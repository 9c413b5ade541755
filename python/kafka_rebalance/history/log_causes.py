# SPDX-License-Identifier: Apache-2.0
"""Adds the causes that a broker's log lines show to those that the records show.

Each line "assigned" or "empty" stands for one record: the record of its generation. All lines of
the group since the previous such line belong to that record, even those about generations without a
record. Then:

1. if a member is missing, its own line shows whether it left or its session expired. A line about a
   leave may come before or after the rebalance that the leave causes, so the line is matched by the
   member id;
2. a member that came and went between two records appears only in lines, and yields a cause
   "joined";
3. a rebalance in which no member came or went has the reason that the first rejoining member sent.
   If it sent none, and the rebalance began soon after the previous record, the rebalance is a
   follow-up (a line shows when a rebalance began, a record only when it ended);
4. late writes of the coordinator are a cause outside the group;
5. in a broker-assigned group, some epochs have no line: the line about a missing member belongs to
   the epoch that was written at that time.

The times of lines and records come from one clock, but lines do not name their zone. So the zone
is computed: the median difference of "assigned" lines and their records, rounded to 15 minutes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from kafka_rebalance.group.field_paths import a_type, each_of

from .coordinator_log import CoordinatorEvent, CoordinatorLog
from .group_history import AFTER_EFFECT_MS
from .recorded import Cause, RecordedRebalance, by_rank

ZONES_MS = 15 * 60_000
"""Time zones differ by a multiple of this."""

_NEAR_MS = 10_000  # a record is written a few milliseconds after its line
_REJOINS = ("leader_rejoined", "member_rejoined", "static_changed")
_BY_REASON = {
    "revoked": "second round",
    "subscription": "resubscription",
    "assignment_mismatch": "resubscription",
}
_UNSAID = ("not_said", "id_required", "metadata")
_NO_MEMBER_MOVED = ("follow-up", "requested")
_GONE = ("left", "timed out", "gone")


@dataclass(slots=True)
class RoundLines:
    """The lines that belong to one record.

    `came` holds the ids of members that joined, `went` the cause for each member that left, and
    `asked` the events of members that rejoined.
    """

    came: dict[str, None] = field(default_factory=dict)
    went: dict[str, Cause] = field(default_factory=dict)
    asked: list[CoordinatorEvent] = field(default_factory=list)
    late_writes: int = 0

    def add(self, event: CoordinatorEvent) -> None:
        who = event.member_id
        if event.event == "write_stuck":
            self.late_writes += 1
        elif event.event == "left" and who is not None:
            self.went[who] = _left(who, event.said)
        elif event.event == "failed" and who is not None:
            self.went[who] = Cause("timed out", "log", (who,), "its session expired")
        elif event.event == "not_rejoined":
            for one in _names(event.fields["list"]):
                self.went[one] = Cause("left", "log", (one,), "it did not rejoin in time")
        elif event.event in ("pending_added", "added", "added_static") and who is not None:
            self.came[who] = None
        elif event.event == "prepare":
            self._prepare(event, who)

    def _prepare(self, event: CoordinatorEvent, who: str | None) -> None:
        if event.cause in _REJOINS:
            self.asked.append(event)
        elif event.cause == "member_added" and who is not None:
            self.came[who] = None
        elif event.cause == "sync_timeout":
            for one in _names(event.fields["member"]):
                self.went[one] = Cause("timed out", "log", (one,), "it never sent SyncGroup")
        elif event.cause == "session_timeout" and who is not None:
            self.went.setdefault(who, Cause("timed out", "log", (who,), "its session expired"))
        elif event.cause == "member_left" and who is not None:
            for one in _names(who):
                self.went.setdefault(one, _left(one, event.said))


def with_log(rows: Sequence[RecordedRebalance], log: CoordinatorLog) -> list[RecordedRebalance]:
    """Returns the rows with the causes from the log; rows without lines are not changed.

    Errors   TypeError at `rows` or `log` for anything else.
    """
    rows = [*each_of(rows, "rows", RecordedRebalance, "rebalance_history returns them")]
    if not isinstance(log, CoordinatorLog):
        how = "read_coordinator_log returns one"
        raise TypeError(f"log: {a_type(log)} is not a CoordinatorLog; {how}")
    return with_events(rows, log.shifted(zone_ms(rows, log)).events)


def with_events(
    rows: Sequence[RecordedRebalance], events: Iterable[CoordinatorEvent]
) -> list[RecordedRebalance]:
    """Returns the rows with the causes of `events`, whose times are in the zone of the records."""
    events = tuple(events)
    rounds, departures = _rounds(events), _departures(events)
    found = []
    seen: dict[str, set[str]] = defaultdict(set)  # the members in a group's rows so far
    written: dict[str, int] = {}  # the time of a group's last record
    for row in rows:
        lines = _nearest(rounds.get((row.group_id, row.generation_id), []), row)
        named = {one for cause in row.causes for one in cause.members}
        if lines is not None and row.error is None and not row.again:
            soon_ms = written.get(row.group_id, 0) + AFTER_EFFECT_MS
            row = replace(row, causes=_causes(row, lines, seen[row.group_id], soon_ms))
        elif row.group_type != "classic":
            causes = (_departed(one, row, departures) for one in row.causes)
            row = replace(row, causes=by_rank(causes))
        seen[row.group_id] |= named | set(row.joined) | {one.new for one in row.back}
        written[row.group_id] = row.written_ms
        found.append(row)
    return found


def zone_ms(rows: Iterable[RecordedRebalance], log: CoordinatorLog) -> int:
    """Returns the ms to add to the times of lines, so that they agree with the times of records."""
    written = defaultdict(list)
    for row in rows:
        written[row.group_id, row.generation_id].append(row.written_ms)
    differences = [
        times[0] - event.time_ms
        for event in log.events
        if event.event in ("assigned", "c_epoch") and event.time_ms is not None
        and event.group_id is not None and event.generation_id is not None
        and len(times := written.get((event.group_id, event.generation_id), [])) == 1
    ]  # fmt: skip
    return round(median(differences) / ZONES_MS) * ZONES_MS if differences else 0


_Departures = dict[tuple[str, str], list[tuple[int, Cause]]]
_Rounds = dict[tuple[str, int], list[tuple[int, RoundLines]]]


def _rounds(events: Iterable[CoordinatorEvent]) -> _Rounds:
    """Returns (group id, generation) -> [(time in ms, lines)]; a round ends at that time."""
    open_rounds: dict[str, RoundLines] = defaultdict(RoundLines)
    ended: dict[str, RoundLines] = defaultdict(RoundLines)
    found: _Rounds = defaultdict(list)
    for event in events:
        group_id = event.group_id
        if event.event == "write_stuck":
            timer = f"{event.fields['timer']}-"
            for name in [name for name in open_rounds if f"-{name}-" in timer]:
                open_rounds[name].add(event)
        elif group_id is None:
            continue
        elif event.event == "left" and event.member_id in ended[group_id].went:
            ended[group_id].add(event)  # it was written after the rebalance that the leave caused
        else:
            open_rounds[group_id].add(event)
            if event.event in ("assigned", "empty") and event.generation_id is not None:
                ended[group_id] = open_rounds.pop(group_id)
                end = (event.time_ms or 0, ended[group_id])
                found[group_id, event.generation_id].append(end)
    return found


def _departures(events: Iterable[CoordinatorEvent]) -> _Departures:
    found: _Departures = defaultdict(list)
    for event in events:
        who, group_id = event.member_id, event.group_id
        if who is None or group_id is None or event.time_ms is None:
            continue
        if event.event == "c_fenced":
            cause = Cause("timed out", "log", (who,), event.fields["reason"])
            found[group_id, who].append((event.time_ms, cause))
        elif event.event == "c_left" and event.fields.get("how") == "left":
            cause = Cause("left", "log", (who,), "it sent a leave heartbeat")
            found[group_id, who].append((event.time_ms, cause))
    return found


def _departed(cause: Cause, row: RecordedRebalance, departures: _Departures) -> Cause:
    # 5.
    if cause.kind not in _GONE:
        return cause
    lines = departures.get((row.group_id, cause.members[0]), ())
    near = [one for time_ms, one in lines if abs(time_ms - row.time_ms) <= _NEAR_MS]
    return near[-1] if near else cause


def _nearest(rounds: Sequence[tuple[int, RoundLines]], row: RecordedRebalance) -> RoundLines | None:
    """Returns the nearest lines, if within 10 s: others may be of an older group with this id."""
    near = min(rounds, key=lambda one: abs(one[0] - row.written_ms), default=None)
    if near is None or abs(near[0] - row.written_ms) > _NEAR_MS:
        return None
    return near[1]


def _causes(
    row: RecordedRebalance, lines: RoundLines, seen: set[str], soon_ms: int
) -> tuple[Cause, ...]:
    # 1.
    causes = [
        lines.went.get(one.members[0], one) if one.kind in _GONE else one for one in row.causes
    ]
    # 2.
    known = {who for one in causes for who in one.members} | seen
    passed = tuple(who for who in lines.came if who not in known)
    more = [Cause("joined", "log", passed, "gone again before the record")] if passed else []
    # 3.
    if lines.asked and not more:
        causes = [_asked(one, lines.asked[0], soon_ms) for one in causes]
    elif more:
        causes = [one for one in causes if one.kind not in _NO_MEMBER_MOVED]
    # 4.
    if lines.late_writes:
        told = f"{lines.late_writes} writes of its timers failed: is a replica down?"
        more.append(Cause("coordinator", "log", (), told))
    return (*by_rank(causes), *more)


def _asked(cause: Cause, asked: CoordinatorEvent, soon_ms: int) -> Cause:
    """Returns the cause that the event `asked` shows; if it shows none, returns `cause` itself."""
    said = asked.said or "not_said"
    who = (asked.member_id,) if asked.member_id else ()
    if kind := _BY_REASON.get(said):
        if cause.kind == kind:
            return replace(cause, certainty="log", members=who)
        return Cause(kind, "log", who) if cause.kind in _NO_MEMBER_MOVED else cause
    if cause.kind not in _NO_MEMBER_MOVED:
        return cause
    role = "the leader" if asked.cause == "leader_rejoined" else "a member"
    if said == "metadata":
        return Cause("follow-up", "log", who, f"{role} saw other topics or partitions")
    if said in _UNSAID and cause.kind == "requested" and (asked.time_ms or soon_ms) < soon_ms:
        return Cause("follow-up", "log", who, f"{role} joined again at once, without a reason")
    if said in _UNSAID:
        return replace(cause, members=who, detail=f"{cause.detail}; {role} without a reason")
    return Cause("requested", "log", who, f'{role}: "{said}"')


def _left(who: str, said: str | None) -> Cause:
    words = {
        "not_said": "it sent LeaveGroup",
        "closed": "it was closed",
        "poll_timeout": "it was stuck between two polls",
    }
    return Cause("left", "log", (who,), words.get(said or "not_said", f'it sent "{said}"'))


def _names(text: str) -> Iterable[str]:
    """Returns the member ids in a list such as `Set(a, b)`, `[a, b]` or `a, b`."""
    inner = text.partition("(")[2].rpartition(")")[0] if text.endswith(")") else text.strip("[]")
    return [one.strip() for one in inner.split(",") if one.strip()]

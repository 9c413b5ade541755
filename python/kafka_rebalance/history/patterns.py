# SPDX-License-Identifier: Apache-2.0
"""Finds patterns in the histories of groups: repeated events, and how to prevent them.

storm           more than `STORM` rebalances in a window of ten minutes
rolling         at least half of the members restarted one after another, each once
flapping        one client came back under a new id three times or more
new ids         clients without a group.instance.id came back, each twice or more: candidates for
                static membership
never settles   more cooperative second rounds in a row than the group has members
never warm      at least `NEVER_WARM` probing rebalances of Kafka Streams in a row moved nothing
idle            a member had no partition in any of its generations (three or more)

A pattern names the generations and times that show it. Static membership prevents the rebalances of
an absence if the session timeout is longer than the absence, and if the member sends no LeaveGroup
when it stops; Java's static members send none. An absence is measured from the member's last
commit: an upper bound. Without a commit, it is measured from the first record without the member.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, groupby, pairwise
from typing import Any, Literal

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import each_of, integer

from .group_history import BACK_WITHIN_MS
from .recorded import BackMember, RecordedRebalance

WINDOW_MS = 600_000
STORM = 10
FLAPPING = 3
NEVER_WARM = 3
_IDLE_RECORDS = 3
_SESSION, _INTERVAL = "session.timeout.ms", "assignment.interval.ms"
_MEMBERS_NAMED = 3
_FOLLOWING = {"second round", "follow-up"}

PatternKind = Literal[
    "storm", "rolling", "flapping", "new ids", "never settles", "never warm", "idle"
]


class Pattern(Frozen):
    """A pattern of one group, with the generations and times that show it.

    `instead`  a remedy that would have prevented it, with names of settings; empty if unknown.
    `spares`   how many rebalances this remedy would have prevented; 0 if unknown.
    """

    kind: PatternKind
    group_id: str
    told: str
    instead: str
    generations: tuple[int, ...]
    first_ms: int
    last_ms: int
    spares: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"generations": list(self.generations)}


def find_patterns(
    rows: Iterable[RecordedRebalance], *, storm: int = STORM, window_ms: int = WINDOW_MS
) -> list[Pattern]:
    """Returns the patterns of all groups in the rows, group by group.

    Errors   TypeError at `rows` for anything else; GroupError for `storm` or `window_ms`.
    """
    integer(storm, "storm", "number of rebalances")
    integer(window_ms, "window_ms", "number of ms")
    groups: dict[str, list[RecordedRebalance]] = defaultdict(list)
    for row in each_of(rows, "rows", RecordedRebalance, "rebalance_history returns them"):
        if row.is_rebalance:
            groups[row.group_id].append(row)
    kinds = (_rolling, _flapping, _new_ids, _never_settles, _never_warm, _idle)
    found: list[Pattern] = []
    for group in groups.values():
        group.sort(key=lambda row: row.time_ms)
        found += _storms(group, storm, window_ms)
        found += chain.from_iterable(find(group) for find in kinds)
    return found


def _pattern(
    kind: PatternKind, rows: Sequence[RecordedRebalance], told: str, instead: str, spares: int = 0
) -> Pattern:
    generations = tuple(row.generation_id for row in rows)
    first, last = rows[0], rows[-1]
    if first.group_type != "classic":
        instead = _for_brokers(instead, first.group_type)
    times = (first.time_ms, last.time_ms)
    return Pattern(kind, first.group_id, told, instead, generations, *times, spares * bool(instead))


def _for_brokers(instead: str, group_type: str) -> str:
    """Returns a remedy with a broker-assigned group's settings; "" if share groups lack them."""
    if group_type == "share" and ("static" in instead or "group.instance.id" in instead):
        return ""  # a share group has no static members
    delay, session = (f"group.{group_type}.{name}" for name in (_INTERVAL, _SESSION))
    return instead.replace("group.initial.rebalance.delay.ms", delay).replace(_SESSION, session)


def _storms(rows: Sequence[RecordedRebalance], most: int, window_ms: int) -> Iterator[Pattern]:
    """Yields storms: a storm lasts while more than `most` rebalances fall within `window_ms`."""
    storm: list[RecordedRebalance] = []
    first = 0
    for last, row in enumerate(rows):
        while row.time_ms - rows[first].time_ms > window_ms:
            first += 1
        window = rows[first : last + 1]
        if len(window) > most:
            storm = [*storm, row] if storm else list(window)
        elif storm:
            yield _storm(storm)
            storm = []
    if storm:
        yield _storm(storm)


def _storm(rows: Sequence[RecordedRebalance]) -> Pattern:
    causes = Counter(row.cause for row in rows).most_common()
    seconds = (rows[-1].time_ms - rows[0].time_ms) / 1000
    within = f"{seconds / 60:.1f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
    named = ", ".join(f"{number} {kind}" for kind, number in causes[:4])
    told = f"{len(rows)} rebalances in {within}: {named}"
    spared, kind = max((len(_spared(rows, kind)), kind) for kind, _ in causes)
    if causes[0][0] in _UNSIZED:
        spared, kind = 0, causes[0][0]
    of_kind = Counter(row.cause for row in _spared(rows, kind)).most_common()
    parts = ", ".join(f"{number} of {dict(causes)[one]} {one}" for one, number in of_kind)
    fewer = f" ({spared} of these {len(rows)} fewer: {parts})" if spared else ""
    instead = f"{_INSTEAD[kind]}{fewer}" if spared or kind in _UNSIZED else ""
    return _pattern("storm", rows, told, instead, spared)


# For these causes, the advice only names where to look: no number of prevented rebalances is known.
_UNSIZED = ("gone", "requested")


def _spared(rows: Sequence[RecordedRebalance], kind: str) -> list[RecordedRebalance]:
    """Returns the rebalances of a storm that the remedy for `kind` would have prevented."""
    if kind == "rejoined":
        return _of_restarts(rows, [one for row in rows for one in row.back])
    if kind in ("joined", "left"):  # with the remedy, a run of such rows would have been one row
        first = [row for row in rows if row.cause != "second round"]
        return [one for before, one in pairwise(first) if before.cause == one.cause == kind]
    sized = kind in _INSTEAD and kind not in _UNSIZED
    return [row for row in rows if sized and row.cause == kind]


_INSTEAD = {
    "joined": "members that start together rebalance once if they arrive within the broker's "
    "group.initial.rebalance.delay.ms, or if they start before the traffic",
    "rejoined": "static membership (group.instance.id) makes a short restart no rebalance",
    "left": "stop members together, so that they leave in one rebalance",
    "timed out": "a session.timeout.ms above the members' pauses, or members without such pauses",
    "gone": "the broker's log shows whether these members left or timed out: --broker-log",
    "probing": "warm-ups that are caught up before the next probing rebalance: a larger "
    "max.warmup.replicas or acceptable.recovery.lag, or a longer probing.rebalance.interval.ms",
    "requested": "a client asks: the broker's log has its reason, --broker-log",
    "assignor switch": "members that all name one assignor (group.remote.assignor)",
    "resubscription": "members that all subscribe to one set of topics from the start",
}


def _rolling(rows: Sequence[RecordedRebalance]) -> Iterator[Pattern]:
    run: list[RecordedRebalance] = []
    names: set[str] = set()
    for row in [*rows, None]:
        new = [one.identity for one in row.back] if row is not None else []
        if row is not None and not new:
            continue
        far = bool(run) and row is not None and row.time_ms - run[-1].time_ms > BACK_WITHIN_MS
        if row is None or far or names & set(new) or len(new) > 1:
            if len(names) > 1 and len(names) >= max(one.members for one in run) / 2:
                yield from _rolled(rows, run, names)
            run, names = [], set()
        if row is not None and len(new) == 1:
            run.append(row)
            names.add(new[0])


def _rolled(
    rows: Sequence[RecordedRebalance], run: Sequence[RecordedRebalance], names: set[str]
) -> Iterator[Pattern]:
    back = [one for row in run for one in row.back]
    within = _of_restarts([row for row in rows if row.time_ms <= run[-1].time_ms], back)
    told = f"{len(names)} members restarted one after another, in {len(within)} rebalances"
    session = session_for(back) // 1000
    instead = f"static members with sessions above {session} s: no rebalance"
    if within:
        yield _pattern("rolling", within, told, instead, len(within))


def _of_restarts(
    rows: Sequence[RecordedRebalance], back: Sequence[BackMember]
) -> list[RecordedRebalance]:
    """Returns the rebalances that only these members' restarts caused, with their follow-ups."""
    old, new = {one.old for one in back}, {one.new for one in back}
    found: list[RecordedRebalance] = []
    follows = False
    for row in rows:
        members = {*row.left, *(one.new for one in row.back)}
        is_theirs = old.issuperset(row.left) and new.issuperset(one.new for one in row.back)
        is_restart = is_theirs and not row.joined and row.cause != "started"
        only_follows = {cause.kind for cause in row.causes} <= _FOLLOWING
        follows = is_restart and (bool(members) or (follows and only_follows))
        if follows:
            found.append(row)
    return found


def _flapping(rows: Sequence[RecordedRebalance]) -> Iterator[Pattern]:
    by_name: dict[str, list[RecordedRebalance]] = defaultdict(list)
    for row in rows:
        for one in row.back:
            by_name[one.identity].append(row)
    for name, seen in by_name.items():
        if len(seen) >= FLAPPING:
            told = f"{name} went and came back {len(seen)} times"
            yield _pattern("flapping", seen, told, "find why this process stops; see its log")


def _new_ids(rows: Sequence[RecordedRebalance]) -> Iterator[Pattern]:
    dynamic = [one for row in rows for one in row.back if not one.is_static]
    times = Counter(one.identity for one in dynamic)
    back = [one for one in dynamic if times[one.identity] > 1]
    if not back:
        return
    of_back = _of_restarts(rows, back)
    names = list(dict.fromkeys(one.identity for one in back))
    more = f" and {len(names) - _MEMBERS_NAMED} more" if len(names) > _MEMBERS_NAMED else ""
    told = (
        f"{', '.join(names[:_MEMBERS_NAMED])}{more} came back {len(back)} times under a new member "
        f"id, in {len(of_back)} rebalances of their own"
    )
    session = session_for(back)
    instead = (
        f"group.instance.id, and session.timeout.ms above {session:,} ms (longer than 95% of these "
        "absences): then they are no rebalance if the client sends no LeaveGroup when it stops "
        "(Java's static members send none, others may); a member that is gone for good is then "
        "noticed that late"
    )
    yield _pattern("new ids", of_back or list(rows), told, instead, len(of_back))


def away_ms(one: BackMember) -> int:
    """Returns how long (ms) a member was away: since its last commit, or the record without it."""
    return one.absent_ms if one.silent_ms is None else one.silent_ms


def session_for(back: Sequence[BackMember]) -> int:
    """Returns the shortest session timeout (ms, whole seconds) that covers 95% of absences."""
    absences = sorted(map(away_ms, back))
    longest = absences[-(-len(absences) * 95 // 100) - 1]
    return -(-longest // 1000) * 1000


def _never_settles(rows: Sequence[RecordedRebalance]) -> Iterator[Pattern]:
    for run in _runs(rows, lambda row: row.cause == "second round"):
        if len(run) > max(one.members for one in run):
            told = f"{len(run)} second rounds in a row, in a group of {run[-1].members} members"
            yield _pattern("never settles", run, told, "plan --explain shows why a partition moves")


def _never_warm(rows: Sequence[RecordedRebalance]) -> Iterator[Pattern]:
    instead = (
        "describe names the tasks and how far behind they are, explain TASK what they wait for; a "
        "larger acceptable.recovery.lag ends it, or a faster restore"
    )
    for run in _runs(rows, _moves_nothing):
        if len(run) >= NEVER_WARM:
            told = f"{len(run)} probing rebalances in a row moved no task: copies are not caught up"
            yield _pattern("never warm", run, told, instead)


def _moves_nothing(row: RecordedRebalance) -> bool:
    return row.cause == "probing" and not row.moved + row.gained + row.revoked


def _runs(
    rows: Sequence[RecordedRebalance], is_one: Callable[[RecordedRebalance], bool]
) -> list[list[RecordedRebalance]]:
    """Returns the rows that `is_one` accepts; those with no other row between them are one run."""
    return [list(run) for accepted, run in groupby(rows, is_one) if accepted]


def _idle(rows: Sequence[RecordedRebalance]) -> Iterator[Pattern]:
    """Yields a pattern for each member that was idle in all of its records, if three or more."""
    seen: dict[str, list[RecordedRebalance]] = defaultdict(list)
    for row in rows:
        for member in row.idle:
            seen[member].append(row)
    records = _records_of_members(rows)
    for member, idle in seen.items():
        if len(idle) >= _IDLE_RECORDS and records.get(member) == len(idle):
            last = idle[-1]
            told = f"{member} had no partition in all of its {len(idle)} generations"
            instead = f"{last.partitions} partitions for {last.members} members"
            more = "fewer members, or more partitions: " if last.members > last.partitions else ""
            yield _pattern("idle", idle, told, f"{more}{instead}")


def _records_of_members(rows: Sequence[RecordedRebalance]) -> dict[str, int]:
    present: set[str] = set()
    counts: Counter[str] = Counter()
    for row in rows:
        present |= {*row.joined, *(one.new for one in row.back), *row.idle}
        present -= {*row.left, *(one.old for one in row.back)}
        counts.update(present)
    return dict(counts)

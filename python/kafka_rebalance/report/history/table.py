# SPDX-License-Identifier: Apache-2.0
"""Prints histories as tables: groups, one group's rebalances, replays and counterfactuals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from kafka_rebalance.history.counterfactual import Counterfactual
from kafka_rebalance.history.patterns import Pattern
from kafka_rebalance.history.recorded import CAUSES, RecordedRebalance, total_moves
from kafka_rebalance.history.replayed import ReplayedRebalance, replay_shares

from ..text.sentences import GLOSSARY, counted, cut, member_names, print_wrapped, runs, shortened
from ..text.tables import print_table

WORST = 5
_MOST_ROWS = 40
_MOST_NAMED = 2
_NAME = 26
_TOLD = (("requested", "log"), ("follow-up", "exact"), ("settings changed", "exact"))

GROUP_COLUMNS = ["group", "rebalances", "avoidable", "within", "moves", "causes", "patterns"]

_MOST_CAUSES = 3
_HELPS = " Most helpful: "
_AWAY = " ({} more wait while their member is away, up to {} s)"
_USEFUL = ("rolling", "flapping", "new ids", "never settles", "never warm", "idle", "storm")
"""The kinds of patterns with useful remedies. If two patterns spare equally many rebalances, the
one whose kind is earlier here is shown.
"""

_Groups = Mapping[str, Sequence[RecordedRebalance]]


def print_groups(groups: _Groups, patterns: Sequence[Pattern], *, everything: bool) -> None:
    """Prints a summary, then a line for each group, or only for the worst ones; the worst first."""
    order = group_order(groups, patterns)
    print_wrapped(answer_of([row for name in order for row in groups[name]], len(groups)))
    if order[1:]:
        rows, mine = groups[order[0]], [one for one in patterns if one.group_id == order[0]]
        text = f"{counted(total_moves(rows), 'move')} in {counted(len(rows), 'rebalance')}"
        text += f", {max((one.spares for one in mine), default=0) or 'none'} of them avoidable"
        advice = shortened(advice_of(mine), names_in(rows))
        end = ":" if advice and not advice.startswith(_HELPS) else "."
        print_wrapped(f"Begin with {order[0]}: {text}{end}{advice}")
    shown = order if everything else order[:WORST]
    print_table(GROUP_COLUMNS, [group_cells(name, groups, patterns) for name in shown], left=(5, 6))
    if len(shown) < len(order):
        left = sum(len(groups[name]) for name in order[len(shown) :])
        print(f"… and {counted(len(order) - len(shown), 'group')} with {left} (--all shows them)")


def answer_of(rows: Sequence[RecordedRebalance], groups: int = 1) -> str:
    """Returns a sentence: how many rebalances, in which time and, of one group, with which causes.

    The second rounds of cooperative members are not a cause: they come last.
    """
    within, moves = _within(sorted(rows, key=lambda row: row.time_ms)), total_moves(rows)
    text = counted(len(rows), "rebalance") + (f" of {groups} groups" if groups > 1 else "")
    text += (f" within {within}" if within else "") + f", {counted(moves, 'move')}"
    if slowest_ms := max((row.reconciled_ms or 0 for row in rows), default=0):
        text += f", up to {slowest_ms / 1000:,.1f} s until all members had their targets"
    if groups > 1:
        return f"{text}."
    causes = Counter(row.cause for row in rows)
    second = causes.pop("second round", 0)
    said = [f"{times(number)} {CAUSES[kind]}" for kind, number in causes.most_common(_MOST_CAUSES)]
    if empty := [row.seconds for row in rows if row.cause == "started" and row.seconds]:
        some = f"{times(len(empty))} " * (len(empty) < causes["started"])
        up_to = "up to " * (len(empty) > 1)
        after = f" ({some}after {up_to}{max(empty):,.1f} s without members)"
        said = [one + after * one.endswith(CAUSES["started"]) for one in said]
    if others := [number for _, number in causes.most_common()[_MOST_CAUSES:]]:
        most = f"{'at most ' * (max(others) > 1)}{times(max(others))}"
        many = f"{sum(others):,} from other causes, {most} each"
        said.append(f"{times(others[0])} another cause" if len(others) == 1 else many)
    text += f": {', '.join(said)}" if said else ""
    if second:
        text += f"; {second} {'is a second round' if second == 1 else 'are second rounds'} of these"
        text += " (cooperative: normal)"
    return f"{text}."


def advice_of(patterns: Sequence[Pattern]) -> str:
    """Returns the most useful pattern with its remedy, as a sentence; "" if none has a remedy."""
    known = [one for one in patterns if one.instead and one.kind in _USEFUL]
    if not known:
        return ""
    best = min(known, key=lambda one: (-one.spares, _USEFUL.index(one.kind)))
    told = "" if best.kind == "storm" else f" {best.told}."
    return f"{told}{_HELPS}{best.instead.partition('; ')[0]}."


def times(number: int) -> str:
    """Returns "once", "twice", or text such as "14 times"."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def group_order(groups: _Groups, patterns: Sequence[Pattern]) -> list[str]:
    """Returns the groups' names, sorted by avoidable rebalances, then moves, then rebalances."""
    spared = Counter[str]()
    for one in patterns:
        spared[one.group_id] = max(spared[one.group_id], one.spares)
    moves = {name: total_moves(rows) for name, rows in groups.items()}
    return sorted(groups, key=lambda name: (-spared[name], -moves[name], -len(groups[name]), name))


def group_cells(name: str, groups: _Groups, patterns: Sequence[Pattern]) -> list[str]:
    rows, mine = groups[name], [one for one in patterns if one.group_id == name]
    causes = Counter(row.cause for row in rows).most_common()
    return [
        cut(name, _NAME),
        str(len(rows)),
        str(max((one.spares for one in mine), default=0)),
        _within(rows),
        str(total_moves(rows)),
        ", ".join(f"{number} {kind}" for kind, number in causes),
        ", ".join(dict.fromkeys(one.kind for one in mine)),
    ]


def print_group(
    group_id: str,
    rows: Sequence[RecordedRebalance],
    patterns: Sequence[Pattern],
    *,
    everything: bool,
) -> None:
    """Prints one group's rebalances by time: all of them (`everything`), or only the last ones."""
    shown = rows if everything else rows[-_MOST_ROWS:]
    names = names_in(rows)
    answer = answer_of([row for row in rows if row.is_rebalance])
    print_wrapped(f"{group_id}: {answer}{shortened(advice_of(patterns), names)}")
    if len(shown) < len(rows):
        print(f"the last {len(shown)} (--all shows every one)")
    cells = [
        [
            clock(row.time_ms),
            "" if row.generation_id < 0 else str(row.generation_id),
            "" if row.seconds is None else f"{row.seconds:.1f}",
            "" if row.generation_id < 0 else str(row.members),
            _moves(row),
            row_text(row, names),
        ]
        for row in shown
    ]
    epochs = all(row.group_type != "classic" for row in rows)
    unit = "epoch" if epochs else "generation"
    print_table(["time (UTC)", unit, "after s", "members", "moves", "cause"], cells, left=(5,))
    if any(cause.certainty == "likely" for row in shown for cause in row.causes):
        print("? likely: the records hint at it, but do not prove it")
    _print_reconciled(shown, names)
    for one in patterns:
        print_wrapped(pattern_text(one, names), "", "  ")
    print(GLOSSARY)


def names_in(rows: Iterable[RecordedRebalance]) -> dict[str, str]:
    """Returns short names of the members in causes and revocations, by member id."""
    clients: dict[str, str | None] = {}
    for row in rows:
        for cause in row.causes:
            clients |= dict.fromkeys(cause.members)
        clients |= dict.fromkeys(one.member_id for one in row.revocations)
    clients |= dict(pair for row in rows for pair in row.clients)
    return member_names(dict(sorted(clients.items())))


def _print_reconciled(rows: Sequence[RecordedRebalance], names: Mapping[str, str]) -> None:
    """Prints the epochs of a broker-assigned group that took longest; nothing if no times are
    known.
    """
    texts = []
    if took := [row for row in rows if row.reconciled_ms is not None]:
        row = max(took, key=lambda one: one.reconciled_ms or 0)
        texts.append(f"longest until all had their targets: {_after(row, row.reconciled_ms)}")
    if asked := [(one, row) for row in rows for one in row.revocations if one.took_ms is not None]:
        one, row = max(asked, key=lambda pair: pair[0].took_ms or 0)
        what = f"{names[one.member_id]}, {counted(one.partitions, 'partition')}"
        texts.append(f"slowest to revoke: {what}, {_after(row, one.took_ms)}")
    if between := [row for row in rows if row.between_ms is not None]:
        row = max(between, key=lambda one: one.between_ms or 0)
        texts.append(
            f"longest time of a partition between two owners: {_after(row, row.between_ms)}"
        )
    if texts:
        text = "; ".join(texts)
        print_wrapped(f"{text[0].upper()}{text[1:]}.")


def _after(row: RecordedRebalance, ms: int | None) -> str:
    return f"{(ms or 0) / 1000:.1f} s (epoch {row.generation_id})"


def print_patterns(patterns: Sequence[Pattern]) -> None:
    """Prints the number of patterns, then the patterns of all groups, with whole member ids."""
    kinds = Counter(one.kind for one in patterns).most_common()
    told = ", ".join(f"{number} {kind}" for kind, number in kinds)
    of_groups = counted(len({one.group_id for one in patterns}), "group")
    print_wrapped(f"Patterns in {of_groups}: {told}." if patterns else "No pattern was found.")
    for one in patterns:
        print_wrapped(f"{one.group_id}: {pattern_text(one, {})}", "", "  ")


def pattern_text(one: Pattern, names: Mapping[str, str]) -> str:
    """Returns a pattern with its times and generations, and advice that prevents it."""
    place = f"{clock(one.first_ms)} to {clock(one.last_ms)[11:]}, generations"
    instead = f". Instead: {one.instead}" if one.instead else ""
    return f"{one.kind}: {shortened(one.told, names)} ({place} {runs(one.generations)}){instead}."


def row_text(row: RecordedRebalance, names: Mapping[str, str]) -> str:
    """Returns the causes with their members, such as `joined (orders-3-5f2e); left (…)`."""
    if row.error is not None:
        return f"cannot be read: {row.error}"
    texts = []
    for cause in row.causes:
        who = [names.get(one, one) for one in cause.members]
        more = f", … {len(who)} in all" if len(who) > _MOST_NAMED else ""
        named = f" ({', '.join(who[:_MOST_NAMED])}{more})" if who else ""
        mark = "?" if cause.certainty == "likely" else ""
        is_told = cause.kind == "second round" or (cause.kind, cause.certainty) in _TOLD
        words = f", {shortened(cause.detail, names)}" if is_told and cause.detail else ""
        if cause.kind == "converted":
            words = f" {cause.detail}"
        kind = "left or timed out" if cause.kind == "gone" else cause.kind
        texts.append(f"{kind}{mark}{named}{words}")
    if row.gap:
        texts.append(f"gap of {row.gap}, {row.gap_reason}")
    return "; ".join(texts)


def print_replay(replayed: Sequence[ReplayedRebalance]) -> None:
    """Prints, by assignor and leader's library, how many computed answers equal the recorded ones;
    then each rebalance whose answer differs or was not computed.
    """
    computed = sum(one.equal is not None for one in replayed)
    equal = sum(one.equal is True for one in replayed)
    print_wrapped(
        f"{equal} of {counted(computed, 'rebalance')} computed again, with equal answers."
    )
    rows = [
        [one.protocol, one.leader_library, f"{one.equal} of {one.computed}", str(one.not_computed)]
        for one in replay_shares(replayed)
    ]
    print_table(["assignor", "leader", "equal", "not computed"], rows, left=(1,))
    for one in replayed:
        if not one.equal:
            word = "differs" if one.equal is False else "not computed"
            likely = f"; likely {one.likely}" if one.likely else ""
            place = f"{one.group_id}, generation {one.generation_id}"
            print_wrapped(f"{place}: {word}: {one.difference}{likely}", "", "  ")


def print_counterfactuals(
    rows: Sequence[RecordedRebalance], played: Sequence[Counterfactual]
) -> None:
    """Prints all groups' recorded totals, and the totals under each assignor played for all."""
    held = [row for row in rows if row.is_rebalance and row.members]
    recorded = f"{counted(len(held), 'rebalance')}, {counted(total_moves(held), 'move')}"
    if empty := sum(row.is_rebalance and not row.members for row in rows):
        recorded += f" (and {empty} that left the group empty)"
    totals, cells = dict[tuple[str, bool], tuple[int, ...]](), list[list[str]]()
    every = {one.group_id for one in played}
    for static in (False, True):
        chosen = dict[str, dict[str, Counterfactual]]()
        for one in played:  # one with static members comes after the one without
            if static or not one.is_static:
                chosen.setdefault(one.assignor, {})[one.group_id] = one
        for name, by_group in chosen.items():
            found = by_group.values()
            # Only the totals of assignors that all groups were played with are comparable.
            if by_group.keys() == every and (not static or any(one.is_static for one in found)):
                each = [(one.rebalances, one.moves, one.unavailable, one.waiting) for one in found]
                totals[name, static] = sums = tuple(map(sum, zip(*each, strict=True)))
                cells.append([f"{name}{', static members' if static else ''}", *map(str, sums)])
    protocols = (row.protocol for row in reversed(held) if (row.protocol, False) in totals)
    session_s = max((one.session_ms or 0 for one in played), default=0) // 1000
    remedies = _remedies(totals, next(protocols, None), session_s)
    print_wrapped(f"{remedies}Recorded: {recorded}.")
    print_table(["assignor", "rebalances", "moves", "no reader", "waiting"], cells)
    print_wrapped(
        "no reader: partitions that nobody reads during a rebalance, added up; waiting: partitions "
        "of static members that were away. Static members send no LeaveGroup, and their "
        f"session.timeout.ms covers 95% of the absences{f' ({session_s} s)' * bool(session_s)}. "
        f"{GLOSSARY}"
    )


def _remedies(
    totals: Mapping[tuple[str, bool], tuple[int, ...]], own: str | None, session_s: int
) -> str:
    """Returns sentences on static members, on another assignor than `own`, and on both."""
    if not totals:
        return ""
    names = [name for name, static in totals if not static]
    own = own or names[0]
    now = totals[own, False]
    best = min(names, key=lambda name: totals[name, False][2::-1])
    tried = {
        "both": (best, True),
        f"{best} alone": (best, False),
        "static members (group.instance.id) alone": (own, True),
    }
    helps = {totals[key]: who for who, key in tried.items() if totals.get(key, now)[2] < now[2]}
    if not helps:
        return "Neither static members nor another assignor would have helped. "
    (least, who), *more = reversed(helps.items())
    text = f"With {who}: {counted(least[0], 'rebalance')} instead of {now[0]}, and "
    text += f"{counted(least[2], 'partition')} without a reader instead of {now[2]}"
    text += _AWAY.format(least[3], session_s) * bool(least[3])
    for sums, who in more:
        text += f"; with {who}: {sums[0]} and {sums[2]}"
        text += _AWAY.format(sums[3], session_s) * bool(sums[3])
    if totals[best, False][2] < now[2]:
        text += "; the switch itself costs rebalances, once (see compare)"
    return f"{text}. Compared with the same events under {own}, which ran last. "


def clock(time_ms: int) -> str:
    """Returns a time in epoch ms as date and time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # a record may contain any number as its time
        return f"{time_ms} ms"


def _moves(row: RecordedRebalance) -> str:
    parts = ((row.moved, "moved"), (row.gained, "gained"), (row.revoked, "revoked"))
    return ", ".join(f"{number} {word}" for number, word in parts if number)


def _within(rows: Sequence[RecordedRebalance]) -> str:
    """Returns the time from the first rebalance to the last as text; "" if there is none."""
    span_ms = rows[-1].time_ms - rows[0].time_ms if rows else 0
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if span_ms >= 2 * unit_ms:
            return f"{span_ms / unit_ms:.1f} {unit}"
    return f"{max(1.0, span_ms / 1000):.0f} s" if span_ms > 0 else ""

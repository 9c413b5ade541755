# SPDX-License-Identifier: Apache-2.0
"""Prints the present state of a group, or all groups of a cluster by their findings."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import first_of
from kafka_rebalance.notes.findings import PAGE, Note
from kafka_rebalance.notes.listed import lists_notes, may_list_eager
from kafka_rebalance.plans.clients import class_name, client_of, library_evidence
from kafka_rebalance.plans.figures import share_text
from kafka_rebalance.present.broker_assigned import Lags
from kafka_rebalance.present.description import Description
from kafka_rebalance.present.triage import EMPTY, TriagedGroup, summary

from ..plans.figures import its
from ..plans.notes import either_note, lists_note, print_notes
from ..text.sentences import counted, cut, member_names, partitions_text, print_wrapped
from ..text.tables import print_filled_table

_MOST_ROWS = 20
_MOST_CHARACTERS = 34
_CHARACTERS_IN_SENTENCE = 60
_M = TypeVar("_M")


def print_description(one: Description, given: str, *, everything: bool) -> None:
    """Prints a group; `given` is the part of the command line that selects input and group."""
    group = one.group
    total = sum(map(len, one.assignment.values()))
    generation = "" if group.generation_id is None else f", generation {group.generation_id}"
    assignor = " or ".join(one.assignors) or group.assignor or "no assignor"
    print_wrapped(one.summary)
    print_wrapped(
        f"{group.group_id}, {assignor}{generation}: "
        f"{counted(len(group.members), 'member')}, {counted(total, 'partition')} owned"
    )
    names = member_names({member.member_id: member.client_id for member in group.members})
    columns: dict[str, Callable[[Member, int | None], str]] = {
        "member": lambda member, _: cut(names[member.member_id], 36),
        "instance": lambda member, _: member.group_instance_id or "",
        "host": lambda member, _: (member.client_host or "").removeprefix("/"),
        "client": lambda member, _: _library(member, group.group_id),
        "rack": lambda member, _: member.rack_id or "",
        "owned": lambda member, _: str(len(one.assignment[member.member_id])),
        "partitions": lambda member, most: partitions_text(one.assignment[member.member_id], most),
        "lag": lambda member, _: "" if one.lags is None else lag_cell(one.lag_of(member.member_id)),
    }
    print_members(group.members, columns, ("owned", "lag"), everything=everything)
    is_unread = any(finding.kind == "unread" for finding in one.findings)
    is_even = one.balance.stddev <= one.possible.stddev and not is_unread
    even = ", as even as possible" if is_even else f" (possible: {one.possible.least_to_most})"
    print_wrapped(f"Partitions per member: {one.balance.least_to_most}{even}.")
    if one.rack_share is not None:
        print_wrapped(f"In rack (read in the rack of a replica): {share_text(one.rack_share)}.")
    if one.lags is not None:
        print_wrapped(_lag(one, names))
    print_findings((*one.findings, *one.facts), names)
    print_notes(lists_notes(group, group.assignor), {}, given)
    if asks := dict.fromkeys(finding.ask for finding in one.findings if finding.ask):
        print()
        print("This shows more:")
    for ask in asks:
        print(f"  kafka-rebalance {ask} {given}")


def print_findings(findings: Sequence[Note], names: Mapping[str, str]) -> None:
    """Prints a line for each finding; `names` maps member ids to names in the members' table."""
    if findings:
        print()
    for finding in findings:
        print_wrapped(finding_text(finding, names), "", "  ")


def finding_text(finding: Note, names: Mapping[str, str]) -> str:
    """Returns text such as `idle: c3, c4: there are fewer partitions than members for …`."""
    who = first_of([names.get(one, one) for one in finding.member_ids], 3)
    which = partitions_text(finding.partitions, _CHARACTERS_IN_SENTENCE)
    parts = [finding.kind, *filter(None, (who, which)), finding.text]
    return ": ".join(parts)


_LIBRARIES = {"java": "Java", "python": "kafka-python or aiokafka"}
_JAVAS_BYTES = "Java or plug-in"  # our plug-ins for Python send the bytes of the Java client


def _library(member: Member, group_id: str) -> str:
    found = library_evidence(member, group_id)
    if found is not None and found[0] == "java" and client_of(member, group_id) is None:
        return _JAVAS_BYTES
    return "" if found is None else _LIBRARIES.get(found[0], found[0])


def print_members(
    members: Sequence[_M],
    columns: Mapping[str, Callable[[_M, int | None], str]],
    right: Sequence[str],
    *,
    everything: bool,
) -> None:
    """Prints a row for each member (without `everything`, only for the first ones).

    A column's function takes a member and the largest number of characters of a list (None: any).
    """
    shown = members if everything else members[:_MOST_ROWS]
    most = None if everything else _MOST_CHARACTERS
    rows = [tuple(cell(member, most) for cell in columns.values()) for member in shown]
    print_filled_table([*columns], rows, right=right)
    if len(shown) < len(members):
        print(f"… and {len(members) - len(shown)} more (--all shows them)")


def _lag(one: Description, names: Mapping[str, str]) -> str:
    assert one.lags is not None
    spread = ""
    if one.lags and max(one.lags.values()):
        worst = max(one.lags, key=lambda tp: one.lags[tp] if one.lags else 0)
        reader = next((m for m, held in one.assignment.items() if worst in held), None)
        whose = f", read by {names[reader]}" if reader else ""
        least = min(one.lags.values())
        spread = f", {least:,} to {one.lags[worst]:,} a partition; most: {worst}{whose}"
    unknown = one.without_committed_offset or 0
    return lag_text(one.lags, unknown, spread, leaderless=len(one.leaderless))


def lag_cell(lag: int | None) -> str:
    """Returns the lag in records as a table's cell; `-` if it is unknown."""
    return "-" if lag is None else f"{lag:,}"


def lag_text(
    lags: Lags, without_committed_offset: int, more: str = "", *, leaderless: int = 0
) -> str:
    """Returns a sentence on the lag (`more` names the partitions), and why some is unknown."""
    reasons = ((without_committed_offset, "a committed offset"), (leaderless, "a leader"))
    unknown = [
        f"{counted(count, 'partition')} without {what}: {its(count)} lag is unknown (-), and in no "
        "sum"
        for count, what in reasons
        if count
    ]
    known = f"{counted(sum(lags.values()), 'record')} in {counted(len(lags), 'partition')}{more}"
    return f"Lag: {'; '.join(unknown if unknown and not lags else [known, *unknown])}."


# All groups of a cluster --------------------------------------------------------------------------

_TRIAGED = (
    "group", "assignor", "members", "partitions per member", "best possible", "lag", "findings",
)  # fmt: skip


def print_triage(
    groups: Sequence[TriagedGroup],
    shown: Sequence[TriagedGroup],
    *,
    only: Sequence[str] | None = None,
) -> None:
    """Prints a summary of all `groups`, and a table of the groups in `shown`; `only` names the
    findings that selected these.
    """
    print_wrapped(summary(groups))
    described = [one.described for one in shown if isinstance(one.described, Description)]
    live = any(one.lag is not None for one in shown)
    live |= any(one.lags is not None for one in described)
    if shown:
        rows = [_row(one, live=live) for one in shown]
        print_filled_table(_TRIAGED, rows, right=_TRIAGED[2:6], whole=True, names=2)
    if others := len(groups) - len(shown):
        verb, how = "is" if others == 1 else "are", "; --all shows every group"
        if only:
            kinds = (f"of {one} or worse" if one in ("warning", "info") else one for one in only)
            how = f": no finding {' or '.join(kinds)}"
        print_wrapped(f"{counted(others, 'group')} {verb} not shown{how}.")
    if live and any(one.without_committed_offset or one.leaderless for one in described):
        leader = " and a leader" if any(one.leaderless for one in described) else ""
        which = f"only of partitions with a committed offset{leader}"
        print_wrapped(f"lag: {which}; - if a group has none of these.")
    if note := either_note(
        class_name(one.group, name) for one in described for name in one.assignors
    ):
        print_wrapped(note)
    of_groups = (one.group for one in described)
    if unknown := [one.group_id for one in of_groups if may_list_eager(one, one.assignor)]:
        print_wrapped(lists_note(unknown))
    about = f" {PAGE} explains the findings." if any(one.findings for one in shown) else ""
    print_wrapped(f"--group G shows one group in detail.{about}")


def _row(one: TriagedGroup, *, live: bool) -> list[str]:
    assignor = "no members" if one.state in EMPTY else one.group_type or "-"
    balance = possible = "-"
    if isinstance(one.described, Description):
        group, names = one.described.group, one.described.assignors
        either = dict.fromkeys(class_name(group, name) or "" for name in names)
        assignor = " or ".join(either) or group.assignor or "-"
        balance = one.described.balance.least_to_most
        possible = one.described.possible.least_to_most
    elif one.described is not None:
        balance = one.described.task_balance.least_to_most
    return [
        cut(one.group_id, 60),
        assignor,
        "-" if one.members is None else str(one.members),
        balance,
        possible,
        lag_cell(one.lag) if live else "",
        ", ".join(dict.fromkeys(finding.kind for finding in one.findings)) or "-",
    ]

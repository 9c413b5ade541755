# SPDX-License-Identifier: Apache-2.0
"""Prints all groups of a cluster: a sentence, then a line for each group, the worst first."""

from collections.abc import Sequence

from kafka_rebalance.notes.findings import PAGE
from kafka_rebalance.notes.listed import may_list_eager
from kafka_rebalance.plans.clients import class_name
from kafka_rebalance.present.description import Description
from kafka_rebalance.present.triage import EMPTY, TriagedGroup, summary
from kafka_rebalance.report.plans.notes import either_note, lists_note
from kafka_rebalance.report.text.names import counted, cut
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_table

from .description import lag_cell

_COLUMNS = (
    *("group", "assignor", "members", "partitions per member", "best possible"),
    *("lag", "findings"),
)


def print_triage(
    groups: Sequence[TriagedGroup],
    shown: Sequence[TriagedGroup],
    *,
    only: Sequence[str] | None = None,
) -> None:
    """Prints the summary of all `groups`, and a table of `shown`: those with findings `only`."""
    print_wrapped(summary(groups))
    described = [one.described for one in shown if isinstance(one.described, Description)]
    live = any(one.lag is not None for one in shown)
    live |= any(one.lags is not None for one in described)
    if shown:
        columns = [column for column in _COLUMNS if live or column != "lag"]
        rows = [_row(one, live=live) for one in shown]
        print_table(columns, rows, left=(1, len(columns) - 1), whole=True, names=2)
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
        *([lag_cell(one.lag)] if live else []),
        ", ".join(dict.fromkeys(finding.kind for finding in one.findings)) or "-",
    ]

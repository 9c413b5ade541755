# SPDX-License-Identifier: Apache-2.0
"""Prints the present state of a streams group."""

from collections.abc import Sequence

from kafka_rebalance.present.streams_group import StreamsGroupWithLag
from kafka_rebalance.report.text.names import counted, cut, partitions_text
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table, print_table
from kafka_rebalance.wire.streams_groups import (
    DescribedStreamsMember,
    DescribedSubtopology,
    TaskLists,
)

from .description import lag_cell, lag_text, leaderless_in, print_findings

_MOST_ROWS = 20
_MOST_CHARACTERS = 34


def print_streams_group(one: StreamsGroupWithLag, given: str, *, everything: bool) -> None:
    """Prints a group; `given` is the part of the command line that selects cluster and group."""
    group = one.described
    total = sum(len(member.assigned.active) for member in group.members)
    print(
        f"{group.group_id}, streams group (KIP-1071), {group.group_state}: "
        f"{counted(len(group.members), 'member')} in "
        f"{counted(len(one.processes), 'process').replace('processs', 'processes')}, "
        f"{counted(total, 'active task')}"
    )
    epoch = "" if group.topology is None else f", topology epoch {group.topology.epoch}"
    print(f"Group epoch {group.group_epoch}, assignment epoch {group.assignment_epoch}{epoch}.")
    if group.subtopologies:
        _print_topology(group.subtopologies)
    if not group.members:
        return
    members = [member for some in one.processes.values() for member in some]
    shown = members if everything else members[:_MOST_ROWS]
    _print_members(one, shown, everything=everything)
    if len(shown) < len(members):
        print(f"… and {len(members) - len(shown)} more (--all shows them)")
    even = ", as even as possible" if one.balance.max - one.balance.min <= 1 else ""
    print_wrapped(f"Active tasks a member: {one.balance.least_to_most}{even}.")
    print_wrapped(
        lag_text(
            one.lags,
            one.without_committed_offset,
            " of source topics",
            leaderless=leaderless_in(one.findings),
        )
    )
    print()
    print_findings(one.findings, {member.member_id: member.client_id for member in group.members})
    print()
    print("This shows what a change would do:")
    print(f"  kafka-rebalance plan {given} --add-members 1")


def _print_topology(subtopologies: Sequence[DescribedSubtopology]) -> None:
    rows = [
        (
            one.subtopology_id,
            ", ".join(one.read_topics),
            ", ".join(one.repartition_sink_topics),
            "yes" if one.state_changelog_topics else "no",
        )
        for one in subtopologies
    ]
    print_table(("subtopology", "reads", "writes to", "state"), rows, left=(1, 2, 3))


def _print_members(
    one: StreamsGroupWithLag, members: Sequence[DescribedStreamsMember], *, everything: bool
) -> None:
    most = None if everything else _MOST_CHARACTERS
    rows = [
        (
            member.process_id[:8],
            cut(member.client_id, 30),
            member.instance_id or "",
            member.client_host.removeprefix("/"),
            member.rack_id or "",
            " ".join(f"{key}={value}" for key, value in member.client_tags),
            str(member.member_epoch),
            partitions_text(member.assigned.active, most),
            partitions_text(member.assigned.standby, most),
            partitions_text(member.assigned.warmup, most),
            _target(member.target, most) if member.is_reconciling else "",
            lag_cell(one.lag_of(member)),
        )
        for member in members
    ]
    columns = ["process", "client", "instance", "host", "rack", "tags", "epoch", "active"]
    columns += ["standby", "warm-up", "target", "lag"]
    print_filled_table(columns, rows, right=("epoch", "lag"))


def _target(target: TaskLists, most: int | None) -> str:
    names = ("", "standby ", "warm-up ")
    pairs = zip(names, target, strict=True)
    texts = (f"{name}{partitions_text(some, most)}" for name, some in pairs if some)
    return "; ".join(texts) or "nothing"

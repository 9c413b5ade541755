# SPDX-License-Identifier: Apache-2.0
"""Prints the present state of a group that the broker assigns."""

from kafka_rebalance.plans.figures import share_text
from kafka_rebalance.present.broker_assigned import AssignedByBroker, is_reconciling
from kafka_rebalance.report.text.names import counted, cut, member_names, partitions_text
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table
from kafka_rebalance.wire.broker_groups import BrokerGroup, BrokerMember

from .description import lag_cell, lag_text, leaderless_in, print_findings

_MOST_ROWS = 20
_MOST_CHARACTERS = 34
_KINDS = {
    "consumer": ("consumer protocol (KIP-848)", "kafka-consumer-groups.sh", "--offsets"),
    "share": ("share group (KIP-932)", "kafka-share-groups.sh", "--offsets"),
}


def print_assigned_by_broker(one: AssignedByBroker, given: str, *, everything: bool) -> None:
    """Prints a group; `given` is the part of the command line that selects cluster and group."""
    group = one.described
    kind, command, option = _KINDS[group.group_type]
    total = sum(len(member.assigned) for member in group.members)
    print(
        f"{group.group_id}, {kind}, assignor {group.assignor_name or 'unknown'}, "
        f"{group.group_state}: "
        f"{counted(len(group.members), 'member')}, {counted(total, 'partition')} owned"
    )
    print(f"Group epoch {group.group_epoch}, assignment epoch {group.assignment_epoch}.")
    if not group.members:
        return
    shown = group.members if everything else group.members[:_MOST_ROWS]
    _print_members(one, shown, everything=everything)
    if len(shown) < len(group.members):
        print(f"… and {len(group.members) - len(shown)} more (--all shows them)")
    even = ", as even as possible" if one.balance.max - one.balance.min <= 1 else ""
    print_wrapped(f"Partitions a member: {one.balance.least_to_most}{even}.")
    if one.rack_share is not None:
        print_wrapped(f"Read in the rack of a replica: {share_text(one.rack_share)}.")
    print_wrapped(f"Subscribed: {_subscribed(group.members)}.")
    if one.lags is not None:
        print_wrapped(
            lag_text(
                one.lags, one.without_committed_offset or 0, leaderless=leaderless_in(one.findings)
            )
        )
    print()
    print_findings(one.findings, _names(group))
    print()
    print("This shows the offsets:")
    print(f"  {command} --describe {option} {given}")


def _print_members(
    one: AssignedByBroker, members: tuple[BrokerMember, ...], *, everything: bool
) -> None:
    most = None if everything else _MOST_CHARACTERS
    names = _names(one.described)
    rows = [
        (
            cut(f"{names[member.member_id]}", 24),
            member.client_id,
            member.instance_id or "",
            member.client_host.removeprefix("/"),
            member.rack_id or "",
            str(member.member_epoch),
            str(len(member.assigned)),
            partitions_text(member.assigned, most),
            partitions_text(member.target or (), most) or "nothing"
            if is_reconciling(member)
            else "",
            "" if one.lags is None else lag_cell(one.lag_of(member)),
        )
        for member in members
    ]
    columns = ["member", "client", "instance", "host", "rack", "epoch", "owned", "partitions"]
    print_filled_table([*columns, "target", "lag"], rows, right=("epoch", "owned", "lag"))


def _names(group: BrokerGroup) -> dict[str, str]:
    return member_names({member.member_id: member.client_id for member in group.members})


def _subscribed(members: tuple[BrokerMember, ...]) -> str:
    topics = sorted({topic for member in members for topic in member.subscribed_topic_names})
    regexes = sorted({one.topic_regex for one in members if one.topic_regex})
    return ", ".join([*topics, *(f"pattern {one}" for one in regexes)]) or "nothing"

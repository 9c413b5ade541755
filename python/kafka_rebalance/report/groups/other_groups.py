# SPDX-License-Identifier: Apache-2.0
"""Prints the present state of a live group that no classic assignor assigns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka_rebalance.group.model import TopicPartition, shell_option
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.plans.figures import share_text
from kafka_rebalance.present.broker_assigned import (
    AssignedByBroker,
    StreamsGroupWithLag,
    is_reconciling,
)
from kafka_rebalance.present.connect_workers import ConnectGroup
from kafka_rebalance.wire.broker_groups import BrokerMember

from ..text.sentences import counted, cut, member_names, partitions_text, print_wrapped
from ..text.tables import print_table
from .description import lag_cell, lag_text, print_findings, print_members

_KINDS = {
    "consumer": ("consumer protocol (KIP-848)", "kafka-consumer-groups.sh", "--offsets"),
    "share": ("share group (KIP-932)", "kafka-share-groups.sh", "--offsets"),
}


def print_other_group(
    group: ConnectGroup | AssignedByBroker | StreamsGroupWithLag, given: str, *, everything: bool
) -> None:
    """Prints a group; `given` is the part of the command line that selects cluster and group."""
    if isinstance(group, ConnectGroup):
        print_connect_group(group, everything=everything)
    elif isinstance(group, StreamsGroupWithLag):
        print_streams_group(group, given, everything=everything)
    else:
        print_assigned_by_broker(group, given, everything=everything)


def print_assigned_by_broker(one: AssignedByBroker, given: str, *, everything: bool) -> None:
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
        _print_no_members(one)
        return
    names = member_names({member.member_id: member.client_id for member in group.members})
    columns: dict[str, Callable[[BrokerMember, int | None], str]] = {
        "member": lambda member, _: cut(names[member.member_id], 24),
        "client": lambda member, _: member.client_id,
        **_PLACE,
        "epoch": lambda member, _: str(member.member_epoch),
        "owned": lambda member, _: str(len(member.assigned)),
        "partitions": lambda member, most: partitions_text(member.assigned, most),
        "target": lambda member, most: (
            partitions_text(member.target or (), most) or "nothing"
            if is_reconciling(member)
            else ""
        ),
        "lag": lambda member, _: "" if one.lags is None else lag_cell(one.lag_of(member)),
    }
    print_members(group.members, columns, ("epoch", "owned", "lag"), everything=everything)
    _print_even("Partitions per member", one.balance)
    if one.rack_share is not None:
        print_wrapped(f"In rack (read in the rack of a replica): {share_text(one.rack_share)}.")
    topics = sorted({topic for member in group.members for topic in member.subscribed_topic_names})
    regexes = sorted({member.topic_regex for member in group.members if member.topic_regex})
    subscribed = ", ".join([*topics, *(f"pattern {regex}" for regex in regexes)])
    print_wrapped(f"Subscribed: {subscribed or 'nothing'}.")
    if one.lags is not None:
        _print_lag(one)
    _print_end(one.findings, names, "the offsets", f"{command} --describe {option} {given}")


def print_streams_group(one: StreamsGroupWithLag, given: str, *, everything: bool) -> None:
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
        rows = [
            (
                some.subtopology_id,
                ", ".join(some.read_topics),
                ", ".join(some.repartition_sink_topics),
                "yes" if some.state_changelog_topics else "no",
            )
            for some in group.subtopologies
        ]
        print_table(("subtopology", "reads", "writes to", "state"), rows, left=(1, 2, 3))
    if not group.members:
        _print_no_members(one)
        return
    columns: dict[str, Callable[[Any, int | None], str]] = {
        "process": lambda member, _: member.process_id[:8],
        "client": lambda member, _: cut(member.client_id, 30),
        **_PLACE,
        "tags": lambda member, _: " ".join(f"{k}={value}" for k, value in member.client_tags),
        "epoch": lambda member, _: str(member.member_epoch),
        "active": lambda member, most: partitions_text(member.assigned.active, most),
        "standby": lambda member, most: partitions_text(member.assigned.standby, most),
        "warm-up": lambda member, most: partitions_text(member.assigned.warmup, most),
        "target": _target_tasks,
        "lag": lambda member, _: lag_cell(one.lag_of(member)),
    }
    members = [member for some in one.processes.values() for member in some]
    print_members(members, columns, ("epoch", "lag"), everything=everything)
    _print_even("Active tasks per member", one.balance)
    _print_lag(one, " of source topics")
    names = {member.member_id: member.client_id for member in group.members}
    command = f"kafka-rebalance plan {given} --add-members 1"
    _print_end(one.findings, names, "what a change would do", command)


def print_connect_group(group: ConnectGroup, *, everything: bool) -> None:
    connectors = sum(len(one.work.connectors) for one in group.workers)
    tasks = sum(len(one.work.tasks) for one in group.workers)
    print(
        f"{group.group_id}, Kafka Connect, {group.protocol or 'no protocol'}, {group.state}: "
        f"{counted(len(group.workers), 'worker')}, {counted(connectors, 'connector')}, "
        f"{counted(tasks, 'task')}"
    )
    if not group.workers:
        return
    columns: dict[str, Callable[[Any, int | None], str]] = {
        "worker": lambda worker, _: _address(worker.metadata.url),
        "host": _PLACE["host"],
        "leader": lambda worker, _: "leader" if worker.member_id == group.leader else "",
        "connectors": lambda worker, _: str(len(worker.work.connectors)),
        "tasks": lambda worker, _: str(len(worker.work.tasks)),
        "which": _which,
    }
    print_members(group.workers, columns, ("connectors", "tasks"), everything=everything)
    _print_even("Connectors a worker", group.connector_balance)
    _print_even("Tasks a worker", group.task_balance)
    names = {one.member_id: one.metadata.url for one in group.workers}
    worker = group.workers[-1]
    url = group.leader_url or worker.metadata.url
    # The leader's departure is a separate event: the next leader assigns the lost work at once.
    role = "leader" if worker.member_id == group.leader else "worker"
    event = shell_option("--then", f"{role} {_address(worker.metadata.url)} leaves")
    command = f"kafka-rebalance connect {shell_option('--url', url)} {event}"
    _print_end(group.findings, names, "what a change would do", command)


_PLACE: Mapping[str, Callable[[Any, int | None], str]] = {
    "instance": lambda member, _: member.instance_id or "",
    "host": lambda member, _: member.client_host.removeprefix("/"),
    "rack": lambda member, _: member.rack_id or "",
}


def _target_tasks(member: Any, most: int | None) -> str:
    if not member.is_reconciling:
        return ""
    pairs = zip(("", "standby ", "warm-up "), member.target, strict=True)
    texts = (f"{name}{partitions_text(some, most)}" for name, some in pairs if some)
    return "; ".join(texts) or "nothing"


def _which(worker: Any, most: int | None) -> str:
    tasks = partitions_text([TopicPartition(*task) for task in worker.work.tasks])
    which = "; ".join(filter(None, (", ".join(sorted(worker.work.connectors)), tasks)))
    return which if most is None else cut(which, most)


def _address(url: str) -> str:
    """Returns host:port of a worker's URL: the worker's id in Connect's REST interface."""
    return url.partition("//")[2].rstrip("/") or url


def _print_even(what: str, balance: Balance) -> None:
    even = ", as even as possible" if balance.max - balance.min <= 1 else ""
    print_wrapped(f"{what}: {balance.least_to_most}{even}.")


def _print_no_members(one: AssignedByBroker | StreamsGroupWithLag) -> None:
    lag = "the lag is not known: no offset is committed"
    if one.lag is not None:
        lag = f"the lag is {counted(one.lag, 'record')}"
    print_wrapped(f"No members, so nobody reads; {lag}.")


def _print_lag(one: AssignedByBroker | StreamsGroupWithLag, more: str = "") -> None:
    leaderless = sum(len(note.partitions) for note in one.findings if note.kind == "leaderless")
    unknown = one.without_committed_offset or 0
    print_wrapped(lag_text(one.lags or {}, unknown, more, leaderless=leaderless))


def _print_end(findings: Sequence[Note], names: Mapping[str, str], what: str, command: str) -> None:
    print_findings(findings, names)
    print()
    print(f"This shows {what}:")
    print(f"  {command}")

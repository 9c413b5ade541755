# SPDX-License-Identifier: Apache-2.0
"""Prints the present state of a Connect group: its workers and what runs on them."""

from kafka_rebalance.group.model import TopicPartition, shell_option
from kafka_rebalance.group.ownership import Balance
from kafka_rebalance.present.connect_workers import ConnectGroup, ConnectWorker
from kafka_rebalance.report.text.names import counted, cut, partitions_text
from kafka_rebalance.report.text.sentences import print_wrapped
from kafka_rebalance.report.text.tables import print_filled_table

from .description import print_findings

_MOST_ROWS = 20
_MOST_CHARACTERS = 34


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
    shown = group.workers if everything else group.workers[:_MOST_ROWS]
    most = None if everything else _MOST_CHARACTERS
    print_filled_table(
        ["worker", "host", "leader", "connectors", "tasks", "which"],
        [_row(one, group, most) for one in shown],
        right=("connectors", "tasks"),
    )
    if len(shown) < len(group.workers):
        print(f"… and {len(group.workers) - len(shown)} more (--all shows them)")
    print_wrapped(f"Connectors a worker: {_even(group.connector_balance)}.")
    print_wrapped(f"Tasks a worker: {_even(group.task_balance)}.")
    print()
    print_findings(group.findings, {one.member_id: one.metadata.url for one in group.workers})
    print()
    print("This shows what a change would do:")
    worker = group.workers[-1]
    url = group.leader_url or worker.metadata.url
    # The next leader has no memory, so it gives the work away at once.
    role = "leader" if worker.member_id == group.leader else "worker"
    event = shell_option("--then", f"{role} {_address(worker.metadata.url)} leaves")
    print(f"  kafka-rebalance connect {shell_option('--url', url)} {event}")


def _row(worker: ConnectWorker, group: ConnectGroup, most: int | None) -> tuple[str, ...]:
    held = worker.work
    tasks = partitions_text([TopicPartition(*task) for task in held.tasks])
    which = "; ".join(filter(None, (", ".join(sorted(held.connectors)), tasks)))
    return (
        _address(worker.metadata.url),
        worker.client_host.removeprefix("/"),
        "leader" if worker.member_id == group.leader else "",
        str(len(held.connectors)),
        str(len(held.tasks)),
        which if most is None else cut(which, most),
    )


def _even(balance: Balance) -> str:
    even = ", as even as possible" if balance.max - balance.min <= 1 else ""
    return f"{balance.least_to_most}{even}"


def _address(url: str) -> str:
    """Returns host:port of a worker's URL, which is its id in Connect's REST interface."""
    return url.partition("//")[2].rstrip("/") or url

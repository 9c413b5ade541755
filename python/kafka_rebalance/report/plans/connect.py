# SPDX-License-Identifier: Apache-2.0
"""Prints rounds of Connect, and the parts of a prediction that are uncertain."""

from collections.abc import Iterable
from itertools import groupby

from kafka_rebalance.assignors.connect.work import Work, task_key
from kafka_rebalance.connect.cluster import RoundAnswer, backing_off, idle
from kafka_rebalance.connect.summary import seconds
from kafka_rebalance.group.html_tables import clipped
from kafka_rebalance.java.order import name_key
from kafka_rebalance.live.connect_draws import Item, Variation, Varying

from ..text.sentences import counted, print_wrapped, runs
from ..text.tables import print_table, width


def print_round(
    number: int, cause: str, answer: RoundAnswer, before: RoundAnswer | None, start_ms: int
) -> None:
    """Prints a round: the work that starts, stops, stays or runs nowhere, and its time since
    `start_ms`.
    """
    now_ms = answer.round.time_ms
    changes = [cause] if cause else _changes(answer, before)
    print(_cut("  ".join([f"round {number}", seconds(now_ms - start_ms), *changes])))
    rows = []
    for worker in answer.running:
        started = answer.result.assigned[worker]
        after = answer.after[worker]
        works = (after, started, answer.result.revoked.get(worker, Work()), after - started)
        rows.append([worker, *(f"{len(one.connectors)}+{len(one.tasks)}" for one in works)])
    print_table(["connectors+tasks of", "runs", "starts", "stops", "keeps"], rows)
    print_wrapped(f"balance: {_balance(answer)}", "  ", "  ")
    if why := backing_off(answer):
        print_wrapped(why, "  ", "  ")
    for one in idle(answer):
        until = ""
        if one.until_ms is not None and one.until_ms > now_ms:
            left_ms = one.until_ms - now_ms
            until = f", until {seconds(one.until_ms - start_ms)} ({seconds(left_ms)} from now)"
        connectors, tasks = len(one.work.connectors), len(one.work.tasks)
        counts = f"{counted(connectors, 'connector')}, {counted(tasks, 'task')}"
        print(_cut(f"  nowhere: {counts}: {_names(one.work)}"))
        print_wrapped(f"{one.why}{until}", " " * 11)


def print_variation(found: Variation) -> None:
    """Prints the parts of a prediction that depend on facts which Connect's REST does not show."""
    print_wrapped(
        "REST does not show the workers' ids, nor the order in which a worker took up its work."
    )
    draws = counted(found.draws, "sample")
    if not found.varying and found.rounds[0] == found.rounds[1]:
        print_wrapped(f"The rounds above do not depend on them: equal in {draws}.")
        return
    print_wrapped(f"In {draws} of them the rounds above differ:")
    least, most = found.rounds
    if least != most:
        text = f"there are {least} to {most} rounds; only the first {least} are compared"
        print_wrapped(text, "  ", "  ")
    for number, of_round in groupby(found.varying, key=lambda one: one.round):
        print(f"  round {number}")
        for one in of_round:
            print(_cut(f"    {_varying_text(one)}"))


def _cut(line: str) -> str:
    """Returns a line cut to the tables' width: it can contain thousands of names."""
    return clipped(line, width())


def _varying_text(one: Varying) -> str:
    count = str(one.least) if one.least == one.most else f"{one.least} to {one.most}"
    text = f"{clipped(one.worker, width() // 3)} {one.does} {count}: "
    if one.sure:
        text += f"{items_text(one.sure)}, and "
    left = [each - len(one.sure) for each in (one.least, one.most)]
    some = str(left[0]) if left[0] == left[1] else f"{left[0]} to {left[1]}"
    return text + f"{some} of {items_text(one.maybe)}"


def items_text(items: Iterable[Item]) -> str:
    """Returns text such as `c, d[0-3, 7]`: connectors, then the tasks of each connector."""
    items = list(items)
    connectors = sorted((one for one in items if isinstance(one, str)), key=name_key)
    tasks = sorted((one for one in items if not isinstance(one, str)), key=task_key)
    return _names(Work(tuple(connectors), tuple(tasks)))


def _changes(answer: RoundAnswer, before: RoundAnswer | None) -> list[str]:
    if before is None:
        return []
    old, new = list(before.running), list(answer.running)
    changes = [f"{worker} gone" for worker in old if worker not in new]
    changes += [f"{worker} new" for worker in new if worker not in old]
    if before.round.config != answer.round.config:
        changes.append("configuration changed")
    if answer.round.new_leader:
        changes.append("new leader")
    return changes


def _balance(answer: RoundAnswer) -> str:
    works = answer.after.values()
    connectors = [len(work.connectors) for work in works]
    tasks = [len(work.tasks) for work in works]
    return (
        f"connectors {min(connectors)} to {max(connectors)}, "
        f"tasks {min(tasks)} to {max(tasks)} a worker"
    )


def _names(work: Work) -> str:
    parts = [*work.connectors]
    for connector, tasks in groupby(work.tasks, key=lambda task: task.connector):
        parts.append(f"{connector}[{runs([task.task for task in tasks])}]")
    return ", ".join(parts)

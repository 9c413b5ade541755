# SPDX-License-Identifier: Apache-2.0
"""Formats a Connect round for the terminal, and the uncertainty of a prediction."""

from collections.abc import Iterable
from itertools import groupby

from kafka_rebalance.assignors.connect import Work
from kafka_rebalance.assignors.connect.work import task_key
from kafka_rebalance.group.html_tables import clipped
from kafka_rebalance.java.order import name_key
from kafka_rebalance.live.connect_draws import Item, Variation, Varying
from kafka_rebalance.plans.connect import RoundAnswer
from kafka_rebalance.plans.connect.idle import backing_off, idle
from kafka_rebalance.report.text.names import counted, runs
from kafka_rebalance.report.text.tables import width


def round_text(
    number: int, cause: str, answer: RoundAnswer, before: RoundAnswer | None, start_ms: int
) -> str:
    """Returns a round as text: which work starts, stops, stays or runs nowhere.

    Times count from `start_ms`.
    """
    now_ms = answer.round.time_ms
    changes = [cause] if cause else _changes(answer, before)
    heading = "  ".join([f"round {number}", _seconds(now_ms - start_ms), *changes])
    lines = [clipped(heading, width())]
    title = "connectors+tasks of"
    wide = max(len(title), *(len(worker) for worker in answer.running))
    wide = min(wide, width() - 42)
    lines.append(f"  {title:{wide}} {'runs':>9} {'starts':>9} {'stops':>9} {'keeps':>9}")
    for worker in answer.running:
        started = answer.result.assigned[worker]
        stopped = answer.result.revoked.get(worker, Work())
        after = answer.after[worker]
        kept = after - started
        works = (after, started, stopped, kept)
        counts = (f"{len(work.connectors)}+{len(work.tasks)}" for work in works)
        cells = " ".join(f"{count:>9}" for count in counts)
        lines.append(f"  {clipped(worker, wide):{wide}} {cells}")
    lines.append(f"  balance: {_balance(answer)}")
    if why := backing_off(answer):
        lines.append(f"  {why}")
    for one in idle(answer):
        until = ""
        if one.until_ms is not None and one.until_ms > now_ms:
            left_ms = one.until_ms - now_ms
            until = f", until {_seconds(one.until_ms - start_ms)} ({_seconds(left_ms)} from now)"
        lines.append(f"  nowhere: {_summary(one.work)}")
        lines.append(f"           {one.why}{until}")
    return "\n".join(lines)


def variation_text(found: Variation) -> str:
    """Returns as text what in a prediction depends on facts that REST does not show."""
    lacking = (
        "REST does not show the workers' ids, nor the order in which a worker took up its work."
    )
    draws = counted(found.draws, "draw")
    if not found.varying and found.rounds[0] == found.rounds[1]:
        return f"{lacking}\nThe rounds above do not depend on them: equal in {draws}."
    lines = [lacking, f"In {draws} of them the rounds above differ:"]
    least, most = found.rounds
    if least != most:
        lines.append(f"  there are {least} to {most} rounds; only the first {least} are compared")
    for number, of_round in groupby(found.varying, key=lambda one: one.round):
        lines.append(f"  round {number}")
        lines += [f"    {_varying_text(one)}" for one in of_round]
    return "\n".join(lines)


def _varying_text(one: Varying) -> str:
    count = str(one.least) if one.least == one.most else f"{one.least} to {one.most}"
    text = f"{clipped(one.worker, width() // 3)} {one.does} {count}: "
    if one.sure:
        text += f"{items_text(one.sure)}, and "
    left = [each - len(one.sure) for each in (one.least, one.most)]
    some = str(left[0]) if left[0] == left[1] else f"{left[0]} to {left[1]}"
    text += f"{some} of {items_text(one.maybe)}"
    return clipped(text, width() - 4)


def items_text(items: Iterable[Item]) -> str:
    """Returns text such as `c, d[0-3, 7]`: connectors, then tasks by connector."""
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


def _summary(work: Work) -> str:
    text = _names(work)
    counts = f"{counted(len(work.connectors), 'connector')}, {counted(len(work.tasks), 'task')}"
    return f"{counts}: {clipped(text, width() - len(counts) - 14)}"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"

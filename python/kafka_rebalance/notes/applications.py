# SPDX-License-Identifier: Apache-2.0
"""The findings on a classic Kafka Streams application; a finding's `partitions` are tasks."""

from collections.abc import Iterable, Iterator

from kafka_rebalance.applications.lines import uuid_text
from kafka_rebalance.applications.measured import Rates
from kafka_rebalance.applications.replayed import Replay
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import counted
from kafka_rebalance.wire.streams_protocol import TaskId

from .findings import Note


def application_findings(one: Replay, rates: Rates | None = None) -> Iterator[Note]:
    """Yields findings on standby tasks, copies of tasks, threads and end points; with measured
    `rates`, also on warm-up tasks that never catch up.
    """
    yield from _never_warm(one, rates)
    yield from _without_standby(one)
    yield from _waiting(one)
    yield from _uneven(one)
    yield from _end_points(one)


def _partitions(tasks: Iterable[TaskId]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(str(task.subtopology_id), task.partition) for task in tasks)


def _never_warm(one: Replay, rates: Rates | None) -> Iterator[Note]:
    if rates is None or rates.is_bound:  # copies may be restored faster than a lower bound
        return
    if (waiting := one.waiting()) and rates.write_rate >= rates.restore_rate:
        text = f"a copy restores {counted(rates.restore_rate, 'record')} a second, and up to "
        text += f"{rates.write_rate:,} are written for a task: it probes for ever"
        yield Note("never warm", text, partitions=_partitions(task for task, *_ in waiting))


def _without_standby(one: Replay) -> Iterator[Note]:
    standby = {task for _, task in one.standby() - one.warming()}
    asked = one.application.settings.num_standby_replicas
    bare = [task for task in one.topology.stateful if task not in standby]
    if bare and (asked or standby):
        text = "if the process of these tasks ends, their state has to be restored"
        if len(one.processes()) <= asked:
            text += f"; num.standby.replicas {asked} needs {asked + 1} processes"
        yield Note("no standby", text, partitions=_partitions(bare))


def _waiting(one: Replay) -> Iterator[Note]:
    waiting = one.waiting()
    if not waiting:
        return
    sent = one.sums()
    most = counted(max(late for *_, late in waiting), "record")
    limit = one.application.settings.acceptable_recovery_lag
    text = f"up to {most} missing where these tasks belong (acceptable.recovery.lag {limit:,})"
    if had := [str(task) for task, _, ideal, _ in waiting if (ideal, task) in sent]:
        text += f"; copies that were there before the last rebalance: {', '.join(had)}"
    ask = f"explain {waiting[0][0]}"
    yield Note("behind", text, partitions=_partitions(task for task, *_ in waiting), ask=ask)


def _uneven(one: Replay) -> Iterator[Note]:
    """Yields a finding if threads differ by 2 or more in active (or else in stateful) tasks."""
    if one.rebalances_at_once:
        return
    tasks, stateful = one.tasks, {*one.topology.stateful}
    active = {member_id: [*of.active] for member_id, of in tasks.items()}
    owned = {member_id: [*stateful.intersection(of)] for member_id, of in active.items()}
    for lists, kind in ((active, "active"), (owned, "stateful")):
        counts = {member_id: len(of) for member_id, of in lists.items()}
        least, most = min(counts.values()), max(counts.values())
        if most - least <= 1:
            continue
        cause = "stateful and stateless tasks are dealt one kind after the other"
        if any(of.standby for of in tasks.values()):
            cause = "standby tasks and warm-ups count as load, too"
        if one.waiting():
            cause = "tasks wait until the processes where they belong are caught up"
        text = f"{least} to {most} {kind} tasks per thread; {cause}"
        fullest = tuple(member_id for member_id, count in counts.items() if count == most)
        yield Note("uneven", text, fullest)
        return


def _end_points(one: Replay) -> Iterator[Note]:
    by_process = {
        each.info.process_id: each.info.user_end_point for each in one.application.threads
    }
    known = [where for where in by_process.values() if where]
    without = [uuid_text(process) for process, where in by_process.items() if not where]
    if known and without:
        text = "no interactive query finds the state of processes without application.server: "
        yield Note("end points", text + ", ".join(without))
    if len({*known}) < len(known):
        yield Note("end points", "several processes have the same application.server")

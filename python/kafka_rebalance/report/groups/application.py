# SPDX-License-Identifier: Apache-2.0
"""Prints the present state and the plans of classic Kafka Streams applications.

Tasks are printed like partitions, by subtopology: `0[1, 3]` are the tasks 0_1 and 0_3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from kafka_rebalance.applications.comparison import ComparedSettings
from kafka_rebalance.applications.explanation import TaskExplanation
from kafka_rebalance.applications.lines import utc_text, uuid_text
from kafka_rebalance.applications.plan import ApplicationPlan, Course
from kafka_rebalance.applications.prediction import FOLLOW_UP_MS, PROBING, Call, Copy
from kafka_rebalance.applications.replayed import Replay
from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.plans.changes.members import RemoveMembers
from kafka_rebalance.wire.streams_protocol import TaskId

from ..text.sentences import counted, partitions_text, print_wrapped, shortened
from ..text.tables import print_filled_table

_MOST_SHOWN = 20
_CERTAIN = 0.999


def print_application(group: GroupSpec, one: Replay) -> None:
    """Prints the processes of an application, and which assumptions about it were checked."""
    application, topology, names = one.application, one.topology, one.names
    unread = one.unread
    print_wrapped(
        f"{group.group_id}: {len(names)} process{'es' * (len(names) > 1)}, "
        f"{counted(len(application.threads), 'thread')}, {counted(len(topology.tasks), 'task')} "
        f"({len(topology.stateful)} stateful), "
        f"{f'{len(unread)} read by nobody' if unread else 'each with a thread'}. "
        f"{_state(one, names)}"
    )
    if unread:
        print_wrapped(f"Read by nobody until the next rebalance: {tasks_text(unread)}.")
    hosts = {member.member_id: member.client_host or "" for member in group.members}
    tasks, warming = one.tasks, one.warming()
    rows = []
    for process_id, members in one.processes().items():
        standby = [task for each in members for task in tasks[each].standby]
        warm = [task for task in standby if (process_id, task) in warming]
        rows.append(
            (
                names[uuid_text(process_id)],
                hosts.get(members[0], "").removeprefix("/"),
                str(len(members)),
                tasks_text(task for each in members for task in tasks[each].active),
                tasks_text(task for task in standby if task not in warm),
                tasks_text(warm),
                ", ".join(f"{key}={value}" for key, value in one.tags_of(process_id).items()),
            )
        )
    columns = ("process", "host", "threads", "active tasks", "standby tasks", "warming up", "tags")
    print_filled_table(columns, rows, right=("threads",))
    waiting: dict[tuple[Uuid | None, Uuid], list[tuple[int, TaskId]]] = {}
    for task, now, ideal, late in one.waiting():
        waiting.setdefault((now, ideal), []).append((late, task))
    for (now, ideal), pairs in waiting.items():
        where = "nobody" if now is None else names[uuid_text(now)]
        text = f"Waiting: {tasks_text(task for _, task in pairs)}, from {where} to "
        text += f"{names[uuid_text(ideal)]}, which was up to {counted(max(pairs)[0], 'record')} "
        limit = f"acceptable.recovery.lag: {application.settings.acceptable_recovery_lag:,}"
        print_wrapped(f"{text}behind in the last rebalance ({limit}).", more="  ")
    for info in application.subtopologies:
        logs = (*info.changelog_topics, *info.source_changelog_topics)
        kind = f"its changelog is {', '.join(logs)}" if logs else "stateless"
        text = f"Subtopology {info.subtopology_id} reads {', '.join(info.source_topics)}; {kind}."
        print_wrapped(text, more="  ")
    print_assumed(one)
    print()


def print_assumed(one: Replay) -> None:
    """Prints whether the replay produces the present assignment, and which settings are assumed."""
    checked = "Checked: the last rebalance, played again, has the present assignment."
    print_wrapped(checked if one.problem is None else f"Not checked: {one.problem}.")
    assumed = "; ".join(f"{name} {value}" for name, value in one.assumed().items())
    print_wrapped(f"Assumed: {assumed}.")


def _state(one: Replay, names: Mapping[str, str]) -> str:
    if one.rebalances_at_once:
        return "It is about to rebalance again: a task that moves is withheld for one rebalance."
    if one.deadline is None:
        return "Its state is final: no rebalance is due."
    member_id, at_ms = one.deadline
    what = "a task" if one.waiting() else "a standby task"
    interval = one.application.settings.probing_rebalance_interval_ms
    return (
        f"Not final: {what} is not where it belongs, because its state there is not caught up. "
        f"Until it is, the group rebalances every {time_text(interval)}: next at "
        f"{utc_text(at_ms)}, by process {names[uuid_text(one.process_of(member_id))]}, which led "
        "the last one."
    )


def print_application_plan(plan: ApplicationPlan, *, everything: bool) -> None:
    """Prints a plan: a summary, a row for each rank of a new process, then each rebalance."""
    names = plan.replay.names
    print_wrapped(summary(plan))
    course = plan.likeliest
    if len(plan.courses) > 1:
        rows = [
            (f"{one.probability:.0%}", *_figures(one), tasks_text(one.of_new))
            for one in plan.courses
        ]
        columns = ("chance of the rank", "moves", "probings", "stable after", "its tasks")
        print_filled_table(columns, rows, right=columns[:3])
        played = sum(one.probability for one in plan.courses)
        which = "" if played > _CERTAIN else f" Other ranks ({1 - played:.0%}) are not played."
        print_wrapped(f"In the order of ids.{which} Below, the likeliest one:")
    if course.quick is not None:
        print_wrapped(_if_quick(course, course.quick))
    found = course.phases
    runs = [[*of] for _, of in groupby(found, _alike)]
    if everything:
        runs = [[phase] for phase in found]
    for phase, *more in runs if everything else runs[:_MOST_SHOWN]:
        _print_phase(phase, names)
        if more and more[-1] is found[-1] and not course.settled:
            print_wrapped(f"and so on, every {time_text(phase[0].waited_ms)}, without an end")
        elif more:
            print_wrapped(f"and so on: {counted(len(more), 'more rebalance')} like it")
    if left := sum(map(len, runs[_MOST_SHOWN:])) * (not everything):
        print_wrapped(f"… and {left} more rebalances (--all shows them)")
    print()
    print_assumed(plan.replay)


def print_settings(compared: Sequence[ComparedSettings]) -> None:
    """Prints the figures of changes under several settings; the present ones are the first row."""
    now, *others = compared
    what = ", ".join(map(str, now.plan.changes))
    print_wrapped(f"{now.plan.group.group_id}{what and f', {what}'}: {_better(now, others)}.")
    rows = []
    for one in compared:
        course, (least, most) = one.plan.likeliest, one.per_thread
        records = sum(course.restored.values())
        rows.append(
            (
                ", ".join(f"{k}={v}" for k, v in one.new_settings.items()) or "as now",
                *_figures(course),
                f"{counted(len(course.restored), 'task')}, {records:,}" if records else "-",
                str(one.copies),
                f"{least}" if least == most else f"{least}-{most}",
            )
        )
    figures = ("moves", "probings", "stable after", "restored before they run")
    columns = ("settings", *figures, "standby tasks", "active per thread")
    print_filled_table(columns, rows, right=("moves", "probings", "standby tasks"))
    row = "the way to the setting, until no rebalance is due."
    if now.plan.changes:
        row = "the settings are in place, no rebalance is due, and then the change comes."
    print_wrapped(f"Each row: {row}")
    print_assumed(now.plan.replay)


def _better(now: ComparedSettings, others: Sequence[ComparedSettings]) -> str:
    """Returns a text: for each of the other settings, the figures that differ from `now`."""
    told = ["as now, it is never stable"] if not now.plan.likeliest.settled else []
    for one in others:
        name = ", ".join(f"{k}={v}" for k, v in one.new_settings.items())
        if found := [*_differences(now, one)]:
            told.append(f"{name} {', '.join(found)}")
    return "; ".join(told) or "no other setting changes any of these figures"


def _differences(now: ComparedSettings, one: ComparedSettings) -> Iterator[str]:
    records, left = (sum(each.plan.likeliest.restored.values()) for each in (now, one))
    before, after = now.plan.likeliest, one.plan.likeliest
    when = f"after {time_text(after.duration_ms)}" if after.duration_ms else "at once"
    if before.settled != after.settled:
        yield f"is stable {when}" if after.settled else "is never stable"
    elif after.settled and before.duration_ms != after.duration_ms:
        yield f"is stable {when}, not after {time_text(before.duration_ms)}"
    if left < records:
        yield f"leaves {left:,} of {records:,} records to restore before tasks run"
    elif left > records:
        yield f"restores {left:,} records before tasks run"
    if now.copies != one.copies and not now.plan.changes:
        yield f"has {one.copies} standby tasks in place of {now.copies}"


def print_task(plan: ApplicationPlan, one: TaskExplanation) -> None:
    """Prints why a task is where it is, and its rebalances in the plan's likeliest course."""
    names, (first, *more) = plan.replay.names, one.reasons
    print_wrapped(shortened(f"{plan.group.group_id}: {first}", names))
    for reason in more:
        print_wrapped(shortened(reason, names), "  ", "  ")
    for phase in plan.likeliest.phases if plan.changes else ():
        calls = [call.only(one.task) for call in phase]
        if any(call.moved or call.is_open for call in calls):
            _print_phase(calls, names)
    print()
    print_assumed(plan.replay)


def _if_quick(course: Course, quick: Course) -> str:
    within = time_text(FOLLOW_UP_MS)
    text = f"Not known before: which copies are restored within the {within} before a follow-up. "
    text += "Below, none of them is; if all are, the plan has "
    text += f"{counted(quick.probings, 'probing rebalance')} in place of {course.probings}"
    found = [tasks_text(course.depending())] if course.depending() else []
    found += ["standby tasks"] * any(of.standby for of in course.tasks.values())
    if found:
        text += f", and {' and '.join(found)} can be at another process in between"
    return f"{text}."


def _figures(one: Course) -> tuple[str, str, str]:
    settled = time_text(one.duration_ms) if one.settled else "never"
    return str(len(one.moved)), str(one.probings), settled


def summary(plan: ApplicationPlan) -> str:
    courses, total = plan.courses, len(plan.replay.topology.tasks)
    what = ", ".join(map(str, plan.changes)) or "the next rebalance"
    if plan.new_settings:
        new = ", ".join(f"{name}={value}" for name, value in plan.new_settings.items())
        what = f"{what} and {new}" if plan.changes else new
    head = f"{plan.group.group_id}, {what}: "
    if not any(one.calls for one in courses):
        return f"{head}no rebalance. Each static process is back before its session times out."
    moves = _range([len(one.moved) for one in courses], f"of {total} tasks")
    text = f"{head}{moves} move to another process"
    if len(plan.courses) > 1:
        text += f", and the new one has {_range([len(one.of_new) for one in courses], 'of them')}"
    probings = [one.probings for one in courses]
    times = [one.duration_ms for one in courses]
    settles = all(one.settled for one in courses)
    if max(probings) and settles:
        spread = time_text(min(times))
        spread += "" if min(times) == max(times) else f" to {time_text(max(times))}"
        last = "the last one" if any(one.moved for one in courses) else "and it ends"
        text += f", {last} {spread} later, after {_range(probings, 'probing rebalances')}"
    firsts = [one.calls[0] for one in courses if one.calls]
    if silent := {one.waited_ms for one in firsts if one.cause != PROBING} - {0}:
        gone = {task for one in firsts for task in one.ended}
        removes = all(isinstance(one, RemoveMembers) for one in plan.changes)
        left = [one for one in plan.group.members if one.member_id not in firsts[0].tasks]
        who = "its session"
        if removes and len(left) == 1:
            name = shortened(left[0].client_id or left[0].member_id, plan.replay.names)
            who = f"the session of {name}"
        its = "the tasks of the process that ends"
        if gone and removes:
            its = f"its tasks {tasks_text(gone)}"
        text += f"; until {who} times out, after {time_text(max(silent))}, nobody reads {its}"
    if restored := {copy for one in courses for call in one.calls for copy in call.restored}:
        most = counted(max(copy.records for copy in restored), "record")
        tasks = tasks_text({copy.task for copy in restored})
        text += f"; before they run, {tasks} are restored, from up to {most} each"
    if not settles:
        text += f"; after {_range(probings, 'probing rebalances')} in {time_text(max(times))}, it "
        text += "is not stable: copies are never caught up"
    if len(plan.courses) > 1:
        common = plan.common()
        text += ". The new process's id is random, and its rank among the others decides: "
        text += f"whatever it is, {tasks_text(common)} move" if common else "no move is certain"
    return f"{text}."


def _alike(phase: list[Call]) -> list[Call]:
    """Returns a phase without its numbers of records, so that phases that differ only in these
    become equal.
    """

    def bare(copies: Iterable[Copy]) -> Any:
        return tuple(one._replace(records=0) for one in copies)

    kinds = ("restored", "warming", "standby")
    return [one._replace(**{kind: bare(getattr(one, kind)) for kind in kinds}) for one in phase]


def _print_phase(phase: list[Call], names: Mapping[str, str]) -> None:
    first, last = phase[0], phase[-1]
    after = f"{time_text(first.waited_ms)} later, " if first.waited_ms else ""
    cause = shortened(first.cause, names)
    print_wrapped(f"{after}{cause}: {counted(len(phase), 'rebalance')}", "", "  ")
    ends: dict[TaskId, tuple[str | None, str | None]] = {}
    for call in phase:
        for task, before, now in call.moved:
            ends[task] = ends.get(task, (before,))[0], now
    by_pair: dict[tuple[str | None, str | None], list[TaskId]] = {}
    for task, pair in ends.items():
        by_pair.setdefault(pair, []).append(task)
    for (before, now), tasks in by_pair.items():
        old, new = (names.get(one or "", one or "nobody") for one in (before, now))
        text = f"{tasks_text(tasks)}: {old} -> {new}"
        if before == now:
            text = f"another thread of {old} gets {tasks_text(tasks)}"
        print_wrapped(text, "  ", "  ")
    if unread := {task for call in phase for task in call.unread}:
        print_wrapped(f"read by nobody in between: {tasks_text(unread)}", "  ", "  ")
    for copies, what in (
        (last.restored, "restored before they run"),
        (last.warming, "warming up"),
        (last.standby, "restored as standby"),
    ):
        for process in dict.fromkeys(copy.process for copy in copies):
            there = [copy for copy in copies if copy.process == process]
            tasks_there = tasks_text(copy.task for copy in there)
            most = counted(max(copy.records for copy in there), "record")
            where = names.get(process, process)
            print_wrapped(f"{what} at {where}: {tasks_there}, up to {most} each", "  ", "  ")
    if not ends:
        print_wrapped("no active task moves", "  ", "  ")


def _range(numbers: Iterable[int], noun: str) -> str:
    least, most = min(numbers), max(numbers)
    text = f"{least}" if least == most else f"{least} to {most}"
    return f"{text} {noun.removesuffix('s') if text == '1' and 'of' not in noun else noun}"


def tasks_text(tasks: Iterable[TaskId]) -> str:
    return partitions_text([TopicPartition(str(one[0]), one[1]) for one in tasks])


def time_text(ms: int) -> str:
    """Returns a duration as text: `45 s`, `20 min` or `11 min 30 s`."""
    minutes, left = divmod(round(ms, -3) if ms >= 60_000 or ms % 100 else ms, 60_000)
    seconds = f"{left / 1000:g} s"
    return " ".join([f"{minutes} min"] * (minutes > 0) + [seconds] * (left >= 500 or not minutes))

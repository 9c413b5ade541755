# SPDX-License-Identifier: Apache-2.0
"""Reads and plans classic Kafka Streams applications in bulk: a contract line in, a row out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_rebalance.applications.lines import FIELD, checked_settings
from kafka_rebalance.applications.plan import plan_application
from kafka_rebalance.applications.replayed import Replay, checked_given, read_replay
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import AssignorThrows, GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.field_paths import object_
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.rebalance_plan import parse_changes

from .lines import group_id_of, is_application

if TYPE_CHECKING:
    import pyarrow as pa


TEXTS = frozenset(("group_id", "error"))
"""The fields of `ApplicationRow` that are strings; the others are numbers."""


class ApplicationRow(NamedTuple):
    """An application and its plan; a row with an `error` has no plan, perhaps only the id.

    `records_behind`      the largest number of records that a task still lacks at the process where
                          it belongs
    `next_rebalance_ms`   0 means at once, None that no rebalance follows
    `moved_tasks`         tasks that move to another process; all figures from here on are those of
                          the likeliest `Course`
    `restored_records`    the records of all active tasks that cannot run until they are restored
    """

    group_id: str | None
    error: str | None = None
    processes: int | None = None
    threads: int | None = None
    tasks: int | None = None
    stateful_tasks: int | None = None
    unread_tasks: int | None = None
    waiting_tasks: int | None = None
    records_behind: int | None = None
    next_rebalance_ms: int | None = None
    moved_tasks: int | None = None
    probing_rebalances: int | None = None
    settled_after_ms: int | None = None
    restored_records: int | None = None


def plan_applications(
    lines: Iterable[bytes | str],
    changes: Sequence[Change | str] = (),
    *,
    given: Mapping[str, Any] | None = None,
    new_settings: Mapping[str, Any] | None = None,
    restore_rate: int | None = None,
    engine: Engine = "rust",
) -> Iterator[ApplicationRow]:
    """Yields a row for each line of a classic Kafka Streams group; other groups have no row.

    `given` are settings of all applications that the replay cannot find, by Kafka's names. A bad
    line, or one whose replay differs, has an `error`; all other lines are planned.

    Errors   GroupError for a bad change or setting.
    """
    parsed = check_plan(changes, given, new_settings)
    for line in lines:
        fields: Any = None
        row = ApplicationRow(None)
        try:
            fields = object_(contract.parse(line), "line")
            if not is_application(fields):
                continue
            group = GroupSpec.from_dict(fields)
            replay = read_replay(group.group_id, fields[FIELD], given or {}, engine=engine)
            row = _present(group.group_id, replay)
            if replay.problem is None:
                options = {"restore_rate": restore_rate, "engine": engine}
                plan = plan_application(group, replay, parsed, new_settings, **options)  # type: ignore[arg-type]
                course = plan.likeliest
                row = row._replace(
                    moved_tasks=len(course.moved),
                    probing_rebalances=course.probings,
                    settled_after_ms=course.duration_ms,
                    restored_records=sum(course.restored.values()),
                )
        except (GroupError, AssignorThrows) as error:
            row = row._replace(group_id=group_id_of(fields), error=str(error))
        yield row


def check_plan(
    changes: Sequence[Change | str],
    given: Mapping[str, Any] | None,
    new_settings: Mapping[str, Any] | None,
) -> tuple[Change, ...]:
    """Returns the parsed changes. Errors: GroupError for a bad change or a bad setting."""
    checked_given(given or {})
    checked_settings(new_settings or {}, "new_settings")
    return parse_changes(changes)


def applications_batch(
    lines: Iterable[bytes | str], *arguments: Any, **options: Any
) -> "pa.RecordBatch":
    """Returns the rows of `plan_applications` as a RecordBatch."""
    import pyarrow as pa

    rows = [one._asdict() for one in plan_applications(lines, *arguments, **options)]
    types = {name: pa.string() if name in TEXTS else pa.int64() for name in ApplicationRow._fields}
    return pa.RecordBatch.from_pylist(rows, pa.schema(types))


def _present(group_id: str, replay: Replay) -> ApplicationRow:
    waiting = replay.waiting()
    due = replay.deadline[1] if replay.deadline else None
    return ApplicationRow(
        group_id,
        replay.problem,
        len(replay.processes()),
        len(replay.application.threads),
        len(replay.topology.tasks),
        len(replay.topology.stateful),
        len(replay.unread),
        len(waiting),
        max((late for *_, late in waiting), default=0),
        0 if replay.rebalances_at_once else due,
    )

# SPDX-License-Identifier: Apache-2.0
"""Assigns, plans or compares a batch of groups in the core, or in Python if the core refuses.

1. The core answers the batch, all rows at once.
2. The core refuses plans for broker-assigned groups, and for the switch to another protocol: the
   error of such a row contains ONE_AT_A_TIME or, if a Python library's assignor runs, ONLY_PYTHON.
   The core also refuses to assign groups of classic Kafka Streams.
3. Python plans, compares or assigns each of these groups, as the commands for one group do.

Cost     a row of step 3 takes milliseconds, any other microseconds: see docs/scale.md.
Errors   those of the core's function. A group that Python cannot plan has an `error`, too.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import kafka_rebalance._core as _core
from kafka_rebalance.assignors.registry import (
    IN_PLACE_OF_STREAM,
    ONE_AT_A_TIME,
    ONLY_PYTHON,
    STREAM,
    assignor_names,
    library_of,
    unknown,
)
from kafka_rebalance.bulk.lines import group_id_of
from kafka_rebalance.errors import GroupError, SwitchRefused, error_kind
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.affected import as_far_as_affected
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.protocol import SwitchProtocol
from kafka_rebalance.plans.clients import LACK_CONSUMER_PROTOCOL, lacks_consumer_protocol
from kafka_rebalance.plans.group_kinds import CONSUMER
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, parse_changes, plan
from kafka_rebalance.switching.comparison import Comparison, compare

from .lines import is_application

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]


def answers(
    verb: str, batch: Any, arguments: Sequence[Any], form: str = "columns"
) -> "pa.RecordBatch":
    """Returns the answers of `verb` ("assign", "owners", "plan" or "compare") to every row.

    `arguments` are the arguments that follow the batch in a call of the core's function, except the
    last one, `form`: "columns" or "lines".
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # 1.
    found = pa.record_batch(getattr(_core, f"{verb}_batch")(batch, *arguments, form))
    if verb not in _ANSWERS:
        return found
    # 2.
    words = [IN_PLACE_OF_STREAM if verb == "assign" else ONE_AT_A_TIME]
    changes = arguments[1] if verb == "plan" else ()
    if changes is None or any("switch-protocol" in text for text in changes):  # None: each row's
        words.append(ONLY_PYTHON.decode())  # Python's error names the switch
    refused = pc.match_substring_regex(found["error"], "|".join(words))
    at = pc.indices_nonzero(refused.fill_null(False))
    if len(at) == 0:
        return found
    # 3.
    given = pa.record_batch(batch)  # `take` cannot take the string views of polars
    rows = [given.slice(place, 1).to_pylist()[0] for place in at.to_pylist()]
    answered = [_answer(verb, row, arguments) for row in rows]
    more = pa.RecordBatch.from_pylist(answered, found.schema)
    places = list(range(len(found)))
    for i, place in enumerate(at.to_pylist()):
        places[place] = len(found) + i
    (whole,) = pa.Table.from_batches([found, more]).take(places).combine_chunks().to_batches()
    return whole


def group_of(row: Row, max_partitions: int = MAX_PARTITIONS) -> GroupSpec:
    """Returns the group of a row, which has a column `line` or the contract's columns. Errors:
    GroupError.

    In columns, members may list topics by their indexes; an index out of range stays a number.
    """
    return GroupSpec.from_dict(_fields(row), max_partitions=max_partitions)


def _fields(row: Row) -> Row:
    return contract.parse(row["line"] or b"") if "line" in row else with_names(row)


def with_names(row: Row) -> Row:
    """Returns a row of the contract's columns, in which members list topics by name, not by index.

    Any element of a list in the row may be null.
    """
    names = [topic and topic["name"] for topic in row["topics"] or ()]

    def name(topic: Any) -> Any:
        return names[topic] if isinstance(topic, int) and 0 <= topic < len(names) else topic

    def member(one: Row) -> Row:
        named = {**one, "topics": [name(topic) for topic in one["topics"] or ()]}
        if runs := one.get("owned_partitions"):
            named["owned_partitions"] = [
                run and {**run, "topic": name(run["topic"])} for run in runs
            ]
        return named

    return {**row, "members": [one and member(one) for one in row["members"] or ()]}


def bad_row(row: Row, error: GroupError | str) -> Row:
    """Returns an error row: the group's id, or None if the row has none, and the error."""
    fields: Any = row
    if "line" in row:
        try:
            fields = contract.parse(row["line"] or b"")
        except GroupError:
            fields = None
    return {"group_id": group_id_of(fields), "error": str(error)}


def _answer(verb: str, row: Row, arguments: Sequence[Any]) -> Row:
    """Returns the answer to a row, without the columns that are null."""
    try:
        group = group_of(row, arguments[-2])
        return {"group_id": group.group_id, **_ANSWERS[verb](group, row, *arguments[:-2])}
    except GroupError as error:
        return {**bad_row(row, error), "error_kind": error_kind(error)}


def _assigned(group: GroupSpec, row: Row, _: str | None) -> Row:
    fields = _fields(row)
    if not is_application(fields):
        raise GroupError("assignor", unknown(STREAM))
    from .assigned_applications import assigned_row

    return assigned_row(group.group_id, fields)


def _planned(group: GroupSpec, row: Row, assignor: str | None, texts: list[str] | None) -> Row:
    def one(changes: Sequence[Change]) -> RebalancePlan:
        if assignor is not None:
            return plan(group, assignor, changes)
        _check_libraries(group, changes)
        led = plans_by_leader(group, changes)
        return next(one.plan for one in led if one.plan is not None)

    played: RebalancePlan | None
    left_out: list[str]
    if texts is None:
        played, left_out = one(parse_changes(row["changes"] or [])), []
    else:
        played, left_out = as_far_as_affected(one, parse_changes(texts), group)
    figures = {} if played is None else played.figures().to_dict()
    name = assignor or group.assignor if played is None else played.assignor
    return {"assignor": name, **figures, "not_affected": "; ".join(left_out) or None}


def _check_libraries(group: GroupSpec, changes: Sequence[Change]) -> None:
    """Raises GroupError for a switch to the consumer protocol if some members' library lacks it,
    and for any other plan of a group that a Python library's own class assigns.

    The plan of a single group would play the restarts of all members that can switch, with a note
    on those that cannot.
    """
    name = group.assignor or ""
    by_python = library_of(name) in LACK_CONSUMER_PROTOCOL
    for i, change in enumerate(changes):
        if not isinstance(change, SwitchProtocol):
            continue
        if by_python:
            try:
                change.events(group)
            except GroupError as error:
                raise type(error)(f"changes[{i}]", error.problem) from None
        members = group.members if change.protocol == CONSUMER else ()
        why = Counter(lacks_consumer_protocol(one, group.group_id) for one in members)
        del why[None]
        if why:
            of = f"{why.total()} of {counted(len(members), 'member')}"
            text = f"{of} cannot restart with group.protocol=consumer: {'; '.join(map(str, why))}"
            raise SwitchRefused(f"changes[{i}]", text)
    if by_python:
        known = f"known are {', '.join(assignor_names())}"  # worded as in the core
        raise GroupError("assignor", f"{quoted(name)} {ONLY_PYTHON.decode()}; {known}")


def _compared(group: GroupSpec, _: Row, texts: list[str]) -> Row:
    def one(changes: Sequence[Change]) -> Comparison:
        return compare(group, changes)

    found, left_out = as_far_as_affected(one, parse_changes(texts), group)
    answer: Row = {"assignor": group.assignor, "not_affected": "; ".join(left_out) or None}
    if found is None:
        return answer
    return answer | {
        "recommended": found.recommended,
        "reason": found.reason,
        "candidates": [{**one.to_dict(), "error_kind": one.error_kind} for one in found.candidates],
    }


_ANSWERS: dict[str, Callable[..., Row]] = {
    "assign": _assigned,
    "plan": _planned,
    "compare": _compared,
}

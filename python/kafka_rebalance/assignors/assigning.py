# SPDX-License-Identifier: Apache-2.0
"""Computes a group's assignment with the compiled engine, the reference or a custom assignor."""

from collections.abc import Mapping, Sequence
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import (
    NO_TOPICS,
    Anomaly,
    Assignment,
    Delta,
    answer_of,
    find_anomalies,
)
from kafka_rebalance.group.partition_columns import named_partitions
from kafka_rebalance.group.spec import GroupSpec, require_group

from .interface import RebalanceProtocol
from .registry import (
    BALANCED,
    WEIGHTED,
    BuiltIn,
    Engine,
    OfTasks,
    ServerSide,
    check_engine,
    custom,
    library_of,
    row_of,
)


def assign(group: GroupSpec, assignor: str | None = None, *, engine: Engine = "rust") -> Assignment:
    """Returns the partitions that each member gets, exactly as the named assignor assigns them.

    If `assignor` is None, the group's own assignor runs. The engine "rust" runs the compiled
    algorithm, "reference" the readable one in Python; their answers are equal. A custom assignor
    runs in Python with either engine. The name of `balanced` may contain a setting, as
    "balanced?prefer=moves,rack,topics".

    Errors   GroupError at `assignor` for an unknown name, or if neither call nor group names one;
             GroupError at `assignment` for a wrong answer of a custom assignor; AssignorThrows
             if Kafka's class throws; TypeError for a wrong type of group or name.
    """
    name = assignor_of(group, assignor)
    row = row_of(name)
    if row is None:
        return _assign_custom(group, name)
    if check_engine(engine) == "rust":
        interned = group.interned()
        answer = from_columns(interned.member_ids, _core.assign(interned, name))
        return answer_of(interned, answer)
    if isinstance(row, OfTasks):
        return _tasks(group, row)
    given: Mapping[str, Sequence[TopicPartition]] = row.assign(group)
    assignment = _in_join_order(group, given)
    withholds = isinstance(row, BuiltIn) and row.withholds
    shares = isinstance(row, ServerSide) and row.shares
    anomalies = find_anomalies(group, assignment, withholds=withholds, shares=shares)
    topics = given.owned_topics if isinstance(given, Assignment) else NO_TOPICS
    return Assignment.of(assignment, anomalies, owned_topics=topics)


def assign_with_figures(
    group: GroupSpec, assignor: str | None, engine: Engine
) -> tuple[Assignment, dict[str, Any] | None]:
    """Returns the assignment and, for this project's own assignors (else None), its `balance`.

    Errors   those of `assign`.
    """
    name = assignor_of(group, assignor)
    bare = name.partition("?")[0]
    if bare == WEIGHTED:  # its figures come from its search: in Python, one run returns both
        from .balance import figures, weighted

        answer, found = figures.weighted_answer(group, weighted.options_of(name))
        return Assignment.of(_in_join_order(group, answer)), found
    assignment = assign(group, name, engine=engine)
    if bare != BALANCED:
        return assignment, None
    from .balance import balanced, figures

    return assignment, figures.balance_figures(group, assignment, balanced.objective_of(name))


def _tasks(group: GroupSpec, row: OfTasks) -> Assignment:
    active, standby = (_in_join_order(group, tasks) for tasks in row.assign(group))
    return Assignment.of(active, standby=Assignment.of(standby))


def _in_join_order(
    group: GroupSpec, answer: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, Sequence[TopicPartition]]:
    return {member.member_id: answer[member.member_id] for member in group.members}


def assignor_of(group: GroupSpec, assignor: str | None) -> str:
    """Returns `assignor` or, if it is None, the group's own.

    Errors   GroupError if both are None; TypeError for a wrong type of group or name.
    """
    require_group(group)
    name = group.assignor if assignor is None else assignor
    if name is None:
        raise GroupError("assignor", "missing; name one, in the group or in the call")
    if not isinstance(name, str):
        raise TypeError(f'assignor: {a_type(name)} is not a name; give one, as "sticky"')
    return name


def _assign_custom(group: GroupSpec, name: str) -> Assignment:
    assignor = custom(name)
    answer = assignor.assign(group)
    if not isinstance(answer, Mapping):
        problem = f"{quoted(name)} returns {a_type(answer)}; return {{member_id: [(topic, 0), …]}}"
        raise GroupError("assignment", problem)
    members = {member.member_id for member in group.members}
    for member_id, partitions in answer.items():
        if partitions and member_id not in members:
            problem = f"not a member of the group, but {quoted(name)} assigns it partitions"
            raise GroupError(f"assignment[{quoted(member_id)}]", problem)
    owned = {m.member_id: answer.get(m.member_id, ()) for m in group.members}
    try:
        assignment = {who: tuple(each) for who, each in Assignment.of(owned).items()}
    except GroupError as error:
        path = f"assignment{error.path.removeprefix('members')}"
        problem = f"{quoted(name)} returns a wrong answer: {error.problem}"
        raise GroupError(path, problem) from None
    cooperative = RebalanceProtocol.COOPERATIVE in assignor.supported_protocols
    if cooperative and library_of(name) is None:
        validate_cooperative(group, assignment)
    return Assignment.of(assignment, find_anomalies(group, assignment, withholds=cooperative))


def validate_cooperative(
    group: GroupSpec, assignment: Mapping[str, Sequence[TopicPartition]]
) -> None:
    """Raises a GroupError if a member gets a partition that another member must first revoke.

    A leader makes this check for each cooperative assignor that is not Kafka's own.

    Source   ConsumerCoordinator.validateCooperativeAssignment (Kafka 4.4.0); KIP-429.
    """
    transferring = Delta.between(Assignment.owned(group), Assignment.of(assignment)).transferring
    for member_id, partitions in transferring.items():
        if partitions:
            raise GroupError(
                "assignment",
                f"{partitions[0]} is given to {member_id} while another member still owns it; "
                "a cooperative assignor first lets it be revoked, and assigns it a round later",
            )


def from_columns(member_ids: tuple[str, ...], columns: "_core.Columns") -> Assignment:
    return Assignment(
        member_ids,
        columns.topics,
        memoryview(columns.offsets).cast("I"),
        memoryview(columns.topic_ids).cast("I"),
        memoryview(columns.partitions).cast("I"),
        tuple(
            Anomaly(one.kind, one.topic, one.partition, one.member_id) for one in columns.anomalies
        ),
        None if columns.standby is None else from_columns(member_ids, columns.standby),
        {
            member_ids[m]: tuple(columns.topics[topic] for topic in topics)
            for m, topics in columns.owned_topics
        }
        or NO_TOPICS,
    )


def partitions_from(columns: "_core.Partitions") -> tuple[TopicPartition, ...]:
    """Converts a list of partitions from the core, which does not group them by member."""
    topic_ids = memoryview(columns.topic_ids).cast("I")
    return named_partitions(columns.topics, topic_ids, memoryview(columns.partitions).cast("I"))

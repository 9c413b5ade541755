# SPDX-License-Identifier: Apache-2.0
"""Checks whether a group has settled as planned after a deploy, or after a step of it.

1. Every pod has its members; a StatefulSet's members have the pods' names as ids, if any member has
   such an id.
2. Every partition of a subscribed topic has a member.
3. The plan of the next rebalance, without a change, moves nothing: the group is in the state that
   its assignor computes.
4. A static member from before the deploy still reads all partitions that it read then.
"""

from collections.abc import Iterator

from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.live.broker_groups import AWAY
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.rounds import without_reader

from .manifests import Workload


def differences(
    group: GroupSpec,
    workload: Workload,
    *,
    per_pod: int = 1,
    before: GroupSpec | None = None,
    engine: Engine = "rust",
) -> list[str]:
    """Returns a string for each difference between a group at rest and the planned state.

    A pod has `per_pod` members; `before` is the group before the deploy, or None if unknown.
    """
    found = [*_members(group, workload, per_pod)]
    if unread := without_reader(group, Assignment.owned(group)):
        found.append(f"{counted(len(unread), 'partition')} without a member, such as {unread[0]}")
    try:
        plans = [one.plan for one in plans_by_leader(group, (), engine=engine) if one.plan]
        moves = min((one.moves for one in plans), default=0)
        if moves and not found:
            found.append(f"the next rebalance would move {counted(moves, 'partition')}")
    except GroupError as error:
        found.append(str(error))
    had, has = (_by_instance(one) for one in (before or group, group))
    for name in had.keys() & has.keys():
        if lost := had[name] - has[name]:
            what = counted(len(lost), "partition")
            found.append(f"{quoted(name)} no longer reads {what}, such as {min(lost)}")
    return found


def _members(group: GroupSpec, workload: Workload, per_pod: int) -> Iterator[str]:
    planned, pods = workload.replicas * per_pod, range(workload.replicas)
    if len(group.members) != planned:
        yield f"{counted(len(group.members))} instead of {planned}"
    if away := sum(one.generation_id == AWAY for one in group.members):
        yield f"{counted(away)} away, as static members are that restart"
    names = {f"{workload.name}-{workload.first_ordinal + pod}" for pod in pods}
    missing = names - _by_instance(group).keys()
    if workload.is_stateful and 0 < len(missing) < len(names):
        yield f"no member {', '.join(map(quoted, sorted(missing)))}"


def _by_instance(group: GroupSpec) -> dict[str, set[TopicPartition]]:
    owned = Assignment.owned(group)
    ids = ((one.group_instance_id, one.member_id) for one in group.members)
    return {name: {*owned[member]} for name, member in ids if name is not None}

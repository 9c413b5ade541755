# SPDX-License-Identifier: Apache-2.0
"""The partitions or tasks of a group and their owners, for comparisons of two states.

A partition has one owner, or none. In a share group it can have several. In a streams group, a
task's owners are the member that runs the task, and the members that hold a standby of it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec


class Owner(NamedTuple):
    """A member that owns a partition or a task, or (`is_standby`) holds a standby of the task."""

    member_id: str
    is_standby: bool = False


Owners = dict[tuple[str, int], frozenset[Owner]]


def owners(group: GroupSpec) -> Owners:
    """Returns the owners of each partition that a member owns."""
    return owners_in(Assignment.owned(group))


def owners_in(held: Assignment) -> Owners:
    """Returns the owners in an assignment, with the owners of standby tasks."""
    found: dict[tuple[str, int], set[Owner]] = {}
    for part in (held, held.standby):
        for member_id, owned in {} if part is None else dict(part).items():
            for topic, partition in owned:
                owner = Owner(member_id, is_standby=part is held.standby)
                found.setdefault((topic, partition), set()).add(owner)
    return {tp: frozenset(each) for tp, each in found.items()}


def renamed(found: Owners, names: Mapping[str, str]) -> Owners:
    """Returns the owners with new member ids; `names` maps an old id to a new one."""
    return {
        tp: frozenset(one._replace(member_id=names.get(one.member_id, one.member_id)) for one in by)
        for tp, by in found.items()
    }


def additions(one: Owners, other: Owners) -> int:
    """Returns how many pairs of partition and owner are in `other` but not in `one`."""
    return sum(len(by - one.get(tp, frozenset())) for tp, by in other.items())


def elsewhere(one: Owners, other: Owners) -> int:
    """Returns how many partitions have different owners in `one` and in `other`."""
    return sum(one.get(tp) != other.get(tp) for tp in one.keys() | other.keys())

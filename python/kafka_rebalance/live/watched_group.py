# SPDX-License-Identifier: Apache-2.0
"""Follows a live group by its descriptions, and yields each state in which it has settled.

A group has settled if several descriptions in a row are equal. If a partition has no owner, more of
them must be equal: a cooperative group may be between two rounds. A settled state is yielded if it
differs from the one before. The cluster's metadata does not count: members see a new partition
later, and then rebalance. If the coordinator does not answer, `patience.py` waits.

A group that the broker assigns has an epoch for each change. One description is enough, unless a
partition has no owner: a new pattern, topic or share state comes with a later epoch. A state is
yielded if its epoch or its members differ from those yielded before:

    consumer groups   the newest target belongs to the epoch. Members reach it later, in steps
    share groups      all members are in the epoch; descriptions have no target
    streams groups    both: the next target depends on the tasks that members then have

Reading changes nothing. Several rebalances between two settled states appear as one.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from kafka_rebalance.assignors.registry import assigns_tasks, shares_partitions
from kafka_rebalance.errors import NotReachedError
from kafka_rebalance.group.spec import GroupSpec

from .consumer_groups import NO_SUCH_GROUP, snapshot_lines, why_unlisted
from .patience import Patience

_EQUAL, _EQUAL_WITH_HOLES, _EQUAL_BY_BROKER = 3, 12, 1
"""How many equal descriptions in a row mean that the group has settled; a hole is a partition
without an owner.
"""

EMPTY = "state: Empty"
"""The beginning of the error of a group that has lost its members."""
WITHOUT_MEMBERS = (EMPTY, "state: Dead", NO_SUCH_GROUP)
"""The beginnings of the errors of a group that is empty, or does not exist."""

AWAY = -2
"""The epoch of a static member that has left, and whose session has not ended."""


def settled_states(
    bootstrap_server: str,
    group_id: str,
    *,
    configs: Mapping[str, Any] | None = None,
    on_waiting: Callable[[str], None] = lambda _: None,
    **patient: Any,
) -> Iterator[GroupSpec]:
    """Yields the group each time it has settled in another state.

    Until the first state, `on_waiting` is called with each new reason why there is no state, such
    as "group_id: no such group, …"; later, if the group has lost all its members, and if a topic's
    partitions have changed but no rebalance has happened. `patient` are the options of
    `Patience`, such as the seconds `for_s` of the watch.

    Errors: ClusterError; NotReachedError if `Patience` ends; GroupError for a description that is
    not a valid group.
    """
    patience = Patience(bootstrap_server, configs, **patient)
    looked: object = None
    why = ""
    yielded: object = None
    counts: dict[str, int] = {}
    equal = 0
    while not patience.is_over:
        was_seen = yielded is not None
        ask = partial(described, bootstrap_server, group_id, configs=configs, was_seen=was_seen)
        line = patience.asked(ask)
        if line is None:
            return
        said, why = why, line.get("error", "")
        if why and why != said and (yielded is None or why.startswith(WITHOUT_MEMBERS)):
            on_waiting(why)
        look = _look(line)
        equal = equal + 1 if look == looked else 1
        looked = look
        if "error" not in line and _rests(line):
            if _state(line) != yielded:
                group = GroupSpec.from_dict(line)
                if equal >= _enough(group, line):
                    yielded, counts = _state(line), _counts(line)
                    yield group
            elif counts != _counts(line):
                on_waiting(f"{_resized(counts, _counts(line))}; no rebalance yet")
                counts = _counts(line)
        time.sleep(patience.every_s)


def described(
    bootstrap_server: str, group_id: str, *, configs: Mapping[str, Any] | None, was_seen: bool
) -> dict[str, Any]:
    """Returns the group's line. NotReachedError: brokers are down, and hide a group seen before."""
    (line,) = snapshot_lines(bootstrap_server, [group_id], configs=configs)
    if was_seen and (why := why_unlisted(line.get("error", ""))):
        raise NotReachedError(why)
    return line


def is_by_broker(line: Mapping[str, Any]) -> bool:
    """Returns whether a line without an error describes a group that the broker assigns."""
    return line.get("assignment_epoch") is not None


def _enough(group: GroupSpec, line: Mapping[str, Any]) -> int:
    if _has_holes(group):
        return _EQUAL_WITH_HOLES
    return _EQUAL_BY_BROKER if is_by_broker(line) else _EQUAL


def _look(line: Mapping[str, Any]) -> object:
    """Returns the parts of a line that must stay equal until the group counts as settled."""
    if not is_by_broker(line):
        return line
    parts = ("member_id", "owned_partitions", "active_tasks", "standby_tasks")
    owned = [[member.get(part) for part in parts] for member in line["members"]]
    return line["generation_id"], owned


def _state(line: Mapping[str, Any]) -> object:
    """Returns the parts of a line whose change makes a new state; the cluster's topics do not."""
    if not is_by_broker(line):
        return {part: value for part, value in line.items() if part != "topics"}
    return line["generation_id"], {member["member_id"] for member in line["members"]}


def _rests(line: Mapping[str, Any]) -> bool:
    """Returns whether a broker-assigned group's line already shows the target of its epoch."""
    epoch = line.get("assignment_epoch")
    if epoch is None:
        return True
    if not shares_partitions(line["assignor"]):
        return bool(epoch == line["generation_id"])
    targets = {"target_active_tasks", "target_standby_tasks"}
    if assigns_tasks(line["assignor"]) and any(targets & {*one} for one in line["members"]):
        return False
    epochs = {member["generation_id"] for member in line["members"]} - {AWAY}
    return epochs | {epoch} == {line["generation_id"]}


def _counts(line: Mapping[str, Any]) -> dict[str, int]:
    return {topic["name"]: topic["partitions"] for topic in line["topics"]}


def _resized(then: Mapping[str, int], now: Mapping[str, int]) -> str:
    """Returns `partitions: orders 6 -> 12, …` for changed counts; a missing topic has 0."""
    both = {name: (then.get(name, 0), now.get(name, 0)) for name in (*then, *now)}
    changed = (f"{name} {old} -> {new}" for name, (old, new) in both.items() if old != new)
    return f"partitions: {', '.join(changed)}"


def _has_holes(group: GroupSpec) -> bool:
    subscribed = {topic for member in group.members for topic in member.topics}
    counts = group.partition_counts()
    owned = {tp for member in group.members for tp in member.owned_partitions}
    return len(owned) < sum(counts.get(topic, 0) for topic in subscribed)

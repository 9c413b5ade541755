# SPDX-License-Identifier: Apache-2.0
"""Waits until a group has settled, and compares it with its plan.

The ids of new members are chosen after the plan. So a plan is judged twice: as it was made, with
the real id in the place of the made-up one; and played again with the real ids from the beginning.
Hash order depends on ids, so only the second one has to be right. A made-up id must have the shape
of the real one, because `range` sorts ids.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.live import snapshot_lines
from kafka_rebalance.plans import plan
from kafka_rebalance.plans.rebalance_plan import parse_changes, played
from tests.prediction.told import RealIds

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any

    from kafka_rebalance import TopicPartition
    from kafka_rebalance.plans import RebalancePlan
    from kafka_rebalance.plans.changes import Change

TIMEOUT_S = 120.0
"""On a loaded machine, a wait lasts longer than a JVM takes to start and to join."""

LOOK_S = 0.4
SAME_LOOKS = 3

Owned = dict[str, frozenset["TopicPartition"]]


@dataclass(frozen=True)
class Outcome:
    """The effect of a change in a real group.

    `problem` is None if the plan, made with the ids that members really had, was right. `observed`
    is the data with which a test judges the change again, without a broker.
    """

    what: str
    problem: str | None
    with_planned_ids: bool
    observed: dict[str, Any]


def settled(server: str, group_id: str, members: int) -> GroupSpec:
    """Returns the group when several looks in a row find it settled, with this number of
    members.
    """
    deadline = time.monotonic() + TIMEOUT_S
    last, same = None, 0
    while time.monotonic() < deadline:
        (line,) = snapshot_lines(server, [group_id])
        there = "error" not in line and len(line["members"]) == members and _rests(line)
        same = same + 1 if there and line == last else 0
        last = line
        if same >= SAME_LOOKS:
            return GroupSpec.from_dict(line)
        time.sleep(LOOK_S)
    raise TimeoutError(f"{group_id} has not settled with {members} members: {last}")


def joined(server: str, group_id: str, client_id: str, known: Collection[str] = ()) -> str:
    """Returns the id of a client's member that is not in `known`, as soon as the broker describes
    it.
    """
    found: list[str] = []

    def is_there(line: dict[str, Any]) -> bool:
        ids = (one["member_id"] for one in line["members"] if is_of(one["client_id"], client_id))
        found.extend(one for one in ids if one not in known)
        return bool(found)

    _look_until(server, group_id, is_there, f"{client_id} has not joined")
    return found[0]


def is_of(client_id: str | None, client: str) -> bool:
    """Returns whether a member is one of this client; members of an application have longer ids."""
    return client_id == client or (client_id or "").startswith(f"{client}-")


def await_topics(server: str, group_id: str, client_id: str, topics: Collection[str]) -> None:
    """Waits until the broker knows that a client's member has these topics."""

    def is_there(line: dict[str, Any]) -> bool:
        members = (one for one in line["members"] if one["client_id"] == client_id)
        return any(set(one["topics"]) == set(topics) for one in members)

    _look_until(server, group_id, is_there, f"{client_id} has not subscribed to {topics}")


def await_epoch(server: str, before: GroupSpec) -> None:
    """Waits until the group has a later epoch: a heartbeat has seen the change."""
    epoch = before.generation_id
    assert before.group_id is not None
    assert epoch is not None
    _look_until(
        server,
        before.group_id,
        lambda line: line["generation_id"] > epoch,
        f"no later epoch than {epoch}",
    )


def _look_until(
    server: str, group_id: str, is_there: Callable[[dict[str, Any]], bool], problem: str
) -> None:
    """Looks, without a pause, until `is_there` is true of a description without an error."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        (line,) = snapshot_lines(server, [group_id])
        if "error" not in line and is_there(line):
            return
    raise TimeoutError(f"{group_id}: {problem}: {line}")


def _rests(line: dict[str, Any]) -> bool:
    epoch = line.get("assignment_epoch")
    if epoch is None:
        return True
    if line["assignor"] == "streams/sticky":
        return epoch == line["generation_id"] and all(
            "target_active_tasks" not in one and one["generation_id"] == epoch
            for one in line["members"]
        )
    if line["assignor"] == "share/simple" and not _is_initialised(line):
        return False
    # The broker resolves a new pattern at most every 10 s; a description does not show whether.
    given = {run["topic"] for member in line["members"] for run in member["owned_partitions"]}
    if any("topic_regex" in member for member in line["members"]) and len(given) < len(
        line["topics"]
    ):
        return False
    return epoch == line["generation_id"] and all(
        "assigned_partitions" not in one and one["generation_id"] in (epoch, -2)
        for one in line["members"]
    )


def _is_initialised(line: dict[str, Any]) -> bool:
    """Returns whether every subscribed partition is handed out.

    A new partition is handed out once its share state is initialised; a description does not show
    that.
    """
    runs = [run for member in line["members"] for run in member["owned_partitions"]]
    given = {(run["topic"], partition) for run in runs for partition in run["partitions"]}
    subscribed = {topic for member in line["members"] for topic in member["topics"]}
    every = {
        (topic["name"], partition)
        for topic in line["topics"]
        if topic["name"] in subscribed
        for partition in range(topic["partitions"])
    }
    return every <= given


def owned(group: GroupSpec) -> Owned:
    """Returns the partitions or tasks of each member; a standby task has an S before its
    subtopology.
    """
    return {
        one.member_id: frozenset(one.owned_partitions)
        if one.streams is None
        else frozenset(one.streams.active_tasks)
        | {tp._replace(topic=f"S{tp.topic}") for tp in one.streams.standby_tasks}
        for one in group.members
    }


class _Real(RealIds):
    """Uses the real ids of members, of their processes and of topics."""

    def __init__(self, planned: RebalancePlan, ids: Sequence[str], seen: Sequence[GroupSpec]):
        super().__init__(planned.group.group_id, ids, planned.newcomers)
        members = [one for group in seen for one in group.members if one.streams]
        self._topics = {one.name: one.topic_id for group in seen for one in group.topics}
        self._processes = {one.member_id: one.streams.process_id for one in members if one.streams}

    def topic_id(self, name: str) -> str:
        found = self._topics.get(name)
        return super().topic_id(name) if found is None else found

    def process_id(self, member_id: str) -> str:
        return self._processes[member_id]


def judge(
    what: str,
    planned: RebalancePlan,
    changes: tuple[Change, ...],
    seen: Sequence[GroupSpec],
    steps: Sequence[int],
) -> Outcome:
    """Compares the group after the plan's steps of these indexes with the groups that were
    observed.
    """
    group = planned.group
    ids = _joined(group, seen)
    counts = [{topic.name: topic.partitions for topic in one.topics} for one in (group, seen[-1])]
    if counts[0] != counts[1] and any(topic.racks for topic in seen[-1].topics):
        # No plan knows the racks of new partitions.
        topics = {one.member_id: one.topics for one in seen[-1].members}
        members = tuple(replace(one, topics=topics[one.member_id]) for one in group.members)
        real = plan(group.edited(topics=seen[-1].topics, members=members))
    else:
        real = played(group, changes, "rust", _Real(planned, ids, seen))
    found = chain(_other_shapes(planned, ids), _differences(real, seen, steps))
    problem = next(found, None)
    names = dict(zip(planned.made_up, ids, strict=False))
    expected = [
        {names.get(member, member): tps for member, tps in owned(planned.steps[i].after).items()}
        for i in steps
    ]
    observed = {
        "what": what,
        "before": group.to_dict(),
        "changes": [str(change) for change in changes],
        "seen": [one.to_dict() for one in seen],
        "steps": list(steps),
    }
    return Outcome(what, problem, expected == [owned(one) for one in seen], observed)


def again(observed: dict[str, Any]) -> Outcome:
    """Judges the observations of an earlier run."""
    changes = parse_changes(observed["changes"])
    planned = plan(GroupSpec.from_dict(observed["before"]), None, changes)
    seen = [GroupSpec.from_dict(line) for line in observed["seen"]]
    return judge(observed["what"], planned, changes, seen, observed["steps"])


def _joined(group: GroupSpec, seen: Sequence[GroupSpec]) -> list[str]:
    """Returns the ids of members that joined, in the order of their first look."""
    known = {member.member_id for member in group.members}
    ids = dict.fromkeys(member.member_id for one in seen for member in one.members)
    return [one for one in ids if one not in known]


def _other_shapes(plan: RebalancePlan, ids: Sequence[str]) -> Iterator[str]:
    """Yields a sentence for each made-up id that is a bare UUID where the real id has a name, or
    the reverse.

    A process with several members may join in another order than planned; the shapes are equal.
    """
    for new, real in zip(plan.newcomers, ids, strict=False):
        if _is_uuid(new.member_id) != _is_uuid(real):
            yield f"wrong shape of an id: {new.member_id} is {real}"


def _is_uuid(member_id: str) -> bool:
    """Returns whether an id is a UUID in base64 without a name (with + and / from librdkafka)."""
    return re.fullmatch(r"[\w+/-]{22}", member_id) is not None


def _differences(
    plan: RebalancePlan, seen: Sequence[GroupSpec], steps: Sequence[int]
) -> Iterator[str]:
    for i, group in zip(steps, seen, strict=True):
        step = plan.steps[i]
        if (expected := owned(step.after)) != (found := owned(group)):
            who = [
                one for one in expected.keys() | found.keys() if expected.get(one) != found.get(one)
            ]
            texts = (f"{one}: {_text(expected.get(one))} is {_text(found.get(one))}" for one in who)
            yield f"wrong after {step.cause}: {'; '.join(texts)} (before: {plan.group.to_json()})"
        # The generation of a classic group is unknown.
        by_broker = plan.group.assignor in SERVER_SIDE and group.assignor in SERVER_SIDE
        if by_broker and group.generation_id != step.after.generation_id:
            epochs = f"{step.after.generation_id} is {group.generation_id}"
            yield f"wrong group epoch after {step.cause}: {epochs}"
        if group.assignor != (step.after.assignor or "").removeprefix("librdkafka/"):
            yield f"wrong assignor after {step.cause}: {group.assignor}"


def _text(partitions: frozenset[TopicPartition] | None) -> str:
    return "absent" if partitions is None else ", ".join(map(str, sorted(partitions))) or "nothing"

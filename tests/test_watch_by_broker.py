# SPDX-License-Identifier: Apache-2.0
"""`watch` follows groups that the broker assigns: their states, and the verdicts on their
rebalances.
"""

from __future__ import annotations

import gzip
import json
import random
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.playback.driver import Driver
from kafka_rebalance.watch import courses as seen_target
from kafka_rebalance.watch.verdict import (
    MORE_CHANGED,
    NO_TOPIC,
    NOT_ALL_TRIED,
    OLD_COUNTS,
    is_reached,
    judged_rebalance,
)
from tests.support.broker_transitions import Command, Transitions
from tests.support.coordinator_oracle import JAR, CoordinatorOracle
from tests.support.followed_lines import Looks, followed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA = Path(__file__).parent / "data"

KAFKA = pytest.param(
    "Kafka's",
    marks=[
        pytest.mark.oracle,
        pytest.mark.skipif(not JAR.is_file(), reason="no oracle: run `make judges`"),
    ],
)


def recorded(name: str) -> list[dict[str, Any]]:
    """Returns the recordings of a real broker: `python -m tests.modern_live --record`."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "observed",
    [*recorded("modern_live_assigned.jsonl.gz"), *recorded("modern_live.jsonl.gz")],
    ids=lambda one: one["what"].partition(",")[0],
)
def test_what_a_broker_did_is_as_predicted(observed: dict[str, Any]) -> None:
    """Consumer, share and streams groups; among them restarts of which only the end was
    observed.
    """
    states = [kr.GroupSpec.from_dict(line) for line in (observed["before"], *observed["seen"])]
    for before, later in pairwise(states):
        one = judged_rebalance(before, later)
        assert one.is_predicted, one


ASSIGNORS = ("consumer/uniform", "consumer/range", "share/simple", "streams/sticky")


@pytest.fixture(scope="module", params=["ours", KAFKA])
def command(request: pytest.FixtureRequest) -> Iterator[Callable[[Command], Command]]:
    """Yields the function that plays a command: on our coordinator, or on Kafka's."""
    if request.param == "ours":
        yield Driver().command
        return
    with CoordinatorOracle() as oracle:
        yield oracle.command


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_random_changes_are_as_predicted(
    assignor: str, most: int, command: Callable[[Command], Command]
) -> None:
    """Changes of one kind or of several, far apart or within the assignment interval.

    Changes are not as predicted only if the states do not show all of them: a member joins and
    leaves.
    """
    kinds, hidden = set(), 0
    for seed in range(6):
        group = Transitions(command, random.Random(seed), assignor, standby=seed % 2)
        before = group.settled()
        for _ in range(3):
            kinds |= {kind.split()[0] for kind in group.changed(most)}
            later = group.settled()
            one = judged_rebalance(before, later)
            assert one.is_predicted or one.cause == MORE_CHANGED, (seed, one)
            hidden += not one.is_predicted
            before = later
    assert hidden <= (most > 1) + (most > 2)
    assert kinds >= {"join", "leave"}
    assert assignor == "streams/sticky" or {"subscribe", "grow"} <= kinds


def test_two_partitions_in_each_others_place_are_not_as_predicted() -> None:
    """Each course of two changes ends with a different assignment."""
    for seed in range(6):
        group = Transitions(Driver().command, random.Random(seed), "consumer/uniform")
        before = group.settled()
        group.changed(2)
        later = group.settled()
        assert judged_rebalance(before, later).is_predicted
        owned = {one.member_id: list(one.owned_partitions) for one in later.members}
        has = [member_id for member_id, partitions in owned.items() if partitions]
        if len(has) > 1:
            one, other = owned[has[0]], owned[has[1]]
            one[0], other[0] = other[0], one[0]
            assert not judged_rebalance(before, later.owning(owned)).is_predicted


def test_a_topic_that_grew_twice() -> None:
    """Each size between the two sizes may have had a target."""
    group = Transitions(Driver().command, random.Random(6), "consumer/uniform")
    before = group.settled()
    name = next(one for one in group.topics if any(one in m.topics for m in before.members))
    for _ in range(2):
        group.topics[name] += 1
        group.command({"op": "topics", "topics": group.topics})
        later = group.settled()
    assert f"partitions: {name}" in judged_rebalance(before, later).event
    assert judged_rebalance(before, later).is_predicted


def share_group(*owned: tuple[int, ...], generation_id: int) -> kr.GroupSpec:
    """Returns a share group of one topic; `owned` lists each member's partitions."""
    members = tuple(
        kr.Member(
            f"m{i}",
            ("t",),
            owned_partitions=tuple(kr.TopicPartition("t", p) for p in each),
            generation_id=generation_id,
        )
        for i, each in enumerate(owned)
    )
    topic = kr.Topic("t", 2, topic_id="AAAAAAAAAAEAAAAAAAAAAg")
    return kr.GroupSpec("g", (topic,), members, "share/simple", generation_id)


def test_all_owners_of_a_shared_partition_count() -> None:
    """The joining member's partition has a second owner; the test then removes that owner."""
    before = share_group((0,), (1,), generation_id=5)
    new = kr.Member("m2", ("t",))
    later = kr.plan(before.edited(members=(*before.members, new))).final
    assert judged_rebalance(before, later).is_predicted
    owned = {one.member_id: one.owned_partitions for one in later.members}
    assert sum(map(len, owned.values())) > 2
    shared = owned["m2"][0]
    other = next(m for m in ("m0", "m1") if shared in owned[m])
    less = tuple(tp for tp in owned[other] if tp != shared)
    one = judged_rebalance(before, later.owning({**owned, other: less}))
    assert (one.event, one.cause, one.elsewhere, one.partitions) == ("joined: m2", "unknown", 1, 2)


def test_all_members_are_replaced_between_two_descriptions() -> None:
    """The new members join one after another, each with a target of its own."""
    topic = kr.Topic("t", 5, topic_id="AAAAAAAAAAEAAAAAAAAAAg")
    member = kr.Member("m0", ("t",))
    before = kr.plan(kr.GroupSpec("g", (topic,), (member,), "consumer/uniform", 5)).final
    later = kr.plan(before, changes=["bounce-members=m0", "add-members=2"]).final
    one = judged_rebalance(before, later)
    assert "left: m0" in one.event
    assert one.is_predicted, one


def streams_state(observed: dict[str, Any]) -> tuple[kr.GroupSpec, kr.GroupSpec]:
    return kr.GroupSpec.from_dict(observed["before"]), kr.GroupSpec.from_dict(observed["seen"][0])


def test_a_standby_task_of_another_member_is_not_as_predicted() -> None:
    states = map(streams_state, recorded("modern_live_assigned.jsonl.gz")[30:])
    before, later = next(
        two for two in states if any(m.streams and m.streams.standby_tasks for m in two[1].members)
    )
    bare = tuple(
        replace(m, streams=m.streams and replace(m.streams, standby_tasks=()))
        for m in later.members
    )
    standby = {tp for m in later.members if m.streams for tp in m.streams.standby_tasks}
    one = judged_rebalance(before, later.edited(members=bare))
    assert (one.cause, one.elsewhere) == ("unknown", len(standby))


def looks(monkeypatch: pytest.MonkeyPatch, *lines: dict[str, Any]) -> Looks:
    return followed(monkeypatch, [[line] for line in lines])


def described(
    epoch: int, *members: tuple[str, int, list[int]], assigned: int | None = None
) -> dict[str, Any]:
    """Returns a look at a consumer group; a member has its epoch, and its target in topic t."""
    return {
        "group_id": "g",
        "generation_id": epoch,
        "assignment_epoch": epoch if assigned is None else assigned,
        "assignor": "consumer/uniform",
        "topics": [{"name": "t", "partitions": 2, "topic_id": "AAAAAAAAAAEAAAAAAAAAAg"}],
        "members": [
            {
                "member_id": member_id,
                "topics": ["t"],
                "generation_id": member_epoch,
                "owned_partitions": [{"topic": "t", "partitions": target}],
            }
            for member_id, member_epoch, target in members
        ],
    }


def test_a_group_that_loses_its_members_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = described(5, ("a", 5, [0, 1]))
    lost, moving = "state: Empty, it has no members", "state: PreparingRebalance, it is rebalancing"
    said = [{"group_id": "g", "error": why} for why in (moving, lost, lost)]
    found = looks(monkeypatch, there, *said, there, said[1])
    assert found.waits == [f"g: {lost}; waiting"] * 2
    assert len(found.settled) == 2  # it began again


def test_an_epoch_is_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members reach their target in steps, each of which is another description."""
    first = described(5, ("a", 5, [0, 1]))
    joined = described(6, ("a", 5, [0, 1]), ("b", 6, []), assigned=5)
    target = described(6, ("a", 5, [0]), ("b", 6, [1]))
    half = described(6, ("a", 6, [0]), ("b", 6, [1]))
    found = looks(monkeypatch, *[first] * 4, joined, *[target] * 4, *[half] * 4)
    assert [one.generation_id for one in found.settled] == [5, 6]
    assert judged_rebalance(*found.settled).event == "joined: b"
    # A new topic is described before it has an epoch.
    grown = {**first, "topics": [{**first["topics"][0], "partitions": 3}]}
    assert len(looks(monkeypatch, first, *[grown] * 20).settled) == 1


def test_a_static_member_of_a_consumer_group_comes_back_in_its_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = described(5, ("a", 5, [0]), ("b", 5, [1]))
    before["members"][0]["group_instance_id"] = "pod"
    away, back = deepcopy(before), deepcopy(before)
    away["members"][0]["generation_id"] = -2
    back["members"][0]["member_id"] = "a2"
    found = looks(monkeypatch, before, away, back)
    assert len(found.settled) == 2
    one = judged_rebalance(*found.settled)
    assert (one.event, one.is_predicted) == ("back: a2", True)


def test_a_share_group_is_settled_when_all_members_are_in_its_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [
        described(5, ("a", 5, [0, 1])),
        described(6, ("a", 5, [0, 1]), ("b", 6, [1])),
        described(6, ("a", 6, [0]), ("b", 6, [1])),
    ]
    found = looks(monkeypatch, *({**line, "assignor": "share/simple"} for line in lines))
    assert [len(one.members[0].owned_partitions) for one in found.settled] == [2, 1]


def test_offsets_of_running_tasks_are_no_new_state(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = recorded("modern_live_assigned.jsonl.gz")[30]
    line = {**observed["seen"][0], "assignment_epoch": observed["seen"][0]["generation_id"]}
    task = {"subtopology_id": "0", "partition": 0}
    later = [
        {
            **line,
            "members": [{**m, "task_offsets": [{**task, "offset": n}]} for m in line["members"]],
        }
        for n in range(3)
    ]
    moving = {**line, "members": [{**m, "target_active_tasks": []} for m in line["members"]]}
    found = looks(monkeypatch, moving, *later)
    assert [one.generation_id for one in found.settled] == [line["generation_id"]]


def test_each_reason_to_wait_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    none = {"group_id": "g", "error": "group_id: no such group, or no permission Describe on it"}
    empty = {"group_id": "g", "error": "state: Empty, it has no members"}
    found = looks(monkeypatch, *[none] * 3, empty, described(5, ("a", 5, [0, 1])), empty)
    lost = "g: state: Empty, it has no members; waiting"  # the last: all left
    absent = "there is no group g yet, or no permission Describe on it; waiting"
    assert found.waits == [absent, lost, lost]


def grown(line: dict[str, Any], partitions: int) -> dict[str, Any]:
    return {**line, "topics": [{**line["topics"][0], "partitions": partitions}]}


def test_a_topic_that_grows_is_no_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rebalance comes later; until then, one line reports that the topic has grown."""
    consumers = described(5, ("a", 5, [0, 1]))
    later = described(6, ("a", 6, [0, 1, 2]))
    classic = {k: v for k, v in consumers.items() if k != "assignment_epoch"} | {
        "assignor": "range"
    }
    members = later["members"]
    for line, end in ((consumers, later), (classic, {**classic, "members": members})):
        found = looks(monkeypatch, *[line] * 3, *[grown(line, 3)] * 20, *[grown(end, 3)] * 3)
        assert found.waits == ["g: partitions: t 2 -> 3; no rebalance yet; waiting"]
        before, after = found.settled
        one = judged_rebalance(before, after)
        assert (one.event, one.gained, one.cause) == ("partitions: t 2 -> 3", 1, None)


def test_a_leader_that_knows_the_old_partition_counts_is_a_cause() -> None:
    before = kr.plan(
        kr.GroupSpec("g", (kr.Topic("t", 4),), (kr.Member("a", ("t",)),), "range")
    ).final
    joined = before.edited(members=(*before.members, kr.Member("b", ("t",))))
    seen = kr.plan(joined).final.edited(topics=(kr.Topic("t", 6),))
    one = judged_rebalance(before, seen)
    assert (one.cause, one.elsewhere) == (OLD_COUNTS, 3)
    both = before.edited(topics=(*before.topics, kr.Topic("u", 2)))
    joined = both.edited(members=(*before.members, kr.Member("b", ("t", "u"))))
    seen = kr.plan(joined.edited(topics=before.topics)).final.edited(topics=both.topics)
    assert judged_rebalance(both, seen).cause == NO_TOPIC


def test_a_plan_of_more_partitions_is_not_reached_before_them() -> None:
    before = kr.plan(
        kr.GroupSpec("g", (kr.Topic("t", 4),), (kr.Member("a", ("t",)),), "range")
    ).final
    told = kr.plan(before, None, ["partitions=t=6"])
    assert not is_reached(told, before)
    assert is_reached(told, told.final)
    assert is_reached(kr.plan(before), before)


def _uniform(members: int, *topics: tuple[str, int]) -> kr.GroupSpec:
    """Returns a settled group of the consumer protocol; all its members read `t` and `u`."""
    there = tuple(kr.Topic(name, n, topic_id=f"AAAAAAAAAAEAAAAAAAAA{name}g") for name, n in topics)
    each = tuple(kr.Member(f"m{n}", ("t", "u")) for n in range(members))
    return kr.plan(kr.GroupSpec("g", there, each, "consumer/uniform", 5)).final


def test_created_and_deleted_topics_and_other_assignors_are_named() -> None:
    one, both = _uniform(2, ("t", 4)), _uniform(2, ("t", 4), ("u", 3))
    assert judged_rebalance(one, both).event == "created: u"
    assert judged_rebalance(both, one).event == "deleted: u"
    other = kr.plan(one.edited(assignor="consumer/range")).final
    switched = "assignor: consumer/uniform -> consumer/range"
    assert judged_rebalance(one, other).event == switched


def test_a_large_group_has_more_orders_than_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause of wrong owners is "unknown" if all orders were tried; else it states that not all
    were.
    """
    before = _uniform(4, ("t", 8), ("u", 8))
    joined = tuple(kr.Member(f"n{n}", ("t", "u")) for n in range(2))
    later = kr.plan(before.edited(members=(*before.members[2:], *joined))).final
    assert later.generation_id is not None
    owned: dict[str, list[kr.TopicPartition]] = {one.member_id: [] for one in later.members}
    wrong = later.edited(generation_id=before.generation_id).owning(owned)
    found = judged_rebalance(before, wrong)
    assert (found.cause, found.elsewhere, found.partitions) == ("unknown", 16, 16)
    monkeypatch.setattr(seen_target, "_LEAST_ENDS", 1)
    monkeypatch.setattr(seen_target, "_MOST_WORK", 1)
    assert judged_rebalance(before, wrong).cause == NOT_ALL_TRIED


def test_without_epochs_nothing_is_said_of_them() -> None:
    before = _uniform(2, ("t", 4))
    later = before.edited(generation_id=9).owning({one.member_id: [] for one in before.members})
    assert judged_rebalance(before, later).cause == MORE_CHANGED
    unknown = replace(before, generation_id=None, max_partitions=before.limit)
    assert judged_rebalance(unknown, later).cause == "unknown"

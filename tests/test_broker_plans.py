# SPDX-License-Identifier: Apache-2.0
"""Plans of groups that the broker assigns, compared with recordings of a real broker.

`modern_live.jsonl.gz` records a real broker's consumer groups, `modern_live_assigned.jsonl.gz` its
share groups and streams groups: `python -m tests.modern_live --record`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.plans.broker_rounds import joined_together
from kafka_rebalance.plans.changes import SwitchProtocol
from kafka_rebalance.plans.changes.made_up import Basis, MadeUp
from kafka_rebalance.plans.changes.member_table import in_table_order
from kafka_rebalance.plans.rebalance_plan import played
from tests.modern_live.judge import again
from tests.prediction.told import RealIds
from tests.support.broker_groups import broker_group, broker_line, note_kinds

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine


def _recorded(name: str) -> list[dict[str, Any]]:
    with gzip.open(Path(__file__).parent / "data" / name, "rt", encoding="utf-8") as recorded:
        return [json.loads(line) for line in recorded]


OBSERVED = _recorded("modern_live.jsonl.gz")
ASSIGNED = _recorded("modern_live_assigned.jsonl.gz")


# Against a real broker ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "observed", [*OBSERVED, *ASSIGNED], ids=lambda one: one["what"].partition(",")[0]
)
def test_what_a_broker_did_is_as_planned(observed: dict[str, Any]) -> None:
    assert again(observed).problem is None


@pytest.mark.parametrize(
    ("owned", "bare"), [([[0, 1], [2, 3], [4, 5]], 2), ([[0, 1, 2], [3, 4, 5]], 1), ([[0, 1]], 0)]
)
def test_classic_members_have_bare_ids_until_the_group_is_classic(
    owned: list[list[int]], bare: int
) -> None:
    """With one member, the group is empty when the member comes back, and an empty group is
    converted.
    """
    group = broker_group("consumer/uniform", owned)
    made_up = kr.plan(group, None, ["switch-protocol=classic/range"]).made_up
    assert [len(one) == 22 for one in made_up] == [True] * bare + [False]
    assert made_up[-1].startswith(f"c-{bare}-")
    static = (replace(one, group_instance_id=f"i{n}") for n, one in enumerate(group.members))
    restarted = kr.plan(group.edited(members=tuple(static)), None, ["switch-protocol=classic"])
    assert [len(one) for one in restarted.made_up] == [22] * len(owned)


def test_no_bare_id_begins_with_a_dash() -> None:
    ids = MadeUp("g")
    made = [ids.newcomer("m", Basis.KNOWN, (), is_static=False, is_bare=True) for _ in range(300)]
    assert {one.member_id[0] == "-" for one in made} == {False}


@pytest.mark.parametrize("engine", ["reference", "rust"])
def test_a_librdkafka_leader_of_a_group_that_was_the_brokers_sorts_its_topics(
    engine: Engine,
) -> None:
    """Recorded in a real switch, just after the last member of the consumer protocol left."""
    owned = {
        "zG0OSGalQe6kdF9sEdhjgQ": {"a": [4, 5, 6, 7]},
        "qJzRPwE1Q9uemrY6Hai1mA": {"a": [1, 2, 3]},
        "2nctSqWmTVuGtZKU+ePw8w": {"b": [3, 4], "a": [0]},
        "gxGn52rYRU+Hei+C/2WIjw": {"b": [0, 1, 2]},
    }
    topics = (  # as the broker describes the group
        Topic("b", 5, topic_id="7SNS14VSQDO5gTnFBge3kA"),
        Topic("a", 8, topic_id="9JachBM2SSOzNb2hApYTzQ"),
    )
    members = tuple(
        Member(
            one,
            ("b", "a"),
            owned_partitions=tuple(TopicPartition(t, p) for t in has for p in has[t]),
            generation_id=6,
        )
        for one, has in owned.items()
    )
    group = kr.GroupSpec("g", topics, members, "consumer/uniform", 6)
    change = SwitchProtocol("classic", "librdkafka/cooperative-sticky")
    planned = kr.plan(group, None, [change])
    joined = ["N6wkxFOxT1S85r7DgEethw", "n3_TC7JrQkakDMMihxSlqw", "F93mlKD4QYezQP7vEKHEwg"]
    ids = RealIds("g", [*joined, "later"], planned.newcomers)
    step = played(group, (change,), engine, ids).steps[6]
    assert step.cause == "gxGn52rYRU+Hei+C/2WIjw leaves"
    found = {
        one.member_id: " ".join(sorted(f"{tp.topic}{tp.partition}" for tp in one.owned_partitions))
        for one in step.after.members
    }
    assert found == {
        "N6wkxFOxT1S85r7DgEethw": "a0 a2 b1 b4",
        "n3_TC7JrQkakDMMihxSlqw": "a1 a6 b0 b3",
        "F93mlKD4QYezQP7vEKHEwg": "a3 a4 a5 a7 b2",
    }


def test_the_recording_has_each_kind_of_change() -> None:
    text = "\n".join(" ".join(one["changes"]) for one in OBSERVED)
    for verb in ("add-members", "remove-member", "partitions", "resubscribe", "bounce-members"):
        assert verb in text
    assert text.count("switch-protocol=consumer") >= 4
    assert text.count("switch-protocol=classic") >= 4
    assigned = {one["before"]["assignor"] for one in OBSERVED}
    assert assigned >= {"consumer/uniform", "consumer/range", "cooperative-sticky"}


def test_the_recording_has_share_and_streams_groups() -> None:
    for assignor, verbs in (
        ("share/simple", ("add-members", "remove-member", "partitions", "resubscribe")),
        ("streams/sticky", ("add-members", "remove-member")),
    ):
        some = [one for one in ASSIGNED if one["before"]["assignor"] == assignor]
        text = "\n".join(" ".join(one["changes"]) for one in some)
        assert len(some) >= 10
        assert all(verb in text for verb in verbs)
    replicas = {one["before"].get("num_standby_replicas") for one in ASSIGNED}
    assert replicas >= {0, 1, 2}


def test_a_wrong_standby_task_would_be_found() -> None:
    observed = next(one for one in ASSIGNED if '"standby_tasks"' in json.dumps(one["seen"]))
    observed = json.loads(json.dumps(observed))
    taken = next(one for one in observed["seen"][-1]["members"] if one.get("standby_tasks"))
    taken["standby_tasks"][0]["partitions"].pop()
    assert (again(observed).problem or "").startswith("wrong after ")


def test_a_wrong_plan_would_be_found() -> None:
    observed = json.loads(json.dumps(OBSERVED[0]))
    members = observed["seen"][-1]["members"]
    taken = next(one for one in members if one.get("owned_partitions"))
    taken["owned_partitions"][0]["partitions"].pop()
    assert (again(observed).problem or "").startswith("wrong after ")


def test_the_table_has_the_order_that_brokers_describe() -> None:
    """Every recorded group of a broker is listed by the bits that its size needs."""
    groups = [g for one in OBSERVED for g in one["seen"] if g["assignor"].startswith("consumer/")]
    assert len(groups) > 20
    for group in groups:
        members = [Member(one["member_id"], ()) for one in group["members"]]
        assert in_table_order(members) == members


def _in_table(member_ids: list[str]) -> list[str]:
    """Returns the order of a broker's table after members joined, and after one entry is
    replaced.
    """
    table = TimelineHashMap[str, None]()
    for member_id in [*member_ids, member_ids[-1]]:
        table.put(member_id, None)
    return list(table)


@pytest.mark.parametrize("count", [2, 5])
def test_the_table_doubles_when_an_entry_is_replaced(count: int) -> None:
    for first in range(20):
        ids = [f"m{number}" for number in range(first, first + count)]
        members = [Member(one, ()) for one in reversed(ids)]
        assert [one.member_id for one in in_table_order(members)] == _in_table(ids)


def test_members_that_share_a_target_are_in_the_order_of_the_table() -> None:
    group = broker_group("consumer/uniform", [[0, 1, 2, 3, 4, 5]])
    new = [Member(f"n{i}", ("t",)) for i in range(8)]
    after = joined_together(group.edited(members=(*group.members, *new)), "rust")
    ids = [one.member_id for one in after.members]
    assert ids == _in_table(["m0", *(one.member_id for one in new)])


# Rounds -------------------------------------------------------------------------------------------


def test_only_what_moves_stops(engine: Engine) -> None:
    group = broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    plan = kr.plan(group, None, ["add-members=1"], engine=engine)
    (only,) = plan.rounds
    assert (only.kind, only.generation_id, plan.moves) == ("broker", 6, 2)
    gained = {tp for owned in only.gained.values() for tp in owned}
    assert gained == {tp for owned in only.withheld.values() for tp in owned}
    assert set(only.unavailable) == gained
    assert note_kinds(plan) == ["stops", "interval"]


def test_members_that_join_have_a_target_each() -> None:
    plan = kr.plan(broker_group("consumer/uniform", [[0, 1, 2, 3, 4, 5]]), None, ["add-members=2"])
    assert [one.generation_id for one in plan.rounds] == [6, 7]
    assert [len(one.group.members) for one in plan.rounds] == [2, 3]
    assert all(len(member_id) == 22 for member_id in plan.made_up)


def test_equal_topics_start_no_rebalance() -> None:
    group = broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    assert kr.plan(group, None, ["resubscribe=m0:t"]).rounds == ()
    classic = group.edited(assignor="range")
    assert kr.plan(classic, None, ["resubscribe=m0:t"]).rounds == ()


@pytest.mark.parametrize("engine", ["rust", "reference"])
@pytest.mark.parametrize("assignor", ["consumer/uniform", "consumer/range", "share/simple"])
def test_a_topic_is_deleted_under_its_owners(assignor: str, engine: Engine) -> None:
    line = broker_line(assignor, [[0, 1, 2], [3, 4, 5]])
    line["topics"].append({"name": "u", "partitions": 1, "topic_id": "AAAAAAAAAAEAAAAAAAAAAw"})
    line["members"][0]["topics"] = ["t", "u"]
    line["members"][0]["owned_partitions"].append({"topic": "u", "partitions": [0]})
    plan = kr.plan(kr.GroupSpec.from_dict(line), None, ["remove-topics=u"], engine=engine)
    assert len(plan.rounds) == 1
    assert plan.after.to_dict() == {
        "m0": [["t", 0], ["t", 1], ["t", 2]],
        "m1": [["t", 3], ["t", 4], ["t", 5]],
    }


def test_the_tie_of_assignor_names_is_named() -> None:
    change = ["switch-assignor=consumer/range"]
    pair = kr.plan(broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]]), None, change)
    assert "tie" in note_kinds(pair)
    three = kr.plan(broker_group("consumer/uniform", [[0, 1], [2, 3], [4, 5]]), None, change)
    assert "tie" in note_kinds(three)  # while the second of them is down
    static = (replace(one, group_instance_id=f"i{n}") for n, one in enumerate(three.group.members))
    assert "tie" not in note_kinds(kr.plan(three.group.edited(members=tuple(static)), None, change))
    four = kr.plan(three.group, None, ["add-members=1", *change])
    assert "tie" not in note_kinds(four)
    assert "tie" in note_kinds(kr.plan(three.group, None, [*change, "add-members=1"]))


def test_a_share_group_waits_for_nobody() -> None:
    line = broker_line("share/simple", [[0, 1, 2], [3, 4, 5]])
    line["topics"].append({"name": "u", "partitions": 1, "topic_id": "AAAAAAAAAAEAAAAAAAAAAw"})
    line["members"][0]["topics"] = ["t", "u"]
    group = kr.GroupSpec.from_dict(line)
    plan = kr.plan(group, None, ["add-members=1,like=m1"])
    assert not any(one.withheld for one in plan.rounds)
    assert plan.possible.balance == plan.after.balance
    assert note_kinds(plan) == ["stops"]


def test_a_topic_that_nobody_reads_stays_in_a_share_target() -> None:
    line = broker_line("share/simple", [[0], [1]])
    line["topics"].append({"name": "u", "partitions": 2, "topic_id": "AAAAAAAAAAEAAAAAAAAAAw"})
    line["members"][0]["owned_partitions"].append({"topic": "u", "partitions": [0, 1]})
    line["members"][1]["topics"] = ["t", "v"]  # different topics: heterogeneous
    plan = kr.plan(kr.GroupSpec.from_dict(line), None, [])
    assert note_kinds(plan) == ["stops", "ignored"]
    assert any(tp.topic == "u" for owned in plan.after.values() for tp in owned)


def test_a_comparison_has_the_brokers_and_the_leaders_assignors() -> None:
    group = broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    names = [one.assignor for one in kr.compare(group, ["add-members=1"]).candidates]
    assert names[:2] == ["consumer/uniform", "consumer/range"]
    assert "cooperative-sticky" in names
    assert kr.compare(group).recommended == "consumer/uniform"
    shared = kr.compare(group.edited(assignor="share/simple"))
    assert [one.assignor for one in shared.candidates] == ["share/simple"]

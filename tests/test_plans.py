# SPDX-License-Identifier: Apache-2.0
"""Plans pass independent checks and are equal in both engines; also comparisons, explanations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupError, GroupSpec, Member, RebalancePlan, Topic, TopicPartition
from kafka_rebalance.assignors import RebalanceProtocol, register, unregister
from kafka_rebalance.bulk import compare_batch, plan_batch
from kafka_rebalance.plans import partition_from_text
from tests.support.generate_changes import groups_and_changes
from tests.support.plan_checks import check_rounds, check_witnesses
from tests.support.planned_groups import TPS, captured, pair

if TYPE_CHECKING:
    from tests.support.seeds import Seeds

Drawn = tuple[GroupSpec, list[str], RebalancePlan | GroupError]


def drawn(seed: int, count: int) -> Iterator[Drawn]:
    """Yields `count` generated groups with changes, each with its plan or its error."""
    for group, changes in groups_and_changes(seed, count):
        try:
            yield group, changes, kr.plan(group, None, changes)
        except GroupError as error:
            yield group, changes, error


def each_drawn(seeds: Seeds, count: int) -> Iterator[Drawn]:
    for seed in seeds:
        yield from drawn(seed, count)


def is_plain(plan: RebalancePlan) -> bool:
    """Returns whether no partition has two claims, and the plan settles without anomalies."""
    claims = [tp for member in plan.group.members for tp in member.owned_partitions]
    return (
        len(set(claims)) == len(claims)
        and plan.settled
        and bool(plan.steps[-1].rounds)
        and not any(one.assignment.anomalies for one in plan.rounds)
    )


@pytest.mark.soak
@pytest.mark.seeds(quick=40, whole=40)
def test_random_plans_have_legal_rounds(seeds: Seeds) -> None:
    """Each round is legal and equals `assign`; no plan is better than the best possible."""
    planned = uneven = wasteful = 0
    for number, (group, changes, plan) in enumerate(each_drawn(seeds, 30)):
        if isinstance(plan, GroupError):
            continue
        planned += 1
        check_rounds(plan, engine="reference" if number % 10 == 0 else "rust")
        check_witnesses(_as_it_began(plan), plan.possible)
        if not is_plain(plan):
            continue
        mine = sorted(plan.after.counts(), reverse=True)
        best = sorted(plan.possible.assignment.counts(), reverse=True)
        assert best <= mine, (group, changes)
        uneven += best < mine
        if best == mine:
            least_moves = plan.possible.least_moves
            assert least_moves is not None
            assert least_moves <= plan.moves, (group, changes)
            wasteful += least_moves < plan.moves
    assert planned >= 150
    assert uneven
    assert wasteful


def _seen(group: GroupSpec) -> list[tuple[str, frozenset[str], dict[str, int]]]:
    """Returns each member's subscription, and the partitions of its topics."""
    counts = group.partition_counts()
    return [
        (m.member_id, frozenset(m.topics), {t: counts[t] for t in m.topics if t in counts})
        for m in group.members
    ]


@pytest.mark.soak
def test_topics_start_a_rebalance_only_if_a_member_sees_a_change(first_seed: int) -> None:
    """Java's leader compares the topics that members read, a broker the hash of their metadata.

    Members of aiokafka, and an eager leader of librdkafka, join again even if they resubscribe to
    the topics that they have.
    """
    idle = starting = 0
    for group, changes, plan in drawn(first_seed, 400):
        if isinstance(plan, GroupError):
            continue
        before = plan.group
        for step in plan.steps:
            if step.cause.startswith(("partitions", "remove-topics", "resubscribe")):
                same = _seen(before) == _seen(step.before)
                libraries = {member.client_library for member in group.members} - {None, "java"}
                if same and libraries and step.cause.startswith("resubscribe"):
                    continue
                assert bool(step.rounds) is not same, (group, changes, step.cause)
                idle, starting = idle + same, starting + (not same)
            before = step.after
    assert idle > 5
    assert starting > 50


def _as_it_began(plan: RebalancePlan) -> GroupSpec:
    """Returns the group at the end of the plan, whose members own what they owned before it."""
    began = {member.member_id: member for member in plan.group.members}
    last = plan.steps[-1]
    members = []
    for member in last.after.members:
        then = began.get(last.origins.get(member.member_id, ""))
        members.append(
            Member(
                member.member_id,
                member.topics,
                owned_partitions=then.owned_partitions if then else (),
                generation_id=then.generation_id if then else None,
            )
        )
    return GroupSpec("began", last.after.topics, tuple(members))


COLUMNS = pa.schema(
    {
        "group_id": pa.string(),
        "assignor": pa.string(),
        "rebalance_protocol": pa.string(),
        "topics": pa.list_(
            pa.struct(
                {
                    "name": pa.string(),
                    "partitions": pa.int32(),
                    "racks": pa.list_(pa.list_(pa.string())),
                }
            )
        ),
        "members": pa.list_(
            pa.struct(
                {
                    "member_id": pa.string(),
                    "group_instance_id": pa.string(),
                    "client_id": pa.string(),
                    "topics": pa.list_(pa.string()),
                    "owned_partitions": pa.list_(
                        pa.struct({"topic": pa.string(), "partitions": pa.list_(pa.int32())})
                    ),
                    "generation_id": pa.int32(),
                    "rack_id": pa.string(),
                    "subscription_version": pa.int32(),
                    "client_library": pa.string(),
                }
            )
        ),
        "changes": pa.list_(pa.string()),
    }
)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def figures_or_error(plan: RebalancePlan | GroupError) -> dict[str, Any]:
    if isinstance(plan, GroupError):
        names = [one.name for one in fields(kr.Figures)]
        error = {"not_affected": None, "error": str(plan), "error_kind": _kind(plan)}
        return {"assignor": None, **dict.fromkeys(names), **error}
    figures = plan.figures().to_dict()
    none = {"not_affected": None, "error": None, "error_kind": None}
    return {"assignor": plan.assignor, **figures, **none}


def _kind(error: GroupError) -> str:
    if isinstance(error, kr.AssignorThrows):
        return "never-ends" if isinstance(error, kr.NeverEnds) else "throws"
    if isinstance(error, kr.NoMembersLeft):
        return "no-members"
    return "change" if error.path.startswith("changes[") else "group"


@pytest.mark.soak
def test_rusts_figures_are_the_same_also_the_errors(first_seed: int) -> None:
    rows, expected = [], []
    for group, changes, plan in drawn(first_seed, 1000):
        rows.append({**group.to_dict(), "changes": changes})
        expected.append({"group_id": group.group_id, **figures_or_error(plan)})
    assert plan_batch(batch_of(rows)).to_pylist() == expected
    assert sum(row["error"] is None for row in expected) > 500
    assert sum(row["error"] is not None for row in expected) > 100
    assert sum(bool(row["waiting"]) for row in expected) > 20
    assert sum(bool(row["leaderless"]) for row in expected) > 2


@pytest.mark.seeds(quick=4, whole=20)
def test_the_reference_plans_the_same(seeds: Seeds) -> None:
    for group, changes, plan in each_drawn(seeds, 30):
        if isinstance(plan, RebalancePlan):
            again = kr.plan(group, None, changes, engine="reference")
            assert again.to_dict() == plan.to_dict()


def test_a_batch_with_one_list_of_changes_and_what_is_wrong_with_it() -> None:
    group = GroupSpec("g", (Topic("t", 4),), (Member("a", ("t",)), Member("b", ("t",))))
    rows = [group.to_dict(), {**group.to_dict(), "group_id": None}]
    done = plan_batch(batch_of(rows), "sticky", ["add-members=2"]).to_pylist()
    assert (done[0]["moves"], done[0]["balance_after"]["max"]) == (4, 1)
    assert done[1]["error"] == "group_id: missing"
    bad = plan_batch(batch_of(rows[:1]), "sticky", ["add-members=2", "nonsense"]).to_pylist()
    assert bad[0]["error"].startswith('changes[1]: "nonsense" begins with none of ')
    without = batch_of(rows[:1]).select(["group_id", "assignor", "topics", "members"])
    with pytest.raises(TypeError, match="changes: the column is missing"):
        plan_batch(without, "sticky")


# Small groups -------------------------------------------------------------------------------------


def test_a_cooperative_plan_takes_two_rounds_and_stops_only_what_moves() -> None:
    plan = kr.plan(pair("cooperative-sticky"), None, [kr.AddMembers(1)])
    first, second = plan.rounds
    (new,) = plan.made_up
    moved = set(second.gained[new])
    assert len(moved) == 2
    assert set(first.withheld[new]) == moved
    assert first.unavailable == ()
    assert set(second.unavailable) == moved == set(plan.unavailable)
    assert (plan.moves, plan.possible.least_moves) == (2, 2)
    assert [one.generation_id for one in plan.rounds] == [8, 9]


def test_an_eager_plan_stops_everything_once() -> None:
    plan = kr.plan(pair("sticky"), None, ["add-members=1"])
    (only,) = plan.rounds
    assert only.unavailable == tuple(TPS)
    assert plan.unavailable == dict.fromkeys(TPS, 1)
    assert sorted(map(len, only.kept.values())) == [0, 2, 2]


def test_a_dynamic_bounce_is_two_rebalances_a_static_one_none() -> None:
    dynamic = kr.plan(pair("sticky"), None, ["bounce-members=a"])
    assert [step.cause for step in dynamic.steps] == ["a leaves", "a comes back"]
    assert dynamic.moves == 6
    assert dynamic.possible.least_moves == 0
    static = kr.plan(pair("sticky", group_instance_id="s"), None, ["bounce-members=s"])
    assert static.rounds == ()
    assert static.after["s" + static.made_up[0][1:]] == tuple(TPS[:3])
    # Nothing moves, but the partitions of "s" wait for the return of "s".
    assert (static.figures().waiting, static.unavailable) == (3, {})
    assert static.steps[0].waiting == tuple(TPS[:3])
    assert dynamic.figures().waiting == 0
    alone = GroupSpec("g", (Topic("t", 2),), (Member("a", ("t",)),), "range")
    assert [len(step.rounds) for step in kr.plan(alone, None, ["bounce-members"]).steps] == [1]


def test_another_assignor_starts_from_an_empty_table() -> None:
    plan = kr.plan(pair("range"), None, ["switch-assignor=cooperative-sticky"])
    assert [step.cause for step in plan.steps] == [
        "a leaves",
        "a comes back",
        "b leaves, and cooperative-sticky takes over",
        "b comes back",
    ]
    assert [one.group.assignor for one in plan.rounds] == ["range"] * 2 + ["cooperative-sticky"] * 2
    # Members with both assignors in their lists are eager, so they claim nothing.
    for one in plan.rounds[2:]:
        assert all(member.owned_partitions == () for member in one.group.members)
        assert len(one.unavailable) == 6


def test_without_an_assignor_there_is_no_plan() -> None:
    group = GroupSpec("g", (Topic("t", 1),), (Member("a", ("t",)),))
    with pytest.raises(GroupError, match="assignor: missing"):
        kr.plan(group)
    with pytest.raises(GroupError, match='"nope" is not known'):
        kr.plan(group, "nope")


def test_generations_end_where_the_wire_does() -> None:
    last = 2**31 - 1
    member = Member("a", ("t",), owned_partitions=(TPS[0],), generation_id=last)
    group = GroupSpec("g", (Topic("t", 2),), (member,), "sticky")
    assert kr.plan(group).rounds[0].generation_id == last
    assert plan_batch(batch_of([group.to_dict()])).to_pylist()[0]["error"] is None


def test_generations_that_nobody_knows_are_counted_from_now() -> None:
    """If a group's generation is unknown, as in a snapshot of a new group, JSON has null for it."""
    unknown = GroupSpec("g", (Topic("t", 2),), (Member("a", ("t",)),), "range")
    plan = kr.plan(unknown)
    assert not plan.knows_generation
    assert plan.to_dict()["steps"][0]["rounds"][0]["generation_id"] is None
    assert kr.plan(pair("range")).to_dict()["steps"][0]["rounds"][0]["generation_id"] == 8


def test_a_group_that_owns_nothing_is_said_to() -> None:
    """If nobody owns a partition, every partition counts as moved, and the figures show why."""
    group = GroupSpec("g", (Topic("t", 10),), tuple(Member(m, ("t",)) for m in "abc"), "range")
    grows = ["partitions t=12"]
    empty = kr.plan(group, None, grows).figures()
    assert (empty.moves, empty.owns_nothing) == (12, True)
    owning = group.owning(kr.assign(group))
    assert {member.generation_id for member in owning.members} == {1}
    assert owning.owning(kr.assign(group)) == owning
    figures = kr.plan(owning, None, grows).figures()
    assert (figures.moves, figures.owns_nothing) == (3, False)
    assert kr.plan(group.owning({"a": [("t", 0)]})).figures().owns_nothing is False
    with pytest.raises(GroupError, match='assignment: there is no member "d"'):
        group.owning({"d": [("t", 0)]})


def test_one_list_of_changes_for_all_groups_leaves_out_those_that_do_not_affect_a_group() -> None:
    """In bulk, a change that does not affect a group is not an error; the other changes are
    planned.
    """
    rows = [
        GroupSpec(
            name, (Topic(topic, 4),), (Member("a", (topic,)), Member("b", (topic,)))
        ).to_dict()
        for name, topic in (("reads", "t"), ("does not", "u"))
    ]
    grows, more = "partitions t=6", "add-members=1"
    left_out = 'partitions t=6: the group has no topic "t"'
    both = plan_batch(batch_of(rows), "sticky", [grows, more]).to_pylist()
    assert [row["not_affected"] for row in both] == [None, left_out]
    assert [row["moves"] for row in both] == [8, 4]
    one = plan_batch(batch_of(rows), "sticky", [grows]).to_pylist()
    assert [(row["moves"], row["not_affected"], row["error"]) for row in one] == [
        (6, None, None),
        (None, left_out, None),
    ]
    # Nobody reads the topic that grows.
    rows[1]["topics"].append({"name": "t", "partitions": 4})
    idle = "partitions t=6: no rebalance follows, because no member sees a change"
    for answer in (plan_batch(batch_of(rows), "range", [grows]),
                   compare_batch(batch_of(rows), [grows])):  # fmt: skip
        assert [row["not_affected"] for row in answer.to_pylist()] == [None, idle]
    del rows[1]["topics"][1]
    # A change in the row itself must fit the group.
    own = plan_batch(batch_of([{**rows[1], "changes": [grows]}]), "sticky").to_pylist()
    assert own[0]["error"] == 'changes[0]: the group has no topic "t"'


# Comparisons --------------------------------------------------------------------------------------


def test_a_comparison_follows_its_rule() -> None:
    for group in captured().values():
        for changes in ([], ["add-members=1"]):
            compared = kr.compare(group, changes)
            figures = {one.assignor: one.figures for one in compared.candidates}
            assert all(
                one == kr.plan(group, name, changes).figures() for name, one in figures.items()
            )
            assert compared.reason.startswith(compared.recommended or "")
            if "there is only one partition" in compared.reason:
                assert compared.recommended == group.assignor
                continue
            best = figures[compared.recommended or ""]
            assert best is not None
            for one in figures.values():
                assert one is not None
                assert _measures(best) <= _measures(one)


def _measures(one: kr.Figures) -> tuple[float, ...]:
    return (
        one.balance_after.max - one.balance_after.min,
        one.unavailable_rounds,
        one.moves,
        -(one.rack_share_after or 0),
    )


def test_a_comparison_asks_every_assignor_as_it_is() -> None:
    with pytest.raises(GroupError, match=r"changes\[1\]: a comparison asks every assignor"):
        kr.compare(pair("range"), ["add-members=1", "switch-assignor=sticky"])


def test_an_assignor_that_fails_is_not_recommended() -> None:
    class Fails:
        name = "fails"
        version = 0
        supported_protocols = (RebalanceProtocol.EAGER,)

        def subscription_user_data(self, topics: object) -> None:
            return None

        def assign(self, group: GroupSpec) -> dict[str, list[TopicPartition]]:
            raise kr.GroupError("assignor", "it fails")

        def on_assignment(self, assignment: object, generation_id: int) -> None:
            pass

    register(Fails())
    try:
        compared = kr.compare(pair("range"), assignors=["fails", "range"])
        assert [one.error for one in compared.candidates] == ["assignor: it fails", None]
        assert compared.recommended == "range"
        none = kr.compare(pair("range"), assignors=["fails"])
        assert (none.recommended, none.migration) == (None, None)
    finally:
        unregister("fails")


# Reasons ------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_every_explanation_ends_with_who_got_it(first_seed: int) -> None:
    """The last line of each explanation names the partition's owner in the plan."""
    rng = random.Random(first_seed)
    told = 0
    for _, _, plan in drawn(first_seed, 400):
        if isinstance(plan, GroupError) or not plan.steps[-1].rounds:
            continue
        given = [tp for owned in plan.rounds[-1].assignment.values() for tp in owned]
        if not given:
            continue
        tp = rng.choice(given)
        if tp.partition >= plan.final.partition_counts().get(tp.topic, 0):
            continue
        lines = plan.explain(tp)
        end, steps = lines[-1].split(" -> ")[1], lines[:-1]
        holders = [m for m, owned in plan.rounds[-1].assignment.items() if tp in owned]
        assert end == " and ".join(holders)
        told += 1
        if len(holders) == 1 and "librdkafka/" not in steps[-1]:
            assert holders[0] in steps[-1], lines
    assert told > 160


def test_a_partition_that_never_is_cannot_be_explained() -> None:
    plan = kr.plan(pair("sticky"), None, ["partitions t=8"])
    assert plan.explain(TopicPartition("t", 7))
    with pytest.raises(GroupError, match="partition: there is no t-8, and no change makes it"):
        plan.explain(TopicPartition("t", 8))
    assert partition_from_text("a-b-3") == partition_from_text("a-b[3]") == ("a-b", 3)
    with pytest.raises(GroupError, match="is not TOPIC-PARTITION"):
        partition_from_text("orders")

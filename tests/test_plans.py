"""Plans: played again by hand, both engines and Rust's figures, samples, comparisons, reasons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from generate import generate
from generate_changes import changes as draw_changes
from generate_changes import with_client_ids
from kafka_rebalance import GroupError, GroupSpec, Member, RebalancePlan, Topic, TopicPartition
from kafka_rebalance.data import captured_lines
from kafka_rebalance.plans import migration, partition_from_text
from plan_checks import check_rounds, check_witnesses

Drawn = tuple[GroupSpec, list[str], RebalancePlan | GroupError]


def drawn(seed: int, count: int) -> Iterator[Drawn]:
    """`count` generated groups with changes, and their plans or what is wrong with them."""

    def answer(case: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"assignment": kr.assign(GroupSpec.from_dict(case)).to_dict()}
        except GroupError as error:
            return {"error": str(error)}

    rng = random.Random(seed)
    for case in generate(seed, count, kr.assignor_names(), answer):
        group = GroupSpec.from_dict(with_client_ids(rng, case))
        changes = draw_changes(rng, group) if rng.random() < 0.95 else []
        try:
            yield group, changes, kr.plan(group, None, changes)
        except GroupError as error:
            yield group, changes, error


def is_plain(plan: RebalancePlan) -> bool:
    """Nobody claims what another does, and the assignor gave everything to somebody who may."""
    claims = [tp for member in plan.group.members for tp in member.owned_partitions]
    return (
        len(set(claims)) == len(claims)
        and plan.settled
        and bool(plan.steps[-1].rounds)
        and not any(one.assignment.anomalies for one in plan.rounds)
    )


def test_five_thousand_plans_hold() -> None:
    """By hand, legal, and never better than what is possible."""
    planned = uneven = wasteful = 0
    for number, (group, changes, plan) in enumerate(drawn(3, 8200)):
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
            assert plan.possible.least_moves <= plan.moves, (group, changes)
            wasteful += plan.possible.least_moves < plan.moves
    assert planned >= 5000
    assert uneven
    assert wasteful


def _as_it_began(plan: RebalancePlan) -> GroupSpec:
    """The last group with what the same members held at the beginning."""
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
        names = kr.Figures.__slots__
        error = {"not_affected": None, "error": str(plan)}
        return {"assignor": None, **dict.fromkeys(names), **error}
    figures = plan.figures().to_dict()
    return {"assignor": plan.assignor, **figures, "not_affected": None, "error": None}


def test_rusts_figures_are_the_same_also_the_errors() -> None:
    rows, expected = [], []
    for group, changes, plan in drawn(4, 3000):
        rows.append({**group.to_dict(), "changes": changes})
        expected.append({"group_id": group.group_id, **figures_or_error(plan)})
    assert kr.plan_batch(batch_of(rows)).to_pylist() == expected
    assert sum(row["error"] is None for row in expected) > 1500
    assert sum(row["error"] is not None for row in expected) > 300
    assert sum(bool(row["waiting"]) for row in expected) > 100
    assert sum(bool(row["leaderless"]) for row in expected) > 20


def test_the_reference_plans_the_same() -> None:
    for group, changes, plan in drawn(5, 300):
        if isinstance(plan, RebalancePlan):
            again = kr.plan(group, None, changes, engine="reference")
            assert again.to_dict() == plan.to_dict()


def test_a_batch_with_one_list_of_changes_and_what_is_wrong_with_it() -> None:
    group = GroupSpec("g", (Topic("t", 4),), (Member("a", ("t",)), Member("b", ("t",))))
    rows = [group.to_dict(), {**group.to_dict(), "group_id": None}]
    done = kr.plan_batch(batch_of(rows), "sticky", ["add-members=2"]).to_pylist()
    assert (done[0]["moves"], done[0]["balance_after"]["max"]) == (4, 1)
    assert done[1]["error"] == "group_id: missing"
    bad = kr.plan_batch(batch_of(rows[:1]), "sticky", ["add-members=2", "nonsense"]).to_pylist()
    assert bad[0]["error"].startswith('changes[1]: "nonsense" begins with none of ')
    without = batch_of(rows[:1]).select(["group_id", "assignor", "topics", "members"])
    with pytest.raises(TypeError, match="changes: the column is missing"):
        kr.plan_batch(without, "sticky")


# Small stories ------------------------------------------------------------------------------------

TPS = [TopicPartition("t", p) for p in range(6)]


def pair(assignor: str, **fields: Any) -> GroupSpec:
    """Two members with three partitions each, in generation 7."""
    return GroupSpec(
        "g",
        (Topic("t", 6),),
        (
            Member("a", ("t",), owned_partitions=tuple(TPS[:3]), generation_id=7, **fields),
            Member("b", ("t",), owned_partitions=tuple(TPS[3:]), generation_id=7),
        ),
        assignor,
    )


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
    alone = GroupSpec("g", (Topic("t", 2),), (Member("a", ("t",)),), "range")
    assert [len(step.rounds) for step in kr.plan(alone, None, ["bounce-members"]).steps] == [1]


def test_another_assignor_starts_from_an_empty_table() -> None:
    plan = kr.plan(pair("range"), None, ["switch-assignor=cooperative-sticky"])
    (one,) = plan.rounds
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
    assert kr.plan_batch(batch_of([group.to_dict()])).to_pylist()[0]["error"] is None


# Samples ------------------------------------------------------------------------------------------


def test_what_depends_on_ids_is_found() -> None:
    """Range goes by the order of ids: a new one may come first or last."""
    group = GroupSpec(
        "g",
        (Topic("t", 6),),
        (Member("m-55555555-0000-4000-8000-000000000000", ("t",)), Member("z", ("t",))),
        "range",
    )
    like = group.members[0].member_id
    plan = kr.plan(group, None, [kr.AddMembers(1, like=like)])
    samples = kr.sample(plan, 40)
    assert samples.depends
    assert all(sum(ends.values()) == 40 for ends in samples.ends.values())
    assert kr.sample(plan, 40) == samples


def test_members_that_join_alike_are_not_told_apart() -> None:
    plan = kr.plan(pair("cooperative-sticky"), None, [kr.AddMembers(4)])
    samples = kr.sample(plan, 10)
    assert not samples.depends
    assert set(samples.moved.values()) == {0, 10}
    assert samples.to_dict()["draws"] == 10


def test_changes_may_name_made_up_members() -> None:
    new = kr.plan(pair("range"), None, ["add-members=1"]).made_up[0]
    plan = kr.plan(pair("range"), None, ["add-members=1", f"remove-member={new}"])
    assert len(plan.final.members) == 2
    assert kr.sample(plan, 5).depends == frozenset()


# Comparisons --------------------------------------------------------------------------------------


def captured() -> dict[str, GroupSpec]:
    groups = {}
    for line in captured_lines():
        try:
            group = GroupSpec.from_json(line)
        except GroupError:
            continue
        groups[group.group_id] = group
    return groups


def test_a_comparison_follows_its_rule() -> None:
    for group in captured().values():
        for changes in ([], ["add-members=1"]):
            compared = kr.compare(group, changes)
            figures = {one.assignor: one.figures for one in compared.candidates}
            assert all(
                one == kr.plan(group, name, changes).figures() for name, one in figures.items()
            )
            best = figures[compared.recommended or ""]
            assert best is not None
            for one in figures.values():
                assert one is not None
                assert _measures(best) <= _measures(one)
            assert compared.reason.startswith(compared.recommended or "")


def _measures(one: kr.Figures) -> tuple[float, ...]:
    return (
        one.balance_after.max - one.balance_after.min,
        one.unavailable_rounds,
        one.moves,
        -(one.rack_share_after or 0),
    )


def test_eager_to_cooperative_takes_two_bounces() -> None:
    group = pair("range", group_instance_id="s")
    first, second = migration(group, "cooperative-sticky")
    assert "partition.assignment.strategy=cooperative-sticky,range: 2 restarts, 2 reb" in first
    assert "partition.assignment.strategy=cooperative-sticky: 2 restarts" in second
    assert migration(group, "range") == ()
    back = migration(pair("cooperative-sticky"), "range")
    assert "restarted members are eager" in back[0]


def test_a_comparison_asks_every_assignor_as_it_is() -> None:
    with pytest.raises(GroupError, match=r"changes\[1\]: a comparison asks every assignor"):
        kr.compare(pair("range"), ["add-members=1", "switch-assignor=sticky"])


def test_an_assignor_that_fails_is_out() -> None:
    class Fails:
        name = "fails"
        version = 0
        supported_protocols = (kr.RebalanceProtocol.EAGER,)

        def subscription_user_data(self, topics: object) -> None:
            return None

        def assign(self, group: GroupSpec) -> dict[str, list[TopicPartition]]:
            raise kr.GroupError("assignor", "it fails")

        def on_assignment(self, assignment: object, generation_id: int) -> None:
            pass

    kr.register(Fails())
    try:
        compared = kr.compare(pair("range"), assignors=["fails", "range"])
        assert [one.error for one in compared.candidates] == ["assignor: it fails", None]
        assert compared.recommended == "range"
        none = kr.compare(pair("range"), assignors=["fails"])
        assert (none.recommended, none.migration) == (None, ())
    finally:
        kr.unregister("fails")


# Reasons ------------------------------------------------------------------------------------------


def test_every_explanation_ends_with_who_got_it() -> None:
    """The steps are run anew and looked at in between: what they lead to is what was assigned."""
    rng = random.Random(6)
    told = 0
    for _, _, plan in drawn(6, 1200):
        if isinstance(plan, GroupError) or not plan.steps[-1].rounds:
            continue
        given = [tp for owned in plan.rounds[-1].assignment.values() for tp in owned]
        if not given:
            continue
        tp = rng.choice(given)
        if tp.partition >= plan.final.partition_counts().get(tp.topic, 0):
            continue
        lines = kr.explain(plan, tp)
        end, steps = lines[-1].split(" -> ")[1], lines[:-1]
        holders = [m for m, owned in plan.rounds[-1].assignment.items() if tp in owned]
        assert end == " and ".join(holders)
        told += 1
        if len(holders) == 1:
            assert holders[0] in steps[-1], lines
    assert told > 500


def test_a_partition_that_never_is_cannot_be_explained() -> None:
    plan = kr.plan(pair("sticky"), None, ["partitions t=8"])
    assert kr.explain(plan, TopicPartition("t", 7))
    with pytest.raises(GroupError, match="partition: there is no t-8, and no change makes it"):
        kr.explain(plan, TopicPartition("t", 8))
    assert partition_from_text("a-b-3") == partition_from_text("a-b[3]") == ("a-b", 3)
    with pytest.raises(GroupError, match="is not TOPIC-PARTITION"):
        partition_from_text("orders")

# SPDX-License-Identifier: Apache-2.0
"""Samples of a plan: which results depend on ids and names that the plan made up."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
import kafka_rebalance._core as _core
from kafka_rebalance import GroupSpec, Member, Topic
from kafka_rebalance.cli import main
from kafka_rebalance.report.plans.plan import names_in_plan, print_plan
from tests.support.planned_groups import captured, pair

if TYPE_CHECKING:
    from pathlib import Path


def test_what_depends_on_ids_is_found() -> None:
    """Range sorts by member id, so the result depends on the place of the new member's id."""
    group = GroupSpec(
        "g",
        (Topic("t", 6),),
        (Member("m-55555555-0000-4000-8000-000000000000", ("t",)), Member("z", ("t",))),
        "range",
    )
    like = group.members[0].member_id
    plan = kr.plan(group, None, [kr.AddMembers(1, like=like)])
    samples = plan.sample(40)
    assert samples.depends
    assert all(sum(ends.values()) == 40 for ends in samples.ends.values())
    assert plan.sample(40) == samples


def test_members_that_join_alike_are_not_told_apart() -> None:
    plan = kr.plan(pair("cooperative-sticky"), None, [kr.AddMembers(4)])
    samples = plan.sample(10)
    assert not samples.depends
    assert set(samples.moved.values()) == {0, 10}
    assert samples.to_dict()["draws"] == 10


def test_draws_in_which_the_assignor_throws_are_counted_and_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """kafka-python's roundrobin raises KeyError if it has to skip a member; ids decide whether it
    has to.
    """
    first = Member("c-2aaaaaaa-0000-4000-8000-000000000000", ("t", "u"), client_id="c")
    second = Member("c-abbbbbbb-0000-4000-8000-000000000000", ("t",), client_id="c")
    name = "kafka-python/roundrobin"
    group = GroupSpec("g", (Topic("t", 2), Topic("u", 1)), (first, second), name, 1)
    plan = kr.plan(group, None, ["bounce-members"])
    samples = plan.sample()
    assert samples.throws
    assert samples.draws + len(samples.throws) == 8
    assert all(sum(ends.values()) == samples.draws for ends in samples.ends.values())
    print_plan(plan, samples, names_in_plan(plan), everything=False)
    printed = " ".join(capsys.readouterr().out.split())
    failing = f"In {len(samples.throws)} of 8 samples, the rebalance fails: {name} raises"
    assert failing in printed


def test_draws_vary_the_place_of_a_name_that_is_a_guess() -> None:
    """The shipped group `orders` runs range, which sorts by member id, so a new name matters."""
    orders = captured()["orders"]
    plan = kr.plan(orders, None, [kr.AddMembers(1)])
    assert plan.made_up[0].startswith("orders-10-")
    assert plan.moves == 23
    copied = orders.members[-1].client_id
    assert kr.plan(orders, None, [kr.AddMembers(1, client_id=copied)]).moves == 8
    samples = plan.sample()
    assert samples.varied
    assert len(samples.moves) == len(orders.members) + 1
    # The samples try every place in the order, so they cover the number of moves for any name.
    for name in ("a", "orders-1", "orders-10", "orders-5", "zz"):
        assert kr.plan(orders, None, [kr.AddMembers(1, client_id=name)]).moves in {
            plan.moves,
            *samples.moves,
        }
    assert samples.depends


def test_names_that_are_given_or_shared_are_not_varied() -> None:
    orders = captured()["orders"]
    given = kr.plan(orders, None, ["add-members=2,client-id=orders-10"])
    samples = given.sample(8)
    assert not samples.varied
    assert not samples.depends
    assert set(samples.moves) == {given.moves}
    members = tuple(
        Member(f"app-{n}1b1c1d1-0000-4000-8000-000000000000", ("t",), client_id="app")
        for n in range(3)
    )
    shared = GroupSpec("g", (Topic("t", 6),), members, "range")
    plan = kr.plan(shared, None, ["add-members=1"])
    assert [(one.name, one.basis.value) for one in plan.newcomers] == [("app", "shared")]
    samples = plan.sample(16)
    assert not samples.varied
    assert samples.depends  # only the UUIDs differ between the samples


def test_changes_refer_to_a_made_up_member_in_every_sample() -> None:
    """A later change can contain a made-up name; each sample replaces the name there, too."""
    orders = captured()["orders"]
    for change in ("remove-client=orders-10", "bounce-members=*"):
        plan = kr.plan(orders, None, ["add-members=1", change])
        assert len(plan.sample(12).moves) == 12
    static = kr.plan(pair("range", group_instance_id="s-1"), None, ["add-members=1,like=s-1"])
    assert static.newcomers[0].name == "s-2"
    gone = kr.plan(static.group, None, ["add-members=1,like=s-1", "remove-member=s-2"])
    assert not gone.sample(6).depends


def test_samples_do_not_count_the_plan_itself() -> None:
    """`ends` and `moved` count only the samples."""
    samples = kr.plan(captured()["orders"], None, ["add-members=1"]).sample(10)
    assert all(sum(ends.values()) == 10 for ends in samples.ends.values())
    assert all(count <= 10 for count in samples.moved.values())


def test_changes_may_name_made_up_members() -> None:
    new = kr.plan(pair("range"), None, ["add-members=1"]).made_up[0]
    plan = kr.plan(pair("range"), None, ["add-members=1", f"remove-member={new}"])
    assert len(plan.final.members) == 2
    assert plan.sample(5).depends == frozenset()


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_the_core_counts_draws_as_python_does(assignor: str) -> None:
    topics = tuple(Topic(name, 5, racks=(("a",),) * 5) for name in ("t", "u"))
    members = (Member("b-0", ("t", "u"), rack_id="a"), Member("z", ("t",), rack_id="b"))
    group = GroupSpec("g", topics, members, assignor)
    plan = kr.plan(group, None, ["add-members=2", "bounce-members=*", "remove-topics=u"])
    in_core, in_python = plan.sample(12), pickle.loads(pickle.dumps(plan)).sample(12)
    assert in_core == in_python
    assert [*in_core.moved.items()] == [*in_python.moved.items()]
    for tp, ends in in_core.ends.items():
        assert ends.most_common() == in_python.ends[tp].most_common()


def test_the_command_plays_a_plan_once_and_all_draws_in_one_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: Counter[str] = Counter()

    def counts(name: str) -> None:
        original = getattr(_core, name)

        def call(*arguments: object) -> object:
            calls[name] += 1
            return original(*arguments)

        monkeypatch.setattr(_core, name, call)

    for name in ("plan", "sample", "assign"):
        counts(name)
    path = tmp_path / "groups.jsonl"
    path.write_text(pair("cooperative-sticky").to_json() + "\n")
    assert main(["plan", "--add-members", "1", str(path)]) == 0
    assert "samples of" in capsys.readouterr().out
    assert calls == {"plan": 1, "sample": 1}

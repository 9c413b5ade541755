# SPDX-License-Identifier: Apache-2.0
"""The field `rebalance_protocol` of a group: how it is read, validated, recognised and planned."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors import RebalanceProtocol, register, unregister
from kafka_rebalance.assignors.registry import BUILT_IN, SERVER_SIDE, Engine
from kafka_rebalance.bulk import assign_batch, plan_batch
from kafka_rebalance.group.model import wrong_protocol
from kafka_rebalance.live.classic_groups import described_line
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.plans.changes.other_assignor import run_by
from kafka_rebalance.simulator.from_group import scenario_from_group
from kafka_rebalance.watch.verdict import judged_rebalance
from kafka_rebalance.wire import consumer_protocol as wire
from tests.support.contract_lines import as_bytes, error_of_both, valid_line_with
from tests.support.prompt import command
from tests.test_mixed_lists import IDS, between

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COOPERATIVE = "cooperative-sticky"


def eager(assignor: str = COOPERATIVE) -> kr.GroupSpec:
    return between().edited(assignor=assignor, rebalance_protocol="eager")


# Reading and validation ---------------------------------------------------------------------------


def test_the_field_goes_through_every_form() -> None:
    group = eager()
    line = json.loads(group.to_json())
    assert line["rebalance_protocol"] == "eager"
    assert kr.GroupSpec.from_json(group.to_json()) == group == kr.GroupSpec.from_dict(line)
    assert pickle.loads(pickle.dumps(group)) == group == copy.copy(group)
    assert group != between()
    assert "rebalance_protocol" not in between().to_dict()
    assert kr.GroupSpec.from_json(between().to_json()).rebalance_protocol is None
    owning = group.owning(kr.assign(group), generation_id=11)
    assert owning.rebalance_protocol == "eager"


@pytest.mark.parametrize(
    ("assignor", "protocol", "problem"),
    [
        (COOPERATIVE, "Eager", '"Eager" is not "eager" or "cooperative"'),
        ("range", "cooperative", '"range" supports only "eager"'),
        ("librdkafka/roundrobin", "cooperative", '"librdkafka/roundrobin" supports only "eager"'),
        (None, "eager", "the field assignor is missing, which supports the protocol"),
        (
            "consumer/uniform",
            "eager",
            'the broker assigns a group of "consumer/uniform", which has no such protocol',
        ),
    ],
)
def test_a_protocol_that_the_assignor_lacks(
    assignor: str | None, protocol: str, problem: str
) -> None:
    line = valid_line_with(("assignor",), assignor) | {"rebalance_protocol": protocol}
    expected = f"rebalance_protocol: {problem}"
    assert error_of_both(as_bytes(line)) == expected
    (row,) = assign_batch(pa.RecordBatch.from_pylist([line])).to_pylist()
    assert row["error"] == expected
    fields: dict[str, Any] = {"assignor": assignor, "rebalance_protocol": protocol}
    with pytest.raises(kr.GroupError) as raised:
        kr.GroupSpec("g", (), (kr.Member("m", ()),), **fields)
    assert str(raised.value) == expected


def test_the_assignors_support_what_their_row_says() -> None:
    for name, row in BUILT_IN.items():
        refused = {one for one in ("eager", "cooperative") if wrong_protocol(one, name)}
        if name in SERVER_SIDE:
            assert refused == {"eager", "cooperative"}
        else:
            # No client lists an assignor of this project, so a group's lists are not known.
            assert refused == (set() if row.withholds or not row.clients else {"cooperative"})


def test_another_assignor_is_listed_alone() -> None:
    group = eager()
    assert run_by(group, "range").rebalance_protocol is None
    assert run_by(group, f"librdkafka/{COOPERATIVE}").rebalance_protocol == "eager"
    assert group.edited(assignor="sticky").rebalance_protocol is None
    # A plan of another assignor does not depend on the field.
    assert kr.plan(group, "sticky").to_dict() == kr.plan(between(), "sticky").to_dict()


def test_a_switch_to_the_own_assignor_of_an_eager_group_names_the_bounce(engine: Engine) -> None:
    with pytest.raises(kr.GroupError, match="already; `compare` has the rolling bounce"):
        kr.plan(eager(), changes=[kr.SwitchAssignor(COOPERATIVE)], engine=engine)
    with pytest.raises(kr.GroupError, match=r"already$"):
        kr.plan(between(), changes=[kr.SwitchAssignor(COOPERATIVE)], engine=engine)
    answer = plan_batch([eager()], changes=["switch-assignor=cooperative-sticky"])
    assert "already; `compare` has" in answer.to_pylist()[0]["error"]


@pytest.mark.parametrize("assignor", ["share/simple", "streams/sticky", "consumer/range"])
def test_batches_refuse_a_switch_to_the_brokers_assignors_as_plans_do(assignor: str) -> None:
    switch = f"switch-assignor={assignor}"
    with pytest.raises(kr.GroupError) as raised:
        kr.plan(between(), changes=[switch])
    (row,) = plan_batch([between()], changes=[switch]).to_pylist()
    assert row["error"] == str(raised.value)


class Hoarding:
    """A registered assignor that gives all partitions to the last member."""

    name = "hoarding"
    version = 0
    supported_protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return None

    def assign(self, group: kr.GroupSpec) -> Mapping[str, Sequence[kr.TopicPartition]]:
        every = [kr.TopicPartition(t.name, p) for t in group.topics for p in range(t.partitions)]
        return {group.members[-1].member_id: every}

    def on_assignment(self, assignment: Sequence[kr.TopicPartition], generation_id: int) -> None:
        """Remembers nothing."""


class HoardingBoth(Hoarding):
    supported_protocols = (
        RebalanceProtocol.EAGER,
        RebalanceProtocol.COOPERATIVE,
    )


@pytest.fixture
def hoarding() -> Iterator[None]:
    yield
    unregister("hoarding")


@pytest.mark.usefixtures("hoarding")
def test_a_registered_assignor_is_asked_for_its_protocols() -> None:
    fields: dict[str, Any] = {"rebalance_protocol": "cooperative"}
    group = between().edited(assignor="hoarding", **fields)
    register(Hoarding())
    with pytest.raises(kr.GroupError) as raised:
        kr.plan(group)
    assert str(raised.value) == 'rebalance_protocol: "hoarding" supports only "eager"'
    unregister("hoarding")
    register(HoardingBoth())
    (one,) = kr.plan(eager("hoarding")).rounds
    assert one.kind == "eager"
    assert not any(member.owned_partitions for member in one.group.members)


# Plans --------------------------------------------------------------------------------------------


def test_a_restart_moves_what_it_moved_on_a_broker(engine: Engine) -> None:
    """kpr-1 left and came back: 2 rebalances, 28 gains; planned as cooperative, 3 and 13."""
    change = [f"bounce-members={IDS[1]}"]
    plan = kr.plan(eager(), None, change, engine=engine)
    assert [(one.kind, one.moves) for one in plan.rounds] == [("eager", 14), ("eager", 14)]
    claims = (m.owned_partitions for one in plan.rounds for m in one.group.members)
    assert not any(claims)
    assert len(plan.unavailable) == 20
    other = kr.plan(between(), None, change, engine=engine)
    assert (len(other.rounds), other.moves) == (3, 13)


def test_compare_asks_the_own_assignor_as_the_group_runs_it(engine: Engine) -> None:
    compared = kr.compare(eager(), ["add-members=1"], engine=engine)
    figures = {one.assignor: one.figures for one in compared.candidates}
    own = figures.pop(COOPERATIVE)
    assert own is not None
    assert (own.rounds, own.unavailable) == (1, 20)
    plain = kr.compare(between(), ["add-members=1"], engine=engine)
    others = {one.assignor: one.figures for one in plain.candidates}
    assert others.pop(COOPERATIVE) != own
    assert figures == others


def test_compare_has_the_figures_of_plan_for_an_eager_group_with_a_dialect() -> None:
    """librdkafka led: both commands take its assignor, and keep the rebalance protocol."""
    members = tuple(replace(member, client_library="librdkafka") for member in eager().members)
    line = replace(eager(), members=members, leader_library="librdkafka").to_json()
    words = ["-", "--add-members", "1", "--json"]
    planned = json.loads(command("plan", *words, stdin=line).stdout)
    compared = json.loads(command("compare", *words, stdin=line).stdout)
    assert planned["assignor"] == compared["assignor"] == f"librdkafka/{COOPERATIVE}"
    (own,) = (one for one in compared["candidates"] if one["assignor"] == planned["assignor"])
    figures = ("rounds", "moves", "unavailable")
    assert [own[name] for name in figures] == [planned[name] for name in figures]
    assert planned["rounds"] == 1


def test_the_simulator_gives_the_members_both_assignors() -> None:
    def lists(group: kr.GroupSpec, assignor: str | None = None) -> set[tuple[str, ...]]:
        scenario = scenario_from_group(group, [kr.AddMembers(1)], assignor=assignor)
        configs = [one.config for one in scenario.members]
        return {
            one.partition_assignment_strategy for one in configs if isinstance(one, ConsumerConfig)
        }

    assert lists(eager()) == {(COOPERATIVE, "range")}
    assert lists(eager(), "sticky") == {("sticky",)}
    assert lists(between()) == {(COOPERATIVE,)}


# The protocol in a snapshot -----------------------------------------------------------------------


def sent(
    generation_id: int | None, owned: Iterable[int] = (), *, static: bool = False, **fields: Any
) -> tuple[wire.Subscription, bool, str]:
    partitions = tuple(kr.TopicPartition("t", p) for p in owned)
    told = {"generation_id": generation_id, "user_data": b"\0\0\0\1", **fields}
    return wire.Subscription(("t",), owned_partitions=partitions, **told), static, "app"


def of_librdkafka(
    generation_id: int | None, owned: Iterable[int] = ()
) -> tuple[wire.Subscription, bool, str]:
    subscription, static, _ = sent(generation_id, owned, user_data=b"", rack_id="")
    return subscription, static, "rdkafka"


def seen(
    members: Sequence[tuple[wire.Subscription, bool, str]],
    assignor: str = COOPERATIVE,
    assigned: int = 8,
) -> str | None:
    given = [[n for n in range(assigned) if n % len(members) == m] for m in range(len(members))]
    described = [
        SimpleNamespace(
            member_id=f"m{m}",
            group_instance_id=f"i{m}" if static else None,
            client_id=client_id,
            client_host="/h",
            member_metadata=wire.encode_subscription(subscription),
            member_assignment=wire.encode_assignment(
                wire.AssignmentData(tuple(kr.TopicPartition("t", p) for p in given[m]))
            ),
        )
        for m, (subscription, static, client_id) in enumerate(members)
    ]
    group = SimpleNamespace(group_id="g", protocol_data=assignor, members=described)
    line = described_line(group)
    protocol: str | None = line.get("rebalance_protocol")
    kr.GroupSpec.from_dict(line | {"topics": [{"name": "t", "partitions": assigned}]})
    return protocol


NEW = sent(None)


@pytest.mark.parametrize(
    ("members", "protocol"),
    [
        ([sent(4), sent(4), NEW], "eager"),
        ([sent(0), NEW], "eager"),  # generation 0 is a generation
        ([sent(4, [0, 1]), sent(4, [2, 3])], "cooperative"),
        # The new member may list range too, as Java's default does: it is eager then.
        ([sent(4, [0, 1]), NEW], None),
        # A member without claims is eager, between two bounces of a switch, or it was idle before.
        ([sent(4, [0, 1]), sent(4), NEW], None),
        # All are new: they have nothing to claim.
        ([NEW, NEW], None),
        # Nobody joined: the owners may have left, or the topic was created late.
        ([sent(4), sent(4)], None),
        # A rebalance began before the SyncGroup of generation 1 was answered: nothing to claim.
        ([sent(1, user_data=b"\xff\xff\xff\xff"), NEW, NEW], None),
        # One member was assigned in generation 3, and claims nothing.
        ([sent(4, user_data=b"\0\0\0\3"), NEW], "eager"),
        # A static member sends no generation after a restart, which starts no rebalance.
        ([sent(4), sent(None, static=True)], None),
        # librdkafka's members are cooperative; they show nothing about Java's members.
        ([sent(4), NEW, of_librdkafka(4)], None),
        ([sent(4), NEW, of_librdkafka(4, [0, 1])], None),
        ([of_librdkafka(4, [0, 1])], None),
    ],
)
def test_a_snapshot_sees_whether_members_are_eager(
    members: list[tuple[wire.Subscription, bool, str]], protocol: str | None
) -> None:
    assert seen(members) == protocol


def test_idle_members_and_eager_assignors_show_nothing() -> None:
    members = [sent(4), sent(4), NEW]
    assert seen(members, assigned=3) is None
    assert seen(members, assigned=4) == "eager"
    assert seen(members, "range") is None


def test_java_before_version_2_has_the_generation_in_its_user_data() -> None:
    old = sent(None, version=1, user_data=b"\0\0\0\4")
    new = sent(None, version=1, user_data=b"\xff\xff\xff\xff")
    assert seen([old, new]) == "eager"
    assert seen([new, new]) is None


def test_a_watched_rebalance_keeps_what_is_known_of_the_protocol() -> None:
    """After a member left, the subscriptions do not show the protocol, but the moment before
    does.
    """
    before = eager()
    plan = kr.plan(before, None, [f"remove-member={IDS[1]}"])
    after = kr.GroupSpec.from_dict(
        {k: v for k, v in plan.final.to_dict().items() if k != "rebalance_protocol"}
    )
    assert judged_rebalance(before, after).is_predicted
    assert not judged_rebalance(between(), after).is_predicted


# The printed protocol -----------------------------------------------------------------------------

ASSUMED = "every member lists only cooperative assignors"
SET = 'set "rebalance_protocol": "eager" in the line of the group'
EAGER = "The members are eager (rebalance_protocol): beside cooperative-sticky"


def told(words: list[str], *groups: kr.GroupSpec) -> str:
    run = command(*words, stdin="".join(f"{group.to_json()}\n" for group in groups))
    assert run.returncode == 0, run.stderr
    return " ".join(run.stdout.split())


@pytest.mark.parametrize(
    "words", [["plan", "-"], ["describe", "-"], ["explain", "orders-3", "-"], ["compare", "-"]]
)
def test_one_group_is_told_what_is_assumed_or_known(words: list[str]) -> None:
    unknown, known = told(words, between()), told(words, eager())
    assert ASSUMED in unknown
    assert SET in unknown
    assert EAGER not in unknown
    assert ASSUMED not in known
    assert EAGER in known
    fields: dict[str, Any] = {"rebalance_protocol": "cooperative"}
    cooperative = told(words, between().edited(**fields))
    assert ASSUMED not in cooperative
    assert EAGER not in cooperative


def test_many_groups_are_told_for_how_many_it_is_assumed() -> None:
    groups = [between(), eager(), replace_id(between(), "h")]
    text = told(["plan", "-"], *groups)
    assert f"Assumed for 2 cooperative groups (kp-range, h): {ASSUMED}" in text
    more = [replace_id(between(), f"g{n}") for n in range(4)]
    assert f"Assumed for 4 cooperative groups: {ASSUMED}" in told(["plan", "-"], *more)
    assert SET in text
    assert "Assumed for" not in told(["plan", "-"], eager(), replace_id(eager(), "h"))


def replace_id(group: kr.GroupSpec, group_id: str) -> kr.GroupSpec:
    return replace(group, group_id=group_id, max_partitions=group.limit)

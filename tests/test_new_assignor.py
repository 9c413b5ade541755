# SPDX-License-Identifier: Apache-2.0
"""A new assignor needs one row: this test follows the steps of CONTRIBUTING.md at run time."""

from __future__ import annotations

import re

import pytest

import kafka_rebalance as kr
from kafka_rebalance import _core
from kafka_rebalance.assignors import RebalanceProtocol
from kafka_rebalance.assignors.classic import range as ranges
from kafka_rebalance.assignors.objects import built_in
from kafka_rebalance.assignors.registry import BUILT_IN, BuiltIn, in_core
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.plans.clients import CLIENTS, JAVA
from kafka_rebalance.wire.consumer_protocol import encode_cooperative_user_data
from tests.support.contributing import ROOT, check_steps, two_members

GROUP = two_members(5, "reversed")


def _reversed(group: kr.GroupSpec) -> dict[str, list[kr.TopicPartition]]:
    """Assigns as range, but reverses each member's partitions."""
    return {member: owned[::-1] for member, owned in ranges.assign(group).items()}


@pytest.fixture
def _row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = BuiltIn(
        _reversed,
        "ReversedAssignor",
        ignores_racks=True,
        user_data=lambda _owned, generation_id: encode_cooperative_user_data(generation_id),
        clients=("Java",),
    )
    monkeypatch.setitem(BUILT_IN, "reversed", row)


@pytest.mark.usefixtures("_row")
def test_a_row_is_enough_for_the_readable_engine() -> None:
    assert "reversed" in kr.assignor_names()
    answer = kr.assign(GROUP, engine="reference")
    assert str(answer) == "a: t[2, 1, 0]\nb: t[4, 3]"
    planned = kr.plan(GROUP, None, ["add-members=1"], engine="reference")
    assert planned.settled
    assert {len(owned) for owned in planned.after.values()} == {1, 2}
    assert "reversed" in str(planned.explain("t-3"))
    compared = kr.compare(GROUP, ["add-members=1"], engine="reference")
    assert "reversed" in [one.assignor for one in compared.candidates]


@pytest.mark.usefixtures("_row")
def test_a_row_is_enough_for_members_and_their_settings() -> None:
    one = built_in("reversed")
    assert one.subscription_user_data(["t"]) == encode_cooperative_user_data(-1)
    one.on_assignment((kr.TopicPartition("t", 1),), 7)
    assert one.subscription_user_data(["t"]) == encode_cooperative_user_data(7)
    config = ConsumerConfig(partition_assignment_strategy=("reversed",))
    assert config.rebalance_protocol() is RebalanceProtocol.EAGER
    assert [client.name for client in CLIENTS if "reversed" in client.assignors] == ["Java"]
    package = "org.apache.kafka.clients.consumer"
    assert JAVA.setting(["reversed"]).endswith(f"={package}.ReversedAssignor")


@pytest.mark.usefixtures("_row")
def test_the_core_names_what_it_lacks_until_it_has_its_variant() -> None:
    with pytest.raises(kr.GroupError, match='"reversed" is not known; known are range'):
        kr.assign(GROUP)


def test_the_core_and_the_registry_have_the_same_rows() -> None:
    with pytest.raises(kr.GroupError) as raised:
        _core.assign(GROUP.interned(), "?")
    assert str(raised.value).endswith(f"known are {', '.join(in_core())}")


def test_the_steps_name_only_what_is_there() -> None:
    steps = check_steps("Add an assignor", steps=8, files=9)
    targets = re.findall(r"`make ([a-z-]+)", steps)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in targets if f"\n{name}:" not in makefile] == []

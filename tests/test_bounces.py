# SPDX-License-Identifier: Apache-2.0
"""Bounces of one protocol name, of eager groups, and of groups that are too large to play."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import BUILT_IN, Engine, protocol_name
from kafka_rebalance.plans import rounds
from kafka_rebalance.report.plans.compare import print_comparison, print_comparisons
from kafka_rebalance.report.plans.recipes import print_migration
from kafka_rebalance.simulator.seeds import Spread
from kafka_rebalance.simulator.timing import Timed
from kafka_rebalance.switching import rounds as switch
from kafka_rebalance.switching.migrations import migration
from kafka_rebalance.switching.rounds import bounce_of_one_name, one_bounce, two_bounces
from tests.support.switched_groups import played, running
from tests.test_mixed_lists import BOTH, between
from tests.test_rebalance_protocol import COOPERATIVE, eager

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Assignors of one protocol name -------------------------------------------------------------------

EVERY = (*BUILT_IN, *PYTHON_LIBRARIES)
ONE_NAME = [
    (old, new)
    for old in EVERY
    for new in EVERY
    if old != new and protocol_name(old) == protocol_name(new)
]


@pytest.mark.parametrize(("old", "new"), ONE_NAME)
def test_one_bounce_changes_between_assignors_of_one_name(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every client's recipe has one setting, so the cost is that of one bounce."""
    for library in ("kafka", "aiokafka"):
        pytest.importorskip(library)
    group = running("range").edited(assignor=old)
    there = migration(group, old, new)
    (bounce,) = there.bounces
    assert (bounce.takes_over, bounce.rebalances) == (None, there.rebalances)
    assert {len(one.settings) for one in there.recipes if one.way == "rolling"} <= {1}
    assert [one["moves"] for one in there.to_dict()["bounces"]] == [there.moves]
    print_migration(there, "g")
    text = " ".join(capsys.readouterr().out.split())
    assert "two rolling bounces" not in text
    assert "assigns until" not in text
    assert f"{there.moves} moves in all" in text


def _who_answers(
    group: kr.GroupSpec, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Returns the assignors that answer in the rebalances of a bounce."""
    answered = []

    def assign(
        group: kr.GroupSpec, assignor: str, *, engine: Engine
    ) -> Mapping[str, Sequence[kr.TopicPartition]]:
        answered.append(assignor)
        return kr.assign(group, assignor, engine=engine)

    monkeypatch.setattr(rounds, "assign", assign)
    bounce = bounce_of_one_name(group, old, new, "rust")
    assert bounce.rebalances == len(answered)
    return answered


def test_the_leaders_class_answers_in_a_bounce_of_one_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = "librdkafka/range", "range"
    group = running("range").edited(assignor=old)
    led = group.edited(leader=group.members[2].member_id)
    # The last member to restart leads, so the new class answers only its leave and its return.
    assert _who_answers(led, old, new, monkeypatch) == [old] * 4 + [new] * 2
    # A static leader goes on leading with its new list; its return starts no rebalance.
    static = running("range", static=(0,)).edited(assignor=old)
    led = static.edited(leader=static.members[0].member_id)
    assert _who_answers(led, old, new, monkeypatch) == [new] * 4


# Eager groups -------------------------------------------------------------------------------------


def test_the_missing_bounce_has_the_rebalances_of_the_broker(engine: Engine) -> None:
    """Three members of [cooperative-sticky, range] needed 8 rebalances (tests/test_mixed_lists.py).

    A group's line names only the selected assignor; the field shows that there is another one.
    """
    bounce = bounce_of_one_name(eager(), COOPERATIVE, COOPERATIVE, engine)
    assert bounce == one_bounce(between(), BOTH, COOPERATIVE, engine)
    assert bounce.rebalances == 8
    assert bounce.moves == pytest.approx(56, abs=6)


@pytest.mark.parametrize("members", [2, 3, 4])
@pytest.mark.parametrize("new", ["sticky", "roundrobin"])
def test_a_switch_of_an_eager_group_is_counted_as_consumers_play_it(new: str, members: int) -> None:
    """Simulated consumers begin with both assignors; the first bounce replaces the second
    assignor.
    """
    group = running(COOPERATIVE, members).edited(rebalance_protocol="eager")
    counts = [one.rebalances for one in two_bounces(group, COOPERATIVE, new, "rust")]
    assert counts == played(members, BOTH, [(new, COOPERATIVE), (new,)])
    missing = bounce_of_one_name(group, COOPERATIVE, COOPERATIVE, "rust")
    assert [missing.rebalances] == played(members, BOTH, [(COOPERATIVE,)])


def test_members_that_have_not_restarted_claim_nothing() -> None:
    cooperative, other = (
        two_bounces(group, COOPERATIVE, "sticky", "rust") for group in (between(), eager())
    )
    assert [one.rebalances for one in cooperative] == [8, 6]
    assert [one.rebalances for one in other] == [6, 6]
    assert [one.moves for one in cooperative] != [one.moves for one in other]


def test_compare_advises_the_missing_bounce_first(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = kr.compare(eager(), ["add-members=1"], engine=engine)
    plain = kr.compare(between(), ["add-members=1"], engine=engine)
    assert compared.recommended == plain.recommended == COOPERATIVE
    assert compared.reason.startswith("cooperative-sticky alone leaves 5 partitions ")
    assert compared.reason.endswith("the rolling bounce to cooperative-sticky alone is missing")
    (of_plain,) = (one for one in plain.candidates if one.assignor == COOPERATIVE)
    assert compared.alone == of_plain
    assert [label for label, _ in compared.rows()][-2:] == [
        COOPERATIVE,
        "cooperative-sticky alone <",
    ]
    bounce = bounce_of_one_name(eager(), COOPERATIVE, COOPERATIVE, engine)
    answer = compared.to_dict()
    assert answer["listed_alone"] == {**of_plain.to_dict(), "bounce": bounce.to_dict()}
    assert answer["migration"]["bounces"] == [bounce.to_dict()]
    assert {one["client"] for one in answer["migration"]["recipes"]} == {"Java", "kafka-python"}
    assert plain.migration is None
    assert "listed_alone" not in plain.to_dict()
    print_comparison(compared, {}, "")
    text = " ".join(capsys.readouterr().out.split())
    assert f"The bounce itself moves partitions: {bounce.moves} moves in all" in text
    assert "Java: one rolling bounce" in text
    assert ".StickyAssignor" not in text
    print_comparisons([compared, compared])
    assert "2 list theirs alone; " in capsys.readouterr().out


def test_the_missing_bounce_is_printed_before_a_switch_to_another_assignor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another assignor is rarely better than the own one alone, so it is recommended by hand."""
    compared = replace(kr.compare(eager()), recommended="sticky")
    bounce = bounce_of_one_name(eager(), COOPERATIVE, COOPERATIVE, "rust")
    print_comparison(compared, {}, "")
    text = " ".join(capsys.readouterr().out.split())
    first = "First, one rolling bounce with cooperative-sticky alone ends the eager rounds"
    cost = f"3 restarts, {bounce.rebalances} rebalances, {bounce.moves} moves."
    assert f"{first}: {cost}" in text
    assert text.index(first) < text.index("Java: two rolling bounces")


@pytest.mark.parametrize(("group", "differ"), [(eager(), False), (between(), True)])
def test_rounds_of_an_eager_group_are_as_long_as_those_of_sticky(
    group: kr.GroupSpec, capsys: pytest.CaptureFixture[str], *, differ: bool
) -> None:
    """Eager members and sticky's revoke everything; the test sets the seconds and the
    recommendation.
    """

    def seconds(unread: int) -> Timed:
        return Timed(Spread(unread, unread, unread), Spread(1, 1, 1))

    compared = replace(kr.compare(group, ["add-members=1"]), recommended="sticky")
    print_comparison(compared, {COOPERATIVE: seconds(100), "sticky": seconds(900)}, "assumed")
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "0.9 partition-seconds without a reader under sticky, 0.1 under cooperative-sticky" in text
    )
    assert ("an eager round is short but stops all" in text) == differ


# Groups that are not played -----------------------------------------------------------------------


@pytest.mark.parametrize("instance_id", [None, "pod-0"])
def test_the_bound_of_one_member_is_what_it_needs(instance_id: str | None) -> None:
    """The only member leaves an empty group, which does not rebalance."""
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    old, new = "kafka-python/range", "kafka-python/roundrobin"

    def bounces(partitions: int, members: int = 1) -> list[tuple[int, bool]]:
        made = tuple(
            kr.Member(f"m{n}", ("t",), group_instance_id=instance_id and f"{instance_id}{n}")
            for n in range(members)
        )
        group = kr.GroupSpec("g", (kr.Topic("t", partitions),), made, old)
        return [(one.rebalances, one.is_exact) for one in two_bounces(group, old, new, "rust")]

    least = 0 if instance_id else 1
    exact = bounces(200)
    assert [one[1] for one in exact] == [True, True]
    assert bounces(switch.MOST_IN_PYTHON + 1) == [(least, False)] * 2
    assert all(least <= one[0] for one in exact)
    assert bounces(switch.MOST_IN_PYTHON, 2) == [(4 * least, False)] * 2

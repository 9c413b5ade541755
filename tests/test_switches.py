# SPDX-License-Identifier: Apache-2.0
"""The planned number of rebalances of a switch equals that of real or simulated members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.switching.rounds import one_bounce, two_bounces
from tests.support.switched_groups import UUID, played, running

if TYPE_CHECKING:
    from kafka_rebalance.switching.rounds import Bounce


def counts(bounces: tuple[Bounce, ...]) -> list[int]:
    return [one.rebalances for one in bounces]


def test_a_switch_is_counted_as_real_java_members_made_it(engine: Any) -> None:
    """On a broker, three Java members needed 8 generations for the second bounce, not 6."""
    there = two_bounces(running("range"), "range", "cooperative-sticky", engine)
    assert counts(there) == [6, 8]
    assert there[0].takes_over == f"j2-{UUID}2 leaves"
    assert there[1].takes_over is None
    back = two_bounces(running("cooperative-sticky"), "cooperative-sticky", "range", engine)
    assert counts(back) == [8, 6]
    assert counts(two_bounces(running("range"), "range", "sticky", engine)) == [6, 6]


def test_static_members_make_one_rebalance_where_their_return_changes_the_vote() -> None:
    all_static = running("range", static=(0, 1, 2))
    first, second = two_bounces(all_static, "range", "cooperative-sticky", "rust")
    assert (first.rebalances, second.rebalances) == (1, 0)
    assert first.takes_over == "s2 is back"
    first_static = running("range", static=(0,))
    assert counts(two_bounces(first_static, "range", "roundrobin", "rust")) == [4, 4]
    last_static = running("range", static=(2,))
    assert counts(two_bounces(last_static, "range", "roundrobin", "rust")) == [5, 4]


def test_a_group_of_one_member_and_a_group_too_large_to_be_played() -> None:
    assert counts(two_bounces(running("range", 1), "range", "cooperative-sticky", "rust")) == [1, 1]
    large = running("range", 101)
    first, second = two_bounces(large, "range", "cooperative-sticky", "rust")
    assert (second.rebalances, second.is_exact) == (202, False)
    eager = two_bounces(large, "range", "roundrobin", "rust")
    assert [one.is_exact for one in eager] == [True, True]
    assert counts(eager) == [202, 202]
    assert first.takes_over is None


@pytest.mark.parametrize("members", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range", "cooperative-sticky"),
        ("cooperative-sticky", "range"),
        ("sticky", "cooperative-sticky"),
        ("roundrobin", "sticky"),
    ],
)
def test_a_switch_is_counted_as_consumers_and_coordinator_play_it(
    old: str, new: str, members: int
) -> None:
    """The number from `two_bounces` is that of simulated consumers with a coordinator."""
    bounces = two_bounces(running(old, members), old, new, "rust")
    assert counts(bounces) == played(members, (old,), [(new, old), (new,)])


def test_kafkas_default_list_needs_one_bounce() -> None:
    both = ("range", "cooperative-sticky")
    once = one_bounce(running("range"), both, "cooperative-sticky", "rust")
    assert [once.rebalances] == played(3, both, [("cooperative-sticky",)])
    assert once.takes_over == f"j0-{UUID}0 is back"

# SPDX-License-Identifier: Apache-2.0
"""The budget and the curve of `balanced`: as even as possible for each number that is taken."""

from __future__ import annotations

import gzip
import json
import random
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.assignors.balance.balanced import Objective
from kafka_rebalance.assignors.balance.classes import classify
from kafka_rebalance.assignors.balance.figures import balance_figures
from kafka_rebalance.cli import main
from kafka_rebalance.plans import balance_curve
from kafka_rebalance.report.plans.recipes import print_migration
from kafka_rebalance.switching.migrations import migration
from tests.test_balanced import racked_group, shuffled
from tests.test_possible import small_group

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

VECTORS = Path(__file__).resolve().parent / "vectors" / "balance_curve.jsonl.gz"
CASES: list[dict[str, Any]] = [*map(json.loads, gzip.decompress(VECTORS.read_bytes()).splitlines())]


def with_budget(budget: int | str) -> Objective:
    return Objective(("moves", "rack", "topics"), str(budget))


def possible_loads(group: GroupSpec) -> dict[int, tuple[int, int]]:
    """Tries all assignments: taken -> the least (largest load, sum of squares)."""
    classes = classify(group)
    taken_of = {(0,) * len(group.members): 0}
    for names, of in zip(classes.topics, classes.subscribers, strict=True):
        members = [m for k in of for m in classes.members[k]]
        held = [
            sum(tp.topic in names for tp in classes.owner if classes.owner[tp] == m)
            for m in members
        ]
        supply = sum(group.partition_counts()[name] for name in names)
        following: dict[tuple[int, ...], int] = {}
        for given in combinations_with_replacement(members, supply):
            counts = [given.count(m) for m in members]
            lost = sum(max(had - has, 0) for had, has in zip(held, counts, strict=True))
            more = dict(zip(members, counts, strict=True))
            for loads, taken in taken_of.items():
                after = tuple(load + more.get(m, 0) for m, load in enumerate(loads))
                following[after] = min(following.get(after, taken + lost), taken + lost)
        taken_of = following
    best: dict[int, tuple[int, int]] = {}
    for loads, taken in taken_of.items():
        found = max(loads), sum(load * load for load in loads)
        best[taken] = min(best.get(taken, found), found)
    return best


@pytest.fixture(params=range(3))
def groups(request: pytest.FixtureRequest) -> list[GroupSpec]:
    rng = random.Random(request.param)
    return [group for _ in range(20) if (group := small_group(rng)).members]


def test_the_curve_is_as_good_as_proven(engine: Engine) -> None:
    for case in CASES:
        group = GroupSpec.from_dict(case["case"])
        curve = balance_curve(group, engine=engine)
        for k, greatest, squares in case["curve"]:
            point = curve.within(k)
            assert (point.greatest, point.squares) == (greatest, squares)


def test_no_assignment_beats_a_point(groups: list[GroupSpec]) -> None:
    for group in groups:
        best, curve = possible_loads(group), balance_curve(group)
        assert curve == balance_curve(group, engine="reference")
        assert [one.taken_at_most for one in curve.points] == [*range(len(curve.points))]
        for point in curve.points:
            proven = min(found for k, found in best.items() if k <= point.taken_at_most)
            assert point.greatest == proven[0]
            assert point.bound <= proven[1] <= point.squares
            assert point.taken <= point.taken_at_most
        last = curve.points[-1]
        assert (last.greatest, last.squares) == min(best.values())


def test_answers_keep_within_the_budget_and_reach_the_curve() -> None:
    rng = random.Random(5)
    for n in range(150):
        group = racked_group(rng)
        curve = balance_curve(group)
        for budget in (0, 1, 2, 5):
            name = f"balanced?budget={budget}"
            answer = kr.assign(group, name)
            assert answer == kr.assign(shuffled(group, rng), name)
            if n % 3 == 0:
                assert answer == kr.assign(group, name, engine="reference")
            found = balance_figures(group, answer, with_budget(budget))
            squares = sum(count * count for count in answer.counts())
            point = curve.within(budget)
            assert found["taken"] == point.taken
            assert (found["greatest"], squares) == (point.greatest, point.squares)
            is_last = squares == curve.points[-1].squares
            assert found["kept_because"] == (None if is_last else "budget")


def hoarded(partitions: int, members: int) -> GroupSpec:
    owned = tuple(TopicPartition("t", p) for p in range(partitions))
    first, *others = (f"m{i}" for i in range(members))
    return GroupSpec(
        "g",
        (Topic("t", partitions),),
        (Member(first, ("t",), owned_partitions=owned), *(Member(one, ("t",)) for one in others)),
        assignor="cooperative-sticky",
    )


def test_a_percentage_is_of_the_assigned_partitions_rounded_down(engine: Engine) -> None:
    for budget, taken in (("5%", 1), ("9%", 2), ("100%", 20), ("0", 0), ("999999999", 20)):
        answer = kr.assign(hoarded(30, 3), f"balanced?budget={budget}", engine=engine)
        assert max(answer.counts()) == 30 - taken


def test_beyond_the_last_point_with_each_k_the_corners_follow() -> None:
    group = hoarded(300, 2)
    curve = balance_curve(group, most=5)
    assert curve == balance_curve(group, most=5, engine="reference")
    assert [one.taken_at_most for one in curve.points] == [*range(151)]
    two = GroupSpec("g", (Topic("t", 300),), (*group.members, Member("m2", ("t",))))
    curve = balance_curve(two, most=5)
    assert curve.points[-1].to_dict() == {
        "taken_at_most": 200, "taken": 200, "greatest": 100, "squares": 30000, "bound": 30000,
        "exact": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "setting",
    ["budget=", "budget=-1", "budget=1.5%", "budget=1&budget=2", "budget=²", "budget=1&x=2",
     "prefer=rack,moves,topics&budget=1", "budget=1&prefer=rack,moves"],
)  # fmt: skip
def test_wrong_budgets_are_refused(setting: str, engine: Engine) -> None:
    with pytest.raises(kr.GroupError, match="has a wrong setting; give prefer="):
        kr.assign(hoarded(3, 2), f"balanced?{setting}", engine=engine)


def test_the_words_of_a_curve() -> None:
    curve = balance_curve(hoarded(30, 3))
    assert curve.summary == (
        "Taking 20 of 30 partitions brings the fullest member from 30 to 10, the best possible."
    )
    assert curve.in_words(curve.within(3)) == (
        "Taking 3 of 30 partitions brings the fullest member from 30 to 27; "
        "the best possible, 10, takes 20."
    )
    wide = balance_curve(hoarded(100, 4))
    assert (wide.knee.taken_at_most, wide.knee.greatest) == (74, 26)
    even = balance_curve(hoarded(1, 3))
    assert even.summary == "The fullest member has 1, the fewest possible: no move helps."
    assert "&lt;" in even._repr_html_()


def test_plan_shows_the_curve_and_keeps_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "g.jsonl", tmp_path / "g.html"
    file.write_text(hoarded(30, 3).to_json() + "\n")
    assert main(["plan", str(file), "--curve", "--output", str(page)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Taking 20 of 30 partitions brings the fullest member from 30 to 10")
    assert " 20 <" in said
    assert "Partitions of the fullest member" in page.read_text()
    assert main(["plan", str(file), "--assignor", "balanced", "--budget", "10%", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["moves"] == 3
    assert answer["summary"].startswith("Taking 3 of 30 partitions brings the fullest member from")
    assert "nowhere" in [note["kind"] for note in answer["notes"]]
    assert main(["plan", str(file), "--curve", "--json", "--add-members", "1"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["knee"] == answer["curve"][-1]["taken_at_most"] == 22
    assert main(["plan", str(file), "--budget", "1"]) != 0
    assert main(["plan", str(file), "--assignor", "balanced", "--budget", "many"]) != 0


def test_compare_recommends_no_assignor_that_no_client_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    owned = tuple(TopicPartition("t", p) for p in range(6))
    members = (Member("a", ("t", "u"), owned_partitions=owned), Member("b", ("u",)))
    group = GroupSpec("g", (Topic("t", 6), Topic("u", 3)), members, assignor="range")
    file.write_text(group.to_json() + "\n")
    assert main(["compare", str(file), "--assignors", "balanced,range"]) == 0
    assert capsys.readouterr().out.startswith("Keep range: ")


SKEWED = tuple(1 / (1 + p // 4 + 4 * (p % 4)) for p in range(24))


def skewed(assignor: str, *client_ids: str) -> GroupSpec:
    """Makes a group whose first member reads the heaviest partitions."""
    members = tuple(
        Member(
            f"m{n}",
            ("t",),
            client_id=client_ids[n % len(client_ids)],
            owned_partitions=tuple(TopicPartition("t", p) for p in range(n, 24, 4)),
            generation_id=4,
        )
        for n in range(4)
    )
    return GroupSpec("g", (Topic("t", 24, weights=SKEWED),), members, assignor=assignor)


KAFKA_PYTHON, AIOKAFKA = "kafka-python-3.0.12", "aiokafka-0.14.0"


@pytest.mark.parametrize(
    ("assignor", "client_ids", "recommended", "words"),
    [
        ("cooperative-sticky", [KAFKA_PYTHON], "weighted", "cooperative-sticky 2.3; getting there"),
        ("roundrobin", [AIOKAFKA], "weighted", "roundrobin 2.3; to get there, all members stop"),
        ("roundrobin", [KAFKA_PYTHON, AIOKAFKA], "roundrobin", "eager: brokers refuse the mix"),
        (
            "cooperative-sticky",
            ["rdkafka"],
            "cooperative-sticky",
            "librdkafka cannot list this project",
        ),
        (
            "cooperative-sticky",
            ["consumer-g-1"],
            "cooperative-sticky",
            "Java cannot list this project",
        ),
        ("cooperative-sticky", ["app"], "cooperative-sticky", "only kafka-python and aiokafka can"),
    ],
)
def test_weighted_is_recommended_to_members_that_can_list_it(
    assignor: str, client_ids: list[str], recommended: str, words: str, engine: Engine
) -> None:
    """With its price; and by the load of the fullest member, not by numbers of partitions."""
    found = kr.compare(
        skewed(assignor, *client_ids), assignors=[assignor, "balanced", "weighted"], engine=engine
    )
    assert found.recommended == recommended
    assert words in found.summary
    of = {one.assignor: one for one in found.candidates}
    assert of["weighted"].load is not None
    assert of["weighted"].load < 1.5 < (of["balanced"].load or 0)
    figures = of["weighted"].figures
    assert figures is not None
    assert figures.unavailable == (24 if AIOKAFKA in client_ids else 1)


def test_a_recipe_of_weighted_has_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    one = migration(
        skewed("cooperative-sticky", KAFKA_PYTHON), "cooperative-sticky", "weighted?budget=5"
    )
    (found,) = one.recipes
    assert found.settings[1] == (
        'partition_assignment_strategy=[Weighted(Load("HOST:9092"), "budget=5")]'
    )
    assert found.needs is not None
    assert "from kafka_rebalance.clients.balance import Load" in found.needs
    print_migration(one, "g")
    assert "members that list both are eager" not in capsys.readouterr().out

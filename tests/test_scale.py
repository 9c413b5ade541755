# SPDX-License-Identifier: Apache-2.0
"""`scale`: what each number of members brings, against plans, by hand, and as a user runs it."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import SERVER_SIDE, planned_names
from kafka_rebalance.bulk.lines import assign_lines
from kafka_rebalance.data import captured_lines
from kafka_rebalance.notes.all_notes import plan_notes
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.scaling import choose
from tests.support.generate import generate
from tests.support.groups_by_library import group as of_library
from tests.support.imports import ROOT
from tests.support.planned_groups import captured
from tests.support.prompt import command

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.scaling import Scaled
    from tests.support.seeds import Seeds

SAMPLE = captured()


def formed(partitions: int, members: int, assignor: str = "range") -> kr.GroupSpec:
    """Returns a group of one topic, whose members own what their assignor gave them."""
    group = kr.GroupSpec(
        "g",
        (kr.Topic("t", partitions, topic_id="AAAAAAAAAAEAAAAAAAAAAg"),),
        tuple(kr.Member(f"c-{n:03}", ("t",)) for n in range(members)),
        assignor,
    )
    return group.owning(kr.assign(group), generation_id=1)


def rows(scaled: Scaled, *names: str) -> list[tuple[object, ...]]:
    return [tuple(getattr(one, name) for name in names) for one in scaled.counts]


# Examples -----------------------------------------------------------------------------------------


def test_the_sample_is_not_partitions_divided_by_members() -> None:
    found = kr.scale(SAMPLE["orders"], [8, 10, 11, 12, 15], samples=0)
    assert rows(found, "members", "fullest", "possible", "moves", "stops", "useful") == [
        (8, 7, 6, 22, 48, True),
        (9, 6, 6, 0, 0, True),
        (10, 6, 5, 23, 48, False),
        (11, 6, 5, 24, 48, False),
        (12, 4, 4, 26, 48, True),
        (15, 4, 4, 32, 48, False),
    ]


def test_the_answer_in_words_comes_first() -> None:
    found = kr.scale(SAMPLE["payments"])
    assert found.summary == (
        "11 to 14 members bring nothing: the fullest member has 3 partitions either way; 15 is the "
        "next step: the fullest member then has 2 partitions (10 moves, 10 without a reader on the "
        "way); useful numbers of 1 to 18 members: 1, 2, 3, 4, 5, 6, 8, 10, 15"
    )
    assert kr.scale(SAMPLE["telemetry"]).summary == (
        "another assignor could give the fullest member 3 instead of 7 (see compare); 2 members "
        "would do as well as 6, and 7 to 12 members bring nothing: the fullest member has 7 "
        "partitions either way; 4 of the 6 members have nothing to read; useful "
        "numbers of 1 to 12 members: 1, 2"
    )
    rate: dict[str, Any] = {"rate": {"payments": 1200}}
    assert kr.scale(SAMPLE["payments"], **rate, capacity=100).summary == (
        "10 members do not keep up; 15 are enough (100 of 100 records a second), without reserve "
        "below 30 members; the way there: 10 moves, 10 without a reader; 11 to 14 are not "
        "enough"
    )
    wide = kr.scale(SAMPLE["payments"], range(10, 33), **rate, capacity=100).summary
    assert ", without reserve below 30 members; the way there: 10 moves" in wide
    few = kr.scale(SAMPLE["payments"], [12], **rate, capacity=100).summary
    assert few.startswith("10 members do not keep up; no number up to 12 does, 15 do")
    none = kr.scale(SAMPLE["payments"], [12], **rate, capacity=49).summary
    assert none.startswith("10 members do not keep up; no number up to 12 does, nor would one for ")
    full = kr.scale(SAMPLE["payments"], [12], **rate, capacity=50).summary
    assert "no number up to 12 does, 30 do" in full
    alone = kr.scale(formed(30, 30), [30], rate={"t": 1200}, capacity=40).summary
    assert alone.startswith("30 members keep up (40 of 40 records a second), without reserve with")
    large = kr.scale(formed(600, 100), rate={"t": 600}, capacity=6, samples=0).summary
    assert large.startswith("100 members keep up (6 of 6 records a second), without reserve below")
    large = kr.scale(formed(600, 100), [100], rate={"t": 600}, capacity=6, samples=0).summary
    assert large.startswith("100 members keep up (6 of 6 records a second), without reserve below")
    up = kr.scale(SAMPLE["payments"], **rate, capacity=200).summary
    assert up.startswith("10 members keep up (150 of 200 records a second); 11 to 14 members bring")
    assert kr.scale(SAMPLE["loyalty"], [4]).summary.startswith("4 members help: the fullest")
    assert kr.scale(SAMPLE["loyalty"], [3]).summary.startswith("3 members now: the fullest")


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky", "consumer/uniform"])
def test_twelve_partitions(assignor: str) -> None:
    """github.com/kedacore/keda/issues/2581: of 12 partitions, only the divisors help."""
    assert kr.scale(formed(12, 4, assignor), range(1, 13)).worth == [1, 2, 3, 4, 6, 12]


def test_126_partitions() -> None:
    """github.com/kedacore/keda/issues/7517: more counts than the divisors of 126 help."""
    found = kr.scale(formed(126, 14, "cooperative-sticky"), range(1, 127), samples=0)
    divisors = {n for n in range(1, 127) if 126 % n == 0}
    assert divisors < {*found.worth}
    assert [n for n in found.worth if n >= 14] == [14, 16, 18, 21, 26, 32, 42, 63, 126]


def test_24_partitions_with_4_threads_a_pod() -> None:
    """github.com/kedacore/keda/issues/7577: 4 and 8 pods divide 24, and bring no thread less."""
    found = kr.scale(formed(24, 12), range(4, 33, 4))
    assert rows(found, "members", "fullest", "idle", "useful") == [
        (4, 6, 0, True),
        (8, 3, 0, True),
        (12, 2, 0, True),
        (16, 2, 0, False),
        (20, 2, 0, False),
        (24, 1, 0, True),
        (28, 1, 4, False),
        (32, 1, 8, False),
    ]
    assert "16 to 20 members bring nothing" in found.summary
    assert str(found) == f"{found.group_id}: {found.summary}."
    assert found._repr_html_().startswith(f"<p>{found.summary}.</p>")
    asked = choose(formed(24, 12), range(1, 9), rate={"t": 2300}, capacity=100, per_replica=4)
    assert (asked["replicas"], asked["replicas_now"]) == (6, 3)


def test_default_counts_of_a_large_group_are_the_steps_and_those_near_now() -> None:
    found = kr.scale(formed(600, 100, "cooperative-sticky"), samples=0)
    counts = [one.members for one in found.counts]
    assert {*range(92, 109), 120, 150, 200} <= {*counts}
    assert 140 not in counts
    assert kr.scale(formed(3, 2), samples=0).counts[-1].members == 4


# Against plans ------------------------------------------------------------------------------------


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    (answered,) = assign_lines([json.dumps(case).encode()])
    answer: dict[str, Any] = json.loads(answered.line)
    return answer


def _scaled_or_problem(group: kr.GroupSpec, counts: list[int]) -> Scaled | str:
    try:
        return kr.scale(group, counts, samples=0)
    except kr.GroupError as error:
        return str(error)


def _topic_id(number: int) -> str:
    return urlsafe_b64encode(((1 << 64) + number + 2).to_bytes(16)).decode().rstrip("=")


def _expected(group: kr.GroupSpec, more: int) -> tuple[object, ...]:
    verb = f"add-members={more}" if more > 0 else f"remove-members={-more}"
    try:
        led = plans_by_leader(group, [verb])
    except (kr.AssignorThrows, kr.NoMembersLeft) as error:
        return (error.problem,)
    done = next(one.plan for one in led if one.plan is not None)
    figures, after = done.figures(), done.after
    idle = sum(not owned for owned in after.values())
    return (
        *(figures.balance_after.max, figures.balance_possible.max, figures.moves),
        *(figures.rounds, figures.unavailable, idle),
    )


def _figures(found: Scaled, members: int) -> tuple[object, ...]:
    if members in found.errors:
        return (found.errors[members],)
    (one,) = (one for one in found.counts if one.members == members)
    return one.fullest, one.possible, one.moves, one.rebalances, one.stops, one.idle


@pytest.mark.parametrize("assignor", [*planned_names(), *SERVER_SIDE])
def test_every_count_is_a_plan(assignor: str) -> None:
    compared = 0
    for case in generate(5, 12, [assignor], _answer):
        topics = [one | {"topic_id": _topic_id(n)} for n, one in enumerate(case["topics"])]
        group = kr.GroupSpec.from_dict(case | {"topics": topics})
        now = len(group.members)
        if now < 2:
            continue
        found = _scaled_or_problem(group, [now - 1, now + 2])
        if isinstance(found, str):
            with pytest.raises(kr.GroupError) as raised:
                kr.plan(group, None, ["add-members=2"])
            assert str(raised.value) == found
            continue
        for more in (-1, 2):
            assert _figures(found, now + more) == _expected(group, more), case
            compared += 1
    assert compared >= 8


@pytest.mark.parametrize(
    ("library", "dialect"),
    [("librdkafka", "librdkafka/range"), ("kafka-python", "kafka-python/range"), ("java", "range")],
)
def test_a_librarys_own_assignor_answers(library: str, dialect: str) -> None:
    group = of_library("g", "range", library, (3, 3))
    found = kr.scale(group, [3, 4], samples=0)
    assert [_figures(found, 2 + n) for n in (1, 2)] == [_expected(group, n) for n in (1, 2)]
    assert {one.assignor for one in plans_by_leader(group, ["add-members=1"])} <= {dialect, "range"}


@pytest.mark.parametrize("assignor", ["range", "sticky", "roundrobin", "cooperative-sticky"])
def test_the_ranges_of_a_member_that_leaves_are_those_of_each(assignor: str) -> None:
    """If the plays are as many as the members, each member leaves in one of them."""
    random = Random(3)
    for _ in range(8):
        topics = tuple(kr.Topic(name, random.randint(1, 9)) for name in "abc")
        members = tuple(
            kr.Member(f"c-{n}", tuple(random.sample("abc", random.randint(1, 3))))
            for n in range(random.randint(2, 6))
        )
        group = kr.GroupSpec("g", topics, members, assignor)
        group = group.owning(kr.assign(group), generation_id=1)
        one = kr.scale(group, [len(members) - 1], samples=6).counts[0]
        plans = [kr.plan(group, None, [f"remove-member={m.member_id}"]) for m in members]
        for name, figures in (
            ("fullest", [done.after.balance.max for done in plans]),
            ("moves", [done.moves for done in plans]),
            ("stops", [len(done.unavailable) for done in plans]),
        ):
            planned = getattr(one, name)
            assert one.ranges.get(name, (planned, planned)) == (min(figures), max(figures))


def test_what_depends_on_ids_has_a_range() -> None:
    found = kr.scale(SAMPLE["orders"], [10, 8])
    assert [{*one.ranges} for one in found.counts] == [{"moves"}, set(), {"moves"}]
    ten = found.counts[-1]
    sampled = kr.plan(SAMPLE["orders"], None, ["add-members=1"]).sample()
    assert ten.ranges["moves"] == (min(*sampled.moves, ten.moves), max(*sampled.moves, ten.moves))
    assert kr.scale(SAMPLE["payments"], [11]).counts[-1].ranges == {}


def test_members_that_share_partitions_read_a_part_of_each() -> None:
    found = kr.scale(formed(3, 4, "share/simple"), range(1, 8), samples=0)
    assert rows(found, "fullest", "busiest", "useful") == [
        (3, 3.0, True),
        (2, 2.0, True),
        (1, 1.0, True),
        (2, 1.0, False),
        (2, 1.0, False),
        (1, 0.5, True),
        (2, 2 / 3, False),
    ]
    assert "6 is the next step: the fullest member then has 0.5 partitions" in found.summary


def test_without_known_owners_the_present_count_is_the_next_rebalance() -> None:
    group = kr.GroupSpec(
        "g", (kr.Topic("t", 6),), tuple(kr.Member(f"c-{n}", ("t",)) for n in range(2)), "range"
    )
    found = kr.scale(group, [3])
    assert rows(found, "fullest", "moves") == [(3, 6), (2, 6)]
    assert found.summary.endswith(
        "who owns what now is not known, so every partition counts as a move"
    )


# Refusals -----------------------------------------------------------------------------------------


def test_a_count_without_an_answer_has_the_plans_words() -> None:
    group = formed(12, 3)
    found = kr.scale(group, [0])
    with pytest.raises(kr.NoMembersLeft) as raised:
        kr.plan(group, None, ["remove-members=3"])
    problem = "no member is left: nobody reads 12 partitions until one is back"
    assert found.errors == {0: raised.value.problem} == {0: problem}
    assert [one.members for one in found.counts] == [3]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"counts": [-1]}, "counts[0]: -1 is not a number from 0 to 100000"),
        ({"counts": [2, True]}, "counts[1]: a boolean is not a number"),
        ({"counts": "1..3"}, "counts[0]: a string is not a number"),
        ({"counts": [100_001]}, "counts[0]: 100001 is not a number from 0 to 100000"),
        ({"rate": {"u": 1}}, 'rate: the group has no topic or partition "u"'),
        (
            {"rate": {kr.TopicPartition("t", 12): 1}},
            'rate: the group has no topic or partition "t-1',
        ),
        ({"rate": {"t": "1"}}, "rate: '1' is not a number from 0 on"),
        ({"lag": {"t": -1}}, "lag: -1 is not a number from 0 on"),
        ({"lag": {"t": float("nan")}}, "lag: nan is not a number from 0 on"),
        ({"capacity": 9}, "capacity: give records a second above 0, and the rate or the lag"),
        ({"capacity": 0, "lag": {"t": 1}}, "capacity: give records a second above 0"),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, Any], text: str) -> None:
    with pytest.raises(kr.GroupError) as raised:
        kr.scale(formed(12, 3), **change)
    assert str(raised.value).startswith(text)


def test_replicas_have_a_member_or_more() -> None:
    with pytest.raises(kr.GroupError, match="per_replica: 0 is not a number from 1"):
        choose(formed(12, 3), capacity=9, rate={"t": 1}, per_replica=0)


def test_a_list_of_rates_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="rate: a list is not a mapping"):
        kr.scale(formed(12, 3), rate=[1])  # type: ignore[arg-type]


def test_a_group_whose_present_members_have_no_answer_is_refused() -> None:
    group = of_library("g", "range", "librdkafka", (3, 3))
    with pytest.raises(kr.GroupError):
        kr.scale(group.edited(assignor="unknown"))


# Load ---------------------------------------------------------------------------------------------


def test_load_is_that_of_the_members_partitions() -> None:
    group = formed(6, 2)  # the members own 0 to 2 and 3 to 5
    rate: dict[kr.TopicPartition | str, float] = {"t": 60, kr.TopicPartition("t", 5): 40}
    found = kr.scale(group, [3], rate=rate, lag={kr.TopicPartition("t", 0): 50}, capacity=70)
    assert rows(found, "busiest", "lag", "catch_up_s") == [(60.0, 50.0, 1.25), (50.0, 50.0, 1.0)]
    reverse = dict(reversed(rate.items()))
    assert [one.busiest for one in kr.scale(group, [3], rate=reverse).counts] == [60.0, 50.0]
    slow = kr.scale(group, [3], rate=rate, lag={"t": 6}, capacity=55)
    assert [one.to_dict()["catch_up_s"] for one in slow.counts] == ["never", 2 / 5]
    assert slow.summary.startswith("2 members do not keep up; 3 are enough (50 of 55 records")
    none = kr.scale(group, [1], rate=rate, capacity=20)
    assert none.summary.startswith("2 members do not keep up; no number up to 2 does")


def test_with_rates_a_count_helps_if_the_busiest_member_has_less() -> None:
    """One partition has half of the records: more members than two do not help its reader."""
    group = formed(6, 2, "cooperative-sticky")
    rate: dict[kr.TopicPartition | str, float] = {"t": 60, kr.TopicPartition("t", 0): 1000}
    found = kr.scale(group, range(1, 7), rate=rate, samples=0)
    assert kr.scale(group, range(1, 7), samples=0).worth == [1, 2, 3, 6]
    busiest = [one.busiest for one in found.counts]
    assert [one.useful for one in found.counts] == [
        most < min(busiest[:n], default=float("inf")) for n, most in enumerate(busiest)
    ]
    assert "records a second" in found.summary


# The choice of an autoscaler ----------------------------------------------------------------------


def chosen(group: kr.GroupSpec, rate: float, lag: float = 0.0, **options: float) -> Any:
    asked: dict[str, Any] = {"rate": {"t": rate}, "lag": {"t": lag}, "capacity": 100} | options
    return choose(group, range(1, 25), **asked)


def test_the_document_is_what_keda_reads() -> None:
    document = chosen(formed(24, 4, "cooperative-sticky"), 750)
    assert json.loads(json.dumps(document)) == {
        "group_id": "g",
        "replicas": 8,
        "replicas_now": 4,
        "because": "8 members instead of 4: in 300 s, a lag of 0 records instead of 105,000; "
        "1,125 arrive while nobody reads their partition",
    }


def test_the_page_shows_what_choose_returns() -> None:
    page = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    (call,) = re.findall(r"^choose\(group, (.*)\)$", page, re.MULTILINE)
    (shown,) = re.findall(r"^```json\n(.*)\n```$", page, re.MULTILINE)
    assert call == 'range(1, 49), rate={"orders": 900}, lag={"orders": 30_000}, capacity=100'
    load: dict[str, Any] = {"rate": {"orders": 900}, "lag": {"orders": 30_000}, "capacity": 100}
    assert json.loads(shown) == choose(SAMPLE["orders"], range(1, 49), **load)


def test_a_step_is_taken_only_if_it_gains_more_than_it_costs() -> None:
    group = formed(24, 8, "cooperative-sticky")
    assert chosen(group, 750)["replicas"] == 8
    assert chosen(group, 790, lag=500)["because"] == (
        "8 members stay: in 300 s, no step gains more than it costs"
    )
    assert chosen(group, 100)["replicas"] < 8
    assert chosen(group, 750, lag=60_000)["replicas"] > 8
    assert chosen(group, 750, lag=60_000, member_share=0.9)["replicas"] == 8
    with pytest.raises(kr.GroupError, match="capacity: give records a second above 0"):
        choose(group, capacity=100)


def test_a_step_that_the_autoscaler_would_ignore_is_not_asked_for() -> None:
    """Of 24 partitions, one member of 11 has too much: 12 members would do, 13 are asked for."""
    group = formed(24, 11, "cooperative-sticky")
    assert chosen(group, 950, tolerance=0)["replicas"] == 12
    assert chosen(group, 950)["replicas"] == 13


@pytest.mark.seeds(quick=12, whole=240)
def test_no_step_is_taken_back_while_the_load_stays(seeds: Seeds) -> None:
    for seed in seeds:
        random = Random(seed)
        assignor = random.choice(["cooperative-sticky", "range"])
        members = random.randint(1, 24)
        rate, lag = random.uniform(0, 2600), random.choice([0.0, random.uniform(0, 2e5)])
        asked = [members]
        while (then := chosen(formed(24, asked[-1], assignor), rate, lag)["replicas"]) != asked[-1]:
            assert then not in asked
            asked.append(then)
        assert len(asked) <= 4


# As a user runs it --------------------------------------------------------------------------------


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    file = tmp_path / "groups.jsonl"
    file.write_text("\n".join(captured_lines()), encoding="utf-8")
    return file


def test_one_group_on_the_command_line(sample: Path) -> None:
    run = command("scale", sample, "--group", "orders", "--members", "8..12")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("orders: 10 to 11 members bring nothing: the fullest member has 6")
    assert "10 nothing" in run.stdout
    assert "9 now" in run.stdout
    assert "Ranges in brackets: with other ids of new members" in run.stdout
    assert "sessions of 45 s." in " ".join(run.stdout.split())
    assert max(map(len, run.stdout.splitlines())) <= 100


def test_a_number_with_which_a_topic_can_lose_its_last_subscriber_is_not_useful() -> None:
    """Topic a has three subscribers, and topic b has one: any member may leave."""
    members = [
        {"member_id": f"m{i}", "topics": ["a", "b"] if i == 0 else ["a"], "owned_partitions": []}
        for i in range(3)
    ]
    topics = [{"name": "a", "partitions": 2}, {"name": "b", "partitions": 2}]
    group = kr.GroupSpec.from_dict(
        {"group_id": "g", "assignor": "range", "topics": topics, "members": members}
    )
    found = kr.scale(group, range(1, 4))
    assert [one.may_lose for one in found.counts] == [True, True, False]
    assert found.worth == [3]
    assert [one.ranges.get("unsubscribed") for one in found.counts] == [(0, 2), (0, 2), None]
    lost = kr.plan(group, changes=["remove-member=m0"])
    assert lost.unsubscribed == (kr.TopicPartition("b", 0), kr.TopicPartition("b", 1))
    assert lost.summary.startswith(
        "No member is left that subscribes to b: nobody reads its 2 partitions. "
    )
    assert [note.kind for note in plan_notes(lost)].count("unread") == 1


def test_of_all_groups_the_present_count_and_the_next_are_shown(sample: Path) -> None:
    run = command("scale", sample)
    assert run.returncode == 3
    assert "checkout: state: PreparingRebalance" in run.stderr
    answer, _, table = run.stdout.partition("\n\n")
    assert " ".join(answer.split()) == (
        "Fewer members do as well in 3 of 19 groups: audit (1, not 3), clickstream (18, not 19), "
        "telemetry (2, not 6); in 16, more members would lower the fullest member's load (some are "
        "in both); in 2, another assignor could: notifications, telemetry (see compare)."
    )
    telemetry = next(line for line in table.splitlines() if "telemetry" in line)
    assert telemetry.split() == ["telemetry", "2", "7", "7", "14", "14", "0"]
    assert sum(" now " in line for line in run.stdout.splitlines()) == 19


def test_json_is_what_python_returns(sample: Path) -> None:
    run = command("scale", sample, "--json", "--members=4,8..12/2")
    lines = {line["group_id"]: line for line in map(json.loads, run.stdout.splitlines())}
    assert len(lines) == 20
    found = kr.scale(SAMPLE["orders"], [4, 8, 10, 12], samples=0)
    assert lines["orders"] == json.loads(json.dumps(found.to_dict()))
    options = ("--members", "8,12", "--rate", "orders=900", "--capacity=90")
    alone = json.loads(command("scale", sample, "--group=orders", "--json", *options).stdout)
    loaded = kr.scale(SAMPLE["orders"], [8, 12], rate={"orders": 900}, capacity=90, how_long=True)
    assert alone == json.loads(json.dumps(loaded.to_dict()))
    assert alone["counts"][0]["times"]["settled_ms"]["median"] > 0
    assert alone["times_assumed"].startswith("medians of 5 seeds")


def test_the_picture_has_each_count(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "orders.html"
    run = command("scale", sample, "--group", "orders", "--members", "8..12", "--output", out)
    assert run.returncode == 0
    page = out.read_text("utf-8")
    assert page.count("<svg") == 2
    assert all(f">{name}<" in page for name in ("8", "9 now", "10 nothing", "12"))
    assert command("scale", sample, "--output", out).returncode == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--members", "3..x"], "x is not a number from 0 to 2147483647"),
        (["--members", "3..9/0"], "0 is not a number from 1 to 2147483647"),
        (["--members", "9..3"], "9..3 is not 1 to 1000 numbers"),
        (["--members", "1..2000"], "1..2000 is not 1 to 1000 numbers"),
        (["--rate", "orders"], "orders is not TOPIC=N, such as orders=1200"),
        (["--rate", "1200"], "1200 is not TOPIC=N, such as orders=1200"),
        (["--capacity", "0"], "0 is not a number from 1 to 2147483647"),
        (["--output", "page.txt"], "name a file that ends in .html"),
    ],
)
def test_wrong_usage(sample: Path, options: list[str], text: str) -> None:
    run = command("scale", sample, *options)
    assert run.returncode == 2
    assert text in run.stderr


def test_groups_that_plan_refuses_are_refused_in_its_words() -> None:
    line = replace(SAMPLE["orders"], assignor="stream").to_json()
    said = {
        word: command(word, "-", *options, stdin=line)
        for word, options in (("scale", []), ("plan", ["--add-members", "1"]))
    }
    assert said["scale"].returncode == said["plan"].returncode == 3
    assert said["scale"].stdout == said["plan"].stdout
    assert said["scale"].stderr == said["plan"].stderr

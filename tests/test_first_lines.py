# SPDX-License-Identifier: Apache-2.0
"""Each answer begins with a sentence that a person would say; JSON has it as `summary`."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.cli.snapshot import _Counts
from kafka_rebalance.report.fleet import FleetReport, fleet_page
from kafka_rebalance.simulator import simulate_seeds
from kafka_rebalance.simulator.measure import rebalances_text
from kafka_rebalance.simulator.scenario_files import load
from kafka_rebalance.simulator.seeds import median_seed
from tests.support.fleet_totals import totals_of
from tests.support.planned_groups import captured

INCIDENT = Path(__file__).parent.parent / "docs" / "incident"


def group(members: int, partitions: int, assignor: str = "cooperative-sticky") -> kr.GroupSpec:
    """Returns a group whose members own what the assignor gives them."""
    names = [f"c-{n}-{n:08x}-0000-0000-0000-000000000000" for n in range(1, members + 1)]
    topics = (kr.Topic("t", partitions),)
    one = kr.GroupSpec(
        "g", topics, tuple(kr.Member(name, ("t",), client_id=name[:3]) for name in names), assignor
    )
    return one.owning(kr.assign(one), generation_id=3)


def first(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Returns the first paragraph that a command prints, as one line."""
    assert main(arguments) == 0
    return " ".join(capsys.readouterr().out.partition("\n\n")[0].split())


def test_a_switch_to_the_present_assignor_is_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, change = tmp_path / "g.jsonl", ("--switch-assignor", "range")
    names = ("range", "sticky")
    groups = [replace(group(2, 4, name), group_id=name).to_json() for name in names]
    path.write_text("\n".join(groups))
    said = '"range" is the group\'s assignor already; nothing changes'
    assert first(capsys, "plan", str(path), "--group", "range", *change) == f"range: {said}"
    checked = first(capsys, "check", str(path), "--group", "range", *change)
    assert checked == f"Passed: 1 group checked. range: {said}"
    assert main(["plan", str(path), *change]) == 0
    assert "Not affected by switch-assignor=range: 1 group." in capsys.readouterr().out
    # The plan's other changes are played, in any order.
    for changes in ((*change, "--add-members", "1"), ("--add-members", "1", *change)):
        assert main(["plan", str(path), "--group", "range", *changes]) == 0
        text = capsys.readouterr().out
        assert text.startswith("Adding 1 member moves 1 of 4 partitions in 1 rebalance")
        assert f"Not affected by switch-assignor=range: {said.partition(';')[0]}." in text
        limits = ("--max-moves", "0", "--fail-on", "error")
        assert main(["check", str(path), "--group", "range", *changes, *limits]) == 4
        capsys.readouterr()
    # Several groups that all have the assignor are a result, too.
    both = [replace(group(2, 4, "range"), group_id=name).to_json() for name in "ab"]
    path.write_text("\n".join(both))
    assert main(["plan", str(path), *change]) == 0
    assert capsys.readouterr().out == "Not affected by switch-assignor=range: 2 groups.\n"
    assert main(["check", str(path), *change]) == 0
    assert f"a: {said}\nb: {said}\n" in capsys.readouterr().out
    assert main(["plan", str(path), "--json", *change]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    assert [one["not_affected"] for one in lines] == [[f"switch-assignor=range: {said[:-17]}"]] * 2


@pytest.mark.parametrize(
    ("members", "partitions", "assignor", "change", "sentence"),
    [
        (
            10, 10, "cooperative-sticky", "add-members=2",
            ("2 of 12 members get nothing: there are 10 partitions. Adding 2 members causes 1 "
            "rebalance and moves nothing; every partition has a reader all the time."),
        ),
        (
            2, 4, "cooperative-sticky", "remove-members=1",
            ("Removing 1 member moves 2 of 4 partitions in 1 rebalance; 2 of them have no reader "
            "for one rebalance, the others keep theirs."),
        ),
        (
            2, 5, "range", "add-members=1",
            ("Adding 1 member moves 2 of 5 partitions in 1 rebalance; all 5 partitions have no "
            "reader meanwhile."),
        ),
        (
            2, 4, "range", "bounce-members=*,static",
            ("Restarting every member causes no rebalance; 4 partitions wait while their member is "
            "down."),
        ),
        (
            1, 1, "range", "bounce-members=*,static",
            ("Restarting every member causes no rebalance; 1 partition waits while its member is "
            "down."),
        ),
        (
            2, 4, "range", "resubscribe=t",
            "Subscribing every member to t causes no rebalance; nothing moves.",
        ),
    ],
)  # fmt: skip
def test_a_plan_begins_with_its_answer(
    members: int,
    partitions: int,
    assignor: str,
    change: str,
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(members, partitions, assignor).to_json(), encoding="utf-8")
    assert first(capsys, "plan", str(file), "--change", change) == sentence
    assert main(["plan", str(file), "--change", change, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == sentence
    assert str(kr.plan(group(members, partitions, assignor), None, [change])).startswith(sentence)


def test_one_recommendation_has_its_price_in_its_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(2, 5, "range").to_json(), encoding="utf-8")
    said = first(capsys, "compare", str(file), "--add-members", "1")
    compared = kr.compare(group(2, 5, "range"), ["add-members=1"])
    steps = compared.migration
    assert steps is not None
    assert compared.summary == (
        "Switch to cooperative-sticky: it leaves 1 partition without a reader, range 5, and is as "
        "even; "
        f"getting there costs at most {steps.rebalances} rebalances and {steps.moves} moves once."
    )
    assert said.startswith(f"{compared.summary} But where partitions start and stop in 0 ms (")
    kept = kr.compare(group(2, 5), ["add-members=1"])
    assert kept.summary.startswith(
        "Keep cooperative-sticky: it leaves 1 partition without a reader, "
    )


def test_an_explanation_begins_with_the_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(2, 5).to_json(), encoding="utf-8")
    assert first(capsys, "explain", "t-0", str(file)) == (
        "t-0 stays with c-1-0000 in a rebalance without a change."
    )
    topics = kr.Topic("t", 2), kr.Topic("u", 2)
    members = kr.Member("a", ("t",)), kr.Member("b", ("u",))
    plan = kr.plan(kr.GroupSpec("g", topics, members, "range"))
    assert plan.explain("t-0").summary.startswith(
        "t-0 goes from nobody to a, the only member that subscribes to t, in a rebalance without"
    )
    said = first(capsys, "explain", "t-4", str(file), "--add-members", "1")
    goes = "t-4 goes from c-1-0000 to c-3-1bc4* in 2 rebalances; nobody reads it between the two."
    other = "other client ids and UUIDs of new members (*), it ends there too, in 8 samples."
    assert said == f"{goes} With {other}"
    said = first(capsys, "explain", "t-0", str(file), "--add-members", "1", "--assignor", "range")
    assert ". This is not certain: in 8 samples of client ids and UUIDs of new members" in said
    file.write_text(captured()["orders"].to_json(), encoding="utf-8")
    said = first(capsys, "explain", "orders-3", str(file), "--add-members", "1")
    assert said.startswith("orders-3 most often stays with orders-2-77e8: in 8 of 10 samples of ")
    assert ", with a new member in 2. With the guesses of this plan, orders-3 goes from " in said
    file.write_text(replace(group(2, 5), assignor="range").to_json(), encoding="utf-8")
    said = first(capsys, "explain", "t-0", str(file), "--remove-members", "1")
    assert said.endswith("in 1 rebalance; meanwhile nobody reads any of the 5 partitions (eager).")


def test_members_without_a_rack_may_be_in_the_lost_one() -> None:
    told = group(2, 2)
    told = replace(told, topics=(kr.Topic("t", 2, racks=(("a", "b"), ("b",))),))
    assert kr.plan(told, None, ["remove-rack=a"]).summary == (
        "Not known: none of the 2 members has a client.rack. Name those in rack a with "
        "--remove-member."
    )
    found = kr.plan(told, None, ["remove-rack=a"]).to_dict()
    assert (found["rounds"], found["moves"], found["waiting"]) == (None, None, None)
    first, second = told.members
    told = replace(told, members=(replace(first, rack_id="b"), second))
    assert kr.plan(told, None, ["remove-rack=a"]).summary.startswith(
        "1 of 2 members has no client.rack; whether the rack holds it is not known, and this plan "
        "keeps it. Losing rack a "
    )


def test_a_simulation_begins_with_its_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "rolling-bounce", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    one = run["totals"]
    assert run["summary"] == first(capsys, "simulate", "rolling-bounce")
    assert run["summary"] == (
        "Every member restarts, one after another: "
        f"{one['rebalances']} rebalances after the start-up; {one['moves']} moves; running members "
        "stop 24 times, for less than 0.1 s each; a partition is without a reader for up to "
        f"{one['longest_gap_ms'] / 1000:,.1f} s, in all {one['unavailable_ms'] / 1000:,.1f} "
        "partition-seconds."
    )


def test_a_simulation_of_a_group_names_the_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "g.jsonl"
    file.write_text(group(2, 5).to_json(), encoding="utf-8")
    of = ("simulate", "--from", str(file))
    assert first(capsys, *of, "--add-members", "1").startswith("g: adding 1 member: 1 rebalance ")
    assert first(capsys, *of).startswith("g: as it is: 0 rebalances ")
    several = (*of, "--bounce-members", "--compare", "eager,static")
    assert first(capsys, *several).startswith(
        "g: restarting every member, each away for 10 s: if a partition starts in no time "
        "(try --costs 200ms/100ms too), take eager, with the fewest partition-seconds without "
    )
    assert first(capsys, *of, "--add-members", "1", "--seeds", "2").startswith("g: adding 1 member")
    # A range stops the members that stay, and the costs that are not given are assumed to be 0.
    file.write_text(group(2, 5, "range").to_json(), encoding="utf-8")
    said = first(capsys, *of, "--add-members", "1", "--seeds", "2")
    assert "; 2 running members stop " in said
    assert said.endswith(" with other seeds).")
    lost = first(capsys, "simulate", "zone-lost")
    assert "for up to 45.4 s (the session timeout, then the rebalance), in all " in lost


def test_a_run_is_the_median_of_five_seeds() -> None:
    """`--seed` shows one seed; without it, no table shows the best case as if it were usual."""
    seed, said = median_seed(load("rolling-bounce"))
    runs = simulate_seeds(load("rolling-bounce"), range(1, 6))
    sums = [one.unavailable_ms for one in runs.totals]
    assert sums[seed - 1] == sorted(sums)[2]
    least, most = min(sums) / 1000, max(sums) / 1000
    between = f"which have {least:.1f} to {most:.1f} partition-seconds without a reader"
    assert said == f"seed {seed}, the median of 5, {between}"


def test_plan_and_simulate_say_how_they_count_rebalances() -> None:
    assert rebalances_text(4, 6) == "4 rebalances (6 rounds, as `plan` counts)"
    assert rebalances_text(1, 1) == "1 rebalance"


def test_a_history_begins_with_how_often_and_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(INCIDENT)
    said = first(capsys, "history", "records.jsonl.gz")
    assert said.startswith(
        "76 rebalances of 6 groups within 35 s, 202 moves. Begin with shop: 48 moves in 14 "
        "rebalances, 12 of them avoidable: shop-1, shop-2, shop-3 came back 6 times under a new "
        "member id, in 12 rebalances of their own. Most helpful: group.instance.id, and "
    )
    said = first(capsys, "history", "records.jsonl.gz", "--group", "shop")
    assert said == (
        "shop: 14 rebalances within 35 s, 48 moves: 6 times a member joined again under a new id, "
        "4 times a member left or was removed, twice a member left or timed out: not known which, "
        "2 from other causes, once each. shop-1, shop-2, shop-3 came back 6 times under a new "
        "member id, in 12 rebalances of their own. Most helpful: group.instance.id, and "
        "session.timeout.ms above 4,000 ms (longer than 95% of these absences): then they are no "
        "rebalance if the client sends no LeaveGroup when it stops (Java's static members send "
        "none, others may)."
    )
    said = first(capsys, "history", "records.jsonl.gz", "--group", "rdk")
    assert "; 4 are second rounds of these (cooperative: normal). Most helpful: static " in said
    fewer = "5 of these 14 fewer: 3 of 3 rejoined, 1 of 2 left, 1 of 4 second round"
    assert said.endswith(f" makes a short restart no rebalance ({fewer}).")
    said = first(capsys, "history", "records.jsonl.gz", "--group", "orders")
    assert "4 from other causes, once each. Most helpful: stop members together, so" in said


def test_a_snapshot_ends_with_what_it_wrote_and_what_is_wrong() -> None:
    counts = _Counts(lambda *_: None)
    for line in (group(3, 2).to_dict(), {"group_id": "b", "error": "state: Dead"}):
        counts.add(line)
    assert str(counts) == (
        "wrote 1 group: 1 with idle members. 1 line with an error, 0 groups left out"
    )


def test_a_fleet_begins_with_what_the_next_rebalance_leaves() -> None:
    now = totals_of("", {"groups": 20, "errors": 1, "uneven": 2})
    more = totals_of("add-members=1", {"groups": 20, "unavailable": 78, "with_unavailable": 5})
    hurt = {"unavailable": 20, "waiting": 83, "with_waiting": 2, "without_members": 1}
    lost = totals_of("remove-rack=a", {"groups": 20, **hurt})
    named = {
        "uneven": [("u", 7), ("v", 1)],
        "without_members": [("w", 1)],
        "waiting": [("x", 80), ("y", 3)],
        "unavailable": [("x", 40), ("y", 20), ("z", 16)],
    }
    report = FleetReport("t", [], [], [], [now, more, lost], {}, [], [], named, 16)
    assert report.summary == (
        "Begin with u and v: 2 of 19 groups end less even than possible (`compare` shows what "
        "helps). 1 group has an error. Losing rack a leaves no member in w. Losing rack a leaves "
        "83 partitions without a reader until sessions end: x (80) and y (3). Adding 1 member "
        "leaves 78 partitions without a reader for a rebalance or more: x (40), y (20), z (16) and "
        "2 more. 16 groups have members without client.rack, played as if outside the lost rack."
    )
    well = FleetReport("t", [], [], [], [totals_of("", {"groups": 20})], {}, [], [], {})
    assert well.summary == "None of 20 groups ends less even than possible."
    assert fleet_page(report).index(report.summary) < fleet_page(report).index("Each change alone")


def test_samples_and_explanations_have_their_answer_first() -> None:
    plan = kr.plan(group(2, 5), None, ["add-members=1"])
    for one in (plan.sample(), plan.explain("t-4"), plan):
        assert f"<p>{escape(one.summary)}</p>" in one._repr_html_()
    assert str(plan.explain("t-4")).splitlines()[0] == plan.explain("t-4").summary
    assert plan.sample(4).summary.startswith("In 4 samples of client ids and UUIDs")
    (note,) = (one for one in kr.describe(group(3, 2)).findings if one.kind == "idle")
    assert f"<p>{escape(note.text)}</p>" in note._repr_html_()
    assert "<td>moves</td>" in plan.figures()._repr_html_()

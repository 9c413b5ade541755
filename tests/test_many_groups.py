# SPDX-License-Identifier: Apache-2.0
"""In one list of changes for many groups, a change that does not affect a group is not an error."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors import Range, register, unregister
from kafka_rebalance.cli import main
from kafka_rebalance.cli.tally import Tally
from kafka_rebalance.data import captured_lines
from kafka_rebalance.notes import endless
from kafka_rebalance.plans.leaders import LedPlan

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def _group(group_id: str, *topics: str, assignor: str = "range") -> kr.GroupSpec:
    """Makes a group of two members; the second one subscribes only to the first topic."""
    members = (kr.Member("m0", topics), kr.Member("m1", topics[:1]))
    return kr.GroupSpec(group_id, tuple(kr.Topic(t, 4) for t in topics), members, assignor)


LEFT_OUT = (
    "Left out: 1 group of Kafka Streams under KIP-1071: of a streams group, the plan plays only "
    "members that join, leave or restart: wordcount."
)


def _streams(group_id: str) -> kr.GroupSpec:
    tasks = [{"subtopology_id": "0", "partitions": [0, 1, 2, 3]}]
    member = {"member_id": "m0", "topics": [], "process_id": "p0", "active_tasks": tasks}
    subtopology = {"subtopology_id": "0", "tasks": 4, "source_topics": ["a"]}
    line = {"group_id": group_id, "assignor": "streams/sticky", "topics": []}
    return kr.GroupSpec.from_dict({**line, "members": [member], "subtopologies": [subtopology]})


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(command: str, groups: list[kr.GroupSpec], *options: str) -> tuple[int, str, str]:
        file = tmp_path / "groups.jsonl"
        file.write_text("".join(f"{g.to_json()}\n" for g in groups), encoding="utf-8")
        code = main([command, str(file), *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_an_error_is_of_the_change_that_was_asked_for(run: Any) -> None:
    """g1 has no topic b, and its topic a cannot shrink: the error must name the change of a."""
    groups = [_group("g1", "a"), _group("g2", "a", "b")]
    code, _, told = run("plan", groups, "--partitions", "b=8", "--partitions", "a=2")
    assert code == 3
    assert 'g1: partitions a=2: "a" has 4 partitions already' in told


def test_groups_that_refuse_a_change_are_affected(run: Any) -> None:
    groups = [_group("g1", "a"), _group("g2", "b")]
    code, _, told = run("plan", groups, "--partitions", "a=2")
    assert code == 3
    assert "no group is affected" not in told


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_sticky_groups_answer_for_what_concerns_them(run: Any, command: str) -> None:
    """The search for calls that never end uses only the changes that affect the group."""
    groups = [_group(f"g{n}", "a", "c", assignor="sticky") for n in range(2)]
    changes = ("--partitions", "b=8", "--partitions", "a=9")
    code, out, _ = run(command, groups, "--json", *changes)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["changes"] for line in lines] == [["partitions a=9"]] * 2
    assert all("the group has no topic" in line["not_affected"][0] for line in lines)


@pytest.mark.parametrize("command", ["plan", "compare"])
@pytest.mark.parametrize("change", [("--partitions", "a=9"), ("--resubscribe", "c")])
def test_a_change_that_no_member_sees_affects_no_group(
    run: Any, command: str, change: tuple[str, str]
) -> None:
    whole = _group("g", "a", "c")
    members = tuple(replace(member, topics=("c",)) for member in whole.members)
    group = whole.edited(members=members)
    code, out, _ = run(command, [group, group], "--json", *change)
    assert code == 3
    for line in map(json.loads, out.splitlines()):
        assert "no rebalance follows, because no member sees a change" in line["not_affected"][0]
    code, out, _ = run("plan", [group], *change)
    assert code == 0
    assert "no rebalance; nothing moves" in " ".join(out.split())
    assert ": no rebalance, because no member sees a change" in " ".join(out.split())


def test_members_that_a_plan_makes_up_are_known_to_the_detector() -> None:
    group = _group("g", "a", "c", assignor="sticky")
    new = kr.plan(group, None, ["add-members=2"]).made_up[1]
    changes = ["add-members=2", f"remove-member={new}"]
    assert kr.plan(group, None, changes).settled
    found = endless(group, None, changes)
    assert found is not None
    assert not found.hangs
    with pytest.raises(kr.GroupError, match=r"^changes\[1\]: "):
        endless(group, None, ["add-members=2", "remove-member=nobody"])


def test_a_group_has_figures_in_seconds_or_the_reason_why_not(run: Any) -> None:
    group = _group("g", "a", "c")
    code, out, _ = run("compare", [group], "--resubscribe", "m0:a")
    assert code == 0
    assert "No figures in seconds: " in out
    code, out, _ = run("compare", [group], "--json", "--add-members", "1")
    assert json.loads(out)["times"]
    code, out, _ = run("compare", [group], "--json", "--resubscribe", "m0:a")
    assert json.loads(out)["times"] == {}
    assert "cannot play it" in json.loads(out)["times_missing"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_compare_does_not_keep_the_plans_of_many_groups(
    run: Any, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When all groups are printed, at most the last group's plans are still in memory."""
    kept: list[int] = []

    def finish(tally: Tally, args: argparse.Namespace) -> int:
        gc.collect()
        kept.append(sum(isinstance(one, LedPlan) for one in gc.get_objects()))
        return finished(tally, args)

    gc.collect()
    before = sum(isinstance(one, LedPlan) for one in gc.get_objects())
    finished = Tally.finish
    monkeypatch.setattr(Tally, "finish", finish)
    assert run("compare", [_group(f"g{n}", "a") for n in range(6)], *options)[0] == 0
    assert kept[0] - before <= 1


def test_a_custom_assignor_counts_as_one_that_all_clients_have() -> None:
    """A group of Java members runs the custom assignor `mine`, so its clients must have it."""

    class Mine(Range):
        name = "mine"

        def assign(self, group: kr.GroupSpec) -> kr.Assignment:
            return kr.assign(group, "range")

    register(Mine())
    try:
        members = tuple(kr.Member(f"m{n}", ("t",), client_id=f"consumer-g-{n}") for n in range(2))
        group = kr.GroupSpec("g", (kr.Topic("t", 4),), members, "mine")
        assert kr.compare(group, assignors=["mine"]).recommended == "mine"
    finally:
        unregister("mine")


def test_owning_forgets_what_was_sent_before() -> None:
    member = kr.Member(
        "m",
        ("t",),
        owned_partitions=(kr.TopicPartition("t", 0),),
        generation_id=3,
        subscription_version=3,
        user_data_generation_id=7,
    )
    group = kr.GroupSpec("g", (kr.Topic("t", 1),), (member,), "sticky")
    owning = group.owning({"m": [("t", 0)]}, generation_id=4)
    assert owning.members[0].user_data_generation_id is None


def test_the_readmes_changes_are_of_the_sample(run: Any) -> None:
    groups = [kr.GroupSpec.from_json(line) for line in captured_lines() if "error" not in line]
    code, out, _ = run("plan", groups, "--partitions", "orders=48")
    assert code == 0
    assert "Not affected by partitions orders=48: " in out


def test_a_streams_group_that_no_change_affects_is_no_error(run: Any) -> None:
    streams = _group("wordcount", "a", assignor="stream")
    code, out, told = run("plan", [streams, _group("g", "b")], "--partitions", "b=8")
    assert (code, told) == (0, "")
    assert "Not affected by partitions b=8: 1 group." in out
    code, out, _ = run("plan", [streams, _group("g", "a")], "--partitions", "a=8")
    assert code == 0
    assert "Left out: 1 group of Kafka Streams" in out
    assert "wordcount" in out
    code, _, told = run("plan", [streams], "--partitions", "b=8")
    assert code == 3


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_a_change_of_partitions_leaves_a_kip_1071_group_out(run: Any, command: str) -> None:
    """No plan plays the group: it is left out with the reason, even if it is the only group."""
    streams = _streams("wordcount")
    change = ("--partitions", "a=8")
    code, out, told = run(command, [streams, _group("g", "a")], *change)
    assert (code, told) == (0, "")
    assert LEFT_OUT in " ".join(out.split())
    _, out, _ = run(command, [streams, _group("g", "a")], *change, "--json")
    (line,) = [one for one in map(json.loads, out.splitlines()) if "left_out" in one]
    assert line["group_id"] == "wordcount"
    assert "members that join, leave or restart" in line["left_out"]
    for groups in ([streams], [streams, _group("g", "a")]):
        code, out, told = run(command, groups, *change, "--group", "wordcount")
        assert (code, " ".join(out.split())) == (3, LEFT_OUT)
        assert told == "kafka-rebalance: no group is left\n", "the reason stands above"
        _, out, _ = run(command, groups, *change, "--group", "wordcount", "--json")
        assert json.loads(out) == line


def test_members_without_a_rack_may_be_in_the_lost_one(run: Any) -> None:
    """A plan must not claim that all partitions keep their readers if that is unknown."""
    topic = kr.Topic("t", 4, racks=(("a",), ("b",), ("a",), ("b",)))
    members = (kr.Member("m0", ("t",), rack_id="a"), kr.Member("m1", ("t",)))
    group = kr.GroupSpec("g", (topic,), members, "range")
    _, out, _ = run("plan", [group], "--remove-rack", "b")
    assert "remove-rack=b: 1 member has no client.rack. The figures are as if it" in out
    known = group.edited(members=(members[0],))
    _, out, _ = run("plan", [known], "--remove-rack", "b")
    assert "client.rack" not in out


@pytest.mark.parametrize("assignor", ["range", "librdkafka/range", "librdkafka/cooperative-sticky"])
def test_an_empty_rack_is_no_rack(
    run: Any, assignor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real librdkafka member without client.rack sends "" (docs/plans.md), and is in no rack."""
    topic = kr.Topic("t", 4, racks=(("a",), ("b",), ("a",), ("b",)))
    members = (kr.Member("m0", ("t",), rack_id="a"), kr.Member("m1", ("t",), rack_id=""))
    group = kr.GroupSpec("g", (topic,), members, assignor)
    _, out, _ = run("plan", [group], "--remove-rack", "b")
    assert "remove-rack=b: 1 member has no client.rack. The figures are as if it" in out
    _, out, _ = run("compare", [group], "--remove-rack", "b")
    assert "Before the changes, 1 member has no client.rack. The figures are as if it ran" in out
    file = tmp_path / "groups.jsonl"
    assert main(["simulate", "--from", str(file), "--remove-rack", "a"]) == 0
    told = capsys.readouterr().err
    assert "Before the changes, 1 member has no client.rack. The figures" in told


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_tables_of_many_groups_say_who_has_no_rack(run: Any, command: str) -> None:
    topic = kr.Topic("t", 4, racks=(("a",), ("b",), ("a",), ("b",)))
    members = (kr.Member("m0", ("t",), rack_id="a"), kr.Member("m1", ("t",), rack_id=""))
    group = kr.GroupSpec("g", (topic,), members, "range")
    known = kr.GroupSpec("known", (topic,), members[:1], "range")
    lost = (command, [group, known, _group("other", "a")], "--remove-rack", "b")
    text = " ".join(run(*lost)[1].split())
    start = "" if command == "plan" else "Before the changes, "
    assert f"{start}1 member of 1 group has no client.rack. The figures are as if it ran" in text
    assert "client.rack" not in run(command, [known, known], "--remove-rack", "b")[1]
    assert "client.rack" not in run(command, [group, known], "--add-members", "1")[1]


def test_tables_of_many_groups_say_that_new_partitions_places_are_guessed(run: Any) -> None:
    topic = kr.Topic("t", 4, racks=(("a",), ("b",), ("a",), ("b",)))
    members = (kr.Member("m0", ("t",), rack_id="a"), kr.Member("m1", ("t",), rack_id="b"))
    racked = kr.GroupSpec("racked", (topic,), members, "range")
    other = kr.GroupSpec(
        "other", (topic,), tuple(replace(m, rack_id=None) for m in members), "range"
    )
    text = " ".join(run("plan", [racked, other], "--partitions", "t=6")[1].split())
    assert "Guessed for 1 group with racks: where brokers put the new partitions." in text
    assert "Guessed" not in run("plan", [racked, other], "--add-members", "1")[1]


def test_texts_fit_the_columns_that_are_asked_for(run: Any, monkeypatch: Any) -> None:
    """COLUMNS counts without a terminal, too; the answer ends without an empty line."""
    topic = kr.Topic("t", 4, racks=(("a",), ("b",), ("a",), ("b",)))
    members = (kr.Member("m0", ("t",)), kr.Member("m1", ("t",)))
    group = kr.GroupSpec("g", (topic,), members, "range")
    monkeypatch.setenv("COLUMNS", "80")
    plain, noted = (run("compare", [group], *how)[1] for how in ((), ("--remove-rack", "b")))
    assert "client.rack" in noted
    for out in (plain, noted):
        assert max(map(len, out.splitlines())) <= 80
        assert not out.endswith("\n\n")
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run("plan", [group], "--remove-rack", "b")[1].splitlines())) <= 60


def test_plans_count_unknown_racks_when_the_rack_is_lost(run: Any) -> None:
    """`--add-members` comes first: the member that it adds has no rack, like its model."""
    topic = kr.Topic("t", 4, racks=(("a",), ("b",), ("a",), ("b",)))
    members = (kr.Member("m0", ("t",)), kr.Member("m1", ("t",)))
    group = kr.GroupSpec("g", (topic,), members, "range")
    other = replace(group, group_id="other")
    changes = ("--add-members", "2", "--remove-rack", "b")
    assert "remove-rack=b: 4 members have no client.rack" in run("plan", [group], *changes)[1]
    assert "\n8 members of 2 groups have" in run("plan", [group, other], *changes)[1]
    twice = (*changes, "--remove-rack", "a")
    assert "\n8 members of 2 groups have" in run("plan", [group, other], *twice)[1]
    compared = run("compare", [group, other], *changes)[1]
    assert "Before the changes, 4 members of 2 groups have no client.rack" in compared


def test_a_plan_of_new_partitions_names_the_time_until_they_are_seen(run: Any) -> None:
    _, out, _ = run("plan", [_group("g", "a")], "--partitions", "a=8")
    assert "metadata.max.age.ms (5 minutes by default)" in " ".join(out.split())


def test_compare_of_many_groups_has_the_price_of_each_switch(run: Any) -> None:
    """A group of one partition keeps its assignor: every assignor gives it to one member."""
    two, single = _group("two", "a"), replace(_group("single", "a"), topics=(kr.Topic("a", 1),))
    two, single = two.owning(kr.assign(two)), single.owning(kr.assign(single))
    code, out, _ = run("compare", [single, two])
    steps = kr.compare(two).migration
    assert code == 0
    assert steps is not None
    sentence, table, _ = out.split("\n\n")
    assert " ".join(sentence.split()) == (
        f"2 groups: 1 keeps its own; 1 switches to cooperative-sticky; a rebalance without a "
        "change then leaves 0 partitions without a reader instead of 4 (how long: --group); "
        f"getting there costs {steps.rebalances} rebalances and {steps.moves} moves once."
    )
    more = run("compare", [single, two, replace(two, group_id="as-two")])[1]
    assert (
        "then leaves 0 partitions without a reader instead of 8 (how long: --group); two gains "
        "most: 0 instead of 4; " in (" ".join(more.split()))
    )
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines()}
    assert rows["group"][-1] == "switch"
    assert rows["single"][:2] == ["range", "range"]
    assert rows["two"][-3:] == [f"{steps.rebalances}", "/", f"{steps.moves}"]
    grown = kr.compare(single, ["partitions a=4"])
    assert grown.recommended == "cooperative-sticky"
    assert kr.compare(single).reason == (
        "range is what the group runs, and there is only one partition, which one member reads "
        "under every assignor"
    )

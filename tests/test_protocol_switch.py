# SPDX-License-Identifier: Apache-2.0
"""Plans that switch the group to the consumer protocol and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.notes.broker import broker_notes
from kafka_rebalance.plans.changes import SwitchProtocol, apply
from tests.support.broker_groups import broker_group, broker_line, note_kinds

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.group.model import RebalanceProtocolName


def test_the_switch_restarts_members_one_by_one() -> None:
    group = broker_group("cooperative-sticky", [[0, 1, 2], [3, 4, 5]])
    plan = kr.plan(group, None, ["switch-protocol=consumer"])
    causes = [step.cause for step in plan.steps]
    assert causes[:2] == ["m0 leaves", "m0 joins with group.protocol=consumer"]
    assert [step.rounds[0].kind for step in plan.steps] == ["cooperative", *["broker"] * 3]
    assert plan.final.assignor == "consumer/uniform"
    # m1 keeps half of its partitions, and continues to read them.
    assert len(plan.steps[1].rounds[0].unavailable) == 3


def test_an_eager_member_stops_for_each_target() -> None:
    plan = kr.plan(
        broker_group("range", [[0, 1, 2], [3, 4, 5]]), None, ["switch-protocol=consumer"]
    )
    stopped = [len(step.rounds[0].unavailable) for step in plan.steps]
    assert stopped == [6, 6, 3, 3]


@pytest.mark.parametrize("statics", [0, 1, 3])
def test_members_that_list_an_eager_assignor_too_stop_for_each_target(statics: int) -> None:
    """All partitions of the members that are still classic stop, as under sticky."""

    def plan(assignor: str, protocol: RebalanceProtocolName | None) -> kr.RebalancePlan:
        group = broker_group(assignor, [[0, 1], [2, 3], [4, 5]])
        members = tuple(
            replace(member, group_instance_id=f"pod-{n}" if n < statics else None)
            for n, member in enumerate(group.members)
        )
        group = group.edited(members=members, rebalance_protocol=protocol)
        return kr.plan(group, None, ["switch-protocol=consumer"])

    def stopped(plan: kr.RebalancePlan) -> list[list[int]]:
        return [[len(one.unavailable) for one in step.rounds] for step in plan.steps]

    eager = plan("cooperative-sticky", "eager")
    assert stopped(eager) == stopped(plan("sticky", None))
    assert stopped(eager) != stopped(plan("cooperative-sticky", None))
    known = {member.member_id for member in eager.group.members}
    for step in eager.steps:
        classic = [member for member in step.before.members if member.member_id in known]
        for one in step.rounds:
            held = {tp for member in classic for tp in one.held.get(member.member_id, ())}
            assert held <= set(one.unavailable)


def test_static_members_are_replaced_without_a_target() -> None:
    line = broker_line("cooperative-sticky", [[0, 1, 2], [3, 4, 5]])
    for i, member in enumerate(line["members"]):
        member["group_instance_id"] = f"pod-{i}"
    group = kr.GroupSpec.from_dict(line)
    plan = kr.plan(group, None, ["switch-protocol=consumer"])
    assert [len(step.rounds) for step in plan.steps] == [1, 0]
    assert plan.moves == 0
    back = kr.plan(plan.final, None, ["switch-protocol=classic/sticky"])
    assert (back.rounds, back.final.assignor) == ((), "sticky")


def test_the_way_back_ends_with_the_leaders_assignor() -> None:
    group = broker_group("consumer/uniform", [[0, 1, 2], [3, 4, 5]])
    plan = kr.plan(group, None, ["switch-protocol=classic"])
    kinds = [one.kind for one in plan.rounds]
    assert kinds == ["broker", "broker", "eager", "eager"]
    assert plan.final.assignor == "range"


@pytest.mark.parametrize(
    ("assignor", "change", "problem"),
    [
        ("range", "newest", '"newest" is not consumer or classic'),
        ("range", "consumer/sticky", '"sticky" is none of uniform, range'),
        ("consumer/range", "consumer", "the broker assigns the group already"),
        ("consumer/range", "consumer/uniform", "switch-assignor=consumer/uniform changes that"),
        ("sticky", "classic/range", '"sticky": switch-assignor=range changes that'),
        ("sticky", "classic", "a member assigns the group already"),
        ("consumer/range", "consumer/range", '"consumer/range" is the group\'s assignor already'),
        ("range", "classic/range", '"range" is the group\'s assignor already'),
        ("kafka-python/range", "consumer", "kafka-python and aiokafka have no consumer protocol"),
        ("range", "consumer/", '"consumer/" names no assignor after the slash'),
        ("share/simple", "classic", 'this is a share group, which runs "share/simple"'),
        ("share/simple", "consumer", "only consumer groups have two protocols"),
        ("librdkafka/cooperative-sticky", "consumer", "whose assignments have user data"),
    ],
)
def test_a_switch_that_is_refused(assignor: str, change: str, problem: str) -> None:
    group = broker_group(assignor, [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(kr.GroupError) as raised:
        kr.plan(group, None, [f"switch-protocol={change}"])
    assert raised.value.path == "changes[0]"
    assert problem in raised.value.problem


def test_a_group_without_an_assignor_is_not_switched() -> None:
    group = replace(broker_group("range", [[0, 1, 2], [3, 4, 5]]), assignor=None)
    with pytest.raises(kr.GroupError, match="no assignor: name the one that its leader runs"):
        apply(SwitchProtocol("consumer"), group)


@pytest.mark.parametrize("generation_id", [None, 5])
def test_user_data_of_librdkafka_blocks_for_certain_or_perhaps(generation_id: int | None) -> None:
    line = broker_line("librdkafka/cooperative-sticky", [[0, 1, 2], [3, 4, 5]])
    line["generation_id"] = generation_id
    change = ["switch-protocol=consumer"]
    with pytest.raises(kr.GroupError, match="user data"):
        kr.plan(kr.GroupSpec.from_dict(line), None, change)
    line["members"][0]["group_instance_id"] = "pod-0"
    plan = kr.plan(kr.GroupSpec.from_dict(line), None, change)
    notes = [note.text for note in broker_notes(plan) if note.kind == "blocks"]
    assert ["has user data" in text for text in notes] == [True]
    one = kr.plan(broker_group("librdkafka/cooperative-sticky", [[0, 1, 2]]), None, change)
    assert "blocks" not in note_kinds(one)


def test_a_streams_app_is_never_switched() -> None:
    group = broker_group("range", [[0, 1, 2], [3, 4, 5]]).edited(assignor="stream")
    for ask in (
        lambda: kr.plan(group, None, ["switch-protocol=consumer"]),
        lambda: kr.compare(group),
    ):
        with pytest.raises(kr.GroupError, match="Kafka Streams' own assignor"):
            ask()
    (finding,) = kr.describe(group).facts
    assert (finding.ask, "no setting replaces" in finding.text) == (None, True)


def test_libraries_that_block_the_switch_are_named() -> None:
    line = broker_line("range", [[0, 1], [2, 3], [4, 5]])
    for member, library in zip(line["members"], ("java", "aiokafka", "librdkafka"), strict=True):
        member["client_library"] = library
    plan = kr.plan(kr.GroupSpec.from_dict(line), None, ["switch-protocol=consumer"])
    notes = {note.kind: note for note in broker_notes(plan)}
    assert notes["blocks"].text.startswith("m1: aiokafka lacks it (0.14.0)")
    unknown = [note.text for note in broker_notes(plan) if note.kind == "unknown"]
    assert [text.partition(":")[0] for text in unknown] == ["m0", "m2"]
    fewer = kr.plan(plan.group, None, ["remove-member=m1", "switch-protocol=consumer"])
    assert "blocks" not in note_kinds(fewer)
    assert "from 4.0 on" in unknown[0]
    assert "2.12.0" in unknown[1]
    assert notes["owners"].partitions


@pytest.mark.parametrize(("library", "named"), [("java", 0), ("librdkafka", 2), (None, 2)])
def test_bugs_are_those_of_the_members_libraries(library: str | None, named: int) -> None:
    line = broker_line("range", [[0, 1, 2], [3, 4, 5]])
    for member in line["members"]:
        member["client_library"] = library
    plan = kr.plan(kr.GroupSpec.from_dict(line), None, ["switch-protocol=consumer"])
    (note,) = [note for note in broker_notes(plan) if note.kind == "bugs"]
    assert note.detail is not None
    of = [one["of"] for one in note.detail["bugs"]]
    assert of == ["librdkafka"] * named + ["brokers"] * 2
    assert all(one["link"] in note.text for one in note.detail["bugs"])


def test_bytes_show_a_client_that_is_too_old() -> None:
    """Kafka 3.3's client sends version 1 of its subscription, that of 3.4 version 3."""
    line = broker_line("range", [[0, 1, 2], [3, 4, 5]])
    line["members"][1] |= {"client_library": "java", "subscription_version": 1}
    group = kr.GroupSpec.from_dict(line)
    plan = kr.plan(group, None, ["switch-protocol=consumer"])
    (text,) = [note.text for note in broker_notes(plan) if note.kind == "blocks"]
    assert text.startswith("m1: its subscription has version 1: a client before Kafka 3.4 lacks it")


def test_racks_that_no_longer_count_are_told() -> None:
    line = broker_line("range", [[0, 2, 4], [1, 3, 5]])
    line["topics"][0]["racks"] = [["a"], ["b"]] * 3
    for member, rack in zip(line["members"], "ab", strict=True):
        member["rack_id"] = rack
    plan = kr.plan(kr.GroupSpec.from_dict(line), None, ["switch-protocol=consumer"])
    figures = plan.figures()
    notes = [note for note in broker_notes(plan) if note.kind == "racks"]
    assert figures.rack_share_before == 1
    assert figures.rack_share_after is not None
    assert figures.rack_share_after < 1
    assert [note.detail for note in notes] == [{"before": 1, "after": figures.rack_share_after}]
    assert "100% of the partitions" in notes[0].text


def test_the_check_after_a_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = broker_group("range", [[0, 1, 2], [3, 4, 5]])
    plan = kr.plan(group, None, ["switch-protocol=consumer"])
    half = plan.steps[1].after
    fewer = plan.final.edited(members=plan.final.members[:1])
    told = tmp_path / "plan.json"
    told.write_text(json.dumps(plan.to_dict()) + "\n", encoding="utf-8")
    for there, problems in (
        (plan.final, []),
        (group, ["assignor: range; in the plan consumer/uniform", "not restarted since the plan"]),
        (half, ["m1: not restarted since the plan"]),
        (fewer, ["members: 1; in the plan 2"]),
    ):
        file = tmp_path / "now.jsonl"
        file.write_text(json.dumps(there.to_dict()) + "\n", encoding="utf-8")
        code = main(["check", str(file), "--switched", str(told), "--json"])
        answer = json.loads(capsys.readouterr().out)
        found = [one["text"] for one in answer["problems"] if one["kind"] == "switched"]
        assert (code == 0) is (not problems)
        assert len(found) == len(problems)
        for text, part in zip(found, problems, strict=True):
            assert part in text


def test_a_check_after_a_switch_needs_a_plan_of_each_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = broker_group("range", [[0, 1, 2], [3, 4, 5]])
    plan = kr.plan(group, None, ["switch-protocol=consumer"])
    file, told = tmp_path / "now.jsonl", tmp_path / "plan.json"
    file.write_text(f"{plan.final.to_json()}\n", encoding="utf-8")
    arguments = ["check", str(file), "--switched", str(told)]
    whole = plan.to_dict()
    unplanned = [
        {"group_id": "bad", "error": "line: not JSON"},
        {"group_id": "left", "left_out": "why"},
        {"group_id": "empty", "balance_after": None},
        {name: value for name, value in whole.items() if name != "assignment"} | {"group_id": "g2"},
    ]
    # Lines without a plan are named, and the plans beside them count.
    told.write_text("\n".join(map(json.dumps, [*unplanned, whole])), encoding="utf-8")
    assert main(arguments) == 0
    assert "no plan of bad, left, empty and 1 more" in capsys.readouterr().err
    for text in ("", "{}\n", "[1]\n", "{\n", "\n".join(map(json.dumps, unplanned))):
        told.write_text(text, encoding="utf-8")
        assert main(arguments) == 2
        assert f"--switched {told}: has no plan" in capsys.readouterr().err
    # A group that was not planned does not pass.
    told.write_text(json.dumps(whole | {"group_id": "another"}), encoding="utf-8")
    assert main([*arguments, "--group", group.group_id]) == 4
    assert "has no plan of this group" in capsys.readouterr().out


def test_settings_that_clients_refuse_are_named() -> None:
    # ConsumerConfig: the lists of settings that each protocol does not support.
    there = kr.plan(
        broker_group("range", [[0, 1, 2], [3, 4, 5]]), None, ["switch-protocol=consumer"]
    )
    (text,) = [note.text for note in broker_notes(there) if note.kind == "owners"]
    for name in ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms"):
        assert name in text
    assert "clients with group.protocol=consumer refuse them" in text
    back = kr.plan(broker_group("consumer/range", [[0, 1, 2]]), None, ["switch-protocol=classic"])
    (text,) = [note.text for note in broker_notes(back) if note.kind == "owners"]
    assert "group.remote.assignor: clients with group.protocol=classic refuse it" in text


def test_the_command_prints_the_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "group.jsonl"
    file.write_text(
        json.dumps(broker_line("range", [[0, 1, 2], [3, 4, 5]])) + "\n", encoding="utf-8"
    )
    command = ["plan", str(file), "--switch-protocol", "consumer"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "m0 joins with group.protocol=consumer, round 1 (broker), group epoch 7\n" in printed
    assert "policy: The brokers need group.consumer.migration.policy=bidirectional" in printed
    assert main([*command, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    answer = json.loads(line)
    kinds = [note["kind"] for note in answer["notes"]]
    doctor = ["bugs", "steps"]
    assert kinds == ["unknown", *doctor, "policy", "first join", "owners", "stops", "interval"]
    assert [step["rounds"][0]["protocol"] for step in answer["steps"]] == ["eager", *["broker"] * 3]
    assert main([*command, "--output", str(tmp_path / "plan.html")]) == 0
    assert (tmp_path / "plan.html").stat().st_size > 1000

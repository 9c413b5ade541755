# SPDX-License-Identifier: Apache-2.0
"""`plan`, `describe`, `explain` and `compare` name the assignor of a recorded group alike."""

from __future__ import annotations

import importlib
import json
import random
import re
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.notes.switches import by_plug_ins
from kafka_rebalance.plans import plans_by_leader
from kafka_rebalance.plans.clients import AIOKAFKA, KAFKA_PYTHON, class_name, recipe, refuses
from kafka_rebalance.plans.leaders import named_leader
from kafka_rebalance.switching.migrations import migration
from tests.support.contract_lines import noted

RECORDED = Path(__file__).parent / "data" / "groups_by_library.jsonl"
GROUPS = {
    one["group_id"]: kr.GroupSpec.from_dict(one)
    for one in map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
}
LABELS = {
    "kp-static": "kafka-python/range",
    "kp-sticky": "kafka-python/sticky",
    "kp-coop": "kafka-python/cooperative-sticky",
    "aio-sticky": "aiokafka/sticky",
    "rd-coop": "librdkafka/cooperative-sticky",
    "j-uneven": "range",
    "share-g": "share/simple",
}


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    command, *rest = words
    assert (
        main(
            [command, *rest[:1], str(RECORDED), *rest[1:]]
            if command == "explain"
            else [command, str(RECORDED), *rest]
        )
        == 0
    )
    return capsys.readouterr().out


@pytest.mark.parametrize(("group_id", "label"), LABELS.items())
def test_every_command_has_one_label_for_a_group(
    group_id: str, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    only = ("--group", group_id)
    assert f"\n\n{group_id}, {label}: " in said(capsys, "plan", *only)
    assert f"\n{group_id}, {label}" in said(capsys, "describe", *only)
    compared = said(capsys, "compare", *only)
    assert f"\n\n{group_id}, which runs {label}: " in compared
    assert re.search(rf"^ {re.escape(label)}( <)?  ", compared, re.MULTILINE)
    if label.startswith(("kafka-python/", "aiokafka/")):
        tp = GROUPS[group_id].members[0].owned_partitions[0]
        assert label in said(capsys, "explain", f"{tp.topic}-{tp.partition}", *only)


def test_tables_of_many_groups_have_the_labels_too(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("plan", "describe", "compare"):
        words = said(capsys, command, *["--all"] * (command == "describe")).split()
        for group_id, label in LABELS.items():
            name = class_name(GROUPS[group_id], label)
            assert name in words, command
    assert class_name(GROUPS["kp-static"], LABELS["kp-static"]) == "python/range"


def test_the_row_of_the_present_assignor_is_what_its_own_class_does() -> None:
    group = GROUPS["kp-sticky"].edited(assignor=LABELS["kp-sticky"])
    compared = kr.compare(group, ["partitions payments=13"])
    rows = {one.assignor: one.figures for one in compared.candidates}
    assert list(rows)[:4] == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert list(rows)[4:] == [
        f"kafka-python/{name}" for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
    ]
    own, kafkas = rows["kafka-python/sticky"], rows["sticky"]
    assert own is not None
    assert kafkas is not None
    planned = kr.plan(group, "kafka-python/sticky", ["partitions payments=13"]).figures()
    assert own.moves == planned.moves == 1  # as the real group did
    assert kafkas.moves > own.moves


def test_the_name_of_a_member_that_may_run_either_is_that_which_the_others_show() -> None:
    group = GROUPS["aio-sticky"]
    assert [one.client_library for one in group.members] == ["python", "aiokafka"]
    assert [one.assignor for one in plans_by_leader(group)] == ["aiokafka/sticky"]
    first = group.edited(leader=group.members[0].member_id)
    assert [one.assignor for one in plans_by_leader(first)] == ["aiokafka/sticky"]


def test_kafkas_assignor_of_the_same_name_is_not_recommended() -> None:
    """Members would list one name for both assignors, and the leader would decide which one
    answers.
    """
    group = GROUPS["kp-static"].edited(assignor="kafka-python/range")
    compared = kr.compare(group, assignors=["range", "kafka-python/range"])
    assert compared.recommended == "kafka-python/range"


def test_a_large_group_has_only_the_row_of_its_own_class() -> None:
    names = tuple(f"t{n}" for n in range(3))
    topics = tuple(kr.Topic(name, 2_000) for name in names)
    members = tuple(kr.Member(f"m{n}", names[:1]) for n in range(4))
    group = kr.GroupSpec("g", topics, members, "kafka-python/roundrobin", 1)
    rows = {one.assignor: one for one in kr.compare(group).candidates}
    assert rows["kafka-python/roundrobin"].figures is not None
    assert "left out" in (rows["kafka-python/sticky"].error or "")
    bounces = migration(group, "kafka-python/roundrobin", "sticky").bounces
    assert [one.is_exact for one in bounces] == [False, False]


# Switches -----------------------------------------------------------------------------------------


def validated(setting: str, needs: str | None) -> Any:
    """Returns the result of kafka-python's own check of the assignors of a printed setting."""
    coordinator = importlib.import_module("kafka.coordinator.consumer").ConsumerCoordinator
    names: dict[str, Any] = {}
    exec(needs or "", names)
    listed = [made() for made in eval(setting.partition("=")[2], names)]
    by_name = {one.name: one for one in listed}
    return coordinator._validate_rebalance_protocol(SimpleNamespace(_assignors=by_name))


KAFKAS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
OWN = [f"kafka-python/{name}" for name in KAFKAS]


@pytest.mark.parametrize(
    ("old", "new"), [(old, new) for old in OWN for new in [*OWN, *KAFKAS] if old != new]
)
def test_kafka_python_takes_or_refuses_a_list_as_the_recipe_says(old: str, new: str) -> None:
    made = recipe(KAFKA_PYTHON, old, new)
    for setting in made.settings:
        validated(setting, made.needs)
    assert (made.way == "stop all") == (
        refuses(KAFKA_PYTHON, old, new) and old.partition("/")[2] != new.rpartition("/")[2]
    )
    if made.way == "stop all":
        errors = importlib.import_module("kafka.errors")
        both = KAFKA_PYTHON.setting([new, old])
        with pytest.raises(errors.KafkaConfigurationError):
            validated(both, KAFKA_PYTHON.needs([new, old]))


def test_plan_has_the_recipe_that_compare_does_not_recommend_to_either_library(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = (
        "kafka-python: two rolling bounces, with this project's plug-ins: kafka-python's own "
        "cooperative-sticky class refuses a list of both range and cooperative-sticky "
        "(KafkaConfigurationError)"
    )
    settings = [
        "from kafka.coordinator.assignors.range import RangePartitionAssignor",
        "from kafka_rebalance.clients.kafka_python import CooperativeSticky",
        "partition_assignment_strategy=[CooperativeSticky, RangePartitionAssignor]",
        "partition_assignment_strategy=[CooperativeSticky]",
        "aiokafka: not possible, because it has no cooperative-sticky",
    ]
    only = ("--group", "kp-static")
    switch = ("--switch-assignor", "cooperative-sticky")
    text = said(capsys, "plan", *only, *switch)
    assert told in " ".join(text.split())
    at = [text.index(one) for one in settings]
    assert at == sorted(at)
    compared = " ".join(said(capsys, "compare", *only).split())
    assert "cooperative-sticky would do better if no member runs aiokafka" in compared
    (line,) = said(capsys, "plan", *only, *switch, "--json").splitlines()
    answer = json.loads(line)
    found = [one for kind in ("rolling", "refused") for one in noted(answer, kind)]
    assert [one["way"] for each in found for one in each["recipes"]] == ["rolling", "none"]


def test_members_that_show_plug_ins_or_an_equal_protocol_need_no_words() -> None:
    group = GROUPS["kp-static"]
    cooperative = [kr.SwitchAssignor("cooperative-sticky")]
    assert by_plug_ins(group, cooperative, "kafka-python/range")
    assert by_plug_ins(group, [kr.SwitchAssignor("roundrobin")], "kafka-python/range") == ()
    assert by_plug_ins(GROUPS["j-uneven"], cooperative) == ()
    assert recipe(AIOKAFKA, "aiokafka/range", "aiokafka/sticky").settings == (
        "partition_assignment_strategy=[StickyPartitionAssignor]",
    )


# Names and lines ----------------------------------------------------------------------------------


def test_a_shortened_member_id_names_the_leader_and_a_share_groups_member(
    capsys: pytest.CaptureFixture[str],
) -> None:
    group = GROUPS["kp-static"]
    for member in group.members:
        assert named_leader(group, member.member_id[:10]).leader == member.member_id
    with pytest.raises(kr.GroupError, match=r'^leader: there is no member "pod-9"$'):
        named_leader(group, "pod-9")
    only = ("--group", "share-g")
    names = re.findall(r"^ (sh-\S+)", said(capsys, "describe", *only), re.MULTILINE)
    assert len(names) == 2
    explained = said(capsys, "explain", "payments-1", *only)
    assert f"  {names[1]} -> {names[1]}\n" in explained
    for name in names:
        assert f"remove-member={name}" in said(capsys, "plan", *only, "--remove-member", name)


@pytest.mark.parametrize("group_id", GROUPS)
def test_no_report_has_two_blank_lines_in_a_row(
    group_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("plan", "describe", "compare"):
        assert "\n\n\n" not in said(capsys, command, "--group", group_id)


def test_static_members_keep_what_breaks_ties(capsys: pytest.CaptureFixture[str]) -> None:
    assert "get new ids" not in said(capsys, "compare", "--group", "kp-static")
    text = " ".join(said(capsys, "compare", "--group", "kp-sticky").split())
    assert "Restarted members get new ids, which break ties" in text
    dynamic, static = (ends(instances=one) for one in (False, True))
    assert len(dynamic) > 1
    assert len(static) == 1


def ends(*, instances: bool) -> set[str]:
    """Returns the partitions by member after a first assignment, for ids with eight UUIDs."""
    found = set()
    for seed in range(8):
        rng = random.Random(seed)
        names = [f"pod-{n}" if instances else "pod" for n in range(3)]
        ids = [f"{name}-{uuid.UUID(int=rng.getrandbits(128), version=4)}" for name in names]
        members = tuple(
            kr.Member(member_id, ("t",), group_instance_id=name if instances else None)
            for member_id, name in zip(ids, names, strict=True)
        )
        group = kr.GroupSpec("g", (kr.Topic("t", 7),), members, "cooperative-sticky")
        answer = kr.assign(group)
        found.add(" ".join(str(answer[member_id]) for member_id in ids))
    return found


def test_compare_has_the_answers_of_other_leaders(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Kafka's range sorts static members first, librdkafka's does not; nobody knows who leads."""
    members = (
        kr.Member("a", ("t",), client_library="java"),
        kr.Member("b", ("t",), group_instance_id="z", client_library="librdkafka", rack_id=""),
    )
    group = kr.GroupSpec("g", (kr.Topic("t", 3),), members, "range")
    file = tmp_path / "group.jsonl"
    file.write_text(group.to_json(), encoding="utf-8")
    assert main(["compare", str(file)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert " g, which runs range: " in text
    assert text.endswith(
        "If b leads with librdkafka/range: 1 rebalance, 3 moves, 1-2 partitions per member "
        "(--leader MEMBER)."
    )
    assert main(["compare", str(file), "--leader", "b"]) == 0
    assert (
        capsys.readouterr().out.partition("\n\n")[2].startswith("g, which runs librdkafka/range: ")
    )

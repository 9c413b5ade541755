# SPDX-License-Identifier: Apache-2.0
"""The command's sentences about groups whose members or leaders run other libraries than Java's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import SOME_ERRORS
from kafka_rebalance.plans import plans_by_leader
from kafka_rebalance.plans.clients import clients_that_fit
from tests.support.groups_by_library import group, said

if TYPE_CHECKING:
    from pathlib import Path

# How to switch ------------------------------------------------------------------------------------


def test_the_bytes_name_the_libraries_where_no_client_id_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = said(capsys, tmp_path, [group("g", "range", "python", (4, 1))], "compare")
    assert "would do better if no member runs aiokafka, which does not have it" in text
    assert "Java: two rolling" not in text
    assert "librdkafka" not in text
    text = said(capsys, tmp_path, [group("g", "range", "java", (4, 1))], "compare")
    assert "they are Java's, which this project's plug-ins for kafka-python and aiokafka" in text
    unknown = group("g", "range", "python").edited(
        members=(*group("g", "range", "python").members, kr.Member("x", ("t",)))
    )
    told = [[one.name for one in clients_that_fit(g)] for g in (group("g", "", "java"), unknown)]
    assert told == [
        ["Java", "kafka-python", "aiokafka"],
        ["Java", "kafka-python", "aiokafka", "librdkafka"],
    ]


def test_a_setting_has_the_clients_own_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = said(capsys, tmp_path, [group("g", "range", "librdkafka")], "compare")
    assert "Switch to librdkafka/cooperative-sticky" in text
    assert "a list must not contain both range and cooperative-sticky; stop all" in text


# Warnings of another library's leader -------------------------------------------------------------


def test_the_names_of_dialects_are_explained_only_where_they_stand(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = "kafka-python/ marks the library's own assignors; the others are Kafka's"
    assert told in said(capsys, tmp_path, [group("g", "range", "python")], "compare")
    for library in ("java", "librdkafka"):
        assert told not in said(capsys, tmp_path, [group("g", "range", library)], "compare")


def test_groups_that_are_played_with_their_leaders_dialect_have_no_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    by_librdkafka = [group(name, "range", "librdkafka", (4, 2)) for name in ("g", "h")]
    changed = ("compare", "--add-members", "1")
    members = [
        kr.Member(
            m.member_id, m.topics, group_instance_id=i, client_library="librdkafka", rack_id=""
        )
        for m, i in zip(by_librdkafka[0].members, ("z", None), strict=True)
    ]
    differ = [one.edited(members=tuple(members)) for one in by_librdkafka]
    text = said(capsys, tmp_path, differ, *changed)
    assert "librdkafka/range" in text
    assert "another library's assignor" not in text
    python = [group(name, "range", "python") for name in ("g", "h")]
    text = said(capsys, tmp_path, python, *changed)
    assert "g python/range" in text
    assert "h python/range" in text
    assert text.count("python/ marks an assignor of kafka-python or aiokafka") == 1
    assert "another library's assignor" not in text


def test_without_a_rebalance_no_leaders_assignor_is_warned_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one, foreign = group("g", "range", "python"), "another library's assignor"
    static = tuple(replace(m, group_instance_id=m.client_id) for m in one.members)
    still = one.edited(members=static)
    text = said(capsys, tmp_path, [still], "plan", "--bounce-members")
    assert "causes no rebalance" in text
    assert "last leader" not in text
    both = [still, group("h", "range", "python").edited(members=static)]
    assert foreign not in said(capsys, tmp_path, both, "plan", "--bounce-members")
    as_kafkas = said(capsys, tmp_path, [one], "plan", "--assignor", "range", "--add-members", "1")
    assert "The last leader used the assignor of kafka-python or aiokafka" in as_kafkas


def test_the_figures_of_a_switch_are_the_targets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one = group("g", "range", "librdkafka").edited(leader="c1-aaaa")
    told = "The figures are those of librdkafka/range and librdkafka/roundrobin: c2-aaaa or"
    for new in ("roundrobin", "librdkafka/roundrobin"):
        assert told in said(capsys, tmp_path, [one], "plan", "--switch-assignor", new)
    mixed = one.edited(members=(*one.members, kr.Member("j-aaaa", ("t",), client_library="java")))
    text = said(capsys, tmp_path, [mixed], "plan", "--switch-assignor", "roundrobin")
    assert "leads with" not in text  # librdkafka's class has the same answer here


def test_no_member_leads_where_the_broker_assigns(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    topics = (kr.Topic("t", 4, topic_id="kBxzrTyqT9CWFMeWiOjlag"),)
    one = group("g", "range", "librdkafka").edited(topics=topics)
    (led,) = plans_by_leader(one, ["switch-protocol=consumer"])
    assert set(led.leaders) <= {"c1-aaaa", "c2-aaaa"}
    assert led.answering == ("librdkafka/range",)
    text = said(capsys, tmp_path, [one], "plan", "--switch-protocol", "consumer")
    assert "The figures are those of librdkafka/range: c2-aaaa leads." in text


# Groups of Kafka Streams --------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_a_streams_group_among_others_is_left_out(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is also left out if it is alone or named; then no group has an answer, which is an
    error.
    """
    streams = [group(name, "stream", "java") for name in ("wordcount", "joins")]
    groups, one = [group("g", "range", "java"), *streams], [command, "--add-members", "1"]
    text = said(capsys, tmp_path, groups, *one)
    assert (
        "Left out: 2 groups of Kafka Streams, whose assignor is in the application "
        "(docs/faq.md): wordcount, joins."
    ) in text
    in_json = said(capsys, tmp_path, groups, *one, "--json")
    assert '{"group_id":"joins","left_out":"its assignor is Kafka Streams\' own assignor' in in_json
    named = said(capsys, tmp_path, groups, *one, "--group", "joins", code=SOME_ERRORS)
    assert "(docs/faq.md): joins." in named
    why = (
        "no group is left: its assignor is Kafka Streams' own assignor, which no setting replaces; "
        "`plan` needs the field application, as `snapshot` writes it"
    )
    assert named.endswith(why)
    assert said(capsys, tmp_path, streams, *one, code=SOME_ERRORS).endswith(why)


def test_a_library_that_is_not_known_is_named_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The plan contains Kafka's answer; the unknown library's assignor may answer otherwise."""
    groups = [group(f"g{n}", "range", "sarama") for n in range(2)]
    warned = (
        'kafka-rebalance: {} members or a leader of "sarama", a client library that is not known '
        "here: if it leads, its answer may differ from that of Kafka's assignor, planned here"
    )
    for more in ((), ("--json",)):
        text = said(capsys, tmp_path, groups, "plan", *more)
        assert text.count("kafka-rebalance:") == 1
        assert text.endswith(warned.format("2 groups have"))
    alone = said(capsys, tmp_path, groups[:1], "plan", "--add-members", "1")
    assert alone.endswith(warned.format("1 group has"))
    members = tuple(replace(one, client_library="sarama") for one in groups[0].members)
    java = replace(groups[0], members=members, leader_library="java")
    assert said(capsys, tmp_path, [java], "plan").endswith(warned.format("1 group has"))
    known = [group("g", "range", library) for library in ("java", "librdkafka", "python")]
    assert "not known here" not in said(capsys, tmp_path, known, "plan")
    members = tuple(replace(one, client_library="") for one in groups[0].members)
    unnamed = replace(groups[0], members=members, leader_library="")
    assert "library" not in said(capsys, tmp_path, [unnamed], "plan")
    assert "last had a leader" not in said(capsys, tmp_path, [unnamed, *known], "plan")
    by_broker = java.edited(assignor="consumer/range")
    by_broker = by_broker.edited(topics=(kr.Topic("t", 4, topic_id="kBxzrTyqT9CWFMeWiOjlag"),))
    assert "not known here" not in said(capsys, tmp_path, [by_broker], "plan")


# The consumer protocol ----------------------------------------------------------------------------


def test_kafka_pythons_members_cannot_switch_to_the_consumer_protocol(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    topics = (kr.Topic("t", 4, topic_id="kBxzrTyqT9CWFMeWiOjlag"),)
    one = group("g", "range", "python").edited(topics=topics)
    switch = ("plan", "--switch-protocol", "consumer")
    text = " ".join(said(capsys, tmp_path, [one], *switch).split())
    assert "kafka-python and aiokafka have no consumer protocol; leave the group classic" in text
    assert text.count("--assignor range") == 1
    assert "joins with group.protocol=consumer" in said(
        capsys, tmp_path, [one], *switch, "--assignor", "range"
    )


# Members ------------------------------------------------------------------------------------------


def test_a_client_id_that_is_no_member_names_the_right_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one = [group("g", "range", "java")]
    text = said(capsys, tmp_path, one, "plan", "--remove-member", "c1", code=SOME_ERRORS)
    assert 'group_instance_id "c1"; it is a client_id: --remove-client c1' in text
    other = said(capsys, tmp_path, one, "plan", "--remove-member", "c9", code=SOME_ERRORS)
    assert "--remove-client" not in other


def test_static_members_of_kafka_python_are_refused_as_dynamic_ones_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """kafka-python 3.0.12 lacks the consumer protocol, however its members restart."""
    topics = (kr.Topic("t", 4, topic_id="kBxzrTyqT9CWFMeWiOjlag"),)
    one = group("g", "range", "python").edited(topics=topics)
    switch = ("plan", "--switch-protocol", "consumer")
    static = one.edited(
        members=tuple(replace(m, group_instance_id=m.client_id) for m in one.members)
    )
    for each in (one, static):
        text = " ".join(said(capsys, tmp_path, [each], *switch).split())
        assert text.startswith(
            "g: it cannot switch its protocol: kafka-python and aiokafka have no"
        )
        assert "leave the group classic, or, if its members move to" in text
    assert "c1 restarts with group.protocol=consumer" in said(
        capsys, tmp_path, [static], *switch, "--assignor", "range"
    )
    java = replace(static.members[1], client_library="java")
    mixed = static.edited(members=(static.members[0], java))
    text = said(capsys, tmp_path, [mixed], *switch)
    assert "so this restart needs another client" in " ".join(text.split())
    assert "Either move this member to another client first, or leave the whole" in text


def test_the_owners_after_a_switch_are_marked_as_guesses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The restarted members' ids are made up, and ids break the ties of the broker's assignor."""
    topics = (kr.Topic("t", 4, topic_id="kBxzrTyqT9CWFMeWiOjlag"),)
    one = group("g", "range", "java").edited(topics=topics)
    text = said(capsys, tmp_path, [one], "plan", "--switch-protocol", "consumer")
    assert "now" in text
    assert "afterwards (a guess)" in text


# One name for one thing ---------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["kafka-python", "aiokafka", "librdkafka", "java"])
def test_a_plan_without_rebalances_names_the_same_assignor(library: str) -> None:
    one = group("g", "range", library)
    static = one.edited(
        members=tuple(replace(m, group_instance_id=m.client_id) for m in one.members)
    )
    (at_rest,) = plans_by_leader(static, ["bounce-members=*"])
    assert at_rest.plan is not None
    assert at_rest.plan.rounds == ()
    name = "range" if library == "java" else f"{library}/range"
    assert [each.assignor for each in plans_by_leader(one)] == [name]
    assert (at_rest.assignor, at_rest.plan.assignor, at_rest.leaders) == (name, name, ())

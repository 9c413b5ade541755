# SPDX-License-Identifier: Apache-2.0
"""The notes of a plan on a switch that some clients refuse, or that plug-ins make."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.notes.switches import not_rolling
from kafka_rebalance.plans.changes import SwitchAssignor
from kafka_rebalance.report.plans.recipes import print_migration
from kafka_rebalance.switching.migrations import migration
from tests.support.contract_lines import noted
from tests.support.groups_by_library import group, said

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("library", "old", "new", "said_of_it"),
    [
        (
            "librdkafka",
            "range",
            "cooperative-sticky",
            (
                "a list must not contain both range and cooperative-sticky; stop all members, then "
                "start all with partition.assignment.strategy=cooperative-sticky"
            ),
        ),
        ("librdkafka", "range", "sticky", "not possible, because it has no sticky"),
        ("aiokafka", "range", "sticky", "a member joins once for each assignor in its list"),
        ("librdkafka", "range", "roundrobin", ""),
        ("java", "range", "cooperative-sticky", ""),
        ("kafka-python", "range", "cooperative-sticky", ""),
    ],
)
def test_a_planned_switch_says_which_clients_refuse_it(
    library: str,
    old: str,
    new: str,
    said_of_it: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """tests/live/test_recipes.py tests the real clients' refusals and follows the recipes."""
    one = group("g", old, library)
    text = said(capsys, tmp_path, [one], "plan", "--switch-assignor", new)
    assert said_of_it in text
    assert ("These clients cannot do that:" in text) == bool(said_of_it)
    in_json = said(capsys, tmp_path, [one], "plan", "--switch-assignor", new, "--json")
    assert bool(noted(json.loads(in_json), "refused")) == bool(said_of_it)
    if said_of_it and "not possible" not in said_of_it:
        # The words are those of `compare`, which knows the same clients.
        assert said_of_it in recipes_of(one, new, capsys)


def _member(client_id: str, library: str) -> kr.Member:
    return kr.Member(f"{client_id}-aaaa", ("t",), client_id=client_id, client_library=library)


@pytest.mark.parametrize(
    ("first", "refusing"),
    [
        (_member("a", "java"), ["librdkafka"]),
        (_member("consumer-g-1", "java"), ["librdkafka"]),
        (_member("aiokafka-0.14.0", "java"), ["aiokafka", "librdkafka"]),
    ],
)
def test_one_member_that_refuses_a_switch_is_enough(first: kr.Member, refusing: list[str]) -> None:
    """Bytes show that the second member runs librdkafka, whatever the first one runs."""
    switch = [SwitchAssignor("cooperative-sticky")]
    topics = (kr.Topic("t", 4),)
    mixed = kr.GroupSpec("g", topics, (first, _member("b", "librdkafka")), "range", 3)
    (found,) = not_rolling(mixed, switch)
    assert [one.client for one in found.recipes] == refusing
    java = mixed.edited(members=(_member("a", "java"), _member("b", "java")))
    assert not_rolling(java, switch) == ()


@pytest.mark.parametrize(
    ("libraries", "assignor", "parts"),
    [
        (
            ("python", "python"),
            "cooperative-sticky",
            ["can do that:", "kafka-python: two", "cannot do that:", "aiokafka: not possible"],
        ),
        (
            ("kafka-python", "aiokafka"),
            "cooperative-sticky",
            [
                "while they restart one after another. These clients cannot do that:",
                "aiokafka: not possible, because it has no cooperative-sticky",
                "So this group cannot switch as long as it has members of aiokafka.",
            ],
        ),
        (
            ("java", "librdkafka"),
            "cooperative-sticky",
            [
                "These clients cannot do that:",
                "stop all members, then start all with",
                "The members run several clients: stop all of them together.",
                "The group keeps its offsets.",
            ],
        ),
        (
            ("aiokafka", "aiokafka"),
            "sticky",
            ["These clients cannot do that:", "aiokafka: a member joins once for each"],
        ),
    ],
)
def test_a_planned_switch_has_one_heading(
    libraries: tuple[str, str],
    assignor: str,
    parts: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Clients that can make the switch are first; no sentence claims it for a client that
    cannot.
    """
    one = group("g", "range", "java")
    members = tuple(
        replace(member, client_library=library)
        for member, library in zip(one.members, libraries, strict=True)
    )
    one = replace(one.edited(members=members), leader_library=None, max_partitions=one.limit)
    text = said(capsys, tmp_path, [one], "plan", "--switch-assignor", assignor)
    heading = f"switch-assignor={assignor} is planned for members that list both range and"
    assert text.count("is planned for members") == text.count(heading) == 1
    at = [text.index(part, text.index(heading)) for part in parts]
    assert at == sorted(at)
    assert ("So this group cannot switch" in text) == any("So this" in part for part in parts)
    assert ("run several clients" in text) == any("several" in part for part in parts)


@pytest.mark.parametrize("library", ["kafka-python", "java"])
def test_a_switch_by_plug_ins_names_the_command_with_its_cost(
    library: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The present leader may have kafka-python's own range, or the plug-in."""
    one = group("g", "range", "kafka-python")
    one = replace(one, leader_library=library, max_partitions=one.limit)
    text = said(capsys, tmp_path, [one], "plan", "--switch-assignor", "cooperative-sticky")
    command = f"compare {tmp_path / 'groups.jsonl'} --group g --assignors cooperative-sticky"
    assert f"moves of both bounces: kafka-rebalance {command}" in text
    settings = said(
        capsys, tmp_path, [one], *command.replace(f" {tmp_path}/groups.jsonl", "").split()
    )
    assert "partition_assignment_strategy=[CooperativeSticky" in settings


def recipes_of(one: kr.GroupSpec, new: str, capsys: pytest.CaptureFixture[str]) -> str:
    print_migration(migration(one, one.assignor or "", new), one.group_id)
    return " ".join(capsys.readouterr().out.split())

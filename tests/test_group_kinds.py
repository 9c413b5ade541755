# SPDX-License-Identifier: Apache-2.0
"""Errors name assignors that a group's kind can never run, and changes of the protocol."""

from __future__ import annotations

import json
import shlex

import pytest

import kafka_rebalance as kr
from tests.support.broker_groups import broker_group, broker_line
from tests.support.prompt import command

HALVES = [[0, 1, 2], [3, 4, 5]]
OF_CONSUMERS = (
    "range, roundrobin, sticky, cooperative-sticky, consumer/uniform, consumer/range, "
    "consumer/balanced"  # fits both
)


def text_of(*arguments: object, assignor: str, code: int = 0) -> str:
    """Returns the command's output about a group that runs `assignor`, all in one line."""
    run = command(*arguments, stdin=json.dumps(broker_line(assignor, HALVES)))
    assert run.returncode == code, run.stderr
    return " ".join(f"{run.stdout} {run.stderr}".split())


@pytest.mark.parametrize(
    ("own", "named", "fits"),
    [
        ("share/simple", "range", "share/simple"),
        ("share/simple", "consumer/range", "share/simple"),
        ("cooperative-sticky", "share/simple", OF_CONSUMERS),
        ("kafka-python/range", "streams/sticky", OF_CONSUMERS),
        ("consumer/uniform", "share/simple", OF_CONSUMERS),
        ("consumer/uniform", "streams/sticky", OF_CONSUMERS),
    ],
)
def test_an_assignor_of_another_kind_of_group_is_refused(own: str, named: str, fits: str) -> None:
    group = broker_group(own, HALVES)
    kind = "share" if own == "share/simple" else "consumer"
    with pytest.raises(kr.GroupError) as compared:
        kr.compare(group, assignors=[own, named])
    with pytest.raises(kr.GroupError) as switched:
        kr.plan(group, None, [f"switch-assignor={named}"])
    assert (compared.value.path, switched.value.path) == ("assignors[1]", "changes[0]")
    for error in (compared.value, switched.value):
        assert f'this is a {kind} group, which runs "{own}"' in error.problem
        assert error.problem.endswith(f"; assignors that fit: {fits}")


def test_a_refused_assignor_is_the_error_of_its_group_only() -> None:
    lines = [broker_line(own, HALVES) | {"group_id": own} for own in ("range", "share/simple")]
    named = ("compare", "-", "--assignors", "range,sticky", "--json")
    run = command(*named, stdin="\n".join(map(json.dumps, lines)))
    good, bad = map(json.loads, run.stdout.splitlines())
    assert good["recommended"] == "range"
    assert bad["error"].startswith('assignors[0]: "range" assigns consumer groups only')


@pytest.mark.parametrize(
    ("own", "named", "switch"),
    [
        ("range", "consumer/uniform", "consumer/uniform"),
        ("cooperative-sticky", "consumer/range", "consumer/range"),
        ("consumer/uniform", "range", "classic/range"),
        ("consumer/range", "librdkafka/range", "classic/librdkafka/range"),
    ],
)
def test_a_change_of_the_protocol_points_to_its_plan(own: str, named: str, switch: str) -> None:
    group = broker_group(own, HALVES)
    compared = kr.compare(group, assignors=[named])
    assert (compared.migration, compared.switch_protocol) == (None, switch)
    assert compared.to_dict()["switch_protocol"] == switch
    text = text_of("compare", "-", "--assignors", named, assignor=own)
    assert f"kafka-rebalance plan - --group g --switch-protocol {switch}" in text
    assert "rolling bounce" not in text
    # The printed change can be planned.
    assert kr.plan(group, None, [f"switch-protocol={switch}"]).final.assignor == named


def test_python_clients_are_not_moved_to_a_protocol_that_they_lack() -> None:
    line = broker_line("range", HALVES)
    for member in line["members"]:
        member["client_id"] = "kafka-python-3.0.12"
    compared = kr.compare(kr.GroupSpec.from_dict(line), assignors=["consumer/uniform"])
    assert compared.recommended is None
    assert compared.reason == "kafka-python has none of these assignors that becomes stable"


@pytest.mark.parametrize(
    ("own", "new", "setting"),
    [
        ("cooperative-sticky", "range", "RangeAssignor"),
        ("range", "cooperative-sticky", "CooperativeStickyAssignor"),
        ("range", "roundrobin", "RoundRobinAssignor"),
        ("consumer/uniform", "consumer/range", "group.remote.assignor=range"),
        ("consumer/range", "consumer/uniform", "group.remote.assignor=uniform"),
    ],
)
def test_the_hint_of_a_planned_switch_prints_its_settings(own: str, new: str, setting: str) -> None:
    planned = command(
        "plan", "-", "--switch-assignor", new, stdin=json.dumps(broker_line(own, HALVES))
    )
    (hint,) = (line for line in planned.stdout.splitlines() if "compare - --group" in line)
    assert hint.strip() == f"kafka-rebalance compare - --group g --assignors {new}"
    assert ("each bounce" in " ".join(planned.stdout.split())) is ("/" not in new)
    text = text_of(*shlex.split(hint)[1:], assignor=own)
    assert setting in text
    assert "2 restarts, " in text
    assert f"--assignor {own}" not in text


def test_a_switch_from_another_assignor_than_the_groups_has_no_command() -> None:
    options = ("--assignor", "range", "--switch-assignor", "roundrobin")
    text = text_of("plan", "-", *options, assignor="cooperative-sticky")
    assert "switch-assignor=roundrobin is planned as a bounce: each member restarts once" in text
    assert "kafka-rebalance compare" not in text


def test_the_bounce_of_the_brokers_assignor_is_one_with_its_setting() -> None:
    text = text_of("compare", "-", "--assignors", "consumer/range", assignor="consumer/uniform")
    assert "Java and librdkafka: one rolling bounce" in text
    assert (
        "uniform assigns until m0 is back, then range assigns group.remote.assignor=range" in text
    )
    assert "members that name none do not count" in text
    answer = kr.compare(broker_group("consumer/uniform", HALVES), assignors=["consumer/range"])
    migration = answer.to_dict()["migration"]
    assert [one["client"] for one in migration["recipes"]] == ["Java", "librdkafka"]
    assert [one["takes_over"] for one in migration["bounces"]] == ["m0 is back"]
    assert migration["dynamic_members"] == 2


@pytest.mark.parametrize("own", ["range", "sticky"])
def test_one_partition_is_singular(own: str) -> None:
    reason = kr.compare(broker_group(own, HALVES[:1]), ["add-members=1,client-id=d"]).reason
    assert " leaves 3 partitions without a reader, " in reason
    line = broker_line(own, [[0], [1]])
    line["topics"][0]["partitions"] = 2
    reason = kr.compare(kr.GroupSpec.from_dict(line), ["remove-members=1"]).reason
    assert "leaves 1 partition without a reader, " in reason

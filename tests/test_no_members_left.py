# SPDX-License-Identifier: Apache-2.0
"""A change that leaves a group without members is a result, not an error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import compare_batch, plan_batch
from kafka_rebalance.cli import main

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine

TOPICS = (kr.Topic("t", 12, (("a",),) * 12), kr.Topic("u", 3))
RESULT = "no member is left: nobody reads 12 partitions until one is back"


def group(group_id: str, members: int, assignor: str = "range") -> kr.GroupSpec:
    """Returns a group that reads t, but not u."""
    each = (kr.Member(f"m{n}", ("t",), client_id="c", rack_id="a") for n in range(members))
    return kr.plan(kr.GroupSpec(group_id, TOPICS, tuple(each), assignor)).final


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky", "kafka-python/range"])
@pytest.mark.parametrize(
    "change", ["remove-members=2", "remove-member=m1", "remove-client=c", "remove-rack=a"]
)
def test_nobody_reads_until_a_member_is_back(change: str, assignor: str, engine: Engine) -> None:
    first = ["remove-member=m0"] if change == "remove-member=m1" else []
    with pytest.raises(kr.NoMembersLeft) as raised:
        kr.plan(group("g", 2, assignor), None, [*first, change, "add-members=1"], engine=engine)
    assert (raised.value.path, raised.value.problem) == (f"changes[{len(first)}]", RESULT)


def test_one_partition_and_tasks_have_their_nouns(engine: Engine) -> None:
    one = kr.GroupSpec("g", (kr.Topic("t", 1),), (kr.Member("m", ("t",)),), "range")
    with pytest.raises(kr.NoMembersLeft, match="nobody reads 1 partition until one is back"):
        kr.plan(one, None, ["remove-members=1"], engine=engine)


@pytest.mark.parametrize("command", ["plan", "compare"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_command_prints_the_result_and_ends_well(
    command: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    lines = [group("one", 1).to_json(), group("two", 2).to_json()]
    for ids in (["one"], ["one", "two"]):
        file.write_text("\n".join(lines[: len(ids)]), encoding="utf-8")
        assert main([command, str(file), "--remove-members", "1", *options]) == 0
        out, err = capsys.readouterr()
        assert "error" not in err
        if options:
            printed = {line["group_id"]: line for line in map(json.loads, out.splitlines())}
            assert sorted(printed) == ids
            assert printed["one"] == {"group_id": "one", "result": RESULT}
        else:
            assert f"one: {RESULT}" in out


def test_columns_have_a_kind_of_their_own() -> None:
    groups = [group("one", 1), group("two", 2)]
    for answers in (
        plan_batch(groups, None, ["remove-members=1"]),
        compare_batch(groups, ["remove-members=1"]),
    ):
        one, two = answers.to_pylist()
        assert (one["error"], one["error_kind"]) == (f"changes[0]: {RESULT}", "no-members")
        assert (two["error"], two["error_kind"]) == (None, None)

# SPDX-License-Identifier: Apache-2.0
"""Groups that a change does not affect or that are left out, and what `plan` says of its limits."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupError, GroupSpec, Member, Topic
from kafka_rebalance.cli import main
from kafka_rebalance.data import captured_lines
from kafka_rebalance.live import consumer_groups as live
from tests.support.prompt import command

if TYPE_CHECKING:
    from pathlib import Path

_TOPICS = (Topic("a", 7), Topic("b", 4), Topic("c", 3))
_JOINED = tuple(
    Member(f"j{n}-0b5c2d1e-0000-4000-8000-12345678900{n}", ("a", "b", "c")) for n in range(3)
)
_GROUP = GroupSpec("g", _TOPICS, _JOINED, "range")
SETTLED = _GROUP.owning(kr.assign(_GROUP))


# Groups that a change does not affect -------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a file of the shipped groups, without the error line among them."""
    file = tmp_path_factory.mktemp("advice") / "groups.jsonl"
    lines = [line for line in captured_lines() if "error" not in json.loads(line)]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["plan", "compare"])
def test_a_change_that_does_not_affect_a_group_is_no_error(name: str, sample: Path) -> None:
    """Groups that a change does not affect are counted in the text and marked in the JSON."""
    run = command(name, sample, "--partitions", "orders=60")
    assert (run.returncode, run.stderr) == (0, "")
    assert "Not affected by partitions orders=60: 15 groups." in run.stdout
    some = [
        json.loads(line)
        for line in command(name, sample, "--partitions", "orders=60", "--json").stdout.splitlines()
    ]
    assert sum("not_affected" in line for line in some) == 15
    assert not any("error" in line for line in some)


def test_a_change_that_affects_no_group_is_an_error(sample: Path) -> None:
    run = command("plan", sample, "--partitions", "ordres=60")
    assert run.returncode == 3
    lacks = 'partitions ordres=60: the group has no topic "ordres"'
    assert f"no group is affected: {lacks}" in run.stderr
    alone = command("plan", sample, "--group", "payments", "--partitions", "orders=60")
    assert alone.returncode == 3
    assert 'payments: partitions orders=60: the group has no topic "orders"' in alone.stderr


# Groups that `snapshot` leaves out ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("group_type", "protocol_type", "why"),
    [
        (
            "classic",
            "connect",
            "connectors and tasks; kafka-rebalance connect --url reads them",
        ),
        ("classic", "sr", "a Schema Registry's nodes"),
    ],
)
def test_groups_that_are_left_out_are_called_by_their_right_names(
    group_type: str, protocol_type: str, why: str
) -> None:
    """The reason states what the group really is."""
    with pytest.raises(GroupError) as raised:
        live._fit(live.Listed(0, group_type, protocol_type, "Stable"))
    assert why in raised.value.problem


def test_snapshot_says_whose_a_foreign_assignor_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`snapshot` writes the line, and warns that the assignor is another library's."""
    line = SETTLED.edited(assignor="stream").to_dict()
    monkeypatch.setattr("kafka_rebalance.live.snapshot_lines", lambda *_, **__: [line])
    assert main(["snapshot", "--bootstrap-server", "x:1"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == line
    assert "g: stream is Kafka Streams' own assignor, which no setting replaces" in said.err


# The output of plans ------------------------------------------------------------------------------


def test_a_static_bounce_says_which_partitions_wait(sample: Path) -> None:
    """A static member's partitions are unavailable while the member is down."""
    change = "bounce-members=*,static"
    run = command("plan", sample, "--group", "orders", "--change", change)
    waits = "no rebalance; 48 partitions wait while their member is down"
    assert waits in run.stdout
    assert "every partition has a reader all the time" not in run.stdout


def test_a_lost_rack_says_when_it_is_missed_and_which_partitions_have_no_leader() -> None:
    """The output states when the rebalance happens and which partitions have no leader."""
    there = SETTLED.members
    racked = tuple(
        Member(m.member_id, m.topics, owned_partitions=m.owned_partitions, rack_id=rack)
        for m, rack in zip(there, "abb", strict=True)
    )
    group = GroupSpec("g", (Topic("a", 7, (("a",), ("a", "b")) + (("b",),) * 5),), racked, "range")
    run = command("plan", "-", "--remove-rack", "a", stdin=group.to_json())
    assert "until the sessions there end; then the group rebalances" in " ".join(run.stdout.split())
    assert "1 partition without a leader, because all known replicas were there: a-0" in run.stdout


def test_members_whose_rack_is_unknown_are_in_the_json_as_in_the_text() -> None:
    lost = ("-", "--remove-rack", "a")
    racked = [replace(m, rack_id=r) for m, r in zip(SETTLED.members, ("a", "", None), strict=True)]
    line = SETTLED.edited(members=tuple(racked)).to_json()
    text = command("plan", *lost, stdin=line).stdout
    assert "2 members have no client.rack. The figures are as if they ran" in " ".join(text.split())
    unknown = [member.member_id for member in racked[1:]]
    for word in ("plan", "compare"):
        answer = json.loads(command(word, *lost, "--json", stdin=line).stdout)
        (ids,) = [one["member_ids"] for one in answer["notes"] if one["kind"] == "lost rack"]
        assert ids == unknown
    other = json.loads(command("plan", "-", "--add-members", 1, "--json", stdin=line).stdout)
    assert "lost rack" not in [one["kind"] for one in other["notes"]]


def test_an_unknown_generation_is_counted_from_now(sample: Path) -> None:
    unknown = command("plan", sample, "--group", "audit", "--add-members", 1)
    assert "round 1 (eager), generation +1" in unknown.stdout
    known = command("plan", sample, "--group", "payments", "--add-members", 1)
    assert "round 1 (cooperative), generation 5" in known.stdout


def test_the_output_says_what_the_samples_varied(sample: Path) -> None:
    """The output states which ids are guesses and how the samples varied them."""
    run = command("plan", sample, "--group", "orders", "--add-members", 1)
    assert "The client id orders-10 is a guess, the next number after the others" in run.stdout
    text = " ".join(run.stdout.split())
    assert "In 10 samples of client ids and UUIDs: 7 to 25 moves; 41 of 48 partitions end" in text
    given = command("plan", sample, "--group", "orders", "--add-members", "1,client-id=orders-10")
    assert "In 8 samples of UUIDs, every partition ends at one and the same member" in given.stdout


def test_a_made_up_member_can_be_named_by_its_short_id_though_draws_have_others(
    sample: Path,
) -> None:
    """Samples would choose other ids, so there are none; the plan itself is made."""
    joined = command("plan", sample, "--group", "payments", "--add-members", 1, "--json")
    [made_up] = json.loads(joined.stdout)["made_up"]
    new = made_up["member_id"][: len(f"{made_up['name']}-1234")]  # as tables print it
    changes = ("--add-members", 1, "--remove-member", new)
    run = command("plan", sample, "--group", "payments", *changes)
    assert (run.returncode, run.stderr) == (0, "")
    assert "draws" not in run.stdout
    options = ("--json", "--samples", 3)
    told = command("plan", sample, "--group", "payments", *changes, *options)
    assert "samples" not in json.loads(told.stdout)
    told = command("plan", sample, "--group", "payments", *changes[:2], *options)
    assert "samples" in json.loads(told.stdout)


def test_a_switch_that_all_clients_can_make_points_to_compare() -> None:
    line = SETTLED.to_json()
    switch = command("plan", "-", "--switch-assignor", "cooperative-sticky", stdin=line)
    assert "This command has the whole switch" in " ".join(switch.stdout.split())
    other = command("plan", "-", "--add-members", 1, stdin=line)
    assert "whole switch" not in other.stdout


def test_compare_offers_no_switch() -> None:
    offered = command("compare", "--help").stdout
    assert "--add-members" in offered
    assert "--switch" not in offered

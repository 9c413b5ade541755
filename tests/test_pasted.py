# SPDX-License-Identifier: Apache-2.0
"""Tables of Kafka's command and of rpk are read as groups; tests/data/pasted/README.md has them."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk.pasted import ASSUMED, Pasted, has_tables, read_pasted
from kafka_rebalance.group.spec import GroupSpec
from tests.support.prompt import command

DATA = Path(__file__).resolve().parent / "data" / "pasted"
SNAPSHOT = {
    line["group_id"]: line
    for line in map(json.loads, (DATA / "snapshot.jsonl").read_text("utf-8").splitlines())
}
UNLIKE = {f"unlike-{name}": "members.topics" for name in ("range", "roundrobin", "sticky",
          "cooperative-sticky")}  # fmt: skip
DIFFERENT = {**UNLIKE, "racked": "members.rack_id", "modern-two": "topics.topic_id"}
"""The groups for which an assumption does not hold, and the field that differs."""
ALIKE = SNAPSHOT.keys() - DIFFERENT.keys() - {"rebalancing"}
MODERN = {"modern-one", "modern-two", "modern-range"}
CHANGES = (
    [kr.AddMembers(1)],
    [kr.RemoveMembers(1)],
    [kr.AddMembers(2), kr.AddPartitions("orders", 30)],
)
BOTH = pytest.mark.parametrize("version", ["3.9.2", "4.4.0"])
MEMBERS = {"2.8.2": "members", "3.9.2": "members offsets", "4.4.0": "members"}
"""The tables that show who owns what; that of 3.9 leaves the topics out."""


def text_of(version: str, tables: str) -> str:
    return "\n".join((DATA / f"{version}-{one}.txt").read_text("utf-8") for one in tables.split())


def pasted(text: str, topics: dict[str, int] | None = None, only: str | None = None) -> Pasted:
    return read_pasted(enumerate(text.splitlines(), 1), topics or {}, only)


def lines_of(text: str, topics: dict[str, int] | None = None) -> dict[str, dict[str, Any]]:
    return {line["group_id"]: line for _, line in pasted(text, topics).lines}


def _comparable(value: Any) -> Any:
    """Leaves out the generations, which no text shows, and the order inside of lists."""
    if isinstance(value, dict):
        left_out = ("generation_id", "leader_library", "notes")
        return {k: _comparable(v) for k, v in value.items() if k not in left_out}
    if isinstance(value, list | tuple):
        return sorted(map(_comparable, value), key=json.dumps)
    return value


def plans(line: dict[str, Any]) -> list[Any]:
    """Returns the plans of all CHANGES; an error, such as that of an unknown topic, as text."""
    group, found = GroupSpec.from_dict(line), list[Any]()
    for changes in CHANGES:
        try:
            found.append(_comparable(kr.plan(group, None, changes).to_dict()))
        except kr.GroupError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("version", MEMBERS)
def test_the_plan_from_the_tables_is_that_of_the_snapshot(version: str) -> None:
    lines = lines_of(text_of(version, f"{MEMBERS[version]} state"))
    alike = ALIKE - MODERN if version == "2.8.2" else ALIKE
    assert len(alike) >= 20
    assert [one for one in alike if plans(lines[one]) != plans(SNAPSHOT[one])] == []


def _fields(line: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of a line by the paths of ASSUMED; a list of those of all members."""
    return {
        path: [one.get(name) and _comparable(one[name]) for one in line[place]] if place else None
        for path in ASSUMED
        for place, _, name in [path.rpartition(".")]
    }


@BOTH
@pytest.mark.parametrize("group_id", DIFFERENT)
def test_a_plan_that_differs_has_its_cause_among_the_assumptions(
    version: str, group_id: str
) -> None:
    text = text_of(version, f"{MEMBERS[version]} state")
    read = pasted(text, only=group_id)
    [(_, line)] = read.lines
    theirs = SNAPSHOT[group_id]
    assert plans(line) != plans(theirs)
    ours, real = _fields(line), _fields(theirs)
    named = {path for path in read.assumed if ours[path] != real[path]}
    libraries = {"members.client_library"}
    assert named - libraries - {"topics.topic_id"} == {DIFFERENT[group_id]} - {"topics.topic_id"}
    assert DIFFERENT[group_id] in named


@BOTH
@pytest.mark.parametrize("group_id", UNLIKE)
def test_what_is_assumed_can_be_set(version: str, group_id: str, tmp_path: Path) -> None:
    """With the subscriptions of the snapshot as options, the plan is that of the snapshot."""
    paste, snapshot = tmp_path / "groups.txt", tmp_path / "groups.jsonl"
    paste.write_text(text_of(version, f"{MEMBERS[version]} state"), encoding="utf-8")
    snapshot.write_text(json.dumps(SNAPSHOT[group_id]), encoding="utf-8")
    given = [
        word
        for member in SNAPSHOT[group_id]["members"]
        for word in ("--assume", f"members[{member['client_id']}].topics="
                     + ",".join(member["topics"]))
    ]  # fmt: skip
    change = ("--group", group_id, "--add-members", "1", "--json")
    ours = command("plan", paste, *change, *given)
    theirs = command("plan", snapshot, *change)
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stderr
    assert _comparable(json.loads(ours.stdout)) == _comparable(json.loads(theirs.stdout))


def test_a_group_without_its_state_runs_the_default_assignor() -> None:
    read = pasted(text_of("4.4.0", "members"))
    assigned = {line["group_id"]: line.get("assignor") for _, line in read.lines}
    assert assigned["one-sticky"] == "range"
    assert assigned["modern-one"] == "consumer/uniform"
    assert "assignor" in read.assumed
    assert "assignor" not in pasted(text_of("4.4.0", "members state")).assumed


@pytest.mark.parametrize("version", MEMBERS)
def test_the_table_of_offsets_alone_has_the_owners(version: str) -> None:
    lines = lines_of(text_of(version, "offsets state"))
    for group_id in ALIKE - (MODERN if version == "2.8.2" else set()) - {"idle"}:
        ours, theirs = lines[group_id]["members"], SNAPSHOT[group_id]["members"]
        owned = [{one["member_id"]: _comparable(one["owned_partitions"]) for one in each}
                 for each in (ours, theirs)]  # fmt: skip
        assert owned[0] == owned[1], group_id
    idle = lines["idle"]["members"]
    assert [one["member_id"] for one in idle[-2:]] == ["idle-1", "idle-2"]
    assert len(idle) == 9
    said = pasted(text_of(version, "offsets state"), only="idle").assumed
    assert {"members.member_id", "members.group_instance_id"} <= {*said}


def test_a_text_of_3_9_without_topics() -> None:
    """The group of one topic takes its name from --topic; else an error says what to add."""
    error = lines_of(text_of("3.9.2", "members state"))["one-range"]["error"]
    assert error.startswith("ASSIGNMENT: the text does not show")
    lines = lines_of(text_of("3.9.2", "members state"), {"orders": 12})
    assert plans(lines["one-sticky"]) == plans(SNAPSHOT["one-sticky"])
    assert "error" in lines["two-sticky"]


def test_rpks_text() -> None:
    """rpk shows no order of joining, which breaks ties, and no members that own nothing."""
    lines = lines_of((DATA / "rpk.txt").read_text("utf-8"))
    assert len(lines) == len(SNAPSHOT.keys() - MODERN - {"rebalancing"})
    for group_id in lines.keys() - DIFFERENT.keys() - {"idle"}:
        line, theirs = lines[group_id], SNAPSHOT[group_id]
        order = [one["member_id"] for one in theirs["members"]]
        line["members"].sort(key=lambda one: order.index(one["member_id"]))
        assert plans(line) == plans(theirs), group_id
    assert [one["member_id"] for one in lines["idle"]["members"][-2:]] == ["idle-1", "idle-2"]
    said = pasted((DATA / "rpk.txt").read_text("utf-8")).assumed
    assert {"members.group_instance_id", "members.member_id"} <= {*said}
    assert "assignor" not in said


def test_partitions_without_an_owner_count() -> None:
    """rpk leaves the cells of the member empty; Kafka's command writes dashes."""
    theirs = (DATA / "rpk.txt").read_text("utf-8").split("\n\nGROUP")[0].splitlines()
    member = theirs[-1].split()[6]
    start = theirs[7].index("MEMBER-ID")
    unowned = [line[:start].rstrip() if member in line else line for line in theirs]
    [(_, line)] = pasted("\n".join(unowned)).lines
    assert line["topics"] == [{"name": "orders", "partitions": 12}]
    assert sum(len(run["partitions"]) for one in line["members"]
               for run in one["owned_partitions"]) == 8  # fmt: skip


def test_empty_and_rebalancing_groups(tmp_path: Path) -> None:
    paste = tmp_path / "groups.txt"
    paste.write_text(text_of("4.4.0", "members state"), encoding="utf-8")
    ran = command("plan", paste, "--add-members", "1", "--json")
    assert ran.returncode == 3
    assert "left out: emptied, without members" in ran.stderr
    errors = [one for one in map(json.loads, ran.stdout.splitlines()) if "error" in one]
    assert [one["group_id"] for one in errors] == ["rebalancing"]
    assert errors[0]["error"].startswith("state: PreparingRebalance, so ")
    alone = command("plan", paste, "--group", "emptied")
    assert alone.stderr.startswith("emptied: state: Empty, it has no members")
    unknown = command("plan", paste, "--group", "one-rang")
    assert "did you mean one-range?" in unknown.stderr


TABLE = """\
GROUP           CONSUMER-ID  HOST       CLIENT-ID  #PARTITIONS  ASSIGNMENT
pay             c1-a         /1.2.3.4   c1         2            pay(0,1)
pay             c2-b         /1.2.3.4   c2         1            pay(2)

GROUP           CONSUMER-ID  HOST       CLIENT-ID  #PARTITIONS  ASSIGNMENT
ship            c3-a         /1.2.3.4   c3         1            ship(0)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "-", "--group", "pay", "--add-members", "1"],
        ["describe", "-", "--group", "pay"],
        ["compare", "-", "--group", "pay", "--add-members", "1"],
        ["explain", "pay-2", "-", "--group", "pay"],
        ["scale", "-", "--group", "pay"],
        ["assign", "-", "--assignor", "range"],
        ["simulate", "--from", "-", "--group", "pay", "--add-members", "1"],
    ],
)
def test_every_command_that_reads_groups_reads_tables(arguments: list[str]) -> None:
    ran = command(*arguments, stdin=f"$ kafka-consumer-groups.sh --describe\n\n{TABLE}\n$ \n")
    assert ran.returncode == 0, ran.stderr
    assert "pay" in ran.stdout
    assert "assumed: the assignor is Kafka's default" in ran.stderr


@pytest.mark.parametrize(
    ("old", "new", "group_id", "error"),
    [
        ("pay(0,1)", "pay(0", "pay", 'line 2: ASSIGNMENT: "pay(0" is not partitions; '),
        ("pay(0,1)", "pay(0)", "pay", "line 2: #PARTITIONS: 1 are in the line; "),
        ("1            pay(2)", "", None, "line: not a row of the table GROUP CONSUMER-ID HOST …"),
    ],
)
def test_a_bad_line_loses_no_good_group(
    old: str, new: str, group_id: str | None, error: str
) -> None:
    lines = lines_of(TABLE.replace(old, new))
    assert lines[group_id]["error"].startswith(error)  # type: ignore[index]
    assert lines["ship"]["members"][0]["member_id"] == "c3-a"


def test_a_bad_line_is_named_by_its_number() -> None:
    ran = command("plan", "-", stdin=TABLE.replace("1            pay(2)", ""))
    assert (
        "line 3: not a row of the table GROUP CONSUMER-ID HOST …; paste whole lines" in ran.stderr
    )
    assert ran.returncode == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2            pay", "-            pay"),
        ("2            pay", "-2           pay"),
        ("2            pay", "9" * 5000 + " pay"),
        ("pay(0,1)", "pay(0,0)"),
        ("pay(0,1)", "onsumer group '" * 50_000),
        ("pay(0,1)", "(" * 50_000),
    ],
)
def test_hostile_cells(old: str, new: str) -> None:
    lines = lines_of(TABLE.replace(old, new))
    assert [id_ for id_, line in lines.items() if "error" not in line] in (
        ["ship"],
        ["pay", "ship"],
    )


@pytest.mark.parametrize("members", ["99999999999", "-", "x", "10003"])
def test_a_hostile_number_of_members(members: str) -> None:
    """At most 10,000 members are made up."""
    [line] = lines_of(
        f"GROUP    g\nSTATE    Stable\nBALANCER range\nMEMBERS  {members}\n\nTOPIC  PARTITION  "
        "MEMBER-ID  CLIENT-ID  HOST\nt      0          m          c          h\n"
    ).values()
    assert len(line.get("members", ())) <= 1
    assert ("error" in line) == members.isdecimal()


@pytest.mark.seeds(quick=40, whole=400)
def test_cut_texts(seeds: range) -> None:
    """A text that is cut or damaged anywhere is read, and whole tables keep their groups."""
    whole = text_of("4.4.0", "members state") + text_of("2.8.2", "offsets")
    for seed in seeds:
        draw = random.Random(seed)
        at = draw.randrange(len(whole))
        other = draw.choice(
            ["", "\x1b[2J", "\u202e", "999999999999999999", "\n", "  ", "é\U0001f600"]
        )
        for _, line in pasted(whole[:at] + other + whole[at + draw.randrange(99) :]).lines:
            if "error" not in line:
                with contextlib.suppress(kr.GroupError):
                    GroupSpec.from_dict(line)


@pytest.mark.parametrize("count", ["99999999999", "9999999999999999999"])
def test_a_hostile_partition_is_an_error_of_its_group(count: str) -> None:
    ran = command("plan", "-", "--add-members", "1", stdin=TABLE.replace("(2)", f"({count})"))
    assert f"pay: topics[0].partitions: {int(count) + 1} is not a count" in ran.stderr
    assert "ship, range" in ran.stdout


def test_names_from_strangers_are_shown_escaped() -> None:
    ran = command("plan", "-", "--group", "x", stdin=TABLE.replace("pay  ", "p\x1b[2J"))
    assert "\x1b" not in ran.stderr + ran.stdout
    assert "p\\u001b[2J" in ran.stderr


def test_options_are_only_for_tables() -> None:
    line = json.dumps(SNAPSHOT["one-range"])
    ran = command("plan", "-", "--topic", "orders=20", stdin=line)
    assert ran.returncode == 2
    assert "only for tables; a contract line has all fields" in ran.stderr


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("assignr=range", '"assignr=range" is not FIELD=VALUE, such as members[*].rack_id=a'),
        ("members[c9].rack_id=a", '"members[c9].rack_id=a": the text has no "c9"'),
    ],
)
def test_a_wrong_assumption(option: str, error: str) -> None:
    ran = command("plan", "-", "--assume", option, stdin=TABLE)
    assert (ran.returncode, error in ran.stderr) == (2, True), ran.stderr


def test_a_topic_without_owners_is_read_by_the_group() -> None:
    read = pasted(TABLE, {"new": 4, "pay": 6}, only="pay")
    [(_, line)] = read.lines
    assert {one["name"]: one["partitions"] for one in line["topics"]} == {"new": 4, "pay": 6}
    assert line["members"][0]["topics"] == ["new", "pay"]
    assert "topics.partitions" not in read.assumed


@pytest.mark.parametrize("text", ["", "GROUP\n", '{"group_id": "x"}\n', "some words\n"])
def test_what_has_no_tables(text: str) -> None:
    assert not has_tables(text.splitlines())


def test_a_group_whose_name_looks_like_a_line_of_a_log_is_read() -> None:
    head = "GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT"
    rows = [f"{name} {name}-c-1 /10.0.0.1 c 1 t(0)" for name in ("2024-01-01-load", "ERRORS", "ok")]
    noise = "[2024-01-01 10:00:00,000] WARN something (org.apache.kafka.clients)"
    text = [head, rows[0], noise, *rows[1:]]
    found = read_pasted(enumerate(text, 1), {})
    assert [line["group_id"] for _, line in found.lines] == ["2024-01-01-load", "ERRORS", "ok"]
    assert not any("error" in line for _, line in found.lines)

# SPDX-License-Identifier: Apache-2.0
"""`plan` and `compare`, run as a user runs them: tables, JSON, pictures, errors."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines
from kafka_rebalance.group.group_fields import FIELDS
from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.plans.page import Cell, grid_of, plan_page
from kafka_rebalance.report.text.sentences import cut, partitions_text, short_names
from tests.support.broker_groups import broker_line
from tests.support.prompt import command


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plan") / "groups.jsonl"
    file.write_text("\n".join(captured_lines()), encoding="utf-8")
    return file


def test_one_group_in_detail(sample: Path) -> None:
    run = command("plan", sample, "--group", "payments", "--add-members", 1)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("Adding 1 member moves 2 of 30 partitions in 2 rebalances; ")
    assert "\n\npayments, cooperative-sticky: add-members=1\n" in run.stdout
    assert "add-members=1, round 2 (cooperative)" in run.stdout
    assert "still held by others" in run.stdout
    assert "1 member id is a placeholder" in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 100


def test_all_groups_a_line_each_and_a_bad_one_harms_none(sample: Path) -> None:
    run = command("plan", sample, "--add-members", 1)
    assert run.returncode == 3
    assert "checkout: state: PreparingRebalance" in run.stderr
    assert "1 of 20 groups had errors" in run.stderr
    rows = re.findall(r"^ +\S+ +(?:range|roundrobin|sticky|cooperative-sticky) ", run.stdout, re.M)
    assert len(rows) == 19
    assert max(map(len, run.stdout.splitlines())) <= 100


def test_json_is_what_python_says(sample: Path) -> None:
    run = command("plan", sample, "--json", "--partitions", "orders=40", "--add-members=2")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(lines) == 20
    by_id = {line["group_id"]: line for line in lines}
    # `payments` has no topic "orders"; the other change adds two members to every group.
    assert by_id["payments"]["changes"] == ["add-members=2"]
    assert by_id["payments"]["not_affected"] == [
        'partitions orders=40: the group has no topic "orders"'
    ]
    changes = ["partitions orders=40", "add-members=2"]
    group = next(
        GroupSpec.from_json(line)
        for line in captured_lines()
        if json.loads(line)["group_id"] == "orders"
    )
    plan = kr.plan(group, None, changes)
    notes = [note.to_dict() for note in kr.notes.plan_notes(plan, cheap=True)]
    assert by_id["orders"] == json.loads(json.dumps({**plan.to_dict(), "notes": notes}))


def test_options_keep_their_order(sample: Path) -> None:
    arguments = ("--remove-members", 1, "--change", "add-members 1", "--bounce-members")
    run = command("plan", sample, "--group", "orders", "--json", "--samples", 2, *arguments)
    line = json.loads(run.stdout)
    assert line["changes"] == ["remove-members=1", "add-members=1", "bounce-members=*"]
    assert line["samples"]["draws"] == 2


def test_standard_input_explained(sample: Path) -> None:
    run = command(
        *("plan", "-", "--group", "payments", "--add-members", 1, "--explain", "payments-12"),
        stdin=sample.read_text(encoding="utf-8"),
    )
    assert run.returncode == 0, run.stderr
    assert "the constrained algorithm" in run.stdout
    assert "round 2 (cooperative):" in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 100


WRONG = {
    ("plan", "FILE", "--add-members", "x"): 'argument --add-members: "x" is not a number',
    ("plan", "FILE", "--change", "hop=1"): 'argument --change: "hop=1" begins with none of',
    (
        "plan",
        "FILE",
        "--assignor",
        "Range",
    ): '--assignor: "Range" is not known; known are range, ',
    ("plan", "FILE", "--add-members", "2,racks=b"): '"racks" is not a key; the keys are rack, ',
    ("plan", "FILE", "--add-members", "0"): "--add-members: 0 is not a number of members from 1",
    ("plan", "FILE", "--switch-protocol", "new"): '"new" is not consumer or classic',
    ("plan", "FILE", "--samples", "-1"): "argument --samples: -1 is not a number from 0 to",
    ("plan", "FILE", "--output", "x.pdf"): "name a file that ends in .html",
    ("plan", "FILE", "--output", "x.html"): "--explain, --curve and --output need one group",
    ("plan",): "give either FILE or --bootstrap-server",
    ("plan", "FILE", "--bootstrap-server", "x:1"): "give either FILE or --bootstrap-server",
    ("explain", "t-0", "FILE"): "there are several groups: name that of PARTITION with --group",
    ("plan", "nowhere.jsonl"): "No such file",
    ("plan", "FILE", "--group", "orders", "--explain", "orders-99"): "there is no orders-99",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_usage(arguments: tuple[str, ...], sample: Path, tmp_path: Path) -> None:
    places = {"FILE": str(sample), "x.html": str(tmp_path / "x.html")}
    run = command(*(places.get(one, one) for one in arguments))
    assert run.returncode == 2
    assert WRONG[arguments] in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("word", ["plan", "compare", "describe", "simulate"])
def test_a_group_that_is_not_in_the_file_is_an_error_as_on_a_cluster(
    word: str, sample: Path
) -> None:
    source = ("--from", sample) if word == "simulate" else (sample,)
    run = command(word, *source, "--group", "none")
    assert (run.returncode, run.stdout) == (3, "")
    error = (
        f"group_id: no such group in {sample}; it has audit, chat-moderation, checkout and others"
    )
    assert run.stderr.splitlines()[0] == f"none: {error}"
    as_json = command(word, *source, "--group", "none", "--json")
    answer = {"group_id": "none", "error": error}
    assert (as_json.returncode, json.loads(as_json.stdout)) == (3, answer)


def test_a_change_that_does_not_fit_is_named(sample: Path) -> None:
    run = command("plan", sample, "--group", "orders", "--remove-member", "C9")
    assert run.returncode == 3
    assert "orders: remove-member=C9: no member has the member_id or group_insta" in run.stderr


def test_compare_one_and_all(sample: Path) -> None:
    one = command("compare", sample, "--group", "orders", "--add-members", 1)
    assert one.returncode == 0, one.stderr
    assert "cooperative-sticky <" in one.stdout
    assert (
        "Switch to cooperative-sticky: it leaves the fullest and the emptiest member" in one.stdout
    )
    assert "Java: two rolling bounces\n  1. 9 restarts, 18 rebalances, " in one.stdout
    # Lines to paste are not wrapped; all other lines have at most 100 characters.
    prose = [line for line in one.stdout.splitlines() if not line.startswith("    ")]
    assert max(map(len, prose)) <= 100
    everything = command("compare", sample)
    assert everything.returncode == 3
    assert max(map(len, everything.stdout.splitlines())) <= 100
    lines = command("compare", sample, "--json").stdout.splitlines()
    assert [json.loads(line).get("recommended") for line in lines].count("cooperative-sticky") == 18
    # `audit` has one partition, so it keeps range.


def test_a_rolling_bounce_is_folded(sample: Path) -> None:
    folded = command("plan", sample, "--group", "orders", "--bounce-members")
    assert "… and 12 rounds more (--all shows them)" in folded.stdout
    unfolded = command("plan", sample, "--group", "orders", "--bounce-members", "--all")
    assert len(re.findall(r"round 1 \(eager\)", unfolded.stdout)) == 18


# Pictures -----------------------------------------------------------------------------------------


def test_a_page_is_written(sample: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    run = command(*("plan", sample, "--group", "orders", "--add-members", 1, "--output", file))
    assert run.returncode == 0, run.stderr
    assert f"drawn to {file}" in run.stderr


def group(members: int, partitions: int) -> GroupSpec:
    return GroupSpec(
        "a <b> & c",
        (Topic("t", partitions),),
        tuple(
            Member(
                f"m{n}",
                ("t",),
                owned_partitions=tuple(
                    TopicPartition("t", p) for p in range(n, partitions, members)
                ),
                generation_id=1,
            )
            for n in range(members)
        ),
        "sticky",
    )


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "td":
            self.cells.append(dict(attrs).get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_shows_the_plan() -> None:
    plan = kr.plan(group(3, 9), None, ["add-members=1"])
    page = _Tags()
    page.feed(plan_page(plan))
    assert page.open == []
    assert page.links == []
    kinds = [cell.split()[0] for cell in page.cells if cell and cell != " first"]
    assert (kinds.count("kept"), kinds.count("revoked"), kinds.count("gained")) == (7, 2, 2)
    assert "a &lt;b&gt; &amp; c" in plan_page(plan)
    assert "* made-up id: the broker will choose another" in plan_page(plan)
    assert "made-up" not in plan_page(kr.plan(group(3, 9), None, ["remove-members=1"]))


def test_large_groups_become_rounds() -> None:
    plan = kr.plan(group(300, 900), None, ["remove-members=20"])
    assert "Too large for a grid" in plan_page(plan)


def test_a_restarted_member_stays_in_its_row() -> None:
    grid = grid_of(kr.plan(group(2, 4), None, ["bounce-members=m0"]))
    assert len(grid.names) == 2
    assert grid.counts == [(2, 2), (2, 2)]
    unchanged = grid_of(kr.plan(group(2, 4)))
    assert set(unchanged.cells.values()) == {Cell.KEPT}


def test_names_are_short_and_different() -> None:
    ids = [
        "app-0b5c2d1e-0000-4000-8000-123456789abc",
        "app-0b5c9999-0000-4000-8000-123456789abc",
        "x",
    ]
    assert list(short_names(ids, ids[1:2]).values()) == ["app-0b5c2d1e", "app-0b5c9999*", "x"]
    assert list(short_names(ids[1:]).values()) == ["app-0b5c", "x"]
    assert cut("abcdefghij", 5) == "ab…ij"
    tps = [TopicPartition("t", p) for p in (0, 1, 2, 5)]
    assert partitions_text(tps) == "t[0-2, 5]"
    assert partitions_text(tps * 5, 16).endswith("… 20 in all")


def test_how_long_is_what_simulate_measures(sample: Path) -> None:
    """`plan --how-long` has the figures that `simulate --from --seeds 5` prints for the changes."""
    options = ("--group", "loyalty", "--remove-members", "1", "--json")
    planned = json.loads(command("plan", sample, *options, "--how-long").stdout)
    simulated = json.loads(command("simulate", "--from", sample, *options, "--seeds", "5").stdout)
    unread = simulated["totals"]["unavailable_ms"]
    assert unread["median"] > 0
    assert planned["times"]["unread_partition_ms"] == {
        key: unread[key] for key in ("least", "median", "most")
    }
    assert "heartbeats every 3 s" in planned["times_assumed"]
    shown = command("plan", sample, *options[:-1], "--how-long").stdout
    assert f"Without a reader: {unread['median'] / 1000:.1f} partition-seconds" in shown


def test_how_long_plays_consumer_groups_of_the_broker(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps(broker_line("consumer/uniform", [[0, 1, 2], [3, 4, 5]])))
    options = (path, "--add-members", "1")
    planned = json.loads(command("plan", *options, "--how-long", "--json").stdout)
    simulated = command("simulate", "--from", *options, "--seeds", "5", "--json")
    unread = json.loads(simulated.stdout)["totals"]["unavailable_ms"]
    assert 0 < unread["least"] < unread["most"]
    assert planned["times"]["unread_partition_ms"] == {
        key: unread[key] for key in ("least", "median", "most")
    }
    assert planned["times_assumed"].endswith("heartbeats every 5 s, sessions of 45 s")
    shown = command("plan", *options, "--how-long").stdout
    assert "it is not a bound on a real group." in " ".join(shown.split())
    compared = json.loads(command("compare", *options, "--json").stdout)
    assert compared["times"]["consumer/uniform"] == planned["times"]
    both = "sessions of 45 s (consumer protocol); heartbeats every 3 s, sessions of 45 s (classic"
    assert both in compared["times_assumed"]


def test_ranges_are_sent_to_json_only_where_they_are_not_shown(tmp_path: Path) -> None:
    """The table of `compare` shows medians; `plan` and JSON show the ranges."""
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps(broker_line("consumer/uniform", [[0, 1, 2], [3, 4, 5]])))
    options = (path, "--add-members", "1")
    planned = " ".join(command("plan", *options, "--how-long").stdout.split())
    assert re.search(
        r"Without a reader: [0-9.]+ partition-seconds \([0-9.]+ to [0-9.]+ with", planned
    )
    assert "--json" not in planned.partition("Without a reader")[2]
    assert "--json has the ranges" in " ".join(command("compare", *options).stdout.split())
    for words in (("plan", *options, "--how-long"), ("compare", *options)):
        assert "--json" not in json.loads(command(*words, "--json").stdout)["times_assumed"]


def test_share_groups_have_no_seconds(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps(broker_line("share/simple", [[0, 1, 2], [3, 4, 5]])))
    shown = command("plan", path, "--add-members", "1", "--how-long").stdout
    assert 'No figures in seconds: assignor: "share/simple" runs in the brokers' in shown


def test_how_long_names_the_reason_if_nothing_can_be_timed(sample: Path) -> None:
    ran = command("plan", sample, "--group", "loyalty", "--how-long")
    assert "No figures in seconds: no change is given." in ran.stdout
    many = command("plan", sample, "--add-members", "1", "--how-long")
    assert many.returncode == 2
    assert "--how-long needs one group" in many.stderr


def test_a_misspelt_group_and_a_misspelt_field_are_recognised(sample: Path, tmp_path: Path) -> None:
    run = command("plan", sample, "--group", "paymnts")
    assert run.stderr.splitlines()[0] == (
        f"paymnts: group_id: no such group in {sample}; did you mean payments?"
    )
    line = json.loads(sample.read_text(encoding="utf-8").splitlines()[0])
    line["members"] = [{**one, "ownd": 1, "note": "mine", "rack": "a"} for one in line["members"]]
    file = tmp_path / "group.jsonl"
    file.write_text(json.dumps({**line, "generation": 3, "anything": 4}), encoding="utf-8")
    ignored = "not a field of the contract, so it is ignored; is it"
    assert sorted(command("describe", file).stderr.splitlines()) == [
        f"kafka-rebalance: line 1: generation: {ignored} generation_id?",
        f"kafka-rebalance: line 1: members[0].ownd: {ignored} owned_partitions?",
        f"kafka-rebalance: line 1: members[0].rack: {ignored} rack_id?",
    ]
    assert command("describe", sample).stderr.count(ignored) == 0
    line |= {"generation": 3, "anything": 4}
    for given in (json.dumps(line), json.dumps(line).encode()):
        with pytest.warns(UserWarning, match=r"members\[0\].ownd: not .* is it owned_partitions"):
            kr.GroupSpec.from_json(given)
    with pytest.warns(UserWarning, match=r"generation: not .* is it generation_id"):
        kr.GroupSpec.from_dict(line)


def test_the_fields_of_the_contract_are_those_of_its_page() -> None:
    page = (Path(__file__).parents[1] / "docs" / "contract.md").read_text(encoding="utf-8")
    table = page[: page.index("## Scripts of Connect")]
    cells = " ".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    named = {name.rpartition(".")[2].removesuffix("[]") for name in re.findall(r"`(.*?)`", cells)}
    ours = {name for fields in FIELDS.values() for name in fields}
    assert ours <= named


def test_topics_that_begin_alike_have_their_names_in_the_grid() -> None:
    lines = [one for one in captured_lines() if "error" not in one]
    groups = {group.group_id: group for group in map(GroupSpec.from_json, lines)}
    for name in ("telemetry", "payments"):
        page = plan_page(kr.plan(groups[name]))
        assert all(f">{topic.name}</th>" in page for topic in groups[name].topics)

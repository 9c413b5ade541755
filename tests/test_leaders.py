# SPDX-License-Identifier: Apache-2.0
"""Plans of groups whose leaders use other libraries, and who leads after a change."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import SOME_ERRORS, main
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.plans import leaders, plans_by_leader
from kafka_rebalance.plans.leaders import library, named_leader, possible_dialects
from tests.support.contract_lines import noted

if TYPE_CHECKING:
    from pathlib import Path

OURS, THEIRS = "cooperative-sticky", "librdkafka/cooperative-sticky"


def owned(topic: str, *partitions: int) -> tuple[kr.TopicPartition, ...]:
    return tuple(kr.TopicPartition(topic, p) for p in partitions)


def group(**more: Any) -> kr.GroupSpec:
    """r uses librdkafka, j and k use Java; j and r, but not k, read topic u."""
    members = (
        kr.Member("r", ("t", "u"), client_library="librdkafka", owned_partitions=owned("u", 0, 1)),
        kr.Member("j", ("t", "u"), client_library="java", owned_partitions=owned("t", 0, 1, 2)),
        kr.Member("k", ("t",), client_library="java", owned_partitions=owned("t", 3)),
    )
    topics = (kr.Topic("u", 7), kr.Topic("t", 5))
    return kr.GroupSpec("g", topics, members, OURS, 1, **more)


def led(group: kr.GroupSpec, *changes: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.assignor, one.leaders) for one in plans_by_leader(group, changes)]


def test_the_leader_answers_until_it_leaves() -> None:
    """The next leader is the first member in the coordinator's hash map."""
    by_librdkafka = group(leader="r")
    assert led(by_librdkafka) == [(THEIRS, ("r",))]
    assert led(by_librdkafka, "add-members=1") == [(THEIRS, ("r",))]
    (following,) = java_hash_order(["j", "k"])[:1]
    assert led(by_librdkafka, "remove-member=r") == [(OURS, (following,))]
    assert led(by_librdkafka, "bounce-members=r") == [(OURS, (following,))]
    assert led(group(leader="j"), "remove-member=r") == [(OURS, ("j",))]


def test_the_plan_is_that_of_the_leaders_assignor() -> None:
    changes = ["remove-member=k"]
    (one,) = plans_by_leader(group(leader="r"), changes)
    assert one.plan is not None
    assert one.plan.after == kr.plan(group(), THEIRS, changes).after
    ours = {m: set(owned) for m, owned in kr.plan(group(), OURS, changes).after.items()}
    assert {m: set(owned) for m, owned in one.plan.after.items()} != ours


def test_an_unknown_leader_is_one_whose_library_fits() -> None:
    assert list(possible_dialects(group())) == [THEIRS, OURS]
    assert possible_dialects(group(leader_library="java")) == {OURS: ("j", "k")}
    assert possible_dialects(group(leader_library="librdkafka")) == {THEIRS: ("r",)}
    without = group().edited(
        members=tuple(kr.Member(m.member_id, m.topics) for m in group().members)
    )
    assert possible_dialects(without) == {OURS: ("r",)}  # without libraries: Kafka's own assignor


def test_each_members_library_is_found_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any of 50 members may lead, and may run kafka-python or aiokafka."""
    asked: list[kr.Member] = []

    def counted(group: kr.GroupSpec, member: kr.Member) -> str | None:
        asked.append(member)
        return library(group, member)

    monkeypatch.setattr(leaders, "library", counted)
    members = tuple(kr.Member(f"m{n}", ("t",), client_library="python") for n in range(50))
    python = kr.GroupSpec("g", (kr.Topic("t", 5),), members, "range")
    assert [*possible_dialects(python)] == ["kafka-python/range", "aiokafka/range"]
    assert len(asked) <= 4 * len(members)


def test_answers_that_agree_are_one() -> None:
    alone = group().edited(members=group().members[:2])
    alone = alone.edited(assignor="range")
    assert [len(leaders) for _, leaders in led(alone)] == [2]
    assert led(alone)[0][0] == "range"  # Kafka's own name
    assert led(group(), "add-members=1") == [(OURS, ("r", "j", "k"))]
    assert led(group(), "remove-member=k") == [(THEIRS, ("r",)), (OURS, ("j",))]


def test_a_static_leader_that_restarts_goes_on_leading() -> None:
    members = [kr.Member(f"{n}-1", ("t",), n, client_library=library)
               for n, library in (("r", "librdkafka"), ("j", "java"))]  # fmt: skip
    static = kr.GroupSpec("g", (kr.Topic("t", 5),), tuple(members), OURS, 1, leader="r-1")
    ((name, leaders),) = led(static, "bounce-members=r", "partitions t=7")
    assert name == THEIRS
    assert len(leaders) == 1
    assert leaders[0] != "r-1"


def test_a_leader_that_dies_leaves_kafkas_own_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The group of docs/behaviour/librdkafka.md: the join of c2 kills the leader.

    `plan` prints this as its first line, with exit code 3.
    """

    def member(name: str, topics: str, *claims: kr.TopicPartition) -> kr.Member:
        return kr.Member(name, tuple(topics), owned_partitions=claims, generation_id=1, rack_id="",
                         client_library="librdkafka")  # fmt: skip

    members = (member("c0", "b", *owned("b", *range(5))), member("c1", "a", *owned("a", 0, 1)),
               member("c2", "ab"))  # fmt: skip
    topics = (kr.Topic("b", 5), kr.Topic("a", 2))
    dying = kr.GroupSpec("g", topics, members, OURS, 1, leader="c0")
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{dying.to_json()}\n", encoding="utf-8")
    dies = "no member that may lead has an answer: if c0 leads with librdkafka/cooperative-sticky: "
    for one_more, is_first in (("", "WARNING: "), (group().to_json(), "g: ")):
        file.write_text(f"{dying.to_json()}\n{one_more}\n", encoding="utf-8")
        assert main(["plan", str(file)]) == SOME_ERRORS
        out, err = capsys.readouterr()
        text = " ".join((err if one_more else out).split())
        assert text.startswith(is_first + dies) or f" {is_first}{dies}" in text
        assert main(["plan", str(file), "--json"]) == SOME_ERRORS
        assert json.loads(capsys.readouterr().out.splitlines()[0])["error"].startswith(dies)
    first, second = plans_by_leader(dying)
    assert (first.assignor, first.leaders, first.error) == (OURS, (), None)
    assert (second.assignor, second.leaders, second.plan) == (THEIRS, ("c0",), None)
    assert "kills the leader's process" in str(second.error)


# The command line ---------------------------------------------------------------------------------


def told(
    command: list[str], one: kr.GroupSpec, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[str, dict[str, Any]]:
    file = tmp_path / "group.jsonl"
    file.write_text(one.to_json() + "\n", encoding="utf-8")
    assert main([command[0], str(file), *command[1:]]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert main([command[0], str(file), *command[1:], "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)


def test_plan_shows_each_leaders_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "--remove-member", "k"]
    text, answer = told(command, group(), tmp_path, capsys)
    assert f"The figures are those of {THEIRS}: r leads." in text
    assert f"If j leads with {OURS}:" in text
    assert (answer["assignor"], answer["leaders"]) == (THEIRS, ["r"])
    assert [one["assignor"] for one in answer["other_leaders"]] == [OURS]
    text, answer = told([*command, "--leader", "j"], group(), tmp_path, capsys)
    assert "If " not in text
    assert answer["assignor"] == OURS
    assert "leaders" not in answer


def test_a_made_up_leader_is_short_with_a_star_and_named_as_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a restart, the broker's map decides who leads: perhaps a member with a new id."""
    members = tuple(
        kr.Member(
            f"c-{n}-0b5c2d1e-0000-4000-8000-12345678900{n}",
            ("t",),
            client_id=f"c-{n}",
            client_library="librdkafka",
        )
        for n in range(3)
    )
    one = kr.GroupSpec("g", (kr.Topic("t", 5),), members, "range", leader_library="librdkafka")
    text, answer = told(["plan", "--bounce-members"], one, tmp_path, capsys)
    made_up = {new["member_id"] for new in answer["made_up"]}
    (new,) = made_up.intersection(answer["leaders"][:3])
    said = text[text.index("The figures are those of") :]
    short = new[: len("c-0-1234")]
    assert f"{short}*" in said
    assert new not in said
    for name in (new, short, f"{short}*"):
        with pytest.raises(
            kr.NotAffected, match="this id is a placeholder, for a member that a plan"
        ):
            named_leader(one, name)
    with pytest.raises(kr.NotAffected, match=r'there is no member "c-9-1234"$'):
        named_leader(one, "c-9-1234")


def test_leaders_have_the_short_names_of_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A static member may lead next when the leader leaves: `--leader` takes its short name."""
    members = tuple(
        kr.Member(
            f"pod-{n}-0b5c2d1e-0000-4000-8000-12345678900{n}",
            ("t",),
            group_instance_id=f"pod-{n}",
            client_library="librdkafka" if n % 2 else "java",
            owned_partitions=(kr.TopicPartition("t", 2 * n), kr.TopicPartition("t", 2 * n + 1)),
            generation_id=3,
        )
        for n in range(4)
    )
    one = kr.GroupSpec("g", (kr.Topic("t", 8),), members, "cooperative-sticky", 3)
    for word in ("plan", "compare"):
        text, _ = told([word, "--remove-member", "pod-0"], one, tmp_path, capsys)
        (name,) = re.findall(r"If (\S+) leads with", text)
        assert name in ("pod-1-0b5c", "pod-2-0b5c", "pod-3-0b5c")
        assert named_leader(one, name).leader == next(
            m.member_id for m in members if m.member_id.startswith(name)
        )


def test_explain_and_compare_use_the_leaders_assignor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, answer = told(["compare", "--leader", "r"], group(), tmp_path, capsys)
    assert answer["assignor"] == THEIRS
    _, answer = told(["compare", "--leader", "j"], group(), tmp_path, capsys)
    assert answer["assignor"] == OURS
    text, _ = told(["plan", "--explain", "t-4", "--leader", "r"], group(), tmp_path, capsys)
    assert THEIRS in text


def test_the_leader_stays_only_as_long_as_it_is_a_member() -> None:
    led = group().edited(leader="j")
    for engine in ("rust", "reference"):
        left = kr.plan(led, None, ["remove-member=j"], engine=engine)
        assert left.final.leader is None
        stayed = kr.plan(led, None, ["remove-member=k"], engine=engine)
        assert stayed.final.leader == "j"
        members = tuple(replace(one, group_instance_id=one.member_id) for one in led.members)
        again = kr.plan(led.edited(members=members), None, ["bounce-members=j"], engine=engine)
        back = [one for one in again.final.members if one.group_instance_id == "j"]
        assert [one.member_id for one in back] == [again.final.leader] != ["j"]


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_one_of_many_groups_may_lack_the_named_leader(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "groups.jsonl"
    other = kr.GroupSpec("other", group().topics, group().members[1:2], OURS)
    file.write_text(f"{group().to_json()}\n{other.to_json()}\n", encoding="utf-8")
    run = [command, str(file), "--json", "--leader"]
    for name, code, runs in (("r", 0, THEIRS), ("nobody", SOME_ERRORS, OURS)):
        assert main([*run, name]) == code
        out, err = capsys.readouterr()
        answers = [json.loads(line) for line in out.splitlines()]
        assert [one.get("assignor") for one in answers] == [runs, OURS]
        assert ('no group has a member "nobody"' in err) == (code == SOME_ERRORS)
    assert main([*run, "nobody", "--group", "other"]) == SOME_ERRORS
    assert 'leader: there is no member \\"nobody\\"' in capsys.readouterr().out


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_a_shortened_leader_of_two_members_is_an_error_of_its_group(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other groups, which lack this member, keep their own leader."""
    ids = (f"app-1-0b5c{n}111-2222-4333-8444-555566667777" for n in "12")
    members = tuple(kr.Member(member_id, ("t",)) for member_id in ids)
    both = kr.GroupSpec("both", (kr.Topic("t", 5),), members, OURS)
    file = tmp_path / "groups.jsonl"
    file.write_text(f"{both.to_json()}\n{group().to_json()}\n", encoding="utf-8")
    assert main([command, str(file), "--json", "--leader", "app-1-0b5c"]) == SOME_ERRORS
    out, err = capsys.readouterr()
    bad, other = (json.loads(line) for line in out.splitlines())
    assert bad["error"] == 'leader: "app-1-0b5c" is short for 2 members; give a whole member_id'
    assert other["assignor"] == OURS
    assert err == "kafka-rebalance: 1 of 2 groups had errors\n"


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_an_old_member_is_warned_of_before_librdkafka_leads(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real leaders with librdkafka died each time a member sent version 0."""
    members = (
        kr.Member("j", ("t",), client_library="java", subscription_version=0),
        kr.Member("r", ("t",), client_library="librdkafka", rack_id=""),
    )
    one = kr.GroupSpec("g", (kr.Topic("t", 4),), members, OURS, 1, leader="j")
    text, answer = told([command], one, tmp_path, capsys)
    assert "At the next rebalance, the process of a leader with librdkafka dies" in text
    assert noted(answer, "dies") == [{"when": "next", "changes": []}]
    newer = one.edited(members=(kr.Member("j", ("t",), client_library="java"), members[1]))
    assert noted(told([command], newer, tmp_path, capsys)[1], "dies") == []


def test_a_leader_that_is_no_member_is_refused() -> None:
    with pytest.raises(kr.GroupError, match='leader: there is no member "x"'):
        named_leader(group(), "x")


def test_the_line_keeps_the_leader_and_the_libraries() -> None:
    one = group(leader="r", leader_library="librdkafka")
    assert kr.GroupSpec.from_json(one.to_json()) == one


def test_describe_shows_the_library_and_the_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = kr.Member("r", ("t",), client_library="librdkafka", rack_id="")
    default = kr.Member("d", ("t",), client_id="aiokafka-0.14.0", client_library="aiokafka")
    java = kr.Member("j", ("t",), client_library="java")
    python = kr.Member("p", ("t",), client_library="python")
    members = (empty, default, java, python)
    one = kr.GroupSpec("g", (kr.Topic("t", 4),), members, "range", 1, leader="d")
    text, answer = told(["describe"], one, tmp_path, capsys)
    assert all(
        name in text for name in ("librdkafka", "Java or plug-in", "kafka-python or aiokafka")
    )
    by_id = replace(java, client_id="consumer-g-1")
    sure, _ = told(["describe"], one.edited(members=(by_id,), leader=None), tmp_path, capsys)
    assert "Java" in sure
    assert "plug-in" not in sure
    assert answer["leader"] == "d"
    assert [(m["client_library"], m["client_evidence"]) for m in answer["members"]] == [
        ("librdkafka", "bytes: subscription version 3, an empty rack"),
        ("aiokafka", "client id aiokafka-0.14.0"),
        ("java", "bytes: subscription version 3"),
        ("python", "bytes: subscription version 3"),
    ]


def test_a_member_with_two_dialects_is_named_once() -> None:
    members = (kr.Member("a", ("t",)), kr.Member("b", ("t",)))
    topics = (kr.Topic("t", 4),)
    one = kr.GroupSpec("g", topics, members, "roundrobin", 1, leader_library="python")
    (led,) = plans_by_leader(one)
    assert led.leaders == ("a", "b")


def test_python_compares_the_lines_assignor_and_the_command_that_of_the_leader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/plans.md shows both assignors, and how to get from one to the other."""
    one, changes = group(leader="r", leader_library="librdkafka"), ["remove-member=k"]
    path = tmp_path / "g.jsonl"
    path.write_text(one.to_json(), encoding="utf-8")
    assert main(["compare", str(path), "--remove-member", "k", "--json"]) == 0
    command = json.loads(capsys.readouterr().out)
    alone = kr.compare(one, changes)
    assert (alone.group.assignor, command["assignor"]) == (OURS, THEIRS)
    first = next(led for led in plans_by_leader(one, changes) if led.plan is not None)
    as_led = kr.compare(replace(one, assignor=first.assignor), changes).to_dict()
    assert {name: command[name] for name in as_led} == as_led
    names = [candidate.assignor for candidate in alone.candidates]
    assert names == [candidate["assignor"] for candidate in command["candidates"]]

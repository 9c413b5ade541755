# SPDX-License-Identifier: Apache-2.0
"""`simulate --from` makes a scenario from a group's present state."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.data import captured_lines
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member.config import ConsumerConfig
from kafka_rebalance.plans.changes import change_from_text
from kafka_rebalance.simulator import Kind, Pace, Scenario, scenario_from_group, simulate

if TYPE_CHECKING:
    from pathlib import Path

UUID = "-0b5c2d1e-1111-4222-8333-444455556666"
GROUP = kr.GroupSpec(
    "g",
    topics=(kr.Topic("t", 6, (("a",), ("b",)) * 3), kr.Topic("u", 2)),
    members=(
        kr.Member(f"app{UUID}", ("t", "u"), client_id="app", rack_id="a"),
        kr.Member(f"app{UUID[:-1]}7", ("t",), client_id="app", rack_id="b"),
        kr.Member(f"s-1{UUID}", ("t", "u"), "s-1", rack_id="b"),
    ),
    assignor="cooperative-sticky",
)


def _scenario(*changes: str, **settings: object) -> Scenario:
    return scenario_from_group(GROUP, changes, **settings)  # type: ignore[arg-type]


def test_changes_may_be_texts() -> None:
    changes = ["add-members=1", "remove-member=s-1"]
    parsed = [change_from_text(one) for one in changes]
    assert scenario_from_group(GROUP, changes) == scenario_from_group(GROUP, parsed)
    with pytest.raises(kr.GroupError, match=r"^changes\[1\]: "):
        scenario_from_group(GROUP, ["add-members=1", "add-members=x"])


def test_topics_members_assignor_and_racks_are_the_groups() -> None:
    scenario = _scenario()
    assert [(one.name, one.topics, one.pattern) for one in scenario.members] == [
        ("app-1", ("t", "u"), None),
        ("app-2", ("t",), None),
        ("s-1", ("t", "u"), None),
    ]
    configs = [one.config for one in scenario.members if isinstance(one.config, ConsumerConfig)]
    assert [one.group_instance_id for one in configs] == [None, None, "s-1"]
    assert [one.client_rack for one in configs] == ["a", "b", "b"]
    assert {one.partition_assignment_strategy for one in configs} == {("cooperative-sticky",)}
    assert scenario.topics["t"].racks == GROUP.topics[0].racks
    starts = [one.start_ms for one in scenario.members]
    assert starts == sorted(set(starts))  # members join in the group's order
    held = {one.partition for one in simulate(scenario).holds}
    assert held == {*(f"t-{n}" for n in range(6)), "u-0", "u-1"}


@pytest.mark.parametrize("fullest", ["one", "two"])
def test_the_fullest_member_of_a_broker_stays_the_fullest(fullest: str) -> None:
    """The broker is sticky: of 7 partitions, the member that joined first keeps 4."""
    tps = tuple(kr.TopicPartition("t", n) for n in range(7))
    owned = (
        {"one": tps[:4], "two": tps[4:]} if fullest == "one" else {"one": tps[:3], "two": tps[3:]}
    )
    members = tuple(kr.Member(name, ("t",)).owning(of, 3) for name, of in owned.items())
    group = kr.GroupSpec("g", (kr.Topic("t", 7),), members, "consumer/uniform")
    run = simulate(scenario_from_group(group))
    held = [one.member for one in run.holds if one.to_ms == run.until_ms]
    assert max(held, key=held.count) == fullest


def test_every_playable_change() -> None:
    scenario = _scenario(
        "bounce-members", "add-members=1", "remove-member=s-1", "partitions u=4", "remove-rack=a",
        "add-topics=v=2",
    )  # fmt: skip
    happenings = [(one.kind, one.member or one.topic) for one in scenario.happenings]
    assert happenings == [
        *((kind, name) for name in ("app-1", "app-2", "s-1") for kind in (Kind.STOP, Kind.START)),
        (Kind.STOP, "s-1"),
        (Kind.GROW, "u"),
        (Kind.KILL, "app-1"),
        (Kind.CREATE_TOPIC, "v"),
    ]
    assert [one.name for one in scenario.members] == ["app-1", "app-2", "s-1", "s-2"]
    run = simulate(scenario)
    at_the_end = {one.partition: one.member for one in run.holds if one.to_ms == run.until_ms}
    assert set(at_the_end.values()) == {"app-2", "s-2"}
    assert {one for one in at_the_end if one[0] != "t"} == {
        "u-0",
        "u-1",
        "u-2",
        "u-3",
        "v-0",
        "v-1",
    }


def test_bounces_as_static_and_as_dynamic_members() -> None:
    pace = Pace(first_ms=60_000, apart_ms=120_000, down_ms=5_000)
    as_they_are = simulate(_scenario("bounce-members", pace=pace))
    assert [one.causes for one in as_they_are.rebalances][1:] == [
        ["app-1 leaves"], ["app-1 joins"], ["app-2 leaves"], ["app-2 joins"],
    ]  # fmt: skip
    assert len(simulate(_scenario("bounce-members=*,static", pace=pace)).rebalances) == 1
    dynamic = simulate(_scenario("bounce-members=s-1,dynamic", pace=pace))
    assert [one.causes for one in dynamic.rebalances][1:] == [
        ["s-1's session ended"],
        ["s-1 joins"],
    ]


def test_what_the_simulator_cannot_play_is_named() -> None:
    with pytest.raises(
        GroupError, match=r"changes\[1\]: the simulator cannot play it; it plays add-"
    ):
        _scenario("add-members=1", "resubscribe=t")
    with pytest.raises(GroupError, match=r"changes\[0\]: no member has the member_id"):
        _scenario("remove-member=nobody")
    nameless = kr.GroupSpec("g", GROUP.topics, GROUP.members)
    with pytest.raises(
        GroupError, match='the group has none; write it into its line, as "assignor"'
    ):
        scenario_from_group(nameless)
    with pytest.raises(GroupError, match='assignor: "stream" cannot be played'):
        scenario_from_group(nameless, assignor="stream")


@pytest.mark.parametrize("name", ["share/simple", "streams/sticky"])
def test_share_groups_and_streams_groups_are_refused_by_name(name: str) -> None:
    with pytest.raises(GroupError, match=f'assignor: "{name}" runs in the brokers.*; `plan` plays'):
        _scenario(assignor=name)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join(captured_lines()), encoding="utf-8")
    source = ["simulate", "--from", str(path)]
    bounce = [*source, "--group", "audit", "--bounce-members"]
    assert main([*bounce, "--member", "session_timeout=10s", "--member", "process=500ms"]) == 0
    shown = capsys.readouterr().out
    assert "audit: restarting every member: " in shown
    assert "500 ms between polls" in shown
    assert main([*bounce, "--compare", "eager,cooperative,static", "--json"]) == 0
    runs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["totals"]["rebalances"] > 0 for one in runs] == [True, True, False]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "--from: needs exactly one group"),
        (
            ["--group", "audit", "--change", "resubscribe=audit"],
            "audit: resubscribe=audit: the sim",
        ),
        (["--group", "audit", "--member", "process=500"], "process: '500' has no unit"),
        (["--group", "audit", "--member", "client_rack=a"], "client_rack: is set by the group"),
    ],
)
def test_wrong_usage_of_the_command(
    options: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join(captured_lines()), encoding="utf-8")
    codes = [2]
    with contextlib.suppress(SystemExit):
        codes.append(main(["simulate", "--from", str(path), *options]))
    assert set(codes) == {2}
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("group", "problem"),
    [("nobody", "group_id: no such group in "), ("checkout", "state: PreparingRebalance")],
)
def test_a_group_that_could_not_be_read(
    group: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "groups.jsonl"
    path.write_text("\n".join(captured_lines()), encoding="utf-8")
    assert main(["simulate", "--from", str(path), "--group", group]) == 3
    assert capsys.readouterr().err.startswith(f"{group}: {problem}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bootstrap-server", "127.0.0.1:1", "--from", "groups.jsonl"],
        ["scale-out", "--bootstrap-server", "127.0.0.1:1"],
        ["--group", "g"],
    ],
)
def test_a_run_has_one_source(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", *arguments])
    assert (
        "a scenario (--list has the ready ones), --from FILE, or --boot" in capsys.readouterr().err
    )


def test_a_cluster_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--bootstrap-server", "127.0.0.1:1", "--group", "g", "--timeout", "1"]
    assert main(["simulate", *options]) == 1
    assert "127.0.0.1:1: not connected" in capsys.readouterr().err


def test_a_scenario_of_a_group_or_a_name() -> None:
    made = scenario_from_group(GROUP, ["add-members=1"], seed=3)
    assert kr.scenario(GROUP, ["add-members=1"], seed=3) == made
    assert kr.scenario("rolling-bounce") == kr.simulator.load("rolling-bounce")
    with pytest.raises(kr.GroupError, match="did you mean rolling-bounce"):
        kr.scenario("roling-bounce")
    with pytest.raises(TypeError, match="a ready scenario takes no changes"):
        kr.scenario("rolling-bounce", ["add-members=1"])

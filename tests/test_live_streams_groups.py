# SPDX-License-Identifier: Apache-2.0
"""Live streams groups (KIP-1071): their descriptions, contract lines, and plans."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import Description, TopicPartition, live
from kafka_rebalance.cli import main
from kafka_rebalance.errors import WireError
from kafka_rebalance.group.model import TaskOffset
from kafka_rebalance.live.broker_groups import (
    DESCRIBE_APIS,
    StreamsSettings,
    streams_line,
    streams_settings,
)
from kafka_rebalance.notes.broker import broker_notes
from kafka_rebalance.present.broker_assigned import StreamsGroupWithLag, tasks_of
from kafka_rebalance.present.description import describe
from kafka_rebalance.report.groups.other_groups import print_streams_group
from kafka_rebalance.wire.streams_groups import DescribedStreamsGroup, DescribedTopology
from tests.support.broker_groups import note_kinds
from tests.support.contract_lines import VALID_STREAMS
from tests.support.streams_descriptions import (
    COUNTS,
    GROUP,
    NOTHING,
    ONE,
    SECOND,
    streams_member,
)

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.assignors.registry import Engine

STREAMS = DESCRIBE_APIS["streams"]
NOT_VALIDATED = DescribedTopology(epoch=0, subtopologies=None)

# The description ----------------------------------------------------------------------------------


def _response_of(group: DescribedStreamsGroup) -> bytes:
    pytest.importorskip("kio", reason="no kio: pip install -e '.[serve]'")
    from tests.support.streams_responses import response_of

    return response_of(group)


@pytest.mark.parametrize(
    "group",
    [
        GROUP,
        replace(GROUP, members=(), group_state="Empty"),
        replace(GROUP, topology=None),
        replace(GROUP, topology=NOT_VALIDATED, group_state="NotReady"),
    ],
    ids=["stable", "empty", "no topology", "not ready"],
)
def test_a_description_is_read_as_kafkas_schema_has_it(group: DescribedStreamsGroup) -> None:
    assert STREAMS.read(0, _response_of(group)) == (group,)


def test_bytes_that_end_early_are_an_error() -> None:
    data = _response_of(GROUP)
    for end in range(len(data)):
        with pytest.raises(WireError, match="response"):
            STREAMS.read(0, data[:end])


def test_a_line_has_the_present_tasks_and_the_tasks_of_each_subtopology() -> None:
    line = streams_line(GROUP, COUNTS.__getitem__, ONE)
    group = kr.GroupSpec.from_dict(line)
    assert [(s.tasks, s.stateful) for s in group.subtopologies or ()] == [(3, True), (2, False)]
    assert (group.generation_id, group.num_standby_replicas) == (7, 1)
    first = group.members[0].streams
    assert first is not None
    assert (first.process_id, first.active_tasks) == ("p0", GROUP.members[0].assigned.active)
    assert first.task_offsets == (TaskOffset(TopicPartition("0", 2), 5),)
    assert line["members"][0]["client_tags"] == {"zone": "z"}
    assert not any("target_active_tasks" in one for one in line["members"])


def test_a_member_that_is_not_at_its_target_begins_with_its_present_tasks() -> None:
    moving = replace(GROUP.members[0], target_assignment=NOTHING)
    line = streams_line(replace(GROUP, members=(moving,)), COUNTS.__getitem__, ONE)
    (member,) = line["members"]
    assert member["active_tasks"][0]["partitions"] == [0, 1]
    assert (member["target_active_tasks"], member["target_standby_tasks"]) == ([], [])


@pytest.mark.parametrize(
    ("group", "settings", "error"),
    [
        (
            replace(GROUP, group_state="NotReady"),
            ONE,
            "state: NotReady, the broker has not validated",
        ),
        (
            replace(GROUP, topology=NOT_VALIDATED),
            ONE,
            "state: Stable, the broker has not validated",
        ),
        (GROUP, None, "num_standby_replicas: no permission: this user needs DescribeConfigs on"),
    ],
)
def test_a_group_without_a_line(
    group: DescribedStreamsGroup, settings: StreamsSettings | None, error: str
) -> None:
    with pytest.raises(kr.GroupError) as raised:
        streams_line(group, COUNTS.__getitem__, settings)
    assert str(raised.value).startswith(error)


def test_standby_replicas_and_assignor_are_settings_of_the_group() -> None:
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")

    class Admin:
        def describe_configs(self, resources: list[Any], config_filter: str) -> Any:
            named = [(one.resource_type.name, one.name) for one in resources]
            assert named == [("GROUP", "app"), ("GROUP", "own"), ("GROUP", "hidden")]
            assert config_filter == "all"
            two = {"streams.num.standby.replicas": {"value": "2"}}
            own = {"streams.assignor.name": {"value": "mine"}}
            return {"group": {"app": two, "own": two | own, "hidden": {}}}

    assert streams_settings(Admin(), ["app", "own", "hidden"]) == {
        "app": StreamsSettings(2, "streams/sticky"),
        "own": StreamsSettings(2, "streams/mine"),
    }


# The output of `describe` -------------------------------------------------------------------------


def test_describe_shows_who_runs_what_where(capsys: pytest.CaptureFixture[str]) -> None:
    lags = {TopicPartition("orders", 0): 3, TopicPartition("app-by-repartition", 1): 4}
    shown = StreamsGroupWithLag(GROUP, lags)
    print_streams_group(shown, "--group app", everything=False)
    printed = capsys.readouterr().out
    assert (
        "app, streams group (KIP-1071), Stable: 2 members in 2 processes, 5 active tasks" in printed
    )
    assert "0[0-1] 1_0" in printed
    assert (
        "Lag: 7 records in 2 partitions of source topics; 3 partitions without a committed offset: "
        "their lag is unknown (-), and in no sum."
    ) in " ".join(printed.split())
    assert [shown.lag_of(one) for one in GROUP.members] == [3, 4]
    (behind,) = shown.findings
    assert (behind.kind, behind.member_ids) == ("behind", ("m0",))
    assert "behind: app-m0: 0_2: records missing in its copies: 0_2 4" in printed
    answer = shown.to_dict()
    assert answer["members"][1]["tasks"]["standby"] == ["0_0", "0_1"]
    assert answer["subtopologies"][1]["repartition_source_topics"] == ["app-by-repartition"]


def test_describe_names_what_is_wrong() -> None:
    first = replace(
        GROUP.members[0], target_assignment=NOTHING, task_end_offsets=(), member_epoch=6
    )
    second = replace(GROUP.members[1], topology_epoch=-1, assignment=SECOND._replace(standby=()))
    idle = streams_member("m2", "p2")
    group = replace(GROUP, group_epoch=8, members=(first, second, idle))
    found = [one.kind for one in StreamsGroupWithLag(group, {}).findings]
    assert found == ["assigning", "reconciling", "old topology", "idle", "no standby"]
    waiting = StreamsGroupWithLag(replace(GROUP, group_state="NotReady", assignment_epoch=1), {})
    assert waiting.findings[0].kind == "not ready"
    assert waiting.to_dict()["findings"][0]["text"].startswith("the broker has not validated")


def test_the_table_of_all_groups_has_the_lag_of_the_detail() -> None:
    """Members own tasks; the lag is that of the partitions that the tasks read."""
    lags = {TopicPartition("orders", 0): 3, TopicPartition("app-by-repartition", 1): 4}
    lost = TopicPartition("orders", 2)
    detail, table = StreamsGroupWithLag(GROUP, lags, [lost]), _described(lags, [lost])
    assert (table.lag, table.without_committed_offset) == (7, 2)
    assert (detail.lag, detail.without_committed_offset) == (7, 2)
    assert [table.lag_of(one.member_id) for one in GROUP.members] == [3, 4]
    kinds = [{one.kind: one.partitions for one in which.findings} for which in (detail, table)]
    assert [found["leaderless"] for found in kinds] == [(lost,), (lost,)]
    assert _described({}, []).lag is None


def _described(lags: Any, leaderless: Any) -> Description:
    return describe(_group(), lags=lags, leaderless=leaderless)


def test_describe_of_all_groups_asks_for_the_lag_of_source_topics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = streams_line(GROUP, COUNTS.__getitem__, ONE)
    asked: dict[str, list[TopicPartition]] = {}

    def group_lags(_: str, partitions: Any, **__: Any) -> Any:
        asked.update(partitions)
        return {group_id: dict.fromkeys(tps, 2) for group_id, tps in partitions.items()}

    monkeypatch.setattr(live, "snapshot_lines", lambda *_, **__: iter([line]))
    monkeypatch.setattr(live, "group_lags", group_lags)
    assert main(["describe", "--bootstrap-server", "broker:9092", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    read = tasks_of(GROUP).values()
    assert sorted(asked["app"]) == sorted(tp for tps in read for tp in tps)
    assert found["lag"] == 2 * len(asked["app"]) == 10


# Plans --------------------------------------------------------------------------------------------


def _group(**more: Any) -> kr.GroupSpec:
    return kr.GroupSpec.from_dict(streams_line(GROUP, COUNTS.__getitem__, ONE) | more)


def test_a_plan_ends_with_the_answer_of_the_assignor(engine: Engine) -> None:
    group = _group()
    plan = kr.plan(group, None, ["add-members=1"], engine=engine)
    (only,) = plan.rounds
    assert (only.kind, only.generation_id, plan.final.generation_id) == ("broker", 8, 8)
    answer = kr.assign(only.group, engine=engine)
    assert (plan.after, plan.after.standby) == (answer, answer.standby)
    new = only.group.members[-1].streams
    assert new is not None
    assert new.process_id not in ("p0", "p1")
    assert (new.active_tasks, new.standby_tasks, new.task_offsets) == ((), (), ())
    gained = {tp for owned in only.gained.values() for tp in owned}
    assert set(only.unavailable) == gained
    assert only.standby is not None
    assert only.standby.moves > 0
    assert note_kinds(plan) == ["tasks", "stops", "interval", "delay"] + ["warm-up"] * any(
        tp.topic == "0" for tp in gained
    )


def test_members_that_join_have_a_target_each_and_keep_their_tasks() -> None:
    plan = kr.plan(_group(), None, ["add-members=2", "remove-member=m0"])
    assert [one.generation_id for one in plan.rounds] == [8, 9, 10]
    every = [tp for owned in plan.after.values() for tp in owned]
    assert sorted(every) == sorted(tp for one in GROUP.members for tp in one.assigned.active)
    assert all(member.generation_id == 10 for member in plan.final.members)


def test_a_group_that_changes_nothing_keeps_its_tasks() -> None:
    plan = kr.plan(_group(), None, [])
    assert (plan.moves, plan.unavailable) == (0, {})
    assert note_kinds(plan) == ["tasks"]


def test_standby_replicas_need_as_many_processes() -> None:
    plan = kr.plan(_group(num_standby_replicas=2), None, [])
    assert "same place" in note_kinds(plan)


def test_a_bounce_restarts_threads_and_not_their_process() -> None:
    group = _group()
    assert "threads" not in note_kinds(kr.plan(group, None, ["bounce-members"]))
    first = group.members[0].streams
    assert first is not None
    together = tuple(
        replace(one, streams=one.streams and replace(one.streams, process_id=first.process_id))
        for one in group.members
    )
    one_process = group.edited(members=together)
    plan = kr.plan(one_process, None, ["bounce-members=*,dynamic"])
    (note,) = (one for one in broker_notes(plan) if one.kind == "threads")
    names = ", ".join(member.member_id for member in group.members)
    assert f"{names} are process {first.process_id}" in note.text
    # Each thread leaves, and comes back to its process, before the next thread leaves.
    assert [step.cause.split()[-1] for step in plan.steps[:2]] == ["leaves", "back"]
    assert "threads" not in note_kinds(kr.plan(one_process, None, ["add-members=1"]))


@pytest.mark.parametrize(
    "change", ["partitions t=9", "add-topics t=1", "remove-rack=a", "switch-assignor=sticky"]
)
def test_other_changes_are_refused(change: str, engine: Engine) -> None:
    with pytest.raises(kr.GroupError, match="plays only members that join, leave or restart"):
        kr.plan(_group(), None, [change], engine=engine)


def test_a_comparison_has_the_only_assignor() -> None:
    compared = kr.compare(_group(), ["remove-member=m1"])
    assert [one.assignor for one in compared.candidates] == ["streams/sticky"]


def test_a_description_counts_active_tasks() -> None:
    described = kr.describe(_group())
    assert (described.balance.least_to_most, described.findings) == ("2-3", ())
    bare = kr.describe(kr.GroupSpec.from_dict(VALID_STREAMS))
    assert [one.kind for one in bare.findings] == ["unread", "idle", "moves"]


def test_the_commands_show_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "group.jsonl"
    line = streams_line(GROUP, COUNTS.__getitem__, ONE)
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert main(["plan", str(file), "--add-members", "1"]) == 0
    printed = capsys.readouterr().out
    assert "standby tasks of" in printed
    assert "tasks: A partition of this plan is a task: 0[1] is task 0_1" in printed
    assert main(["plan", str(file), "--add-members", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert set(answer["steps"][0]["rounds"][0]["standby"]) == {"kept", "revoked", "gained"}
    assert sorted(answer["standby"]) == sorted(answer["assignment"])
    for command in (["describe"], ["compare", "--remove-members", "1"]):
        assert main([command[0], str(file), *command[1:]]) == 0
    assert main(["plan", str(file), "--output", str(tmp_path / "plan.html")]) == 0

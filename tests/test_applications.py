# SPDX-License-Identifier: Apache-2.0
"""Classic Kafka Streams applications from outside: recorded ones are replayed and planned."""

from __future__ import annotations

import copy
import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.applications.explanation import explain_task
from kafka_rebalance.applications.lines import read_application, read_assigned, uuid_text
from kafka_rebalance.applications.measured import Rates, measured_rates
from kafka_rebalance.applications.plan import plan_application
from kafka_rebalance.applications.prediction import FOLLOW_UP, NEW, running
from kafka_rebalance.applications.replayed import Replay, read_replay, replay
from kafka_rebalance.applications.topology import ThreadTasks
from kafka_rebalance.cli import main
from kafka_rebalance.errors import GroupError, NotAffected
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.history.patterns import Pattern
from kafka_rebalance.notes.applications import application_findings
from kafka_rebalance.notes.findings import see
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.present.description import describe
from kafka_rebalance.present.triage import TriagedGroup, with_patterns
from kafka_rebalance.simulator.from_application import application_run
from tests.support.recorded_applications import GIVEN, recorded_line, stable_numbers

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from kafka_rebalance.wire.streams_protocol import TaskId

CHANGES = Path(__file__).parent / "data" / "streams_classic_changes.jsonl.gz"
QUICK = CHANGES.with_name("streams_classic_quick.jsonl.gz")
RESTARTED_LATER = CHANGES.with_name("streams_classic_restarted.jsonl.gz")
TAGS = CHANGES.with_name("streams_classic_tags.jsonl.gz")
FIRST, JOINED, PROBED, STABLE, LEFT = 7, 10, 12, 15, 20
HOSTS = 31
ADD = parse_changes(["add-members=1"])
STATIC, RESTARTED, TAGGED = 42, (43, 44), 50
WITHHELD, UNREAD = (47, 52), 63


def _replayed(key: int, engine: Engine = "rust", given: dict[str, int] = GIVEN) -> Replay:
    field = recorded_line(key)["application"]
    return replay("shop", read_application(field), read_assigned(field), given, engine=engine)


def _group(key: int) -> GroupSpec:
    return GroupSpec.from_dict(recorded_line(key))


# The replay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [one for one in stable_numbers() if one not in WITHHELD])
def test_the_last_rebalance_is_played_again(key: int, engine: Engine) -> None:
    """Also with traffic, for which the recordings of static members have lag 5."""
    assert _replayed(key, engine).differing == ()


def test_the_leader_is_the_one_of_the_deadline() -> None:
    """The application's log names this process as the leader of the rebalance."""
    one = _replayed(LEFT)
    assert one.deadline is not None
    assert uuid_text(one.process_of(one.deadline[0])).startswith("164f9b9c")
    assert one.deadline[1] == 1795460875093


def test_warm_ups_are_found() -> None:
    assert [str(task) for _, task in _replayed(LEFT).warming()] == ["1_2"]


def test_without_settings_the_replay_finds_an_acceptable_lag() -> None:
    one = _replayed(LEFT, given={})
    assert one.problem is None
    assert one.application.settings.acceptable_recovery_lag == 0
    assert one.assumed()["acceptable.recovery.lag"] == "0 (chosen by the replay)"


def test_client_tags_and_source_changelogs_are_inferred() -> None:
    one = _replayed(TAGGED)
    assert one.application.settings.rack_aware_assignment_tags == ("zone",)
    assert one.application.settings.num_standby_replicas == 1
    assert one.application.subtopologies[3].source_changelog_topics == ("users",)


def test_a_wrong_setting_is_named() -> None:
    problem = _replayed(LEFT, given={"acceptable.recovery.lag": 10_000}).problem
    assert problem is not None
    assert "--acceptable-lag (10000)" in problem
    assert "StreamThread-1" in problem


@pytest.mark.parametrize("key", RESTARTED)
def test_a_process_of_static_members_that_restarted_since_is_named(key: int) -> None:
    one = _replayed(key)
    assert one.restarted is not None
    assert one.assumed()["restarted"].startswith(uuid_text(one.restarted))


def test_a_restart_is_tried_before_another_assignor() -> None:
    """In this recording a process restarted. Played without the restart, `legacy_sticky` would also
    produce the assignment that the broker has.
    """
    field = json.loads(gzip.decompress(RESTARTED_LATER.read_bytes()))["application"]
    given = GIVEN | {"acceptable.recovery.lag": 30}
    one = replay("app11", read_application(field), read_assigned(field), given)
    assert one.restarted is not None
    assert one.application.assignor == "high_availability"
    other = replay("app11", one.read, one.assigned, given | {"assignor": "legacy_sticky"})
    assert other.differing == ()


def test_no_other_recorded_process_has_restarted_since() -> None:
    others = {*stable_numbers()} - {*RESTARTED, *WITHHELD}
    assert all(_replayed(one).restarted is None for one in others)


@pytest.mark.parametrize("key", WITHHELD)
def test_withheld_topics_are_not_guessed(key: int) -> None:
    with pytest.raises(GroupError, match=r"clicks.*its subtopology is unknown"):
        _replayed(key)


@pytest.mark.parametrize("key", [31, 34, 35])
def test_a_plan_begins_with_the_offsets_of_now(key: int) -> None:
    """The leader read others, which only the replay of its call has."""
    field = recorded_line(key)["application"]
    assigned = read_assigned(field)
    one, later = (
        replay("shop", read, assigned, GIVEN)
        for read in (read_application(field), read_application(_grown(field)))
    )
    assert one.application.end_offsets == one.read.end_offsets
    assert later.application.end_offsets != later.read.end_offsets
    assert later.differing == ()
    calls = [plan_application(_group(key), each, ADD).likeliest.calls[0] for each in (one, later)]
    behind = [[copy.records for copy in call.warming] for call in calls]
    assert max(behind[0]) < 1_000_000 <= min(behind[1])


def _grown(field: Any) -> Any:
    """Returns the field as if each changelog partition had a million records more."""
    ends = {topic: [n + 1_000_000 for n in of] for topic, of in field["end_offsets"].items()}
    return field | {"end_offsets": ends}


# Plans --------------------------------------------------------------------------------------------


def _ends(one: Any) -> list[dict[str, ThreadTasks]]:
    """Returns the tasks after the change and after each probing rebalance, with follow-ups."""
    ends: list[dict[str, ThreadTasks]] = []
    for call in one.calls:
        ends[len(ends) - (call.cause == FOLLOW_UP) :] = [call.tasks]
    return ends


def test_a_join_goes_as_recorded(engine: Engine) -> None:
    """The change and two probing rebalances, all threads each."""
    joined = _replayed(JOINED)
    run = running(_replayed(FIRST), lambda *_: 0, engine=engine)
    new = [one for one in joined.application.threads if one.member_id not in run.tasks]
    run.join(
        one._replace(owned_partitions=(), info=one.info._replace(task_offset_sums=()))
        for one in new
    )
    assert run.settle("join", 0)
    recorded = [_replayed(key) for key in (JOINED, PROBED, STABLE)]
    assert _ends(run) == [one.tasks for one in recorded]


def test_a_process_that_is_gone_goes_as_recorded(engine: Engine) -> None:
    left = {one.member_id for one in _replayed(LEFT).application.threads}
    before = _replayed(STABLE)
    gone = next(o.info.process_id for o in before.application.threads if o.member_id not in left)
    changes = parse_changes([f"remove-member={uuid_text(gone)[:6]}"])
    planned = plan_application(_group(STABLE), before, changes, session_ms=10_000, engine=engine)
    (course,) = planned.courses
    assert _ends(course)[0] == _replayed(LEFT).tasks
    assert [call.waited_ms for call in course.calls] == [10_000, 0, 60_000, 0]
    assert {str(copy.task): copy.records for copy in course.calls[0].restored} == {
        "1_0": 837,
        "3_2": 307,
    }


def test_a_new_process_has_a_course_for_each_rank() -> None:
    planned = plan_application(_group(FIRST), _replayed(FIRST), parse_changes(["add-members=2"]))
    assert len(planned.courses) == 3
    assert sum(one.probability for one in planned.courses) == pytest.approx(1)
    assert {str(task) for task in planned.common()} == {"0_1", "0_2", "1_2", "1_3"}
    real = next(
        rank
        for rank, one in enumerate(_replayed(JOINED).processes())
        if one not in _replayed(FIRST).processes()
    )
    ends = _ends(planned.courses[real])
    recorded = _replayed(STABLE).tasks
    there = {one.member_id for one in _group(FIRST).members}
    assert {k: v for k, v in ends[-1].items() if k in there} == {
        k: v for k, v in recorded.items() if k in there
    }


def test_a_slow_restore_takes_more_probing_rebalances() -> None:
    changes = parse_changes(["add-members=2"])
    fast = plan_application(_group(FIRST), _replayed(FIRST), changes)
    slow = plan_application(_group(FIRST), _replayed(FIRST), changes, restore_rate=5)
    assert slow.likeliest.probings > fast.likeliest.probings


def test_static_processes_restart_without_a_rebalance() -> None:
    key = STATIC
    changes = parse_changes(["bounce-members=*,away=5s"])
    assert plan_application(_group(key), _replayed(key), changes).likeliest.calls == ()
    longer = plan_application(_group(key), _replayed(key), changes, session_ms=2_000)
    assert [one.cause.split()[-1] for one in longer.likeliest.calls if one.waited_ms] == [
        "away",
        "restarts",
    ] * 2


def test_a_process_comes_back_between_two_probing_rebalances() -> None:
    """The others probe at 105 s and 165 s, and the process is back at 180 s, whatever is due."""
    given = parse_changes(["bounce-members=164f,away=3m"])
    course = plan_application(_group(STABLE), _replayed(STABLE), given, restore_rate=5).likeliest
    assert [(one.cause.split()[-1], one.waited_ms) for one in course.calls if one.waited_ms] == [
        ("away", 45_000),
        ("probing", 60_000),
        ("probing", 60_000),
        ("restarts", 15_000),
    ]


def test_other_changes_are_declined() -> None:
    one = _group(FIRST), _replayed(FIRST)
    with pytest.raises(GroupError, match=r"changes\[1\]: not planned"):
        plan_application(*one, parse_changes(["remove-members=1", "partitions orders=9"]))
    with pytest.raises(NotAffected, match=r"changes\[0\]"):
        plan_application(*one, parse_changes(["remove-member=nobody"]))
    with pytest.raises(GroupError, match="not a setting of the leader"):
        plan_application(*one, (), {"num.stream.threads": "2"})


def _changed(before: Replay, after: Replay) -> tuple[str, int] | None:
    """Returns the change between two replays, and the rank of the process that joined or 0."""
    old, new = ({one.member_id for one in each.application.threads} for each in (before, after))
    if old == new:
        return None
    if joined := new - old:
        place = after.process_of(min(joined))
        return f"add-members={len(joined)}", [*after.processes()].index(place)
    return f"remove-member={uuid_text(before.process_of(min(old - new)))}", 0


def test_changes_of_real_applications_go_as_planned(engine: Engine) -> None:
    """Recorded by `python -m tests.streams_classic_live --seed 2`: each rebalance, to the last."""
    with gzip.open(CHANGES, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    compared = []
    for group_id in dict.fromkeys(line["group_id"] for line in lines):
        left: list[dict[str, ThreadTasks]] = []
        before: Replay | None = None
        group = GroupSpec.from_dict(next(one for one in lines if one["group_id"] == group_id))
        for line in (one for one in lines if one["group_id"] == group_id):
            field = line["application"]
            read, sent = read_application(field), read_assigned(field)
            after = replay(group_id, read, sent, GIVEN, engine=engine)
            assert after.problem is None
            if before is not None and (made := _changed(before, after)):
                there = before.tasks
                planned = plan_application(group, before, parse_changes([made[0]]), engine=engine)
                left = _ends(planned.courses[made[1]])
            if left:
                present, expected = after.tasks, left.pop(0)
                made_up, new = (sorted(of.keys() - there.keys()) for of in (expected, present))
                renamed = dict(zip(made_up, new, strict=True))
                assert {renamed.get(one, one): of for one, of in expected.items()} == present
                assert bool(left) == (after.deadline is not None)
                compared.append(group_id)
            before, group = after, GroupSpec.from_dict(line)
    assert len(compared) == 17


def test_applications_with_client_tags_go_as_planned() -> None:
    """Recorded by `python -m tests.streams_classic_live --seed 9`: three applications in two zones.

    The tags decide where standby tasks are: without them, the leader would mostly answer otherwise.
    """
    pytest.importorskip("kafka")
    from tests.streams_classic_live.judge import judged_again

    with gzip.open(TAGS, "rt", encoding="utf-8") as file:
        found = judged_again(file)
    assert (found.changes, found.told_standby) == (6, found.compared), found.lines
    assert (found.right_ends, found.right_lengths) == (found.ends, found.ends)
    assert (found.decided, found.tagged) == (13, 16)


# The commands -------------------------------------------------------------------------------------


def _run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = main([*map(str, args)])
    return code, *capsys.readouterr()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.jsonl"
    path.write_text(json.dumps(recorded_line(LEFT)) + "\n")
    return path


def test_describe(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "describe", file)
    assert code == 0
    assert out.startswith(
        "shop: 2 processes, 4 threads, 14 tasks (7 stateful), each with a thread."
    )
    assert "2026-11-23 19:07:55 UTC, by process 164f9b9c" in " ".join(out.split())
    assert "Waiting: 1_2, from 164f9b9c to 0420a007, which was up to 863 records behind" in out
    assert "Checked: the last rebalance, played again, has the present assignment." in out
    code, out, _ = _run(capsys, "describe", file, "--json")
    application = json.loads(out)["application"]
    assert application["next_rebalance_ms"] == 1795460875093
    assert application["problem"] is None


def test_tasks_that_nobody_reads_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "withheld.jsonl"
    path.write_text(json.dumps(recorded_line(UNREAD)), encoding="utf-8")
    told = " ".join(_run(capsys, "describe", path)[1].split())
    assert "stateful), 1 read by nobody. It is about to rebalance again" in told
    assert "Read by nobody until the next rebalance: 2_1." in told


def test_the_session_of_the_properties_counts(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = tmp_path / "shop.properties"
    properties.write_text("acceptable.recovery.lag=5\nmain.consumer.session.timeout.ms=10000\n")
    given = "plan", file, "--remove-member", "0420", "--streams-config", properties
    assert "after 10 s, nobody reads" in " ".join(_run(capsys, *given)[1].split())
    more = "--session-timeout", 20
    assert "after 20 s, nobody reads" in " ".join(_run(capsys, *given, *more)[1].split())


def test_plan(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = tmp_path / "shop.properties"
    properties.write_text("acceptable.recovery.lag=5\nbootstrap.servers=b\n")
    settings = ("--streams-config", properties)
    code, out, _ = _run(capsys, "plan", file, *settings, "--remove-member", "0420")
    assert code == 0
    assert out.startswith("shop, remove-member=0420: 7 of 14 tasks move to another process; until")
    code, out, _ = _run(capsys, "plan", file, *settings, "--add-members", "1", "--json")
    assert code == 0
    assert len(json.loads(out)["courses"]) == 3
    code, out, error = _run(capsys, "plan", file, "--acceptable-lag", "10000")
    assert code != 0
    assert "Name the settings of the application" in error


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("members", 0, "user_data"), "?", r"application.members\[0\].user_data"),
        (("members", 0, "user_data"), "AAAACw==", r"application.members\[0\].user_data"),
        (("members", 1, "owned_partitions"), [["t"]], r"members\[1\].owned_partitions\[0\]: not a"),
        (("topics",), None, r"application.topics: missing"),
        (("now_ms",), -1, r"application.now_ms: -1 is not"),
        (("end_offsets",), {"t": "x"}, r"application.end_offsets.t: a string is not a list"),
        (("configs",), {"max.warmup.replicas": "x"}, r"application.configs.max.warmup.replicas"),
        (("assignor",), "range", "application.assignor"),
        (("assigned",), {}, "needs one entry for each of its members"),
        (("error",), "no permission", "not read from the cluster: no permission"),
    ],
)
def test_a_wrong_field_is_named(
    path: tuple[Any, ...],
    value: object,
    problem: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`describe` still shows the group."""
    line = copy.deepcopy(recorded_line(LEFT))
    place = line["application"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    file = tmp_path / "shop.jsonl"
    file.write_text(json.dumps(line))
    code, out, error = _run(capsys, "describe", file)
    assert code == 0
    assert "shop, stream, generation" in out
    assert re.search(problem, error), error
    code, _, error = _run(capsys, "plan", file, "--add-members", "1")
    assert code != 0
    assert re.search(problem, error), error


def _read(line: dict[str, Any], engine: Engine) -> Replay:
    read, sent = read_application(line["application"]), read_assigned(line["application"])
    return replay(line["group_id"], read, sent, GIVEN, engine=engine)


def _owners(one: Replay, there: set[str]) -> dict[TaskId, str]:
    """Returns the process of each active task; NEW for one without a member in `there`."""
    tasks = one.tasks
    return {
        task: NEW if there.isdisjoint(of) else uuid_text(process_id)
        for process_id, of in one.processes().items()
        for member_id in of
        for task in tasks[member_id].active
    }


def test_copies_restored_before_follow_ups_are_told_before(engine: Engine) -> None:
    """Recorded by `python -m tests.streams_classic_live --seed 3`: applications whose copies, of 60
    records, were restored before some follow-ups and not before others.

    After each rebalance, each stateful task is where the plan or its quick course has it; in the
    end, all tasks are as planned, after as many probing rebalances as told.
    """
    with gzip.open(QUICK, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    between = 0
    starts = [i for i, line in enumerate(lines) if "change" in line]
    for start, end in zip(starts, [*(i - 1 for i in starts[1:]), len(lines)], strict=True):
        before, group = _read(lines[start - 1], engine), GroupSpec.from_dict(lines[start - 1])
        changes = parse_changes([lines[start]["change"]])
        planned = plan_application(group, before, changes, session_ms=6_000, engine=engine)
        looks = [_read(line, engine) for line in lines[start + 1 : end]]
        there = {one.member_id for one in group.members}
        new = [one for one, of in looks[0].processes().items() if there.isdisjoint(of)]
        course = planned.courses[[*looks[0].processes()].index(new[0]) if new else 0]
        quick = course.quick or course
        for phase, look in enumerate(looks):
            owners = _owners(look, there)
            bounds = course.owners(phase), quick.owners(phase)
            for task in look.topology.stateful:
                assert owners[task] in [of[task] for of in bounds]
            between += owners not in bounds
        assert owners == course.after
        assert len(quick.phases) <= len(looks) <= len(course.phases)
    assert between


# Findings -----------------------------------------------------------------------------------------


def _findings(one: Replay) -> dict[str, str]:
    return {note.kind: f"{note.text} {note.partitions}" for note in application_findings(one)}


def _with_infos(one: Replay, **changed: Any) -> Replay:
    """Returns a replay in which the first process has other user data."""
    first = min(each.info.process_id for each in one.application.threads)
    threads = tuple(
        each._replace(info=each.info._replace(**changed)) if each.info.process_id == first else each
        for each in one.application.threads
    )
    return one._replace(application=one.application._replace(threads=threads))


def test_a_final_application_has_no_finding() -> None:
    assert _findings(_replayed(STABLE)) == {}


def test_copies_that_are_behind_are_found() -> None:
    found = _findings(_replayed(LEFT))
    assert found.keys() == {"behind"}
    assert found["behind"].startswith("up to 863 records missing where these tasks belong")
    assert "before the last rebalance" not in found["behind"]
    assert "before the last rebalance: 1_1" in _findings(_replayed(JOINED))["behind"]


def test_uneven_threads_are_found() -> None:
    text = _findings(_replayed(JOINED))["uneven"]
    assert text.startswith("1 to 3 active tasks per thread; tasks wait until the processes")
    text = _findings(_replayed(PROBED))["uneven"]
    assert text.startswith("0 to 2 stateful tasks per thread; tasks wait until the processes")


def test_missing_standby_tasks_are_found() -> None:
    found = _findings(_replayed(LEFT, given=GIVEN | {"num.standby.replicas": 2}))
    assert found["no standby"].startswith("if the process of these tasks ends, their state has to")
    assert "num.standby.replicas 2 needs 3 processes" in found["no standby"]
    assert "no standby" not in _findings(_replayed(TAGGED))


def test_wrong_end_points_are_found() -> None:
    one = _replayed(HOSTS)
    assert "end points" not in _findings(one)
    ids = [uuid_text(process_id) for process_id in one.processes()]
    last = max(one.application.threads, key=lambda each: each.info.process_id)
    other = last.info.user_end_point
    assert ids[0] in _findings(_with_infos(one, user_end_point=b""))["end points"]
    shared = _findings(_with_infos(one, user_end_point=other))
    assert "several processes have the same" in shared["end points"]


def test_warm_ups_that_more_is_written_to_than_is_restored_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two readings, or by the records of `history`: three probings that moved nothing."""
    one = _replayed(LEFT)
    (found,) = (
        n for n in application_findings(one, Rates(5, 7, False, (0, 1))) if n.kind != "behind"
    )
    assert (found.kind, see(found.kind)) == ("never warm", "docs/findings.md#never-warm")
    assert found.text.startswith("a copy restores 5 records a second, and up to 7 are written")
    assert {n.kind for n in application_findings(one, Rates(7, 5, False, (0, 1)))} == {"behind"}
    pattern = Pattern("never warm", "shop", "4 probing rebalances", "", (1, 2, 3, 4), 0, 1)
    (triaged,) = with_patterns([TriagedGroup.of(describe(_group(LEFT)))], [pattern])
    assert "never warm" in {note.kind for note in triaged.findings}
    paths = [tmp_path / f"{number}.jsonl" for number in (JOINED, PROBED)]
    for path, number in zip(paths, (JOINED, PROBED), strict=True):
        path.write_text(json.dumps(recorded_line(number)), encoding="utf-8")
    given = ["check", paths[1], "--acceptable-lag", 5, "--fail-on", "never warm", "--since"]
    assert _run(capsys, *given, paths[0])[0] == 0  # 13 records a second are restored, none written
    code, _, error = _run(capsys, *given, paths[1])
    assert (code, "since: no copy of a task's state has restored" in error) == (0, True)


def test_check(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "check", file, "--acceptable-lag", 5, "--fail-on", "behind")
    assert code == 4
    assert "FAILS  info     shop: behind: up to 863 records missing" in out
    code, out, _ = _run(capsys, "describe", file)
    assert code == 0
    assert "kafka-rebalance explain 1_2" in out


# Explanations -------------------------------------------------------------------------------------


def _explained(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    code, out, _ = _run(capsys, "explain", *args)
    assert code == 0
    return " ".join(out.split())


def test_a_task_that_waits_is_explained(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = _explained(capsys, "1_2", file)
    assert out.startswith(
        "shop: 1_2 is at 164f9b9c, not yet at 0420a007, where it belongs: 0420a007 was 863 records "
        "behind in the last rebalance, over 0 (acceptable.recovery.lag)."
    )
    assert "It warms up at 0420a007." in out
    assert "moves at the probing rebalance of 2026-11-23 19:07:55 UTC, if 0420a007 restores" in out
    slow = _explained(capsys, "1_2", file, "--acceptable-lag", 5, "--restore-rate", 1)
    assert "19:07:55 UTC" not in slow  # 858 records take longer than the interval
    assert "It moves at the probing rebalance of 2026-11-23 19:17:55 UTC, after 1 other" in slow
    never = _explained(capsys, "1_2", file, "--restore-rate", 5, "--write-rate", 5)
    assert "It never moves: 0420a007 is not caught up in any of the next 200 probing" in never


def test_other_tasks_are_explained(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _explained(capsys, "clicks-0", file).startswith(
        "shop: 2_0 is at 164f9b9c, where it belongs. It has no state, so previous owners do not"
    )
    assert json.loads(_explained(capsys, "1_2", file, "--json"))["task"] == [1, 2]
    left = _explained(capsys, "1_0", file, "--acceptable-lag", 5, "--remove-member", "0420")
    assert "remove-member=0420: 2 rebalances 1_0: 0420a007 -> 164f9b9c restored before" in left
    code, _, error = _run(capsys, "explain", "9_9", file)
    assert code != 0
    assert '"9_9" is not a task such as 0_0' in error


def test_a_process_without_positions_does_not_warm_up() -> None:
    """Threads of Kafka Streams 2.5 send no positions: their unknown lag counts as the smallest."""
    one = _replayed(LEFT)
    ((ideal, task),) = one.warming()
    sent: dict[str, Any] = {"version": 6, "task_offset_sums": (), "standby_tasks": (task,)}
    threads = tuple(
        each._replace(info=each.info._replace(**sent)) if each.info.process_id == ideal else each
        for each in one.application.threads
    )
    old = one._replace(application=one.application._replace(threads=threads))
    planned = plan_application(_group(LEFT), old)
    assert planned.likeliest.owners(0)[task] == uuid_text(ideal)
    assert planned.likeliest.probings == 1
    assert "Such a lag counts as the smallest" in explain_task(planned, str(task)).reasons[2]


def test_settings_are_compared(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process ends: with a standby of each task, nothing is restored before tasks run."""
    given = ["compare", str(file), "--acceptable-lag", "5", "--remove-member", "0420"]
    assert main(given) == 0
    assert "num.standby.replicas=1 leaves 0 of" in capsys.readouterr().out
    assert main([*given, "--json", "--new-setting", "num.standby.replicas=1"]) == 0
    now, standby = json.loads(capsys.readouterr().out)["settings"]
    assert now["new_settings"] == {}
    assert standby["new_settings"] == {"num.standby.replicas": "1"}
    assert sum(one["records"] for one in now["restored"]) > 0
    assert standby["restored"] == []
    assert now["settled_after_ms"] == standby["settled_after_ms"] == 45_000


def test_settings_without_a_change_are_those_of_their_way(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(file), "--json", "--new-setting", "num.standby.replicas=1"]) == 0
    now, standby = json.loads(capsys.readouterr().out)["settings"]
    assert now["standby_tasks"] == 0
    assert standby["standby_tasks"] == 7  # one of each stateful task
    # Warm-ups that never end are no standby tasks; a standby where its task belongs is one.
    rates = ["--restore-rate", "1", "--write-rate", "2", "--acceptable-lag", "5"]
    given = ["compare", str(file), *rates, "--json", "--new-setting", "num.standby.replicas=1"]
    assert main(given) == 0
    now, standby = json.loads(capsys.readouterr().out)["settings"]
    assert (now["settled"], now["standby_tasks"]) == (False, 0)
    assert (standby["settled"], standby["standby_tasks"]) == (False, 7)
    assert main(["compare", str(file), "--new-setting", "num.standby=1"]) == 3
    assert "new_settings.num.standby: not a setting of the leader" in capsys.readouterr().err
    for command, wrong in (("compare", ""), ("plan", ""), ("plan", "=1"), ("compare", "A")):
        with pytest.raises(SystemExit, match="2"):
            main([command, str(file), "--new-setting", wrong])
        assert f'--new-setting: "{wrong}" is not NAME=VALUE' in capsys.readouterr().err


def test_settings_that_end_probing_are_named(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = ["--restore-rate", 1, "--write-rate", 2]
    told = " ".join(_run(capsys, "compare", file, *rates)[1].split())
    assert told.startswith("shop: as now, it is never stable; num.standby.replicas=1 has 7 standby")
    assert "acceptable.recovery.lag=10000 is stable at once, restores 863 records before" in told
    setting = ["--new-setting", "rack.aware.assignment.strategy=min_traffic"]
    told = " ".join(_run(capsys, "compare", file, *setting)[1].split())
    assert told.startswith("shop: no other setting changes any of these figures.")


def test_rates_are_measured_between_two_readings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two probing rebalances of an application without traffic: 863 records in 63 s, at least."""
    paths = [tmp_path / name for name in ("then.jsonl", "now.jsonl")]
    for path, number in zip(paths, (10, 12), strict=True):
        path.write_text(json.dumps(recorded_line(number)), encoding="utf-8")
    properties = tmp_path / "shop.properties"
    properties.write_text("acceptable.recovery.lag=5\nprobing.rebalance.interval.ms=60000\n")
    given = ["--streams-config", str(properties), "--since"]
    assert main(["plan", str(paths[1]), *given, str(paths[0])]) == 0
    told = capsys.readouterr().err
    assert "a copy restores at least 13 records a second" in told
    assert "up to 0 records a second are written" in told
    assert main(["plan", str(paths[0]), *given, str(paths[1])]) == 3
    assert "since: no copy of a task's state has restored records" in capsys.readouterr().err
    # Other lines of the earlier file do not matter; a wrong line of the group is named.
    whole = paths[0].read_text(encoding="utf-8")
    others = '[1]\n{\n{"group_id": "shop"}\n{"group_id": "another", "application": 1}\n'
    paths[0].write_text(others + whole, encoding="utf-8")
    assert main(["plan", str(paths[1]), *given, str(paths[0])]) == 0
    assert capsys.readouterr().err == told
    for text, problem in (
        (others, "has no line of the application"),
        ('{"group_id": "shop", "application": []}', "application: a list is not an object"),
    ):
        paths[0].write_text(text, encoding="utf-8")
        assert main(["plan", str(paths[1]), *given, str(paths[0])]) == 3
        assert problem in capsys.readouterr().err


def test_equal_probing_rebalances_are_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "left.json"
    path.write_text(json.dumps(recorded_line(LEFT)), encoding="utf-8")
    given = ["plan", path, "--acceptable-lag", 5, "--restore-rate"]
    code, told, _ = _run(capsys, *given, 1, "--write-rate", 2)
    assert code == 0
    assert "after 200 probing rebalances in 2000 min, it is not stable" in " ".join(told.split())
    assert told.count("probing: 1 rebalance") == 1
    assert "\nand so on, every 10 min, without an end\n" in told
    properties = tmp_path / "shop.properties"
    properties.write_text("acceptable.recovery.lag=5\nprobing.rebalance.interval.ms=60000\n")
    given = ["plan", path, "--streams-config", properties, "--restore-rate", 1]
    _, told, _ = _run(capsys, *given)
    assert (found := re.search(r"\nand so on: (\d+) more rebalances like it\n", told))
    assert "without an end" not in told
    told = _run(capsys, *given, "--all")[1]
    assert told.count("probing: 1 rebalance") == int(found[1]) + 1


def test_rates_with_traffic() -> None:
    """The warm-ups were caught up; some 27 records a second were written for the busiest task."""
    then, now = (recorded_line(number)["application"] for number in (50, 60))
    rates = measured_rates("shop", then, read_replay("shop", now, GIVEN))
    assert (rates.restore_rate, rates.write_rate, rates.is_bound) == (50, 27, True)


# The simulator ------------------------------------------------------------------------------------


def test_a_process_that_ends_is_simulated(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """45 s of its session, two rebalances of 3 s each, and then 837 records at 20 a second."""
    given = ["simulate", "--from", file, "--acceptable-lag", 5, "--remove-member", "0420"]
    code, out, _ = _run(capsys, *given, "--restore-rate", 20)
    assert code == 0
    told = " ".join(out.split())
    assert told.startswith(
        "shop: removing 0420: stable after 1 min 30 s, without a probing rebalance; 9 tasks "
        "idle for up to 1 min 30 s."
    )
    assert "1_0 164f9b9c restored first 837 1 min 30 s" in told
    code, out, _ = _run(capsys, *given, "--restore-rate", 20, "--json")
    run = json.loads(out)
    longest = max(run["gaps"], key=lambda gap: gap["to_ms"])
    assert (longest["partition"], longest["from_ms"]) == ("1_0", 10_000)
    assert longest["to_ms"] == 10_000 + 45_000 + 3_000 + 837_000 // 20
    assert [one["rounds"] for one in run["rebalances"]] == [1, 2]
    assert run["plan"]["changes"] == ["remove-member=0420"]
    code, _, error = _run(capsys, *given)
    assert code == 2
    assert "--restore-rate: missing; copies of state have up to 837 records" in error


def test_warm_ups_are_simulated(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["simulate", "--from", file, "--restore-rate", 1]
    page = tmp_path / "run.html"
    out = " ".join(_run(capsys, *given, "--output", page)[1].split())
    assert "stable after 20 min 9 s, after 2 probing rebalances" in out
    assert "1_2 0420a007 warms up 263 20 min 9 s" in out
    assert "who holds each task over time" in page.read_text(encoding="utf-8")
    out = " ".join(_run(capsys, *given, "--write-rate", 2)[1].split())
    assert "never stable: after 200 probing rebalances" in out
    assert "copies of 1_2 are up to 120,863 records behind" in out
    with pytest.raises(SystemExit):
        _run(capsys, *given, "--seeds", 3)
    assert "--seeds: not with a classic Kafka Streams application" in capsys.readouterr().err


def test_changes_are_simulated_in_their_order() -> None:
    """A process ends, 45 s later the other rebalances, and then it restarts as a static one."""
    changes = parse_changes(["remove-member=0420", "bounce-members=164f,static,away=5s"])
    run = application_run(plan_application(_group(LEFT), _replayed(LEFT), changes, restore_rate=20))
    told = [(one.kind.value, one.member, one.at_ms) for one in run.happenings]
    assert told == [
        ("kill", "0420a007", 10_000),
        ("stop", "164f9b9c", 61_000),
        ("start", "164f9b9c", 66_000),
    ]


def test_options_of_applications_need_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plain.jsonl"
    line = recorded_line(LEFT) | {"assignor": "range"}
    path.write_text(json.dumps(line), encoding="utf-8")
    for option in ("--standbys", "--restore-rate", "--session-timeout"):
        with pytest.raises(SystemExit):
            _run(capsys, "simulate", "--from", path, option, 1)
        error = capsys.readouterr().err
        assert f"{option}: only with a classic Kafka Streams application" in error


def test_static_processes_are_idle_while_they_are_away() -> None:
    changes = parse_changes(["bounce-members=*,away=5s"])
    run = application_run(plan_application(_group(STATIC), _replayed(STATIC), changes))
    assert [gap.to_ms - gap.from_ms for gap in run.gaps] == [5_000] * 14
    assert len(run.rebalances) == 1  # the one before

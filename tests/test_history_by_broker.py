# SPDX-License-Identifier: Apache-2.0
"""The history of groups whose broker assigns: in a real run with known causes, which `python -m
tests.history_live --by-broker FILE` recorded; in runs of Kafka's coordinator; in virtual time.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance import live
from kafka_rebalance.cli import main
from kafka_rebalance.errors import GroupError
from kafka_rebalance.history import (
    Cause,
    Revocation,
    counterfactuals,
    find_patterns,
    read_records,
    rebalance_history,
    recorded_generations,
    replay,
)
from tests.history_live.by_broker import (
    BOTH,
    as_line,
    judged,
    read_lines,
    read_script,
    read_sessions,
)
from tests.history_live.judge import RIGHT
from tests.support.played_log import PlayedLog, records_in, topics_in
from tests.support.recorded_runs import recorded

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from kafka_rebalance.history import RecordedGeneration
    from kafka_rebalance.history.records import OffsetsRecord

RUN = Path(__file__).parent / "data" / "history_by_broker.jsonl.gz"
SESSIONS = read_sessions(RUN)


@pytest.mark.parametrize("with_lines", [False, True])
def test_causes_of_a_real_run(with_lines: bool) -> None:
    """Java, librdkafka, share consumers and Kafka Streams; a share group's leaves need the log."""
    lines = read_lines(RUN) if with_lines else ()
    found = [*judged(list(read_records(str(RUN))), read_script(RUN), SESSIONS, lines)]
    print(*(one for one in found if one.told), sep="\n")
    assert len(found) == 72
    verdicts = Counter(one.how for one in found)
    assert verdicts == ({RIGHT: 72} if with_lines else {RIGHT: 70, BOTH: 2})
    assert {one.group for one in found if one.how == BOTH} <= {"share"}


def test_each_target_of_a_real_run_is_computed_again(engine: Engine) -> None:
    generations = [
        one for _, one in recorded_generations(read_records(str(RUN))) if one is not None
    ]
    found = replay([one for one in generations if one.group_type != "classic"], engine=engine)
    assert [one for one in found if not one.equal] == []
    assert Counter(one.protocol for one in found) == {
        "consumer/uniform": 41,
        "consumer/range": 2,
        "share/simple": 9,
        "streams/sticky": 9,
    }


def test_moves_are_those_of_targets_and_each_answer_of_a_member_is_timed() -> None:
    rows = rebalance_history(read_records(str(RUN)), session_ms=SESSIONS)
    epochs = [row for row in rows if row.group_type != "classic"]
    owned: Counter[str] = Counter()
    for row in epochs:
        # The first assignment of a converted group is that of the classic group.
        if row.group_id not in ("converted", "share"):
            owned[row.group_id] += row.gained - row.revoked
            assert owned[row.group_id] == row.partitions
    revocations = [one for row in epochs for one in row.revocations]
    assert revocations
    assert all(one.took_ms is None or 0 <= one.took_ms < 10_000 for one in revocations)
    assert sum(row.reconciled_ms is not None for row in epochs) > len(epochs) / 2
    assert any(row.between_ms for row in epochs if row.group_type == "streams")
    assert not any(row.revocations or row.between_ms for row in epochs if row.group_id == "share")


@pytest.mark.parametrize("group", ["mixed", "share", "streams"])
def test_the_command_shows_the_epochs_of_a_group(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(RUN), "--group", group]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"{group}: ")
    assert "epoch" in text
    assert ("slowest to revoke" in text.lower()) == (group != "share")


def test_members_have_names_that_begin_with_their_client_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their ids are UUIDs that they chose, which name nobody."""
    assert main(["history", str(RUN), "--group", "java"]) == 0
    text = capsys.readouterr().out
    assert " left? (java-1-opW8)\n" in text
    assert "slowest to revoke: java-0-rJBQ, 6 partitions" in text
    assert "rJBQvUGZRR67qyIe8PMsYQ" not in text
    page = tmp_path / "history.html"
    assert main(["history", str(RUN), "--output", str(page)]) == 0
    assert ": left? (java-1-opW8)" in page.read_text(encoding="utf-8")
    rows = rebalance_history(read_records(str(RUN)), session_ms=SESSIONS)
    assert all(row.clients for row in rows if row.group_type == "consumer" and row.joined)


def test_sessions_are_read_from_the_brokers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A share group's member was killed: with a session of 45 s, it would have left."""
    told = {}
    for sessions in ({}, SESSIONS):
        monkeypatch.setattr(live, "group_sessions", lambda *_, found=sessions, **__: found)
        monkeypatch.setattr(
            live, "offsets_records", lambda *_, **__: iter(sorted(read_records(str(RUN))))
        )
        assert main(["history", "--bootstrap-server", "b:1", "--group", "share"]) == 0
        told[bool(sessions)] = " ".join(capsys.readouterr().out.split())
    assert " left? (share-17-fUFQ)" in told[False]
    assert " left or timed out (share-17-fUFQ)" in told[True]


def test_settings_of_a_group_are_its_session() -> None:
    pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")
    from kafka_rebalance.testing import RunningBroker
    from tests.support.served_broker import _JOINS, connection

    with RunningBroker({"orders": 1}) as broker:
        connection(broker).ask("consumer_group_heartbeat", 1, **_JOINS)
        assert live.group_sessions(broker.address) == {"h": 45_000}
        broker.configure("h", {"consumer.session.timeout.ms": "50000"})
        assert live.group_sessions(broker.address, "h") == {"h": 50_000}
        assert live.group_sessions(broker.address, "other") == {}


# Virtual time -------------------------------------------------------------------------------------


@pytest.fixture
def log() -> PlayedLog:
    """A coordinator with a topic; member A of group g has its four partitions."""
    log = PlayedLog()
    log({"op": "topics", "topics": {"t": 4}})
    log.beat("A", 0)
    log.wait(2_000)
    return log


def _asked_to_revoke(log: PlayedLog, **joins: Any) -> None:
    log.beat("B", 0, **joins)
    log.wait(3_000)
    log.beat("A", 2, owned={"t": [0, 1, 2, 3]})


def test_the_times_of_a_move(log: PlayedLog) -> None:
    _asked_to_revoke(log)
    log.wait(700)
    log.beat("A", 2, owned={"t": [0, 1]})
    log.wait(1_500)
    log.beat("B", 3)
    row = rebalance_history(log.records)[-1]
    assert row.revocations == (Revocation("A", 2, 700),)
    assert (row.between_ms, row.reconciled_ms) == (1_500, 5_200)
    assert (row.cause, row.joined, row.moved) == ("joined", ("B",), 2)


def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    log = PlayedLog()
    log({"op": "topics", "topics": {"t": 4}})
    log.beat("A", 0, rt=4_000)
    log.wait(2_000)
    _asked_to_revoke(log)
    for _ in range(5):
        log.wait(1_000)
        log.beat("A", 2, owned={"t": [0, 1, 2, 3]})
    row = rebalance_history(log.records)[-1]
    assert (row.cause, row.left) == ("timed out", ("A",))
    assert "did not within 4.0 s" in row.causes[0].detail


@pytest.mark.parametrize(("last_ms", "cause"), [(44_000, "left"), (1_000, "timed out")])
def test_commits_tell_an_expired_session_from_a_leave(
    log: PlayedLog, last_ms: int, cause: str
) -> None:
    """Member A commits until `last_ms` before it is gone, and B all the time, each second."""
    log.beat("B", 0)
    log.wait(1_000)
    log.beat("A", 2, owned={"t": [0, 1]})
    epoch = 3
    for second in range(60):
        log.wait(1_000)
        epoch = log.beat("B", epoch)["epoch"]
        log.commit("B", epoch, 2, second)
        if second * 1_000 <= last_ms:
            log.beat("A", 3)
            log.commit("A", 3, 0, second)
        elif cause == "left" and epoch == 3:
            log.beat("A", -1)
    row = rebalance_history(log.records)[-1]
    assert (row.cause, row.left) == (cause, ("A",))


@pytest.mark.parametrize("op", ["chb", "shb"])
def test_a_leave_and_an_expired_session_without_commits_have_equal_records(op: str) -> None:
    """So nobody can tell them apart by records, and the cause names both."""

    def play(*, leaves: bool) -> list[OffsetsRecord]:
        log = PlayedLog()
        log({"op": "topics", "topics": {"t": 4}})
        epochs = {}
        for member in "AB":
            epochs[member] = log.beat(member, 0, op)["epoch"]
            log.wait(1_500)
        epochs["A"] = log.beat("A", epochs["A"], op)["epoch"]
        for _ in range(45):
            for member in "AB" if leaves else "B":
                epochs[member] = log.beat(member, epochs[member], op)["epoch"]
            log.wait(1_000)
        if leaves:
            log.beat("A", -1, op)
        return log.records

    left, expired = play(leaves=True), play(leaves=False)
    assert left == expired
    row = rebalance_history(left)[-1]
    assert (row.cause, row.left) == ("gone", ("A",))
    assert row.causes[0].detail == "left or timed out: it never committed"


@pytest.mark.parametrize(("back_s", "cause"), [(5, "left"), (20, "gone")])
def test_a_client_that_is_back_soon_has_left(back_s: int, cause: str) -> None:
    log = PlayedLog()
    log({"op": "topics", "topics": {"t": 4}})
    epochs = {member: log.beat(member, 0, "shb", client=member)["epoch"] for member in "AB"}

    def go_on(seconds: int) -> None:
        for _ in range(seconds):
            log.wait(1_000)
            for member, epoch in epochs.items():
                epochs[member] = log.beat(member, epoch, "shb", client=member)["epoch"]

    go_on(60)
    del epochs["A"]
    log.beat("A", -1, "shb", client="A")
    go_on(back_s)
    log.beat("C", 0, "shb", client="A")
    gone, back = rebalance_history(log.records)[-2:]
    assert (gone.cause, gone.left, back.cause) == (cause, ("A",), "rejoined")


def test_equally_many_names_of_two_assignors_are_named_as_the_cause() -> None:
    runs = {one["name"]: one for one in recorded("consumer_groups.jsonl.gz")}
    rows = rebalance_history(
        records_in(answer for _, answer, _ in runs["tie of assignors"]["steps"])
    )
    assert [row.cause for row in rows][-4:] == ["assignor switch"] * 4
    assert "equally many members" in rows[-1].causes[0].detail


# Runs of Kafka's coordinator ----------------------------------------------------------------------

KINDS = {"consumer_groups": 91, "share_groups": 67, "streams_groups": 66}


def _generations(run: dict[str, Any]) -> list[RecordedGeneration]:
    rows = recorded_generations(records_in(answer for _, answer, _ in run["steps"]))
    found = (one for _, one in rows if one is not None and one.group_type != "classic")
    # A run that begins in the middle of a group's life lacks its topology.
    return [
        one for one in found if not one.inputs or one.inputs.topology or not one.inputs.has_tasks
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_each_target_of_a_brokers_assignor_is_computed_again(kind: str, engine: Engine) -> None:
    replayed = [
        one
        for run in recorded(f"{kind}.jsonl.gz")
        for one in replay(
            _generations(run), topics_in(command for command, _, _ in run["steps"]), engine=engine
        )
    ]
    assert [one for one in replayed if not one.equal] == []
    assert len(replayed) == KINDS[kind]


def test_names_of_topics_that_are_in_no_record_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command reads them, with their ids, from `--topics`."""
    log = PlayedLog()
    cluster = {"op": "topics", "topics": {"t": 4, "u": 2}}
    log(cluster)
    log.beat("A", 0, topics=["t", "u"])
    records, topics = tmp_path / "records.jsonl", tmp_path / "topics.jsonl"
    records.write_text("".join(f"{one}\n" for one in map(as_line, log.records)))
    topics.write_text(
        "".join(
            json.dumps({"name": t.name, "partitions": t.partitions, "topic_id": t.topic_id}) + "\n"
            for t in topics_in([cluster])
        )
    )
    assert main(["history", str(records), "--replay"]) == 3
    assert "the names of 2 topics are in no record" in " ".join(capsys.readouterr().out.split())
    assert main(["history", str(records), "--replay", "--topics", str(topics)]) == 0
    assert "1 of 1 rebalance computed again" in capsys.readouterr().out


def test_a_target_that_the_assignor_does_not_compute_is_named(log: PlayedLog) -> None:
    log.beat("B", 0)
    (*_, one) = (one for _, one in recorded_generations(log.records) if one is not None)
    assert one.inputs is not None
    swapped = dict(zip(one.inputs.targets, [*one.inputs.targets.values()][::-1], strict=True))
    other = replace(one, inputs=replace(one.inputs, targets=swapped))
    first, second = replay([one, other])
    assert first.equal is True
    assert second.equal is False
    assert second.difference.startswith("A: was given t-2")


def test_causes_of_share_and_streams_groups() -> None:
    """Settings, a member's tags and new partitions are in records of their own."""
    found = defaultdict(set)
    for kind in KINDS:
        for run in recorded(f"{kind}.jsonl.gz"):
            for row in rebalance_history(records_in(answer for _, answer, _ in run["steps"])):
                found[row.group_type].add(row.cause)
    assert found["share"] >= {"started", "joined", "left", "rejoined", "partitions ready"}
    assert found["streams"] >= {"started", "left", "settings changed", "member changed"}
    assert "requested" not in found["consumer"] | found["share"]


def test_each_owner_counts_in_a_share_group() -> None:
    log = PlayedLog()
    log({"op": "topics", "topics": {"t": 2}})
    for member in "AB":
        log.beat(member, 0, "shb")
        log.wait(1_500)
    log.beat("C", 0, "shb")
    created, first, second = rebalance_history(log.records)
    assert [row.cause for row in (created, first, second)] == ["started", "joined", "joined"]
    assert [one.kind for one in first.causes] == ["joined", "partitions ready"]
    assert (first.gained, second.gained, second.partitions) == (2, 2, 2)


def test_a_played_consumer_group_moves_what_it_moved(log: PlayedLog) -> None:
    """The play of `consumer/uniform` has the rebalances and moves of the coordinator."""
    log.commit("A", 2, 0, 7)  # this record has the topic's name
    for member in "BCD":
        log.beat(member, 0)
        log.wait(1_500)
    log.beat("A", -1)
    log.wait(1_500)
    log.beat("B", 3)
    found = recorded_generations(log.records)
    played = {one.assignor: one for one in counterfactuals(found)}
    one = played["consumer/uniform"]
    assert (one.rebalances, one.moves) == (5, sum(row.moved + row.gained for row, _ in found))
    assert {"range", "consumer/range"} <= played.keys()


def test_a_share_group_is_not_played_under_other_assignors() -> None:
    log = PlayedLog()
    log({"op": "topics", "topics": {"t": 2}})
    log.beat("A", 0, "shb")
    with pytest.raises(GroupError, match="a share group has one assignor"):
        counterfactuals(recorded_generations(log.records))


def test_new_partitions_of_a_share_group_are_named() -> None:
    log = PlayedLog()
    log({"op": "topics", "topics": {"t": 2}})
    epoch = log.beat("A", 0, "shb")["epoch"]
    for partitions in (2, 5):
        log({"op": "topics", "topics": {"t": partitions}})
        for _ in range(3):
            log.wait(1_500)
            epoch = log.beat("A", epoch, "shb")["epoch"]
    rows = rebalance_history(log.records)
    ready = "partitions ready"
    assert [row.cause for row in rows] == ["started", ready, "partitions added", ready]
    assert rows[2].causes[0].detail == "t: at least 5"


@pytest.mark.parametrize("kind", ["share", "consumer"])
def test_remedies_are_those_of_the_groups_type(kind: str) -> None:
    first = rebalance_history(read_records(str(RUN)), session_ms=SESSIONS)[0]
    rows = [
        replace(first, group_type=kind, time_ms=n, causes=(Cause("joined"),), error=None)
        for n in range(12)
    ]
    (storm,) = find_patterns(rows)
    assert f"group.{kind}.assignment.interval.ms" in storm.instead
    assert "initial.rebalance" not in storm.instead

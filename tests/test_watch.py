# SPDX-License-Identifier: Apache-2.0
"""Observed rebalances are judged; `watch` follows real consumers on the broker of `serve`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.cli import watch as watch_command
from kafka_rebalance.follow import cluster
from kafka_rebalance.follow.rebalances import FollowedRebalance, from_descriptions
from kafka_rebalance.report.text.sentences import member_names
from kafka_rebalance.watch.owners import owners
from kafka_rebalance.watch.verdict import EAGER_MEMBERS, NO_CHANGE, distance, judged_rebalance
from kafka_rebalance.wire.group_records import GroupMetadataKey, OffsetsRecord, encode_key
from tests.support.followed_lines import Nobody
from tests.support.waiting import FAR_S
from tests.test_watch_by_broker import described, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_rebalance.assignors.registry import Engine

TOPICS = (kr.Topic("t", 7), kr.Topic("u", 3))


def settled(assignor: str, *names: str, **more: Any) -> kr.GroupSpec:
    """Returns a group that has settled after its first rebalance."""
    members = tuple(kr.Member(f"{name}-1", ("t", "u"), **more) for name in names)
    return kr.plan(kr.GroupSpec("g", TOPICS, members, assignor, 1)).final


def after(before: kr.GroupSpec, *members: kr.Member, assignor: str | None = None) -> kr.GroupSpec:
    return kr.plan(before.edited(members=members), assignor).final


def test_a_rebalance_as_predicted(engine: Engine) -> None:
    """The prediction uses the real id of the member that joined."""
    before = settled("roundrobin", "b", "c")
    later = after(before, *before.members, kr.Member("a-9", ("t", "u")))
    one = judged_rebalance(before, later, engine=engine)
    assert (one.event, one.assignor, one.elsewhere) == ("joined: a-9", "roundrobin", 0)
    assert one.is_predicted
    told = kr.plan(before, None, [kr.AddMembers(1)])
    assert distance(told, later) == 10  # the plan puts the new member last; its real id is first
    assert distance(kr.plan(before.edited(members=later.members)), later) == 0


def test_the_cause_of_a_difference_is_named(engine: Engine) -> None:
    before = settled("cooperative-sticky", "b", "c", client_library="java")
    members = (*before.members, kr.Member("a-9", ("t", "u"), client_library="librdkafka"))
    later = after(before, *members, assignor="librdkafka/cooperative-sticky")
    later = later.edited(assignor="cooperative-sticky")
    one = judged_rebalance(replace(before, leader="b-1"), later, engine=engine)
    assert one.event == "joined: a-9"
    assert one.cause == "a member with librdkafka/cooperative-sticky led"
    assert 0 < one.elsewhere <= one.partitions == 10
    # If the member with librdkafka may have led, its answer is one of the predictions.
    assert judged_rebalance(before, later, engine=engine).is_predicted


def test_claims_that_were_not_sent_are_a_cause() -> None:
    before = settled("sticky", "b", "c", "d")
    left = before.members[:1] + before.members[2:]
    forgetful = tuple(one.owning() for one in left)
    one = judged_rebalance(before, after(before, *forgetful))
    assert one.cause in ("no member sent a generation", "no member sent what it owned")
    swapped = dict(zip(["b-1", "d-1"], reversed([m.owned_partitions for m in left]), strict=True))
    odd = before.edited(members=left).owning(swapped)
    assert judged_rebalance(before, odd).cause == "unknown"


def test_what_members_sent_is_a_cause() -> None:
    """Only b-1 sends no owned partitions; no other cause leads to the observed assignment."""
    before = settled("sticky", "b", "c", "d")
    joined = kr.Member("a-9", ("t", "u"))
    forgetful = (before.members[0].owning(), *before.members[1:], joined)
    sent = before.edited(members=forgetful)
    one = judged_rebalance(before, after(before, *forgetful), sent=sent)
    assert one.cause == "members sent other claims: b-1"
    assert one.assignor == "sticky"


def test_members_that_list_an_eager_assignor_too_are_a_cause() -> None:
    """Such members claim nothing at any rebalance, although the assignor is cooperative."""
    before = settled("cooperative-sticky", "b", "c", "d")
    joined = kr.Member("a-9", ("t", "u"))
    eager = before.edited(members=tuple(one.owning() for one in before.members))
    ended = after(eager, *eager.members, joined)
    sent = eager.edited(members=(*eager.members, joined))
    assert judged_rebalance(before, ended).cause == EAGER_MEMBERS
    from_record = judged_rebalance(before, ended, sent=sent)
    assert from_record.cause == f"{EAGER_MEMBERS}: b-1, c-1, d-1"
    known = before.edited(rebalance_protocol="eager")
    assert judged_rebalance(known, ended, sent=sent).is_predicted


def test_a_static_member_that_comes_back_is_no_rebalance() -> None:
    members = tuple(kr.Member(f"{name}-1", ("t", "u"), name) for name in "bc")
    before = kr.plan(kr.GroupSpec("g", TOPICS, members, "range", 1)).final
    again = replace(before.members[0], member_id="b-2")
    one = judged_rebalance(before, before.edited(members=(again, before.members[1])))
    assert (one.event, one.is_predicted) == ("back: b-2", True)


# The command --------------------------------------------------------------------------------------


def watch_states(
    monkeypatch: pytest.MonkeyPatch, states: Sequence[kr.GroupSpec], *options: str, why: str = ""
) -> int:
    """Runs the command over these states, after one reason to wait for them."""

    class Followed:
        def __init__(self, _: str, listener: Any, **__: object) -> None:
            self.listener = listener

        def start(self) -> None:
            if why:
                self.listener.undescribed("g", why)
            for before, state in zip([None, *states], states, strict=False):
                self.listener.described(state, "descriptions")
                if before is not None:
                    self.listener.rebalanced(from_descriptions(before, state, 0), is_old=False)

        def stop(self) -> None: ...

    monkeypatch.setattr(watch_command, "FollowedCluster", Followed)
    where = ["--bootstrap-server", "broker:9092", "--group", "g", "--for", "0.001"]
    return main(["watch", *where, *options])


def test_a_group_that_never_comes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = "group_id: no such group, or no permission Describe on it"
    assert watch_states(monkeypatch, [], why=none) == 3
    assert capsys.readouterr().err.splitlines() == [
        "kafka-rebalance: there is no group g yet, or no permission Describe on it; waiting",
        "kafka-rebalance: group g was never seen stable and with members: nothing was judged",
    ]


def test_causes_in_a_classic_streams_group_without_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = kr.GroupSpec("g", TOPICS, (kr.Member("a-1", ("t",)),), "stream", 1)
    more = group.edited(members=(*group.members, kr.Member("b-1", ("t",))), generation_id=2)
    assert watch_states(monkeypatch, [group, more]) == 0
    assert capsys.readouterr().out == "generation 2, 2 members: not judged; why: joined\n"


def test_changes_of_a_classic_streams_group_are_refused_as_plan_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    group = kr.GroupSpec("g", TOPICS, (kr.Member("a-1", ("t",)),), "stream", 1)
    assert watch_states(monkeypatch, [group, group], "--add-members", "1") == 3
    refused = capsys.readouterr()
    path = tmp_path / "g.jsonl"
    path.write_text(group.to_json(), encoding="utf-8")
    assert main(["plan", str(path), "--add-members", "1"]) == 3
    why = capsys.readouterr().err.removeprefix("kafka-rebalance: no group is left: ")
    assert refused.out == ""
    assert refused.err.splitlines()[-1] == f"kafka-rebalance: g: {why.strip()}"


def test_a_change_that_does_not_fit_ends_the_watch_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = settled("range", "b", "c")
    assert watch_states(monkeypatch, [before, before], "--remove-member", "x") == 3
    err = capsys.readouterr().err
    assert 'g: remove-member=x: no member has the member_id or group_instance_id "x"' in err


def test_a_plan_is_compared_when_all_its_members_are_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two members join a consumer group, which is described after each join."""
    lines = [
        described(5, ("a", 5, [0, 1])),
        described(6, ("a", 6, [0]), ("b", 6, [1])),
        described(7, ("a", 7, [0]), ("b", 7, [1]), ("c", 7, [])),
    ]
    states = [kr.GroupSpec.from_dict(line) for line in lines]
    assert watch_states(monkeypatch, states, "--add-members", "2", "--json") == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert "told_elsewhere" not in first
    assert "told_elsewhere" in second


@pytest.mark.parametrize("at", [1, 31, 61, -1], ids=["share", "streams", "consumer", "classic"])
def test_members_have_the_names_of_plans(
    at: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`watch` prints the names that `plan` prints, and commands take them."""
    observed = recorded("modern_live_assigned.jsonl.gz") + recorded("modern_live.jsonl.gz")
    if at < 0:
        ids = [f"c-{n}7e0cb12-79be-4224-9982-b63cb73e8891" for n in range(4)]
        members = tuple(kr.Member(one, ("t", "u")) for one in ids)
        before = kr.plan(kr.GroupSpec("g", TOPICS, members, "range", 1)).final
    else:
        before = kr.GroupSpec.from_dict(observed[at]["seen"][-1])
    gone = before.members[-1]
    later = kr.plan(before, changes=[f"remove-member={gone.member_id}"]).final
    watch_states(monkeypatch, [before, later])
    out, _ = capsys.readouterr()
    name = member_names({m.member_id: m.client_id for m in before.members})[gone.member_id]
    assert f"left: {name}: as predicted" in out
    assert gone.member_id not in out
    again = kr.plan(before, changes=[f"remove-member={name}"])
    assert owners(again.final) == owners(later)


def test_what_was_predicted_and_what_happened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, *_, swapped = [
        kr.GroupSpec.from_dict(described(epoch, ("a", epoch, [one]), ("b", epoch, [1 - one])))
        for epoch, one in ((5, 0), (6, 1))
    ]
    assert watch_states(monkeypatch, [before, swapped]) == 3
    assert capsys.readouterr().out == (
        "group epoch 6, no member changed (2 partitions revoked, 2 partitions gained): not as "
        "predicted: 2 of 2 partitions have other members than predicted; cause: unknown\n"
    )
    assert watch_states(monkeypatch, [before, swapped], "--json") == 3
    one = json.loads(capsys.readouterr().out)
    assert (one["event"], one["revoked"], one["gained"]) == (NO_CHANGE, 2, 2)
    same = replace(before, generation_id=6)
    watch_states(monkeypatch, [before, same])
    assert capsys.readouterr().out.startswith(f"group epoch 6, {NO_CHANGE}: ")


def test_a_plan_that_came_true_or_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = settled("roundrobin", "b", "c")
    later = after(before, *before.members, kr.Member("d-9", ("t", "u")))
    other = after(before, *before.members, kr.Member("a-9", ("t", "u")))
    for state, told in (
        (later, "as in your plan (add-members=1)"),
        (other, "10 partitions with other members than in your plan (add-members=1)"),
    ):
        assert watch_states(monkeypatch, [before, state], "--add-members", "1") == 0
        assert capsys.readouterr().out.endswith(f": as predicted (roundrobin); {told}\n")


# The log ------------------------------------------------------------------------------------------

LOG = Path(__file__).parent / "data" / "consumer_offsets.jsonl"
COUNTS = {"orders": 2, "refunds": 2}


def logged(group_id: str, monkeypatch: pytest.MonkeyPatch, *, at_first: int = 1) -> list[str]:
    """Follows a group of a real broker's log; returns each generation, event and judgement.

    The first `at_first` records exist when the watch begins.
    """
    rows = [json.loads(line) for line in LOG.open(encoding="utf-8")]
    key = encode_key(GroupMetadataKey(group_id))
    values = [row["value"] for row in rows if row["key"] == key.hex()]
    records = [
        OffsetsRecord(0, offset, 0, key, None if value is None else bytes.fromhex(value))
        for offset, value in enumerate(values)
    ]
    counts = {name: {"name": name, "partitions": n} for name, n in COUNTS.items()}
    monkeypatch.setattr(cluster, "topic_lines", lambda *_, **__: counts)
    found: list[FollowedRebalance] = []

    class Listener(Nobody):
        def rebalanced(self, one: FollowedRebalance, *, is_old: bool) -> None:
            if not is_old and one.judged is not None:
                found.append(one)

    followed = cluster.FollowedCluster("", Listener())
    followed.log.old_before[0] = at_first
    followed.take(records)
    assert all(one.judged and one.judged.is_predicted for one in found)
    return [
        f"{one.judged.generation_id} {one.judged.event.split('-')[0]}: {one.judged.assignor}; "
        f"{one.row.cause}"
        for one in found
        if one.judged
    ]


def test_a_real_log_is_as_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    cooperative = "cooperative-sticky"
    assert logged("java-cooperative", monkeypatch) == [
        f"1 joined: java: {cooperative}; started",
        f"2 joined: java: {cooperative}; joined",
        f"3 {NO_CHANGE}: {cooperative}; second round",
        f"4 left: java: {cooperative}; left",
    ]
    assert logged("java-static", monkeypatch)[1:] == ["1 back: pod: sticky; static restart"]
    name = "aiokafka: aiokafka/range"
    python = [f"2 joined: {name}; joined", f"3 left: {name}; left"]
    assert logged("aiokafka", monkeypatch)[1:] == python
    # Records that were there at the beginning are not reported: the newest is the first state.
    assert logged("aiokafka", monkeypatch, at_first=3) == python[1:]
    for without in ("no-such-group", "raw-deleted", "raw-connect"):
        assert logged(without, monkeypatch) == []


# A served broker ----------------------------------------------------------------------------------


def watching(address: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kafka_rebalance", "watch", "--bootstrap-server", address]
    return subprocess.Popen(
        [*command, "--group", "billing", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_watch_follows_real_consumers() -> None:
    """A second consumer joins and leaves; both rebalances are as predicted."""
    pytest.importorskip("kio", reason="no kio: pip install -e '.[serve]'")
    pytest.importorskip(
        "confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'"
    )
    from kafka_rebalance.testing import RunningBroker
    from tests.support.served_consumers import TOPIC, ConfluentCooperative

    with RunningBroker({TOPIC: 6}) as broker:
        first = ConfluentCooperative(broker.address, "a")
        broker.wait_until_stable("billing", members=1)
        watch = watching(
            broker.address, "--json", "--rebalances", "2", "--for", str(FAR_S),
            "--add-members", "1,client-id=b",
        )  # fmt: skip
        assert watch.stderr is not None
        assert watch.stdout is not None
        assert "watching billing by asking the broker: cooperative" in watch.stderr.readline()
        second = ConfluentCooperative(broker.address, "b")
        joined = json.loads(watch.stdout.readline())
        second.close()
        left = json.loads(watch.stdout.readline())
        assert watch.wait(FAR_S) == 0
        assert "2 rebalances, 0 not as predicted" in watch.stderr.read()
        first.close()
    assert joined["event"].startswith("joined: b-")
    assert left["event"].startswith("left: b-")
    for one in (joined, left):
        assert one["as_predicted"]
        assert one["assignor"] == "librdkafka/cooperative-sticky"
    assert joined["told_elsewhere"] == 0
    assert "told_elsewhere" not in left


def test_watch_ends_at_ctrl_c_and_after_its_time() -> None:
    pytest.importorskip("kio", reason="no kio: pip install -e '.[serve]'")
    from kafka_rebalance.testing import RunningBroker
    from tests.support.served_consumers import TOPIC, KafkaPython

    with RunningBroker({TOPIC: 6}) as broker:
        member = KafkaPython(broker.address, "a")
        broker.wait_until_stable("billing", members=1)
        watch = watching(broker.address)
        assert watch.stderr is not None
        # This broker has no topic __consumer_offsets.
        said = watch.stderr.readline()
        assert "following descriptions: topic __consumer_offsets: the cluster shows no" in said
        assert "watching billing by asking the broker: range" in watch.stderr.readline()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(FAR_S) == 130
        assert "Traceback" not in watch.stderr.read()
        timed = watching(broker.address, "--for", "4")
        out, err = timed.communicate(timeout=FAR_S)
        # On a slow machine, no look at the group ends in 4 s.
        ends = {0: "no rebalance came, so nothing was judged", 3: "was never seen stable"}
        assert out == ""
        assert ends[timed.returncode] in err
        member.close()

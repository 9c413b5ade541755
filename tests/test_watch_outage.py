# SPDX-License-Identifier: Apache-2.0
"""`watch` before the group has a record, while its coordinator does not answer, and when the group
is converted."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.cli import watch as watch_command
from kafka_rebalance.errors import ClusterError, NotReachedError
from kafka_rebalance.live import patience, watched_group, watched_log
from kafka_rebalance.live.offsets_log import NoLogError, NoTopicError
from kafka_rebalance.wire.group_records import GroupMetadataKey, OffsetsRecord, encode_key
from tests.test_watch_by_broker import described

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = Path(__file__).parent / "data" / "consumer_offsets.jsonl"
GROUP = "aiokafka"
LOST = NotReachedError("a:9092,b:9092: not connected: Connection refused")
CLOSED = {"group_id": GROUP, "error": "state: Empty, it has no members"}


class FakeTime:
    """A clock that moves only by calls of `sleep`."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Cluster:
    """A cluster whose `values` are the group's records.

    A value that is an error is raised once. `bootstrap` is True if its servers answer.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, values: list[Any]) -> None:
        self.values, self.bootstrap = values, True
        self.descriptions: list[dict[str, Any]] = []
        self.time = FakeTime()
        self.said: list[str] = []
        for module in (patience, watched_log, watched_group):
            monkeypatch.setattr(module, "time", self.time)
        monkeypatch.setattr(watched_log, "followed_records", self.followed)
        monkeypatch.setattr(watched_log, "with_topics", self.with_topics)
        monkeypatch.setattr(watched_log, "described", self.described)
        monkeypatch.setattr(patience, "admin_client", self.admin)

    @contextmanager
    def admin(self, *_: object) -> Iterator[None]:
        if not self.bootstrap:
            raise LOST
        yield

    def followed(self, *_: object, after: int, **__: object) -> Iterator[OffsetsRecord | None]:
        key = encode_key(GroupMetadataKey(GROUP))
        for offset, value in enumerate(self.values):
            if isinstance(value, Exception):
                self.values[offset] = "told"
                raise value
            if value != "told" and offset > after:
                yield OffsetsRecord(0, offset, 0, key, value)
                yield None
        while True:
            yield None

    def with_topics(self, _: str, line: dict[str, Any], **__: object) -> dict[str, Any]:
        names = dict.fromkeys(name for member in line["members"] for name in member["topics"])
        return {**line, "topics": [{"name": name, "partitions": 2} for name in names]}

    def described(self, *_: object, **__: object) -> dict[str, Any]:
        return self.descriptions.pop(0) if len(self.descriptions) > 1 else self.descriptions[0]

    def states(self, for_s: float | None = 30) -> Iterator[int | None]:
        """Yields the generation of each state."""
        for after, _ in watched_log.logged_states(
            "a:9092,b:9092",
            GROUP,
            for_s=for_s,
            on_waiting=lambda why: self.said.append(why),
            on_lost=lambda why: self.said.append(f"lost: {why}"),
            on_back=lambda: self.said.append("back"),
        ):
            yield after.generation_id


def values() -> list[Any]:
    """Returns the group's records: one without members, generations 1, 2 and 3, one without
    members.
    """
    rows = [json.loads(line) for line in LOG.open(encoding="utf-8")]
    key = encode_key(GroupMetadataKey(GROUP)).hex()
    found = [row["value"] for row in rows if row["key"] == key]
    return [None if value is None else bytes.fromhex(value) for value in found]


def test_a_coordinator_that_is_back_is_followed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failure needs a new connection; no record is read twice."""
    records = values()
    cluster = Cluster(monkeypatch, [*records[:3], LOST, LOST, LOST, *records[3:]])
    whole = Cluster(monkeypatch, list(records))
    expected = list(whole.states())
    assert len(expected) > 2
    for module in (patience, watched_log, watched_group):
        monkeypatch.setattr(module, "time", cluster.time)
    monkeypatch.setattr(watched_log, "followed_records", cluster.followed)
    assert list(cluster.states()) == expected
    assert [one for one in cluster.said if one not in whole.said] == [
        "lost: not connected: Connection refused",
        "back",
    ]


def test_the_first_record_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a new cluster, the offsets topic and the group do not exist at first; then the group
    rebalances.
    """
    none, moving = "group_id: no such group", "state: CompletingRebalance, it is rebalancing"
    missing = NoTopicError("no topic")
    cluster = Cluster(monkeypatch, [missing, missing, missing, missing, *values()[1:4]])
    cluster.descriptions = [{"error": none}, {"error": none}, {"error": moving}, {"members": []}]
    assert list(cluster.states()) == [1, 2, 3]
    assert cluster.said == [none, moving]


@pytest.mark.parametrize("line", [{"members": []}, {"error": "protocol_type: sr, not consumer"}])
def test_a_group_with_members_and_without_a_record_has_descriptions(
    monkeypatch: pytest.MonkeyPatch, line: dict[str, Any]
) -> None:
    cluster = Cluster(monkeypatch, [])
    cluster.descriptions = [{"error": CLOSED["error"]}, line]
    with pytest.raises(NoLogError, match=f"no record of a classic consumer group {GROUP}"):
        list(cluster.states())
    assert cluster.said == [CLOSED["error"]]


def test_a_coordinator_that_stays_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a bootstrap server answers, only --for ends the watch."""
    cluster = Cluster(monkeypatch, [*values()[:2], *[LOST] * 1000])
    assert list(cluster.states(for_s=300)) == [1]
    assert cluster.time.now_s == 300
    assert cluster.said[-1] == "lost: not connected: Connection refused"


def test_a_silent_cluster_ends_the_watch_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, [*values()[:2], *[LOST] * 1000])
    states = cluster.states(for_s=300)
    assert next(states) == 1
    cluster.bootstrap = False
    with pytest.raises(ClusterError, match="Connection refused"):
        next(states)
    assert patience.PATIENCE_S < cluster.time.now_s < patience.PATIENCE_S + 2


@pytest.mark.parametrize("answers", [False, True])
def test_a_group_that_was_never_read(answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no server answers, the address may be wrong; a cluster with an answering server gets a
    minute.
    """
    cluster = Cluster(monkeypatch, [LOST] * 1000)
    cluster.bootstrap = answers
    with pytest.raises(ClusterError, match="Connection refused"):
        next(cluster.states(for_s=None))
    assert (cluster.time.now_s > patience.PATIENCE_S) == answers
    assert cluster.said == (["lost: not connected: Connection refused"] if answers else [])


def test_an_error_that_will_not_pass_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ClusterError("b:9092: user x is not authenticated by PLAIN")
    cluster = Cluster(monkeypatch, [*values()[:2], wrong])
    with pytest.raises(ClusterError, match="not authenticated"):
        list(cluster.states())


def test_a_converted_group_is_no_longer_followed_by_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A description may be older than the deletion of the record; then it is requested again."""
    cluster = Cluster(monkeypatch, [*values()[:2], None])
    classic = {"group_id": GROUP, "members": [], "assignor": "range"}
    cluster.descriptions = [classic, classic, {**described(5, ("a", 5, [0])), "group_id": GROUP}]
    states = cluster.states()
    assert next(states) == 1
    before = list(cluster.said)
    with pytest.raises(NoLogError, match=f"{GROUP} was converted: .* by consumer/uniform"):
        next(states)
    assert cluster.said == before


def test_a_deleted_group_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty group is reported once; members of the consumer protocol can come later."""
    cluster = Cluster(monkeypatch, [*values()[1:2], None])
    new = {**described(5, ("a", 5, [0])), "group_id": GROUP}
    cluster.descriptions = [CLOSED, CLOSED, CLOSED, new]
    states = cluster.states()
    assert next(states) == 1
    with pytest.raises(NoLogError, match="was converted"):
        next(states)
    assert cluster.said == [CLOSED["error"]]


# The descriptions ---------------------------------------------------------------------------------


def test_descriptions_of_a_coordinator_that_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that nobody lists while brokers are down was seen before, so it is not gone."""
    cluster = Cluster(monkeypatch, [])
    hidden = {
        "group_id": "g",
        "error": "group_id: no such group, or no permission Describe on it; broker 2 is down",
    }
    empty = {"group_id": "g", "error": "state: Empty, it has no members"}
    lines: list[Any] = [
        hidden,
        described(5, ("a", 5, [0, 1])),
        hidden,
        LOST,
        described(6, ("b", 6, [0, 1])),
    ]
    lines.append(empty)

    def snapshot(*_: object, **__: object) -> Iterator[dict[str, Any]]:
        one = lines.pop(0) if len(lines) > 1 else lines[0]
        if isinstance(one, Exception):
            raise one
        yield one

    monkeypatch.setattr(watched_group, "snapshot_lines", snapshot)
    states = watched_group.settled_states(
        "a:9092", "g", for_s=30, on_waiting=cluster.said.append,
        on_lost=lambda why: cluster.said.append(f"lost: {why}"),
        on_back=lambda: cluster.said.append("back"),
    )  # fmt: skip
    assert [one.generation_id for one in states] == [5, 6]
    assert cluster.said == [
        hidden["error"],
        "lost: broker 2 is down",
        "back",
        empty["error"],
    ]


# The command --------------------------------------------------------------------------------------


def test_the_command_follows_a_converted_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = (kr.Topic("t", 2),)
    classic = kr.plan(kr.GroupSpec("g", topics, (kr.Member("a", ("t",)),), "range", 1)).final
    converted = kr.GroupSpec.from_dict(described(3, ("b", 3, [0, 1])))

    def logged(*_: object, **__: object) -> Iterator[tuple[kr.GroupSpec, kr.GroupSpec]]:
        yield classic, classic
        raise NoLogError("g was converted: the broker assigns it now, by consumer/uniform")

    monkeypatch.setattr(watch_command, "logged_states", logged)
    monkeypatch.setattr(watch_command, "settled_states", lambda *_, **__: iter([converted]))
    assert main(["watch", "--bootstrap-server", "broker:9092", "--group", "g"]) == 0
    out, err = capsys.readouterr()
    assert out == (
        "group epoch 3, joined: b; left: a; assignor: range -> consumer/uniform: as predicted "
        "(consumer/uniform)\n"
    )
    assert err.replace("kafka-rebalance: ", "").splitlines() == [
        "watching g by its records: range, 1 member, 2 partitions",
        "following descriptions: g was converted: the broker assigns it now, by consumer/uniform",
        "watching g by its descriptions: consumer/uniform, 1 member, 2 partitions",
        "1 rebalance, 0 not as predicted",
    ]


def test_members_that_left_an_empty_group_are_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A static member that returns also finds no partitions."""
    topics = (kr.Topic("t", 4),)

    def states(name: str) -> kr.GroupSpec:
        members = (kr.Member(f"a-{name}", ("t",), "a"), kr.Member(f"b-{name}", ("t",)))
        return kr.plan(kr.GroupSpec("g", topics, members, "sticky", 1)).final

    def settled(*_: object, on_waiting: Any, **__: object) -> Iterator[kr.GroupSpec]:
        yield states("1")
        on_waiting("state: Empty, it has no members")
        yield states("2")

    monkeypatch.setattr(watch_command, "settled_states", settled)
    run = ["watch", "--bootstrap-server", "b:9092", "--group", "g", "--add-members", "1"]
    assert main(run) == 0
    out, err = capsys.readouterr()
    assert out.startswith("generation 2, joined: a-2, b-2: as predicted (sticky)")
    assert "g: state: Empty, it has no members; waiting" in err

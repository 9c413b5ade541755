# SPDX-License-Identifier: Apache-2.0
"""`watch` before the group has a record, while its coordinator does not answer, and when the group
is converted."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.cli import watch as watch_command
from kafka_rebalance.errors import ClusterError, NotReachedError
from kafka_rebalance.follow.rebalances import from_descriptions
from kafka_rebalance.live import offsets_log
from kafka_rebalance.live.offsets_log import FollowedLog
from tests.support.followed_lines import EVERY_S, followed
from tests.test_watch_by_broker import described

if TYPE_CHECKING:
    from collections.abc import Iterator

SILENT = NotReachedError("not connected: Connection refused", none_answered=True)
LOST = NotReachedError("a partition that is read has no live leader", none_answered=False)
MINUTE = int(watch_command.PATIENCE_S / EVERY_S)


def line(**more: Any) -> list[dict[str, Any]]:
    return [{"group_id": "g", **more}]


HIDDEN = line(error="group_id: no such group, or no permission Describe on it; broker 2 is down")
EMPTY = line(error="state: Empty, it has no members")


def test_descriptions_of_a_coordinator_that_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that nobody lists while brokers are down was seen before, so it is not gone."""
    first, second = [described(5, ("a", 5, [0, 1]))], [described(6, ("b", 6, [0, 1]))]
    found = followed(monkeypatch, [HIDDEN, first, HIDDEN, LOST, LOST, HIDDEN, second, EMPTY])
    assert [one.generation_id for one in found.settled] == [5, 6]
    assert found.waits == [
        "there is no group g yet, or no permission Describe on it; broker 2 is down; waiting",
        "g: its coordinator does not answer (broker 2 is down); waiting",
        "g: its coordinator answers again",
        "g: state: Empty, it has no members; waiting",
    ]


def test_a_coordinator_that_stays_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a bootstrap server answers, only --for ends the watch."""
    found = followed(monkeypatch, [[described(5, ("a", 5, [0, 1]))], *[LOST] * 5 * MINUTE])
    assert len(found.waits) == 1


def test_a_silent_cluster_ends_the_watch_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [described(5, ("a", 5, [0, 1]))]
    assert followed(monkeypatch, [there, *[SILENT] * (MINUTE - 1), there]).waits[1:] == [
        "g: its coordinator answers again"
    ]
    with pytest.raises(ClusterError, match="Connection refused"):
        followed(monkeypatch, [there, *[SILENT] * (MINUTE + 4)])


def test_a_group_that_was_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no server answers, the address may be wrong; a cluster with an answering server gets a
    minute.
    """
    with pytest.raises(ClusterError, match="Connection refused"):
        followed(monkeypatch, [SILENT])
    followed(monkeypatch, [LOST] * (MINUTE - 1))
    with pytest.raises(ClusterError, match="no live leader"):
        followed(monkeypatch, [LOST] * (MINUTE + 4))


def test_an_error_that_will_not_pass_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ClusterError("b:9092: user x is not authenticated by PLAIN")
    with pytest.raises(ClusterError, match="not authenticated"):
        followed(monkeypatch, [[described(5, ("a", 5, [0, 1]))], wrong])


# The log ------------------------------------------------------------------------------------------


class Partition:
    """A consumer of one partition with 10 records, which fails at each third request."""

    def __init__(self) -> None:
        self.at = self.asked = 0

    @contextmanager
    def opened(self, *_: object) -> Iterator[tuple[Partition, float]]:
        yield self, 1.0

    def assign(self, _: object) -> None: ...

    def seek(self, _: object, offset: int) -> None:
        self.at = offset

    def position(self, _: object) -> int:
        return self.at

    def poll(self, **_: object) -> dict[Any, Any]:
        self.asked += 1
        if self.asked % 3 == 0:
            raise LOST
        records = [
            SimpleNamespace(offset=n, timestamp=n, key=b"", value=b"")
            for n in range(self.at, min(self.at + 2, 10))
        ]
        self.at += len(records)
        return {kafka_place(): records} if records else {}


def kafka_place() -> Any:
    kafka = pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    return kafka.TopicPartition("__consumer_offsets", 0)


def test_each_record_is_read_once_beside_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition()
    monkeypatch.setattr(offsets_log, "_consumer", partition.opened)
    monkeypatch.setattr(offsets_log, "_ranges", lambda *_: {0: (0, 4)})
    log, read = FollowedLog("", None), list[int]()

    def read_on() -> None:
        for batch in log.batches():
            read.extend(one.offset for one in batch)

    for _ in range(3):
        with pytest.raises(NotReachedError):
            read_on()
    assert read == [*range(10)]
    assert (log.behind, log.old_before) == (0, {0: 4})


# The command --------------------------------------------------------------------------------------


def test_the_command_follows_a_converted_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = (kr.Topic("t", 2),)
    classic = kr.plan(kr.GroupSpec("g", topics, (kr.Member("a", ("t",)),), "range", 1)).final
    converted = kr.GroupSpec.from_dict(described(3, ("b", 3, [0, 1])))

    class Followed:
        def __init__(self, _: str, listener: Any, **__: object) -> None:
            self.listener = listener

        def start(self) -> None:
            self.listener.described(classic, "records")
            self.listener.described(converted, "descriptions")
            self.listener.rebalanced(from_descriptions(classic, converted, 0), is_old=False)

        def stop(self) -> None: ...

    monkeypatch.setattr(watch_command, "FollowedCluster", Followed)
    run = ["watch", "--bootstrap-server", "broker:9092", "--group", "g", "--for", "0.001"]
    assert main(run) == 0
    out, err = capsys.readouterr()
    assert out == (
        "group epoch 3, joined: b; left: a; assignor: range -> consumer/uniform: as predicted "
        "(consumer/uniform)\n"
    )
    assert err.replace("kafka-rebalance: ", "").splitlines() == [
        "watching g in __consumer_offsets: range, 1 member, 2 partitions",
        "g was converted: the broker assigns it now, by consumer/uniform",
        "watching g by asking the broker: consumer/uniform, 1 member, 2 partitions",
        "1 rebalance, 0 not as predicted",
    ]


def test_members_that_left_an_empty_group_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A static member that returns also finds no partitions."""

    def state(name: str) -> list[dict[str, Any]]:
        members = (kr.Member(f"a-{name}", ("t",), "a"), kr.Member(f"b-{name}", ("t",)))
        group = kr.plan(kr.GroupSpec("g", (kr.Topic("t", 4),), members, "sticky", 1)).final
        return [group.to_dict()]

    found = followed(monkeypatch, [state("1"), EMPTY, EMPTY, state("2")])
    [one] = found.judged
    assert one is not None
    assert (one.event, one.is_predicted) == ("joined: a-2, b-2", True)
    assert found.waits == ["g: state: Empty, it has no members; waiting"]

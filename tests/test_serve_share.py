# SPDX-License-Identifier: Apache-2.0
"""Share groups of `serve`: records in flight, sessions, settings; librdkafka's share consumer."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.serve import share
from kafka_rebalance.serve.batches import Refused, StoredRecord, marker, new_batch, received
from kafka_rebalance.serve.partition_log import PartitionLog
from kafka_rebalance.serve.share import SharePartition, Wanted
from kafka_rebalance.testing import RunningBroker
from tests.support.served_broker import REQUESTS, connection
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.parity.wire import Connection

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
EARLIEST = {"share.auto.offset.reset": "earliest"}
Rows = list[tuple[int, int, int]]
"""First and last offset, and number of deliveries."""


class Member:
    """A member of the group "s" that reads partition 0 of "t", by hand."""

    def __init__(self, one: Connection, version: int = 2) -> None:
        self.one, self.version, self.epoch = one, version, 0
        self.member_id = str(uuid.uuid4())
        asked = {"name": "t", "topic_id": None}
        found = one.ask("metadata", 12, **{**REQUESTS["metadata"], "topics": [asked]})
        self.topic_id = found.topics[0].topic_id
        joins = {"group_id": "s", "member_id": self.member_id, "subscribed_topic_names": ["t"]}
        one.ask("share_group_heartbeat", 1, **joins, member_epoch=0)

    def ask(
        self, api: str, *acknowledged: tuple[int, int, Sequence[int]], **more: Any
    ) -> tuple[str, Any]:
        """Returns the error of the answer and its partition; the answer itself if it has none."""
        names = ("first_offset", "last_offset", "acknowledge_types")
        batches = [dict(zip(names, one, strict=True)) for one in acknowledged]
        partitions = [{"partition_index": 0, "acknowledgement_batches": batches}]
        asked: dict[str, Any] = {
            **REQUESTS[api],
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "topics": [{"topic_id": self.topic_id, "partitions": partitions}],
        }
        answer = self.one.ask(api, self.version, **asked | more)
        if not answer.error_code and asked["share_session_epoch"] >= 0:
            self.epoch = asked["share_session_epoch"] + 1
        topic = next(iter(answer.responses), None)
        return answer.error_code.name, answer if topic is None else topic.partitions[0]

    def fetch(self, *acknowledged: tuple[int, int, Sequence[int]], **more: Any) -> Rows:
        error, found = self.ask("share_fetch", *acknowledged, **more)
        assert error == "none"
        rows = getattr(found, "acquired_records", ())
        return [(one.first_offset, one.last_offset, one.delivery_count) for one in rows]

    def acknowledge(self, *acknowledged: tuple[int, int, Sequence[int]]) -> str:
        error, found = self.ask("share_acknowledge", *acknowledged)
        return str(found.error_code.name) if error == "none" else error


@contextmanager
def shared(**options: Any) -> Iterator[RunningBroker]:
    """Yields a broker with five records, each in a batch of its own."""
    with RunningBroker({"t": 1}, **options) as broker:
        broker.configure("s", EARLIEST)
        for value in b"abcde":
            broker.produce("t", bytes([value]))
        yield broker


def state(broker: RunningBroker) -> tuple[int, int]:
    """Returns the start of the group and the end of what was delivered."""
    found = broker._server.shares._partitions["s", ("t", 0)]
    return found.start, found.end


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_acquired_and_acknowledged(version: int) -> None:
    with shared() as broker, connection(broker) as first, connection(broker) as second:
        one, other = Member(first, version), Member(second, version)
        error, found = one.ask("share_fetch", max_records=3)
        assert (error, len(found.records)) == ("none", 3 * 69)
        assert [(a.first_offset, a.last_offset) for a in found.acquired_records] == [(0, 2)]
        assert other.fetch() == [(3, 4, 1)]
        assert one.acknowledge((0, 2, (ACCEPT, RELEASE, REJECT))) == "none"
        assert state(broker) == (1, 5)
        assert other.fetch((3, 3, (GAP,)), (4, 4, (ACCEPT,))) == [(1, 1, 2)]
        assert other.acknowledge((1, 1, (ACCEPT,))) == "none"
        assert state(broker) == (5, 5)
        assert one.fetch() == []


def test_acknowledgements_that_kafka_refuses() -> None:
    with shared() as broker, connection(broker) as first, connection(broker) as second:
        one, other = Member(first), Member(second, version=1)
        assert one.ask("share_fetch", max_records=0)[0] == "none"
        assert one.acknowledge((0, 0, (ACCEPT,))) == "invalid_record_state"
        assert one.fetch(max_records=2) == [(0, 1, 1)]
        assert other.fetch(max_records=1) == [(2, 2, 1)]
        for batch in ((0, 2, (ACCEPT,)), (2, 2, (ACCEPT,))):
            assert one.acknowledge(batch) == "invalid_record_state"
        for batch in ((3, 3, (ACCEPT,)), (0, 9, (ACCEPT,))):
            assert one.acknowledge(batch) == "invalid_request"
        for wrong in ((1, 0, (ACCEPT,)), (0, 1, ()), (0, 1, (1, 1, 1)), (0, 0, (5,))):
            assert one.acknowledge(wrong) == "invalid_request"
        assert one.acknowledge((1, 1, (ACCEPT,)), (0, 0, (ACCEPT,))) == "invalid_request"
        assert other.acknowledge((2, 2, (RENEW,))) == "invalid_request"  # since version 2
        assert one.acknowledge((0, 1, (ACCEPT,))) == "none"
        assert one.acknowledge((0, 1, (ACCEPT,))) == "none"  # before the start: nothing to do
        assert state(broker) == (2, 3)


def test_a_lock_ends_by_the_clock_unless_it_is_renewed() -> None:
    with shared(stopped_clock=True) as broker, connection(broker) as made:
        one = Member(made)
        assert one.fetch() == [(0, 4, 1)]
        broker.advance(29_999)
        assert one.acknowledge((0, 0, (RENEW,))) == "none"
        broker.advance(1)
        assert one.fetch() == [(1, 4, 2)]
        broker.advance(29_999)
        assert one.fetch() == [(0, 0, 2)]
        assert one.acknowledge((0, 0, (ACCEPT,))) == "none"


def test_a_record_is_delivered_five_times_at_most() -> None:
    with shared() as broker, connection(broker) as made:
        one = Member(made)
        for delivery in range(1, 6):
            assert one.fetch(max_records=1) == [(0, 0, delivery)]
            assert one.acknowledge((0, 0, (RELEASE,))) == "none"
        assert state(broker) == (1, 1)


def test_a_session_that_closes_gives_its_deliveries_back() -> None:
    with shared() as broker, connection(broker) as made:
        broker.configure("s", {"share.delivery.count.limit": "2"})
        one = Member(made)
        for _ in range(3):
            assert one.fetch() == [(0, 4, 1)]
            assert one.ask("share_fetch", share_session_epoch=-1)[0] == "none"
            one.epoch = 0
        assert state(broker) == (0, 5)


def test_sessions_have_epochs_and_end_with_their_connection() -> None:
    with shared() as broker, connection(broker) as first, connection(broker) as second:
        one, other = Member(first), Member(second)
        assert one.ask("share_fetch", share_session_epoch=1)[0] == "share_session_not_found"
        assert one.acknowledge((0, 0, (ACCEPT,))) == "invalid_share_session_epoch"
        assert one.ask("share_fetch", (0, 0, (ACCEPT,)))[0] == "invalid_request"
        assert one.fetch() == [(0, 4, 1)]
        assert one.ask("share_fetch", share_session_epoch=7)[0] == "invalid_share_session_epoch"
        assert one.ask("share_fetch", group_id="no")[0] == "group_id_not_found"
        assert other.fetch() == []
        first.close()
        assert other.fetch(max_wait=20_000) == [(0, 4, 1)]
        assert other.ask("share_fetch", (0, 0, (ACCEPT,)), share_session_epoch=-1)[0] == "none"
        assert broker._server.shares._sessions == {}
        assert state(broker) == (1, 5)


def test_a_fetch_that_contradicts_itself_is_refused() -> None:
    nothing = dict.fromkeys(("max_bytes", "min_bytes", "max_records", "max_wait"), 0)
    with shared() as broker, connection(broker) as made:
        one = Member(made)
        for member_id in (None, "", "m" * 37):
            assert one.ask("share_fetch", member_id=member_id)[0] == "invalid_request"
        assert one.ask("share_acknowledge", member_id="")[0] == "invalid_request"
        assert one.ask("share_fetch", group_id=None)[0] == "invalid_request"
        assert one.fetch() == [(0, 4, 1)]
        renew = (0, 0, (RENEW,))
        for name in nothing:
            wrong = {**nothing, name: 1, "is_renew_ack": True}
            assert one.ask("share_fetch", renew, **wrong)[0] == "invalid_request"
        assert one.ask("share_fetch", renew, **nothing, is_renew_ack=True)[0] == "none"


def test_the_partitions_of_a_session_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client can name topics that do not exist."""
    monkeypatch.setattr(share, "MOST_PARTITIONS", 2)
    with shared() as broker, connection(broker) as made:
        one = Member(made)
        one.fetch()
        topics = [{"topic_id": uuid.uuid4(), "partitions": [{"partition_index": at,
                  "acknowledgement_batches": []} for at in range(2)]}]  # fmt: skip
        assert one.ask("share_fetch", topics=topics)[0] == "share_session_limit_reached"
        assert broker._server.shares._sessions == {}
        assert Member(made).fetch() == [(0, 4, 1)]


def test_the_number_of_sessions_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "MOST_SESSIONS", 1)
    with shared() as broker, connection(broker) as one:
        assert Member(one).fetch() == [(0, 4, 1)]
        assert Member(one).ask("share_fetch")[0] == "share_session_limit_reached"


def test_a_fetch_waits_for_a_record_or_a_release() -> None:
    with (
        shared() as broker,
        connection(broker) as first,
        connection(broker) as second,
        ThreadPoolExecutor() as pool,
    ):
        one, other = Member(first), Member(second)
        assert one.fetch() == [(0, 4, 1)]
        for wakes, got in (
            (lambda: broker.produce("t", b"f"), [(5, 5, 1)]),
            (lambda: one.acknowledge((3, 3, (RELEASE,))), [(3, 3, 2)]),
        ):
            waiting = pool.submit(other.fetch, max_wait=20_000)
            until("a Fetch that waits", lambda: bool(broker._server.records.log("t", 0).waiting))
            wakes()
            assert waiting.result(FAR_S) == got


def test_the_bytes_of_an_answer_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared() as broker, connection(broker) as made:
        one = Member(made)
        assert one.fetch(max_bytes=1) == [(0, 0, 1)]
        assert one.fetch(max_bytes=2 * 69 + 68) == [(1, 2, 1)]
        monkeypatch.setattr(share, "FETCH_BYTES", 69)
        assert one.fetch(max_bytes=2**31 - 1) == [(3, 3, 1)]


def test_a_batch_is_acquired_whole_unless_the_limit_is_exact() -> None:
    with shared() as broker, connection(broker) as made:
        broker.produce("t", *[b"f"] * 10)
        one = Member(made)
        assert one.fetch(max_records=6) == [(0, 14, 1)]
        assert one.acknowledge((0, 14, (RELEASE,))) == "none"
        assert one.fetch(max_records=6, share_acquire_mode=1) == [(0, 5, 2)]
        assert one.fetch(max_records=6, share_acquire_mode=1) == [(6, 11, 2)]


def test_records_in_flight_have_a_bound() -> None:
    with shared() as broker, connection(broker) as made:
        broker.configure("s", {"share.partition.max.record.locks": "100"})
        for _ in range(20):
            broker.produce("t", *[b"f"] * 10)
        assert Member(made).fetch(max_records=1000) == [(0, 104, 1)]


def hostile(records: int) -> bytes:
    """Returns a batch of gzip whose header has another number of records than its one."""
    header = {"attributes": 1, "last_delta": records - 1, "record_count": records}
    return new_batch([StoredRecord(0, 0, 0, None, b"x")], **header).data


def test_the_records_acquired_at_once_have_a_bound() -> None:
    with pytest.raises(Refused, match="invalid_record"):
        received(hostile(1_500_000), 9)
    log, group = PartitionLog(1_000), SharePartition(0)
    for records in (1_000_000, 1):
        log.append(received(hostile(records), 9))
    wanted = Wanted(2**31 - 1, 2**31 - 1, exact=True, committed=False, most_locks=2_000)
    assert group.acquire(log, "m", 1, wanted)[0] == [(0, 99_999, 1)]
    assert group.acquire(log, "m", 1, wanted)[0] == []  # the window is full


@pytest.mark.parametrize("start", [99_999, 100_000])
def test_a_log_that_loses_most_records_does_not_hold_up_its_group(start: int) -> None:
    log, group = PartitionLog(1_000), SharePartition(0)
    for records in (start, 100_000 - start, 1):
        if records:
            log.append(received(hostile(records), 9))
    wanted = Wanted(2**31 - 1, 2**31 - 1, exact=False, committed=False, most_locks=100_000)
    group.acquire(log, "m", 1, wanted)
    log.delete_before(start)
    began = time.process_time()
    assert group.acquire(log, "m", 1, wanted)[0] == [(100_000, 100_000, 1)]
    assert group.start == start
    assert time.process_time() - began < 1


def test_markers_and_aborted_records_are_not_delivered() -> None:
    with shared() as broker, connection(broker) as made:
        log = broker._server.records.log("t", 0)
        for committed in (False, True):
            header: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "attributes": 0x10}
            data = new_batch(
                [StoredRecord(0, 0, 0, None, b"x")], **header, base_sequence=int(committed)
            ).data
            log.append(received(data, 9))
            log.end_transaction(marker(7, 0, committed, 0), committed)
        one = Member(made)
        assert one.fetch() == [(0, 5, 1), (7, 7, 1)]  # 6 and 8 are markers
        assert one.acknowledge((0, 5, (RELEASE,)), (7, 7, (RELEASE,))) == "none"
        broker.configure("s", {"share.isolation.level": "read_committed"})
        assert one.fetch() == [(0, 4, 2), (7, 7, 2)]


def test_aborted_records_do_not_fill_the_window() -> None:
    with shared() as broker, connection(broker) as made:
        one = Member(made)
        assert one.fetch() == [(0, 4, 1)]
        assert one.acknowledge((0, 4, (ACCEPT,))) == "none"
        broker.configure("s", {"share.isolation.level": "read_committed"})
        log = broker._server.records.log("t", 0)
        header = {"producer_id": 7, "producer_epoch": 0, "attributes": 0x10, "base_sequence": 0}
        aborted = new_batch([StoredRecord(0, 0, 0, None, b"x")] * 2_500, **header)
        log.append(received(aborted.data, 9))
        log.end_transaction(marker(7, 0, False, 0), False)
        broker.produce("t", b"f")
        assert one.fetch() == [(2_506, 2_506, 1)]


def test_a_group_begins_at_the_end_by_default_and_moves_with_the_start_of_the_log() -> None:
    with shared() as broker, connection(broker) as made:
        broker.configure("s", {"share.auto.offset.reset": None})
        one = Member(made)
        assert one.fetch() == []
        broker.produce("t", b"f", b"g")
        assert one.fetch() == [(5, 6, 1)]
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "offset": -1}]}]
        made.ask("delete_records", 2, timeout=1, topics=topics)
        broker.produce("t", b"h")
        assert one.fetch() == [(7, 7, 1)]
        assert state(broker) == (7, 8)


def test_deleted_topics_and_groups_are_forgotten() -> None:
    with shared() as broker, connection(broker) as made:
        one = Member(made)
        one.fetch()
        made.ask("delete_topics", 5, topic_names=["t"], timeout=1)
        error, found = one.ask("share_fetch")
        assert (error, found.error_code.name) == ("none", "unknown_topic_id")
        assert broker._server.shares._partitions == {}


# Settings of groups -------------------------------------------------------------------------------


def alter(one: Connection, name: str, value: str | None, operation: int = 0) -> str:
    configs = [{"name": name, "config_operation": operation, "value": value}]
    resources = [{"resource_type": 32, "resource_name": "s", "configs": configs}]
    answer = one.ask("incremental_alter_configs", 1, resources=resources, validate_only=False)
    return str(answer.responses[0].error_code.name)


def test_changes_that_contradict_each_other_are_refused() -> None:
    def answers(*changes: tuple[str, int, str | None], groups: int = 1) -> list[str]:
        configs = [
            dict(zip(("name", "config_operation", "value"), c, strict=True)) for c in changes
        ]
        resources = [{"resource_type": 32, "resource_name": "s", "configs": configs}] * groups
        asked = {"resources": resources, "validate_only": False}
        responses = made.ask("incremental_alter_configs", 1, **asked).responses
        return [one.error_code.name for one in responses]

    name, tags = "share.session.timeout.ms", "streams.rack.aware.assignment.tags"
    with RunningBroker({"t": 1}) as broker, connection(broker) as made:
        assert answers((name, 0, None)) == ["invalid_request"]
        assert answers((name, 0, "46000"), (name, 1, None)) == ["invalid_request"]
        assert answers((name, 0, "46000"), groups=2) == ["invalid_request"] * 2
        assert answers((tags, 0, "a" * 1_001)) == ["invalid_config"]
        assert broker._server.group_configs.groups() == []
        assert answers((tags, 0, "a,b")) == ["none"]


def described(one: Connection, *names: str) -> dict[str, tuple[str, int]]:
    resources = [{"resource_type": 32, "resource_name": "s", "configuration_keys": names or None}]
    asked = {"include_synonyms": False, "include_documentation": False}
    (found,) = one.ask("describe_configs", 4, resources=resources, **asked).results
    return {each.name: (each.value, each.config_source) for each in found.configs}


def test_settings_of_a_group_are_changed_and_described() -> None:
    name = "share.session.timeout.ms"
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        assert described(one, name) == {name: ("45000", 5)}
        assert alter(one, name, "1000") == "none"
        assert described(one, name) == {name: ("1000", 8)}
        # 500 is the interval of heartbeats
        for wrong in ("x", "0", "-1", "500", str(2**31), "9" * 4_301):
            assert alter(one, name, wrong) == "invalid_config"
        assert alter(one, "no.such", "1") == "invalid_config"
        assert alter(one, "share.delivery.count.limit", "32768") == "invalid_config"
        assert alter(one, name, "1", operation=2) == "invalid_config"
        assert alter(one, name, "1", operation=4) == "invalid_request"
        assert alter(one, name, None, operation=1) == "none"
        assert described(one, name) == {name: ("45000", 5)}
        assert broker._server.coordinator._state.group_configs == {}
        assert len(described(one)) == 18
        with pytest.raises(kr.GroupError, match=r"share.auto.offset.reset: 'first' is not a value"):
            broker.configure("s", {"share.auto.offset.reset": "first"})


def test_an_admin_client_changes_the_settings_of_a_group() -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    from kafka.admin import ConfigResource

    with RunningBroker({"t": 1}) as broker:
        admin = kafka.KafkaAdminClient(bootstrap_servers=broker.address)
        value = {"share.auto.offset.reset": "earliest"}
        admin.alter_configs([ConfigResource("GROUP", "s", value)], incremental=True)
        assert "earliest" in str(admin.describe_configs([ConfigResource("GROUP", "s")]))
        admin.close()
        assert broker._server.group_configs.value("s", "share.auto.offset.reset") == "earliest"


def test_what_has_settings_is_listed() -> None:
    with RunningBroker({"t": 1}) as broker, connection(broker) as one:
        broker.configure("s", EARLIEST)
        for kinds, names in ([], ["t", "1", "1", "s"]), ([32], ["s"]), ([16], []):
            found = one.ask("list_config_resources", 1, resource_types=kinds).config_resources
            assert [each.resource_name for each in found] == names
        refused = one.ask("list_config_resources", 1, resource_types=[1])
        assert refused.error_code.name == "unsupported_version"


def test_the_coordinator_follows_the_settings_of_a_group() -> None:
    with RunningBroker({"t": 1}, stopped_clock=True) as broker, connection(broker) as one:
        broker.configure("s", {"share.session.timeout.ms": "2000"})
        broker.configure("s", {"share.heartbeat.interval.ms": "700"})
        joins = {"group_id": "s", "member_id": "m", "subscribed_topic_names": ["t"]}
        answer = one.ask("share_group_heartbeat", 1, **joins, member_epoch=0)
        assert answer.heartbeat_interval.total_seconds() == 0.7
        broker.advance(2_000, heartbeats=False)
        group = broker._server.coordinator.groups()["s"]
        assert group.members.get("m") is None


# Offsets of groups --------------------------------------------------------------------------------


def offsets(one: Connection, *partitions: int) -> Any:
    """Returns the error of the group, and partition, start, lag and error of its partitions."""
    topics = [{"topic_name": "t", "partitions": partitions}] if partitions else None
    asked = [{"group_id": "s", "topics": topics}]
    (group,) = one.ask("describe_share_group_offsets", 1, groups=asked).groups
    rows = [(p.partition_index, p.start_offset, p.lag, p.error_code.name)
            for topic in group.topics for p in topic.partitions]  # fmt: skip
    return group.error_code.name, rows


def set_offset(one: Connection, partition: int, offset: int, topic: str = "t") -> list[str]:
    """Returns the error of the group, and those of the partitions."""
    changed = [{"partition_index": partition, "start_offset": offset}]
    topics = [{"topic_name": topic, "partitions": changed}]
    answer = one.ask("alter_share_group_offsets", 0, group_id="s", topics=topics)
    errors = (p.error_code.name for each in answer.responses for p in each.partitions)
    return [answer.error_code.name, *errors]


def delete(one: Connection, topic: str) -> list[str]:
    topics = [{"topic_name": topic}]
    answer = one.ask("delete_share_group_offsets", 0, group_id="s", topics=topics)
    return [answer.error_code.name, *(each.error_code.name for each in answer.responses)]


def test_offsets_of_a_group_are_described_set_and_deleted() -> None:
    """As `kafka-share-groups.sh` does it; the group is made if it is not known, as in Kafka."""
    unknown = "unknown_topic_or_partition"
    with shared() as broker, connection(broker) as one:
        assert offsets(one) == ("group_id_not_found", [])
        assert delete(one, "t") == ["group_id_not_found"]
        assert set_offset(one, 0, 2) == ["none", "none"]
        assert set_offset(one, 9, 2) == ["none", unknown]
        assert offsets(one, 0, 9) == ("none", [(0, 2, 3, "none"), (9, -1, -1, unknown)])
        member = Member(one)
        assert set_offset(one, 0, 0) == delete(one, "t") == ["non_empty_group"]
        assert member.fetch() == [(2, 4, 1)]
        assert offsets(one) == ("none", [(0, 2, 3, "none")])
        assert member.acknowledge((3, 4, (ACCEPT,))) == "none"
        assert offsets(one) == ("none", [(0, 2, 1, "none")])
        leaves = {"group_id": "s", "member_id": member.member_id, "member_epoch": -1}
        one.ask("share_group_heartbeat", 1, **leaves)
        assert delete(one, "no") == ["none", unknown]
        assert delete(one, "t") == ["none", "none"]
        assert offsets(one) == ("none", [])
        assert offsets(one, 0) == ("none", [(0, -1, -1, "none")])


# librdkafka ---------------------------------------------------------------------------------------


def test_share_consumers_of_librdkafka_share_the_records() -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="no confluent-kafka")
    if not hasattr(confluent, "ShareConsumer"):
        pytest.skip("this confluent-kafka has no share consumer")
    wanted = {(partition, at) for partition in range(2) for at in range(100)}
    with RunningBroker({"t": 2}) as broker:
        broker.configure("s", EARLIEST)
        for partition, at in sorted(wanted):
            broker.produce("t", b"%d" % at, partition=partition)
        configs = {"bootstrap.servers": broker.address, "group.id": "s"}
        several = [confluent.ShareConsumer(configs) for _ in range(2)]
        for one in several:
            one.subscribe(["t"])
        got: list[tuple[int, int]] = []
        deadline = time.monotonic() + 30
        while len(got) < len(wanted) and time.monotonic() < deadline:
            for one in several:
                got += [(each.partition(), each.offset()) for each in one.poll(0.2)]
        assert sorted(got) == sorted(wanted)
        for one in several:
            one.commit_sync(5.0)
            one.close()
        parts = broker._server.shares._partitions
        assert {(p, parts["s", ("t", p)].start) for p in range(2)} == {(0, 100), (1, 100)}

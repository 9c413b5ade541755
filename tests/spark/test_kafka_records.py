# SPDX-License-Identifier: Apache-2.0
"""Every client reads `__consumer_offsets` of a real broker, in one job and as a stream."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark.errors import PySparkException

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

import kafka

from kafka_rebalance.live import ClusterError, snapshot_lines
from kafka_rebalance.live.topic_log import CLIENTS, open_log
from kafka_rebalance.spark import (
    RECORDS_SCHEMA,
    committed_offsets,
    current_groups,
    offset_bounds,
    read_consumer_offsets,
    stream_consumer_offsets,
)
from tests.support.live_members import JavaMembers, PythonMembers, await_stable
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.live

TOPIC = "__consumer_offsets"
INSTALLED = [name for name, module in CLIENTS.items() if importlib.util.find_spec(module)]


class Cluster(NamedTuple):
    server: str
    producers: dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    members_log = tmp_path_factory.mktemp("records") / "java-members.log"
    with Broker() as broker:
        server = broker.bootstrap_server
        with kafka.KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics(
                {"t": {"num_partitions": 6, "replication_factor": 1}}, wait_for_metadata=True
            )
        with JavaMembers(server, members_log) as java, PythonMembers(server) as python:
            java.tell(add=[_java("range", 0), _java("cooperative-sticky", 0)])
            java.tell(add=[_java("range", 1), _java("cooperative-sticky", 1)])
            java.tell(close=["java-range-0"])
            python.add("aiokafka", "aiokafka", "a-0", "roundrobin", ["t"])
            await_stable(server, {"aiokafka": 1})
            # The open transaction is in a partition of its own, so it hides no other group.
            producers = {}
            for name, offset in {"done": 1000, "aborted": 2000, "not-done": 3000}.items():
                producers[name] = _transaction(server, name, offset)
            producers["done"].commit_transaction()
            producers["aborted"].abort_transaction()
            yield Cluster(server, producers)
            for producer in producers.values():
                producer.close()


def _java(assignor: str, n: int) -> dict[str, Any]:
    return {
        "group_id": f"java-{assignor}",
        "client_id": f"java-{assignor}-{n}",
        "assignors": [assignor],
        "topics": ["t"],
    }


def _transaction(server: str, group_id: str, offset: int) -> Any:
    """Begins a transaction that commits an offset for its group."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=server,
        transactional_id=f"tx-{group_id}",
        transaction_timeout_ms=900_000,  # the broker aborts a transaction that is open for longer
    )
    producer.init_transactions()
    producer.begin_transaction()
    place = kafka.TopicPartition("t", 0)
    commit = kafka.OffsetAndMetadata(offset, "transactional", -1)
    producer.send_offsets_to_transaction({place: commit}, group_id)
    return producer


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name not in INSTALLED:
        pytest.skip(f"{name} is not installed: pip install -e '.[confluent]'")
    return name


def _read(spark: SparkSession, cluster: Cluster, client: str, **options: str) -> DataFrame:
    return read_consumer_offsets(
        spark, bootstrap_servers=cluster.server, options={"client": client, **options}
    )


def test_the_groups_are_those_of_a_snapshot(
    spark: SparkSession, cluster: Cluster, client: str
) -> None:
    """Members, owners, assignors and leaders' libraries from the log equal those of a snapshot."""
    records = _read(spark, cluster, client)
    assert records.schema == spark.createDataFrame([], RECORDS_SCHEMA).schema
    topics = spark.createDataFrame([("t", 6)], "name string, partitions int")
    rows = {row["group_id"]: row for row in current_groups(records, topics).collect()}
    described = {line["group_id"]: line for line in snapshot_lines(cluster.server)}
    assert set(described) == {"java-range", "java-cooperative-sticky", "aiokafka"} <= set(rows)
    for group_id, line in described.items():
        row = rows[group_id].asDict(recursive=True)
        assert (row["kind"], row["state"], row["error"]) == ("consumer", "Stable", None)
        assert (row["assignor"], row["leader_library"]) == (
            line["assignor"],
            line["leader_library"],
        )
        assert _owners(row["members"]) == _owners(line["members"])


def _owners(members: list[dict[str, Any]]) -> dict[str, set[tuple[str, int]]]:
    return {
        member["member_id"]: {
            (run["topic"], partition)
            for run in member["owned_partitions"]
            for partition in run["partitions"]
        }
        for member in members
    }


def test_ranges_and_streams_read_each_record_once(
    spark: SparkSession, cluster: Cluster, client: str
) -> None:
    """Cut into ranges, or into micro-batches by a limit, each record is read once."""
    columns = ["partition", "offset", "key", "value", "timestamp", "timestampType"]
    whole = _read(spark, cluster, client).select(*columns).collect()
    assert len({(row["partition"], row["offset"]) for row in whole}) == len(whole) > 20
    ends: dict[int, int] = {}  # members continue to commit, so only records up to here count
    for row in whole:
        ends[row["partition"]] = max(row["offset"], ends.get(row["partition"], -1))

    def until_then(rows: list[Row]) -> list[Row]:
        return sorted(row for row in rows if row["offset"] <= ends.get(row["partition"], -1))

    cut = _read(spark, cluster, client, maxRecordsPerPartition="50").select(*columns)
    assert until_then(cut.collect()) == sorted(whole)

    name = client.replace("-", "_")
    limit = len(whole) // 3
    stream = stream_consumer_offsets(
        spark,
        bootstrap_servers=cluster.server,
        options={"client": client, "maxOffsetsPerTrigger": str(limit)},
    )
    query = (
        stream.writeStream.format("memory")
        .queryName(f"records_{name}")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(int(FAR_S))
    read = spark.table(f"records_{name}").select(*columns).collect()
    assert until_then(read) == sorted(whole)
    progress = query.recentProgress
    assert len(progress) > 1
    # The limit can be exceeded: each partition with new records contributes at least one to a
    # micro-batch.
    assert max(one["numInputRows"] for one in progress) <= limit + len(ends)


def test_open_and_aborted_transactions_are_not_read(
    spark: SparkSession, cluster: Cluster, client: str
) -> None:
    commits = {
        row["group_id"]: row["offset"]
        for row in committed_offsets(_read(spark, cluster, client)).collect()
        if row["metadata"] == "transactional"
    }
    assert commits == {"done": 1000}
    bounds = offset_bounds(
        spark, bootstrap_servers=cluster.server, options={"client": client}
    ).collect()
    held_back = [row for row in bounds if row["high_watermark"] > row["last_stable"]]
    assert len(bounds) == 4
    assert len(held_back) == 1


def test_a_range_of_aborted_records_ends(cluster: Cluster, client: str) -> None:
    """If no record of a range is committed, none arrives; the reader must still find the end."""
    log = open_log({"bootstrap.servers": cluster.server}, TOPIC, client=client, idle_s=20)
    bounds, unseen = log.bounds(), []
    for partition, (start, end, _) in bounds.items():
        read = [
            offset
            for batch in log.records(partition, start, end)
            for offset in batch["offset"].to_pylist()
        ]
        unseen += [(partition, offset) for offset in sorted({*range(start, end)} - {*read})]
    for partition, offset in unseen:
        assert list(log.records(partition, offset, offset + 1)) == []
    assert len(unseen) == 3, bounds  # the aborted commit and two transactions' markers


def test_offsets_that_the_log_has_not(cluster: Cluster, client: str) -> None:
    """Offsets that the log does not have are an error; by default, both clients would skip them."""
    log = open_log({"bootstrap.servers": cluster.server}, TOPIC, client=client, idle_s=20)
    with pytest.raises(ClusterError, match="partition 1: the log no longer has offset 100000"):
        list(log.records(1, 100_000, 100_010))


def test_a_range_that_stands_still_ends(cluster: Cluster, client: str) -> None:
    log = open_log({"bootstrap.servers": cluster.server}, TOPIC, client=client, idle_s=1)
    end = log.bounds()[0].last_stable
    with pytest.raises(ClusterError, match=f"partition 0: nothing after offset {end} for 1 s"):
        list(log.records(0, end, end + 1))


def test_no_partitions_is_an_error(spark: SparkSession, cluster: Cluster, client: str) -> None:
    log = open_log({"bootstrap.servers": cluster.server}, "absent", client=client)
    with pytest.raises(ClusterError, match="topic absent: the cluster shows no partition"):
        log.bounds()
    with pytest.raises(PySparkException, match="topic absent: the cluster shows no partition"):
        _read(spark, cluster, client, topic="absent").count()


def test_secrets_stay_out_of_plans_and_errors(
    spark: SparkSession, cluster: Cluster, client: str
) -> None:
    options = {"kafka.sasl.password": "tops3cret", "kafka.sasl.username": "u", "topic": "absent"}
    records = _read(spark, cluster, client, **options)
    plan = str(records._jdf.queryExecution().analyzed())
    with pytest.raises(PySparkException) as caught:
        records.count()
    assert "absent" in str(caught.value)
    assert "tops3cret" not in str(caught.value) + plan

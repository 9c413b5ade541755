# SPDX-License-Identifier: Apache-2.0
"""Spark makes groups and answers from records; as in Kafka, a key's last record counts."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.errors import WireError
from kafka_rebalance.spark import (
    COMMITS_SCHEMA,
    GroupRecords,
    SchemaError,
    assign_groups,
    assign_owners,
    committed_offsets,
    count_causes,
    count_records,
    current_groups,
    plan_each_change,
    plan_groups,
)
from kafka_rebalance.spark.consumer_offsets import reads_nothing
from kafka_rebalance.wire.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tests.test_records import RACKS, TOPICS, captured, drawn, reference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = "key binary, value binary, partition int, offset bigint"
FLEXIBLE = 4  # the first version whose lengths are varints
INVENTORY = "name string, partitions int, racks array<array<string>>"


def _inventory(spark: SparkSession) -> DataFrame:
    rows = [(name, count, RACKS.get(name)) for name, count in TOPICS.items()]
    return spark.createDataFrame(rows, INVENTORY)


def _frame(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str = RECORDS) -> DataFrame:
    return spark.createDataFrame(rows, schema)


def _known(value: Any) -> Any:
    """Returns a row without the fields that are null, also those of its topics and members."""
    if isinstance(value, dict):
        return {name: _known(one) for name, one in value.items() if one is not None}
    return [*map(_known, value)] if isinstance(value, list) else value


def test_the_last_record_of_a_key_wins(spark: SparkSession) -> None:
    """In a shuffled real log, a key's record with the largest offset counts, not its last row."""
    log = captured()
    rows = [(key, value, key[-1] % 3, offset) for offset, (key, value) in enumerate(log)]
    random.Random(3).shuffle(rows)
    last = dict(log)
    found = {
        row["group_id"]: row.asDict(recursive=True)
        for row in current_groups(_frame(spark, rows), _inventory(spark)).collect()
    }
    living = {key: value for key, value in last.items() if value is not None}
    assert len(living) < len(last)  # some groups have ended
    assert set(found) == {key[4:].decode() for key in living}
    good = 0
    for key, value in living.items():
        assert value is not None
        row = found[key[4:].decode()]
        if row["error"] is None:
            assert _known(row) == _known(reference(key, value))
            good += 1
    assert good > 10


def test_groups_are_assigned_from_their_records(spark: SparkSession) -> None:
    rows = [(key, value, 0, offset) for offset, (key, value) in enumerate(captured())]
    groups = current_groups(_frame(spark, rows), _inventory(spark))
    stable = groups.where("error is null and kind = 'consumer' and state = 'Stable'")
    answers = assign_groups(stable).collect()
    assert len(answers) > 5
    assert {row["error"] for row in answers} == {None}


def test_clusters_do_not_meet(spark: SparkSession) -> None:
    """One key in two clusters makes two groups, each with its own cluster's topics."""
    key, value = next(
        (key, value)
        for key, value in captured()
        if value and key[4:] == b"java-eager" and len(value) > 200
    )
    rows = [("one", key, value, 0, 5), ("two", key, value, 0, 4), ("two", key, None, 0, 9)]
    records = _frame(spark, rows, f"cluster string, {RECORDS}")
    topics = spark.createDataFrame(
        [("one", "orders", 7), ("one", "refunds", 2), ("two", "orders", 1)],
        "cluster string, name string, partitions int",
    )
    [row] = current_groups(records, topics).collect()
    assert (row["cluster"], row["error"]) == ("one", None)
    assert {topic["name"]: topic["partitions"] for topic in row["topics"]} == {
        "orders": 7,
        "refunds": 2,
    }
    rows[-1] = ("two", key, value, 0, 9)
    both = current_groups(_frame(spark, rows, f"cluster string, {RECORDS}"), topics).collect()
    assert {row["cluster"]: row["error"] for row in both} == {
        "one": None,
        "two": 'topics: the inventory has no topic "refunds"; add it, or set assume_assigned',
    }


def test_records_are_counted_by_kind(spark: SparkSession) -> None:
    keys = [
        b"\0\0a",
        b"\0\1a",
        b"\0\2\0\1g",
        b"\0\2\0\1g",
        b"\0\3a",
        b"\0\x10",
        b"\0\x0b",
        b"\0\x63",
    ]
    rows: list[tuple[Any, ...]] = [(key, b"v", 0, n) for n, key in enumerate(keys)]
    rows += [(b"\0\2\0\1g", None, 0, 90), (b"\0", b"", 0, 91), (None, b"", 0, 92)]
    found = {row["kind"]: tuple(row[1:]) for row in count_records(_frame(spark, rows)).collect()}
    assert found == {
        "offset commit": (2, 0),
        "group": (3, 1),
        "consumer protocol (KIP-848)": (2, 0),
        "share group (KIP-932)": (1, 0),
        "key version 99": (1, 0),
        "unreadable key": (2, 0),
    }


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("key binary, value binary, partition int", "records.offset: missing; expected bigint"),
        (
            "key string, value binary, partition int, offset bigint",
            "records.key: string in place of binary",
        ),
    ],
)
def test_wrong_columns_are_named_before_anything_runs(
    spark: SparkSession, schema: str, problem: str
) -> None:
    with pytest.raises(SchemaError, match=problem):
        current_groups(_frame(spark, [], schema), _inventory(spark))
    with pytest.raises(SchemaError, match=r"topics\.partitions: missing"):
        current_groups(_frame(spark, []), _inventory(spark).drop("partitions"))
    wrong = _inventory(spark).selectExpr("*", "7 as topic_id")
    with pytest.raises(SchemaError, match=r"topics\.topic_id: int in place of string"):
        current_groups(_frame(spark, []), wrong)
    none = _inventory(spark).selectExpr("*", "null as topic_id")
    assert current_groups(_frame(spark, []), none).collect() == []


@pytest.mark.parametrize(
    ("plan", "silent", "silent_if_set"),
    [
        (
            "Relation [key#7] KafkaRelation(strategy=Subscribe[t, __consumer_offsets], start=E)",
            True,
            False,
        ),
        (
            "Relation [key#7] KafkaRelation(strategy=Assign[__consumer_offsets-0], start=E)",
            True,
            False,
        ),
        ("Relation [key#7] KafkaRelation(strategy=SubscribePattern[__consumer_.*])", True, True),
        ("Relation [key#7] KafkaRelation(strategy=Subscribe[copy], start=E)", False, False),
        (
            (
                "StreamingRelationV2 org.apache.spark.sql.kafka010.KafkaSourceProvider@1, kafka, "
                "[subscribe=__consumer_offsets], [key#7]"
            ),
            True,
            False,
        ),
        ("Relation [key#7] parquet lake/__consumer_offsets", False, False),
        ("RelationV2[key#7] kafka_rebalance_records", False, False),
    ],
)
def test_sparks_own_source_that_reads_nothing(plan: str, silent: bool, silent_if_set: bool) -> None:
    assert reads_nothing(f"Project [key#7]\n+- {plan}", is_set=False) == silent
    assert reads_nothing(f"Project [key#7]\n+- {plan}", is_set=True) == silent_if_set


def test_committed_offsets_beside_the_groups(spark: SparkSession) -> None:
    """A partition's last record counts: a tombstone has no row, cut bytes are an error."""
    places = [OffsetCommitKey("g", "t", p) for p in range(3)] + [OffsetCommitKey("h", "t", 0)]
    keys = [encode_key(place) for place in places]
    time_ms = 1_795_319_085_565
    values = [
        encode_value(OffsetCommitValue(offset, 4, "m", time_ms + offset)) for offset in range(5)
    ]
    rows = [
        ("one", keys[0], values[0], 0, 1),
        ("one", keys[0], values[1], 0, 2),
        ("two", keys[0], values[4], 0, 0),
        ("one", keys[1], values[2], 0, 3),
        ("one", keys[1], None, 0, 4),
        ("one", keys[2], values[3][:9], 0, 5),
        ("one", keys[3], values[2], 1, 0),
        ("one", encode_key(GroupMetadataKey("g")), b"", 0, 6),
    ]
    random.Random(2).shuffle(rows)
    records = _frame(spark, rows, f"cluster string, {RECORDS}")
    found = {
        (row["cluster"], row["group_id"], row["partition"]): row
        for row in committed_offsets(records).collect()
    }
    assert {place: row["offset"] for place, row in found.items()} == {
        ("one", "g", 0): 1,
        ("two", "g", 0): 4,
        ("one", "g", 2): None,
        ("one", "h", 0): 2,
    }
    assert found["one", "g", 2]["error"] == "value.offset: needs 8 bytes, 7 are left"
    row = found["one", "h", 0]
    assert (row["topic"], row["metadata"], row["leader_epoch"]) == ("t", "m", 4)
    assert row["commit_timestamp"].timestamp() == (time_ms + 2) / 1000
    assert committed_offsets(records.drop("cluster")).columns[0] == "group_id"
    assert (
        committed_offsets(records).schema
        == spark.createDataFrame([], f"cluster string, {COMMITS_SCHEMA}").schema
    )


def _damaged(rng: random.Random, value: bytes) -> tuple[str | None, bytes]:
    """Returns the cause of the expected error, and a damaged value.

    The cause is None for random bytes; then the reference's error is expected.
    """
    match rng.randrange(4):
        case 0:
            return "cut short, or a length is too large", value[: rng.randrange(2, len(value))]
        case 1:
            version = rng.randint(5, 30_000).to_bytes(2, "big")
            return "unknown version", version + value[2:]
        case 2:  # the length of the protocol type follows the version
            huge = b"\xff\xff\xff\xff\x07" if value[1] == FLEXIBLE else b"\x7f\xff"
            return "cut short, or a length is too large", value[:2] + huge + value[4:]
        case _:
            return None, rng.randbytes(rng.randint(0, 400))


def test_one_record_in_a_hundred_is_corrupt(spark: SparkSession) -> None:
    """The job ends, errors are counted by cause, and every intact group is right."""
    rng = random.Random(23)
    rows: list[tuple[Any, ...]] = []
    expected: dict[str, Any] = {}
    causes: Counter[str] = Counter()
    for offset in range(8_000):
        group_id, (_, value) = f"g{offset}", drawn(rng)
        key = encode_key(GroupMetadataKey(group_id))
        cause: str | None = None
        if rng.random() < 0.01:
            cause, value = _damaged(rng, value)
        rows.append((key, value, offset % 5, offset))
        try:
            expected[group_id] = reference(key, value)
        except WireError as error:
            expected[group_id] = None
            causes[cause or _cause(str(error))] += 1
    assert sum(causes.values()) > 50
    groups = current_groups(_frame(spark, rows), _inventory(spark)).cache()
    found = {row["group_id"]: row.asDict(recursive=True) for row in groups.collect()}
    assert {name for name, row in found.items() if row["error"] is not None} == {
        name for name, row in expected.items() if row is None
    }
    read = {n: row for n, row in found.items() if row["error"] is None}
    assert _known(read) == _known(expected)
    counted = {row["cause"]: row["records"] for row in count_causes(groups).collect()}
    assert counted == causes
    answers = assign_groups(groups.where("kind = 'consumer' or error is not null")).collect()
    assert len(answers) == len(rows)
    bad = {row["group_id"] for row in answers if row["error"] is not None}
    assert bad >= {name for name, row in expected.items() if row is None}


def _cause(error: str) -> str:
    """Returns the cause of an error in random bytes, found in the error's text."""
    if "not known" in error:
        return "unknown version"
    if "null" in error:
        return "a null where none may be"
    return "cut short, or a length is too large"


def test_answers_from_records_equal_those_from_their_rows(spark: SparkSession) -> None:
    """Answers from records equal those from the rows of `current_groups`.

    The records' clusters are a, b and null. Only stable consumer groups and errors have answers.
    """
    rng = random.Random(31)
    rows: list[tuple[Any, ...]] = [
        (key, value, 0, offset, "a") for offset, (key, value) in enumerate(captured())
    ]
    for offset in range(600):
        group_id, (_, value) = f"g{offset % 400}", drawn(rng)
        key = encode_key(GroupMetadataKey(group_id))
        rows.append((key, value, 1, offset, ("a", "b", "a", None)[offset % 4]))
    records = _frame(spark, rows, f"{RECORDS}, cluster string")
    small = [("t", 6, None, "b"), ("u", 2, None, "b")]
    topics = [(name, count, RACKS.get(name), "a") for name, count in TOPICS.items()]
    inventory = spark.createDataFrame([*topics, *small], f"{INVENTORY}, cluster string")
    source = GroupRecords(records, inventory)
    groups = current_groups(records, inventory).where(
        "error is not null or kind = 'consumer' and state = 'Stable'"
    )

    def content(frame: DataFrame) -> Counter[str]:
        return Counter(str(row.asDict(recursive=True)) for row in frame.collect())

    answered = content(assign_groups(source))
    assert answered == content(assign_groups(groups))
    assert len(answered) > 300
    assert any("'cluster': None" in row for row in answered)
    assert content(assign_owners(source)) == content(assign_owners(groups))
    changes = ["add-members=1", "partitions=u=9"]
    assert content(plan_groups(source, changes=changes)) == content(
        plan_groups(groups, changes=changes)
    )
    assert content(plan_each_change(source, changes)) == content(plan_each_change(groups, changes))
    with pytest.raises(SchemaError, match="changes: records have none"):
        plan_groups(source)
    with pytest.raises(SchemaError, match=r"topics\.partitions: missing"):
        assign_groups(GroupRecords(records, inventory.drop("partitions")))

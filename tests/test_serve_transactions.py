# SPDX-License-Identifier: Apache-2.0
"""Producers of `serve` with a transactional id. Source: Kafka's TransactionCoordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.serve import transactions
from kafka_rebalance.serve.batches import StoredRecord, new_batch
from kafka_rebalance.testing import RunningBroker
from tests.support.served_broker import REQUESTS, connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.parity.wire import Connection

Epoch = tuple[int, int]
"""A producer's id and epoch."""


@pytest.fixture
def broker() -> Iterator[RunningBroker]:
    with RunningBroker({"orders": 1}) as running:
        yield running


@pytest.fixture
def one(broker: RunningBroker) -> Iterator[Connection]:
    with connection(broker) as made:
        yield made


def begin(
    one: Connection, producer: Epoch = (-1, -1), version: int = 4, **more: Any
) -> Epoch | str:
    """Returns the producer's id and epoch, or the name of the error."""
    given = {"producer_id": producer[0], "producer_epoch": producer[1], **more}
    answer = one.ask("init_producer_id", version, **{**REQUESTS["init_producer_id"], **given})
    found = (answer.producer_id, answer.producer_epoch)
    assert (found == (-1, -1)) == bool(answer.error_code)
    return answer.error_code.name if answer.error_code else found


def begun(one: Connection, **more: Any) -> Epoch:
    found = begin(one, **more)
    assert isinstance(found, tuple)
    return found


def add(one: Connection, producer: Epoch, version: int = 3) -> str:
    names = dict(zip(("producer_id", "producer_epoch"), producer, strict=True))
    given = {f"v3_and_below_{name}": value for name, value in names.items()}
    asked = {**REQUESTS["add_partitions_to_txn"], **given}
    answer = one.ask("add_partitions_to_txn", version, **asked)
    (topic,) = answer.results_by_topic_v3_and_below
    return str(topic.results_by_partition[0].partition_error_code.name)


def ask(one: Connection, api: str, producer: Epoch, version: int = 3, **more: Any) -> str:
    given = {"producer_id": producer[0], "producer_epoch": producer[1], **more}
    answer = one.ask(api, version, **{**REQUESTS[api], **given})
    if api == "txn_offset_commit":
        return str(answer.topics[0].partitions[0].error_code.name)
    return str(answer.error_code.name)


def produce(one: Connection, producer: Epoch, version: int = 9) -> str:
    header = {"producer_id": producer[0], "producer_epoch": producer[1], "base_sequence": 0}
    data = new_batch([StoredRecord(0, 0, 0, None, b"a")], attributes=0x10, **header).data
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": data}]}
    asked = {**REQUESTS["produce"], "transactional_id": "p", "topic_data": [topic]}
    (found,) = one.ask("produce", version, **asked).responses[0].partition_responses
    return str(found.error_code.name)


def test_an_end_that_is_sent_again_has_its_answer_again(
    one: Connection, broker: RunningBroker
) -> None:
    producer = begun(one)
    assert ask(one, "end_txn", producer) == "invalid_txn_state"
    for committed in (True, False):
        assert add(one, producer) == "none"
        ends = [ask(one, "end_txn", producer, committed=which)
                for which in (committed, committed, not committed)]  # fmt: skip
        assert ends == ["none", "none", "invalid_txn_state"]
    assert broker._server.records.log("orders", 0).end == 2  # one marker for each transaction


def test_a_zombie_is_fenced(one: Connection) -> None:
    old = begun(one)
    new = begun(one)
    assert (new[0], new[1]) == (old[0], old[1] + 1)
    for api in ("end_txn", "add_offsets_to_txn"):
        assert ask(one, api, old) == "producer_fenced"
        assert ask(one, api, old, version=1) == "invalid_producer_epoch"
    assert [add(one, old, version) for version in (3, 1)] == [
        "producer_fenced", "invalid_producer_epoch"
    ]  # fmt: skip
    assert ask(one, "txn_offset_commit", old) == "invalid_producer_epoch"
    assert produce(one, old) == "invalid_producer_epoch"
    assert produce(one, (old[0] + 9, 0)) == "invalid_producer_id_mapping"


def test_only_what_was_added_to_the_transaction_is_written(one: Connection) -> None:
    producer = begun(one)
    assert [produce(one, producer, version) for version in (10, 11)] == [
        "invalid_txn_state", "transaction_abortable"
    ]  # fmt: skip
    assert ask(one, "txn_offset_commit", producer) == "invalid_txn_state"
    assert add(one, producer) == "none"
    assert produce(one, producer) == "none"
    assert ask(one, "add_offsets_to_txn", producer) == "none"
    assert ask(one, "txn_offset_commit", producer, generation_id=-1, member_id="") == "none"
    assert ask(one, "end_txn", producer) == "none"
    assert produce(one, producer) == "invalid_txn_state"


def test_an_open_transaction_is_aborted_and_the_producer_asks_again(one: Connection) -> None:
    first = begun(one)
    add(one, first)
    produce(one, first)
    assert begin(one) == "concurrent_transactions"
    assert begin(one) == (first[0], first[1] + 2)
    assert produce(one, first) == "invalid_producer_epoch"


def test_a_producer_continues_after_an_error_unless_another_one_began(one: Connection) -> None:
    """KIP-360: the producer names its id and epoch; sent again, it gets the same epoch."""
    first = begun(one)
    second = (first[0], first[1] + 1)
    assert [begin(one, first), begin(one, first), begin(one, second)] == [
        second, second, (first[0], 2)
    ]  # fmt: skip
    assert begin(one, first) == "producer_fenced"
    assert begin(one, first, version=3) == "invalid_producer_epoch"
    assert begin(one, (first[0] + 1, 2)) == "producer_fenced"
    assert begin(one, (first[0], -1)) == "invalid_request"
    begun(one)
    assert begin(one, (first[0], 2)) == "producer_fenced"


def test_after_the_last_epoch_a_producer_has_a_new_id(
    one: Connection, broker: RunningBroker
) -> None:
    first = begun(one)
    broker._server._transactions._producers["p"].epoch = 32_766
    last = (first[0], 32_766)
    new = begin(one, last)
    assert new == (first[0] + 1, 0)
    assert begin(one, last) == new  # sent again
    assert begin(one) == (first[0] + 1, 1)


def test_the_number_of_transactional_ids_has_a_bound_but_not_of_producers_without_one(
    one: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 1)
    begun(one)
    assert begin(one, transactional_id="q") == "coordinator_not_available"
    ids = [begun(one, transactional_id=None) for _ in range(3)]
    assert [epoch for _, epoch in ids] == [0, 0, 0]
    assert len({number for number, _ in ids}) == 3


def test_names_and_timeouts_that_kafka_refuses(one: Connection) -> None:
    assert begin(one, transactional_id="") == "invalid_request"
    for timeout in (0, 900_001):
        assert begin(one, transaction_timeout=timeout) == "invalid_transaction_timeout"
    assert ask(one, "end_txn", (1, 0), transactional_id="") == "invalid_request"

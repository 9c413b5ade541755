# SPDX-License-Identifier: Apache-2.0
"""The transactions of producers, which produce records and commit offsets of groups.

A transaction begins with AddPartitionsToTxn or AddOffsetsToTxn. It ends with EndTxn, or with an
InitProducerId of the same transactional id. A real broker also ends it after the producer's
timeout; this server does not.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

from kafka_rebalance.wire.messages import Frozen

from .cluster import Cluster
from .frames import Asked, KafkaError
from .records import Records

MOST_PRODUCERS = 10_000


class Producer(Frozen):
    """A producer; `state` is Kafka's name for the state of its transaction."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: str = "Empty"


class Transactions:
    """The producers by transactional id. Producer ids count from `first_id`."""

    def __init__(self, first_id: int = 1) -> None:
        self._producers: dict[str, Producer] = {}
        self._ids = count(first_id)

    def begin(self, asked: Asked) -> tuple[Mapping[str, Any], int | None]:
        """Answers InitProducerId; also returns the producer id of a transaction to abort."""
        name = asked.body.transactional_id
        before = self._producers.get(name)
        error = asked.error
        if before is None and len(self._producers) >= MOST_PRODUCERS:
            error = KafkaError.coordinator_not_available
        if error is not KafkaError.none:
            return {"error_code": error, "producer_id": -1, "producer_epoch": -1}, None
        timeout = round(asked.body.transaction_timeout.total_seconds() * 1000)
        if before is None:
            made = Producer(next(self._ids), 0, timeout)
        else:
            made = Producer(before.producer_id, before.epoch + 1, timeout)
        if name is not None:
            self._producers[name] = made
        aborted = before.producer_id if before is not None and before.state == "Ongoing" else None
        answer = {"producer_id": made.producer_id, "producer_epoch": made.epoch}
        return {"error_code": KafkaError.none, **answer}, aborted

    def add(self, asked: Asked) -> Mapping[str, Any]:
        """Answers AddOffsetsToTxn."""
        error = self.error(asked)
        if error is KafkaError.none:
            self._move(asked, "Ongoing")
        return {"error_code": error}

    def add_partitions(self, asked: Asked, cluster: Cluster, records: Records) -> Mapping[str, Any]:
        """Answers AddPartitionsToTxn: all partitions are added, or none if one is unknown."""
        body = asked.body
        topics = body.v3_and_below_topics
        places = {(topic.name, one) for topic in topics for one in topic.partitions}
        unknown = {place for place in places if not cluster.has(*place)}
        error = self.error(asked)
        if error is KafkaError.none and not unknown:
            self._move(asked, "Ongoing")
            records.add_to_transaction(body.v3_and_below_producer_id, places)

        def code(place: tuple[str, int]) -> KafkaError:
            if place in unknown:
                return KafkaError.unknown_topic_or_partition
            return KafkaError.operation_not_attempted if unknown else error

        results = [
            {
                "name": topic.name,
                "results_by_partition": [
                    {"partition_index": one, "partition_error_code": code((topic.name, one))}
                    for one in topic.partitions
                ],
            }
            for topic in topics
        ]
        return {"results_by_topic_v3_and_below": results}

    def end(self, asked: Asked) -> Mapping[str, Any]:
        """Answers EndTxn."""
        error = self.error(asked)
        if error is KafkaError.none:
            if self._producers[asked.body.transactional_id].state != "Ongoing":
                error = KafkaError.invalid_txn_state
            else:
                self._move(asked, "CompleteCommit" if asked.body.committed else "CompleteAbort")
        return {"error_code": error}

    def error(self, asked: Asked) -> KafkaError:
        """Returns the error if the transactional id, producer id or epoch is wrong, else `none`."""
        if asked.error is not KafkaError.none:
            return asked.error
        known = self._producers.get(_of(asked.body, "transactional_id"))
        if known is None or known.producer_id != _of(asked.body, "producer_id"):
            return KafkaError.invalid_producer_id_mapping
        same = known.epoch == _of(asked.body, "producer_epoch")
        return KafkaError.none if same else KafkaError.invalid_producer_epoch

    def _move(self, asked: Asked, state: str) -> None:
        name = _of(asked.body, "transactional_id")
        self._producers[name] = replace(self._producers[name], state=state)

    def describe(self, asked: Asked) -> Mapping[str, Any]:
        names = asked.body.transactional_ids
        return {"transaction_states": [self._described(one, asked.error) for one in names]}

    def _described(self, name: str, error: KafkaError) -> dict[str, Any]:
        known = self._producers.get(name)
        found = known or Producer(-1, -1, 0, "")
        absent = KafkaError.transactional_id_not_found
        return {
            "error_code": error or (absent if known is None else KafkaError.none),
            "transactional_id": name,
            "transaction_state": found.state,
            "transaction_timeout": found.timeout_ms,
            "transaction_start_time": datetime.fromtimestamp(0, UTC),
            "producer_id": found.producer_id,
            "producer_epoch": found.epoch,
            "topics": (),
        }


def _of(body: Any, name: str) -> Any:
    """Returns a field of a request; AddPartitionsToTxn has other names for them (KIP-890)."""
    return getattr(body, name if hasattr(body, name) else f"v3_and_below_{name}")

# SPDX-License-Identifier: Apache-2.0
"""Answers the requests of producers with transactions: of records, and of groups' offsets.

A transaction begins with AddPartitionsToTxn or AddOffsetsToTxn. It ends with EndTxn, or with an
InitProducerId for the same transactional id. A real broker also ends it after the producer's
timeout; this server does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from .cluster import Cluster
from .frames import Asked, KafkaError

MOST_PRODUCERS = 10_000
"""The largest number of transactional ids; a producer without one is not stored."""
_LAST_EPOCH = 2**15 - 2
"""The last epoch that a producer gets under one id; the next one is kept, to fence a producer."""
_LONGEST_MS = 900_000
"""The longest timeout of a transaction: the default of Kafka's `transaction.max.timeout.ms`."""
# Per request, the first version with PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH.
_KNOWS_FENCED = {"init_producer_id": 4, "produce": 99, "txn_offset_commit": 99}
_KNOWS_FENCED_ELSE = 2
_KNOWS_ABORTABLE = 11
"""The first version of Produce with TRANSACTION_ABORTABLE; older ones get INVALID_TXN_STATE."""

Place = tuple[str, int] | str
"""The target of a write in a transaction: (topic, partition) or, for offsets, a group id."""


@dataclass
class Producer:
    """A producer with a transactional id. `state` is Kafka's name for its transaction's state."""

    producer_id: int
    epoch: int = -1
    timeout_ms: int = 0
    state: str = "Empty"
    last_epoch: int = -1
    """The epoch that the producer sent to get the present one (KIP-360); -1 if it sent none."""
    previous_id: int = -1
    places: set[Place] = field(default_factory=set)


class Ended(NamedTuple):
    producer_id: int
    epoch: int
    committed: bool
    places: set[Place]


class Transactions:
    """The producers by transactional id; the first one gets the producer id `first_id`."""

    def __init__(self, first_id: int = 1) -> None:
        self._producers: dict[str, Producer] = {}
        self._ids = count(first_id)

    def begin(self, asked: Asked) -> tuple[Mapping[str, Any], Ended | None]:
        """Returns the answer to InitProducerId, and the transaction that it aborts, or None."""
        error, made, aborted = self._begun(asked)
        if error or made is None:
            error = _as_known(asked, error)
            return {"error_code": error, "producer_id": -1, "producer_epoch": -1}, aborted
        answer = {"producer_id": made.producer_id, "producer_epoch": made.epoch}
        return {"error_code": error, **answer}, None

    def _begun(self, asked: Asked) -> tuple[KafkaError, Producer | None, Ended | None]:
        body, name = asked.body, asked.body.transactional_id
        producer_id, epoch = getattr(body, "producer_id", -1), getattr(body, "producer_epoch", -1)
        timeout_ms = round(body.transaction_timeout.total_seconds() * 1000)
        known = self._producers.get(name)
        if asked.error:
            return asked.error, None, None
        if name == "" or (producer_id == -1) != (epoch == -1):
            return KafkaError.invalid_request, None, None
        if name is None:
            return KafkaError.none, Producer(next(self._ids), 0), None
        if not 0 < timeout_ms <= _LONGEST_MS:
            return KafkaError.invalid_transaction_timeout, None, None
        if known is None:
            if len(self._producers) >= MOST_PRODUCERS:
                return KafkaError.coordinator_not_available, None, None
            known = self._producers[name] = Producer(next(self._ids))
        # 1. Another producer has taken this transactional id meanwhile: this one is fenced.
        is_new, continues = known.epoch == -1, producer_id != -1
        by_previous = producer_id == known.previous_id and epoch >= _LAST_EPOCH
        if continues and not (is_new or by_previous or producer_id == known.producer_id):
            return KafkaError.producer_fenced, None, None
        # 2. An open transaction is aborted with the next epoch; the producer has to ask again.
        if known.state == "Ongoing":
            known.epoch, known.last_epoch, known.state = known.epoch + 1, -1, "CompleteAbort"
            return KafkaError.concurrent_transactions, None, self._ended(known, committed=False)
        # 3. The epoch grows; after the last one, the producer gets a new id. A repeated request
        #    gets the epoch that it got first.
        is_present = is_new or epoch == known.epoch
        before = known.epoch if is_present else known.last_epoch
        if continues and not is_present and epoch != known.last_epoch:
            return KafkaError.producer_fenced, None, None
        known.last_epoch, known.previous_id = before if continues else -1, known.producer_id
        if is_present or not continues:
            known.epoch += 1
        if known.epoch > _LAST_EPOCH:
            known.producer_id, known.epoch = next(self._ids), 0
        known.timeout_ms, known.state = timeout_ms, "Empty"
        return KafkaError.none, known, None

    def add_offsets(self, asked: Asked) -> Mapping[str, Any]:
        return {"error_code": self._add(asked, {asked.body.group_id})}

    def _add(self, asked: Asked, places: set[Place]) -> KafkaError:
        error, known = self._found(asked)
        if known is None or error:
            return _as_known(asked, error)
        known.state = "Ongoing"
        known.places |= places
        return error

    def add_partitions(self, asked: Asked, cluster: Cluster) -> Mapping[str, Any]:
        """Returns the answer to AddPartitionsToTxn; if a partition is unknown, none is added."""
        topics = asked.body.v3_and_below_topics
        places = {(topic.name, one) for topic in topics for one in topic.partitions}
        unknown = {place for place in places if not cluster.has(*place)}
        error = KafkaError.operation_not_attempted if unknown else self._add(asked, {*places})

        def result(name: str, one: int) -> dict[str, Any]:
            code = KafkaError.unknown_topic_or_partition if (name, one) in unknown else error
            return {"partition_index": one, "partition_error_code": code}

        results = []
        for topic in topics:
            each = [result(topic.name, one) for one in topic.partitions]
            results.append({"name": topic.name, "results_by_partition": each})
        return {"results_by_topic_v3_and_below": results}

    def end(self, asked: Asked) -> tuple[Mapping[str, Any], Ended | None]:
        """Returns the answer to EndTxn and, unless it is repeated, the transaction that it ends."""
        error, known = self._found(asked)
        ended = None
        if known is not None and not error:
            complete = "CompleteCommit" if asked.body.committed else "CompleteAbort"
            if known.state == "Ongoing":
                known.state = complete
                ended = self._ended(known, committed=asked.body.committed)
            elif known.state != complete:
                error = KafkaError.invalid_txn_state
        return {"error_code": _as_known(asked, error)}, ended

    def _ended(self, known: Producer, *, committed: bool) -> Ended:
        places, known.places = known.places, set()
        return Ended(known.producer_id, known.epoch, committed, places)

    def verified(self, asked: Asked, producer_id: int, epoch: int, place: Place) -> KafkaError:
        """Returns the error of a write: for a wrong producer, or a `place` that was not added."""
        error, known = self._of(asked.body.transactional_id, producer_id, epoch)
        if not error and known is not None and place not in known.places:
            knows = asked.api == "produce" and asked.version >= _KNOWS_ABORTABLE
            return KafkaError.transaction_abortable if knows else KafkaError.invalid_txn_state
        return _as_known(asked, error)

    def _found(self, asked: Asked) -> tuple[KafkaError, Producer | None]:
        if asked.error:
            return asked.error, None
        # AddPartitionsToTxn has other names for its fields (KIP-890).
        before = "v3_and_below_" if asked.api == "add_partitions_to_txn" else ""
        names = ("transactional_id", "producer_id", "producer_epoch")
        return self._of(*(getattr(asked.body, before + name) for name in names))

    def _of(
        self, name: str | None, producer_id: int, epoch: int
    ) -> tuple[KafkaError, Producer | None]:
        known = self._producers.get(name or "")
        if not name:
            return KafkaError.invalid_request, None
        if known is None or known.producer_id != producer_id:
            return KafkaError.invalid_producer_id_mapping, None
        return KafkaError.none if known.epoch == epoch else KafkaError.producer_fenced, known

    def describe(self, asked: Asked) -> Mapping[str, Any]:
        names = asked.body.transactional_ids
        return {"transaction_states": [self._described(one, asked.error) for one in names]}

    def _described(self, name: str, error: KafkaError) -> dict[str, Any]:
        known = self._producers.get(name)
        found = known or Producer(-1, state="")
        absent = KafkaError.transactional_id_not_found
        return {
            "error_code": error or (absent if known is None else KafkaError.none),
            "transactional_id": name,
            "transaction_state": found.state,
            "transaction_timeout": found.timeout_ms,
            "transaction_start_time": datetime.fromtimestamp(0, UTC),
            "producer_id": found.producer_id,
            "producer_epoch": found.epoch,
        }


def _as_known(asked: Asked, error: KafkaError) -> KafkaError:
    """Returns the error; INVALID_PRODUCER_EPOCH if the request's version lacks PRODUCER_FENCED."""
    known = asked.version >= _KNOWS_FENCED.get(asked.api, _KNOWS_FENCED_ELSE)
    fenced = error is KafkaError.producer_fenced
    return KafkaError.invalid_producer_epoch if fenced and not known else error

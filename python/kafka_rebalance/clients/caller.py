# SPDX-License-Identifier: Apache-2.0
"""Reads variables of the client's coordinator that the coordinator does not pass to assignors.

Neither client passes its consumer; aiokafka passes neither the generation nor the members' bytes.
The coordinator calls each method of an assignor directly, so these values are variables of the
caller. If another function calls the assignor (in a newer client, or a test), the assignor has only
its arguments.
"""

import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.errors import shown
from kafka_rebalance.group.model import TopicPartition

if TYPE_CHECKING:
    from .balance import Leading

NO_GENERATION = -1

log = logging.getLogger("kafka_rebalance.clients")


def _with_shown_names(record: logging.LogRecord) -> bool:
    """Escapes the arguments, because names from other members could forge log lines."""
    record.args = tuple(shown(str(one)) for one in record.args or ())
    return True


log.addFilter(_with_shown_names)


class ClientNames(NamedTuple):
    """One client library's names for a module and two attributes that both libraries have."""

    module: str
    """The module of the coordinator's class."""
    node: str
    """The attribute with a broker's id."""
    replicas: str
    """The attribute with the broker ids of a partition's replicas."""


@dataclass(slots=True)
class ConsumerMemory:
    """The last assignment of one consumer's assignor, and the generation of that assignment.

    `leading` is set if the consumer has led under one of this project's own assignors.
    """

    owned: tuple[TopicPartition, ...] | None = None
    generation_id: int = NO_GENERATION
    leading: "Leading | None" = None

    def still(self, topics: frozenset[str]) -> tuple[TopicPartition, ...]:
        """Returns the owned partitions of `topics`, the consumer's present subscription."""
        return tuple(tp for tp in self.owned or () if tp.topic in topics)

    def learn(self, partitions: Iterable[tuple[str, int]], generation_id: int) -> None:
        self.owned = tuple(TopicPartition(*tp) for tp in partitions)
        self.generation_id = generation_id
        if self.leading is not None:
            self.leading.end_round()

    def user_data(self, assignor: str, topics: frozenset[str]) -> bytes | None:
        owned = None if self.owned is None else self.still(topics)
        return BUILT_IN[assignor].user_data(owned, self.generation_id)


_MEMORIES: WeakKeyDictionary[Any, dict[str, ConsumerMemory]] = WeakKeyDictionary()


def memory(consumer: object, assignor: str) -> ConsumerMemory:
    """Returns the memory of one assignor in one consumer; it lasts as long as the consumer.

    Consumers that share an assignor's class or instance must not claim one another's partitions.
    """
    return _MEMORIES.setdefault(consumer, {}).setdefault(assignor, ConsumerMemory())


def calling(client: ClientNames) -> Mapping[str, Any]:
    """Returns the variables of the nearest caller in the client's module, or an empty mapping."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == client.module:
            return frame.f_locals
        frame = frame.f_back
    log.warning(
        "not called by %s: the consumer's generation is unknown, and consumers that share this "
        "assignor share its memory",
        client.module,
    )
    return {}

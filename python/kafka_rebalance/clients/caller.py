# SPDX-License-Identifier: Apache-2.0
"""Reads from the call itself what a client's coordinator does not hand to its assignors.

Neither client passes its consumer to an assignor, and aiokafka passes neither the generation nor
the members' own bytes. The coordinator calls every method of an assignor directly, so that all of
it stands in the calling function: `calling` reads it there, and changes nothing. A client that
calls from elsewhere (a newer one, a test) is answered from what its assignors are told.
"""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from kafka_rebalance.group.model import TopicPartition

NO_GENERATION = -1

log = logging.getLogger("kafka_rebalance.clients")


class ClientNames(NamedTuple):
    """One library's names for what both libraries have."""

    module: str
    """Where the coordinator's class is."""
    node: str
    """A broker's id."""
    replicas: str
    """The broker ids of a partition's replicas."""


@dataclass(slots=True)
class ConsumerMemory:
    """What one consumer's assignor remembers: its last assignment, and that one's generation."""

    owned: tuple[TopicPartition, ...] | None = None
    generation_id: int = NO_GENERATION

    def still(self, topics: frozenset[str]) -> tuple[TopicPartition, ...]:
        """What it was given of topics that it still subscribes to."""
        return tuple(tp for tp in self.owned or () if tp.topic in topics)


_MEMORIES: WeakKeyDictionary[Any, dict[str, ConsumerMemory]] = WeakKeyDictionary()


def memory(consumer: object, assignor: str) -> ConsumerMemory:
    """The memory of one assignor in one consumer; it ends with the consumer's coordinator.

    It belongs to the consumer, not to the assignor: consumers that share a class or an instance
    would else all claim what one of them was given.
    """
    return _MEMORIES.setdefault(consumer, {}).setdefault(assignor, ConsumerMemory())


def calling(client: ClientNames) -> Mapping[str, Any]:
    """The variables of the coordinator's function that called; none if no coordinator did."""
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

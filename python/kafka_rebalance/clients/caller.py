# SPDX-License-Identifier: Apache-2.0
"""Reads variables of the calling coordinator that it does not pass to its assignors.

Neither client passes its consumer to an assignor, and aiokafka passes neither the generation nor
the members' own bytes. The coordinator calls every method of an assignor directly, so the calling
function has all of these as variables: `calling` reads them there, and changes nothing. If another
function calls (in a newer client, or in a test), an assignor works from its arguments.
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
    """The names of one client library for attributes that both libraries have."""

    module: str
    """The module of the coordinator's class."""
    node: str
    """The attribute with a broker's id."""
    replicas: str
    """The attribute with the broker ids of a partition's replicas."""


@dataclass(slots=True)
class ConsumerMemory:
    """The memory of one consumer's assignor: its last assignment, and the generation of this."""

    owned: tuple[TopicPartition, ...] | None = None
    generation_id: int = NO_GENERATION

    def still(self, topics: frozenset[str]) -> tuple[TopicPartition, ...]:
        """Returns the owned partitions of these topics, which are still subscribed to."""
        return tuple(tp for tp in self.owned or () if tp.topic in topics)


_MEMORIES: WeakKeyDictionary[Any, dict[str, ConsumerMemory]] = WeakKeyDictionary()


def memory(consumer: object, assignor: str) -> ConsumerMemory:
    """Returns the memory of one assignor in one consumer; it ends with the consumer's coordinator.

    The memory belongs to the consumer, not to the assignor. Otherwise consumers that share a class
    or an instance would all claim the partitions of one of them.
    """
    return _MEMORIES.setdefault(consumer, {}).setdefault(assignor, ConsumerMemory())


def calling(client: ClientNames) -> Mapping[str, Any]:
    """Returns the variables of the calling coordinator function; none for any other caller."""
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

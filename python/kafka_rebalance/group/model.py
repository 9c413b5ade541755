# SPDX-License-Identifier: Apache-2.0
"""The parts of a group: partitions, topics with the racks of their replicas, and members."""

import base64
import json
import re
import shlex
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from kafka_rebalance.errors import shown
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.java.order import name_key

MAX_PARTITIONS = 10_000_000
"""The largest number of partitions in one group, unless the caller sets another limit."""

NEWEST_SUBSCRIPTION = 3
"""The subscription version of Kafka's newest clients, and the first version with a rack (KIP-881).
"""

UserData = Literal["none", "partitions"]
USER_DATA: tuple[UserData, ...] = ("none", "partitions")

RebalanceProtocolName = Literal["eager", "cooperative"]
REBALANCE_PROTOCOLS: tuple[RebalanceProtocolName, ...] = ("eager", "cooperative")


class TopicPartition(NamedTuple):
    """A partition of a topic: the unit that a member owns.

    The constructor checks nothing, because plans make millions of partitions. Groups, assignments
    and lags check the partitions that a caller passes.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions.

    `racks[p]` are the racks of partition p's replicas; an entry is None if the replica's broker has
    no rack. `racks` is None if the racks are unknown. Only the brokers' own assignors read
    `topic_id` and `initialized`.

    `topic_id`     as Kafka writes it: 22 characters. A deleted topic of which members still own
                   partitions has 0 partitions and its old id
    `initialized`  the partitions that a share group may assign; None: all

    `weights[p]` is the load of partition p, in any unit; None: unknown. Only `weighted` reads it.
    """

    name: str
    partitions: int
    racks: tuple[tuple[str | None, ...], ...] | None = None
    topic_id: str | None = None
    initialized: tuple[int, ...] | None = None
    weights: tuple[float | None, ...] | None = None


class Subtopology(Frozen):
    """A part of a streams group's topology; only a `stateful` one has standby tasks (KIP-1071).

    A task is a `TopicPartition` with the subtopology's id as its topic. `source_topics` are the
    topics that the subtopology reads, including repartition topics; () if unknown. No assignor uses
    them.
    """

    subtopology_id: str
    tasks: int
    stateful: bool = False
    source_topics: tuple[str, ...] = ()


class TaskOffset(NamedTuple):
    """A task and the sum of its changelog offsets, as a member reported it."""

    task: TopicPartition
    offset: int


class StreamsMember(Frozen):
    """The additional fields of a streams group's member: its process, and its present tasks."""

    process_id: str
    active_tasks: tuple[TopicPartition, ...] = ()
    standby_tasks: tuple[TopicPartition, ...] = ()
    task_offsets: tuple[TaskOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the group's leader sees it: its subscription, and the partitions that it owned.

    `generation_id` is the generation in which the member owned `owned_partitions`; None if the
    member sent no generation.

    The three fields after `rack_id` describe a client whose bytes differ from the bytes of Kafka's
    newest Java client; for the Java client itself, all three are None.
    `assignors/classic/claims.py` reads them.

    `subscription_version`     the version of the member's subscription: it contains owned
                               partitions from 1 on, a generation from 2, a rack from 3. If set,
                               `topics` and `owned_partitions` are in the order of the member's
                               bytes
    `user_data`                the kind of user data: "none" if Kafka's classes can read none,
                               "partitions" if they read partitions without a generation
    `user_data_generation_id`  the generation in the user data, if it differs from `generation_id`

    `owned_topics` are the topics of the member's target, in order, if one of them has no partitions
    there: such a topic can affect a broker's next assignment. Else `owned_topics` is empty, and
    `owned_partitions` shows all topics.

    `client_library` is the library that the member's bytes reveal (`wire/sent_members.py`); None
    means unknown. No assignor reads it, but it decides which assignor answers if the member leads.
    `streams` is None outside of streams groups. `capacity` is how much the member can carry,
    relative to others; None means 1. Only `weighted` reads it.
    """

    member_id: str
    topics: tuple[str, ...]
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int | None = None
    rack_id: str | None = None
    subscription_version: int | None = None
    user_data: UserData | None = None
    user_data_generation_id: int | None = None
    client_library: str | None = None
    streams: StreamsMember | None = None
    owned_topics: tuple[str, ...] = ()
    capacity: float | None = None

    def owning(
        self,
        partitions: tuple[TopicPartition, ...] = (),
        generation_id: int | None = None,
        owned_topics: tuple[str, ...] = (),
    ) -> "Member":
        """Returns a copy that owns exactly these partitions, in this generation.

        In a streams group, the copy has no tasks.
        """
        return replace(
            self,
            owned_partitions=partitions,
            owned_topics=owned_topics,
            generation_id=generation_id,
            user_data_generation_id=None,
            streams=None if self.streams is None else StreamsMember(self.streams.process_id),
        )

    @property
    def version(self) -> int:
        """Returns the version of the member's subscription, 0 to 3."""
        return (
            NEWEST_SUBSCRIPTION if self.subscription_version is None else self.subscription_version
        )

    @property
    def rack(self) -> str | None:
        """Returns the rack that assignors see: an empty `client.rack` is None (KIP-881)."""
        return (self.rack_id or None) if self.version >= 3 else None


def quoted(name: str) -> str:
    """Returns a name in JSON quotes, as in the messages of both engines."""
    return json.dumps(name, ensure_ascii=False)


def shell_word(text: str) -> str:
    """Returns a string quoted for a shell: a copied command contains exactly the string's bytes.

    bash, zsh and ksh read `$'…'`, which names control characters by their bytes in UTF-8.
    """
    if shown(text) == text:
        return shlex.quote(text)

    def escaped(one: str) -> str:
        if shown(one) == one and one not in "'\\":
            return one
        return "".join(f"\\x{byte:02x}" for byte in one.encode("utf-8", "surrogateescape"))

    return f"$'{''.join(map(escaped, text))}'"


def shell_option(name: str, value: str) -> str:
    """Returns an option and its value for a shell, joined by `=` if the value begins like an
    option.
    """
    return f"{name}{'=' if value.startswith('-') else ' '}{shell_word(value)}"


# 128 bits in base64: 21 characters of 6 bits, and one whose last 4 bits are 0.
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")


def uuid_of(topic_id: str) -> tuple[int, int]:
    """Returns two signed numbers: the most and the least significant 64 bits of a topic id.

    Errors   ValueError for a string that is not a topic id.
    Source   org.apache.kafka.common.Uuid.

    >>> uuid_of("AAAAAAAAAAEAAAAAAAAAAg")
    (1, 2)
    """
    if not _TOPIC_ID.fullmatch(topic_id):
        raise ValueError(f"{quoted(topic_id)} is not a topic id of 22 characters in base64")
    most, least = struct.unpack(">qq", base64.urlsafe_b64decode(f"{topic_id}=="))
    return most, least


def id_text(data: bytes) -> str:
    """Returns an id of 16 bytes as Kafka writes it: 22 characters of base64."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_OF_CLIENTS = ("", "librdkafka", "kafka-python", "aiokafka")


def wrong_protocol(protocol: str, assignor: str | None) -> str | None:
    """Returns why a group with this assignor cannot have this rebalance protocol; None if it can.

    A registered assignor may support both protocols; plans check this later (`plans/rounds.py`).
    """
    if protocol not in REBALANCE_PROTOCOLS:
        return f"{quoted(protocol)} is not {' or '.join(map(quoted, REBALANCE_PROTOCOLS))}"
    if assignor is None:
        return "the field assignor is missing, which supports the protocol"
    library, _, listed = assignor.rpartition("/")
    if library in ("consumer", "share", "streams"):
        return f"the broker assigns a group of {quoted(assignor)}, which has no such protocol"
    is_eager = listed in ("range", "roundrobin", "sticky")
    if protocol == "cooperative" and is_eager and library in _OF_CLIENTS:
        return f"{quoted(assignor)} supports only {quoted('eager')}"
    return None


def static_first(members: Iterable[Member]) -> list[Member]:
    """Returns static members by `group_instance_id`, then dynamic ones by `member_id`.

    Members that share an instance id keep their order. (No broker lets two members share one.)

    Source   AbstractPartitionAssignor.MemberInfo.compareTo.
    """
    return sorted(members, key=_static_key)


def _static_key(member: Member) -> tuple[bool, bytes]:
    if member.group_instance_id is not None:
        return False, name_key(member.group_instance_id)
    return True, name_key(member.member_id)


def in_runs(
    partitions: Iterable[tuple[str, int]], name: str = "topic", topics: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Returns runs of adjacent partitions of one topic: `[{name: topic, "partitions": […]}, …]`.

    `topics` lists all topics in order if some of them have no partitions; these get empty runs.
    """
    runs: list[dict[str, Any]] = []
    left = list(topics)
    for topic, partition in partitions:
        if not runs or runs[-1][name] != topic:
            while topic in left and (before := left.pop(0)) != topic:
                runs.append({name: before, "partitions": []})
            runs.append({name: topic, "partitions": []})
        runs[-1]["partitions"].append(partition)
    return runs + [{name: topic, "partitions": []} for topic in left]

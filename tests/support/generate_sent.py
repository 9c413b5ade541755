# SPDX-License-Identifier: Apache-2.0
"""Generates groups whose members are given as bytes, in all versions of their messages.

    by_bytes(case, rng)   returns the case with each member's subscription in hexadecimal
    group_of(case)        returns the group that `wire.sent_member` makes of these bytes

A member sends the bytes of a real client (`CLIENTS`) or contradicts itself: different generations
in the field and the user data, an order that no encoder writes, user data cut short. This module
writes the bytes field by field, because our own encoders would sort as Java's do.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import kafka_rebalance as kr
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.sent_members import sent_member
from tests.support.generated_names import pick

Case = dict[str, Any]
Owned = list[tuple[str, int]]


def by_bytes(case: Case, rng: random.Random) -> Case:
    """Replaces each member's fields by the bytes of its subscription."""
    one_client = pick(rng, CLIENTS) if rng.random() < 0.3 else None
    members = []
    for member in case["members"]:
        client = one_client or pick(rng, CLIENTS)
        sent = _Sent(rng, case["assignor"].rpartition("/")[2], member)
        kept = {"member_id": member["member_id"]}
        if member.get("group_instance_id") is not None:
            kept["group_instance_id"] = member["group_instance_id"]
        client(sent)
        if case["assignor"] == "librdkafka/cooperative-sticky" and rng.random() < 0.99:
            sent.version = 3  # an older version makes most leaders crash
            sent.field_generation = max(-1, sent.field_generation)  # -1 means no generation
        members.append(kept | {"subscription": sent.bytes().hex()})
    return case | {"members": members}


def group_of(case: Case) -> kr.GroupSpec:
    """Returns the group of a case, made from the members' bytes if the case contains them."""
    if "subscription" not in case["members"][0]:
        return kr.GroupSpec.from_dict(case)
    fields = {name: value for name, value in case.items() if name != "members"}
    stand_in = kr.GroupSpec.from_dict(fields | {"members": [{"member_id": "", "topics": []}]})
    members = tuple(
        sent_member(
            member["member_id"],
            wire.decode_subscription(bytes.fromhex(member["subscription"])),
            case["assignor"],
            group_instance_id=member.get("group_instance_id"),
        )
        for member in case["members"]
    )
    return stand_in.edited(members=members)


class _Sent:
    """The fields of a subscription; a function in `CLIENTS` sets those that its client writes."""

    def __init__(self, rng: random.Random, assignor: str, member: dict[str, Any]) -> None:
        self.rng = rng
        self.assignor = assignor
        self.version = 3
        self.topics: list[str] = list(member["topics"])
        self.held: Owned = [
            (entry["topic"], partition)
            for entry in member.get("owned_partitions") or ()
            for partition in entry["partitions"]
        ]
        self.generation: int = _or(member.get("generation_id"), -1)
        self.rack_id: str | None = member.get("rack_id")
        self.user_data: bytes | None = None
        self.owned: Owned = []
        self.field_generation = -1

    def bytes(self) -> bytes:
        return subscription_bytes(
            self.version,
            self.topics,
            self.user_data,
            self.owned,
            self.field_generation,
            self.rack_id,
        )

    def sort(self) -> None:
        """Sorts as Java's encoder does, by UTF-16 units."""
        self.topics.sort(key=_utf16)
        self.owned.sort(key=lambda tp: (_utf16(tp[0]), tp[1]))


# Clients --------------------------------------------------------------------------------------


def _java(sent: _Sent) -> None:
    """A Java client, new or old."""
    sent.version = pick(sent.rng, {3: 4, 2: 2, 1: 3, 0: 2})
    sent.field_generation = sent.generation
    if sent.assignor == "sticky" and (sent.held or sent.generation >= 0):
        old = sent.version == 0 and sent.rng.random() < 0.5
        sent.user_data = sticky_bytes(sent.held, None if old else sent.generation)
    elif sent.assignor == "cooperative-sticky":
        sent.owned = list(sent.held)
        sent.user_data = struct.pack(">i", sent.generation)
    if sent.version > 0:
        sent.sort()


def _aiokafka(sent: _Sent) -> None:
    sent.version = 0
    sent.user_data = b""
    if sent.assignor == "sticky" and sent.held:
        sent.user_data = sticky_bytes(sent.held, -1)


def _kafka_python(sent: _Sent) -> None:
    """kafka-python: its sticky user data begin with a version that no other client expects."""
    sent.version = 1 if sent.assignor == "cooperative-sticky" else 0
    sent.user_data = b""
    if sent.assignor == "sticky" and sent.held:
        sent.user_data = struct.pack(">h", 1) + sticky_bytes(sent.held, sent.generation)
    sent.owned = list(sent.held)


def _librdkafka(sent: _Sent) -> None:
    sent.owned = list(sent.held)
    sent.field_generation = sent.generation
    sent.user_data = b"" if sent.rng.random() < 0.5 else None


def _contradictory(sent: _Sent) -> None:
    """A faulty client: its fields are random and need not agree."""
    rng = sent.rng
    sent.version = rng.randint(0, 3)
    rng.shuffle(sent.topics)
    sent.owned = _other(rng, sent.held)
    sent.field_generation = _near(rng, sent.generation)
    history, generation = _other(rng, sent.held), _near(rng, sent.generation)
    datas: list[Callable[[], bytes | None]] = [
        lambda: None,
        lambda: b"",
        lambda: struct.pack(">i", generation),
        lambda: struct.pack(">i", generation)[: rng.randint(0, 3)],
        lambda: sticky_bytes(history, None),
        lambda: sticky_bytes(history, generation),
        lambda: sticky_bytes(history, generation),
        lambda: sticky_bytes(history, generation) + b"more",
        lambda: sticky_bytes(history, generation)[: rng.randint(0, 40)],
        lambda: rng.randbytes(rng.randint(0, 20)),
    ]
    sent.user_data = rng.choice(datas)()


CLIENTS: dict[Callable[[_Sent], None], int] = {
    _java: 5,
    _aiokafka: 2,
    _kafka_python: 2,
    _librdkafka: 1,
    _contradictory: 4,
}


def _other(rng: random.Random, held: Owned) -> Owned:
    """Returns all or some of the held partitions, perhaps in another order."""
    owned = list(held)
    if rng.random() < 0.5:
        rng.shuffle(owned)
    return owned if rng.random() < 0.7 else owned[: rng.randint(0, len(owned))]


def _near(rng: random.Random, generation: int) -> int:
    return rng.choice([generation] * 4 + [generation - 1, generation + 1, 0, -1, -1, -5])


# Bytes ----------------------------------------------------------------------------------------


def subscription_bytes(
    version: int,
    topics: Sequence[str],
    user_data: bytes | None,
    owned: Owned,
    generation: int,
    rack_id: str | None,
) -> bytes:
    """Encodes a subscription with the fields of its version; keeps the given order."""
    body = struct.pack(">hi", version, len(topics)) + b"".join(map(_string, topics))
    body += _data(user_data)
    if version >= 1:
        body += _partitions(_runs(owned))
    if version >= 2:
        body += struct.pack(">i", generation)
    if version >= 3:
        body += struct.pack(">h", -1) if rack_id is None else _string(rack_id)
    return body


def sticky_bytes(owned: Owned, generation: int | None) -> bytes:
    """Encodes user data of the sticky assignor: version 1, or version 0 without a generation."""
    data = _partitions(_runs(owned))
    return data if generation is None else data + struct.pack(">i", generation)


def _runs(owned: Owned) -> list[tuple[str, list[int]]]:
    """Returns an entry for each run of partitions of one topic, so that the order is kept."""
    runs: list[tuple[str, list[int]]] = []
    for topic, partition in owned:
        if not runs or runs[-1][0] != topic:
            runs.append((topic, []))
        runs[-1][1].append(partition)
    return runs


def _partitions(runs: Sequence[tuple[str, list[int]]]) -> bytes:
    entries = (
        _string(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
        for topic, partitions in runs
    )
    return struct.pack(">i", len(runs)) + b"".join(entries)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _data(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value

# SPDX-License-Identifier: Apache-2.0
"""Requests to encode and decode messages of the consumer protocol, and damaged messages."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

from .generated_names import FAMILIES, names, pick

if TYPE_CHECKING:
    from collections.abc import Iterator

Request = dict[str, Any]


def _partitions(rng: random.Random, topics: list[str]) -> list[list[Any]]:
    count = pick(rng, {0: 1, rng.randint(1, 4): 3, rng.randint(5, 60): 3})
    partitions: list[list[Any]] = [
        [rng.choice(topics), rng.choice([n, n, n % 3])] for n in range(count)
    ]
    if rng.random() < 0.5:
        partitions.sort(key=lambda pair: (topics.index(pair[0]), pair[1]))
    return partitions


def encodings(seed: int, count: int) -> Iterator[Request]:
    """Yields requests to encode messages of all kinds and versions in turn.

    Names are valid UTF-8 (`malformed` uses others). All other values can be unusual: no topics or
    many, duplicates, negative numbers.
    """
    rng = random.Random(seed)
    for n in range(count):
        families = [pick(rng, FAMILIES), pick(rng, FAMILIES)]
        stream = names(rng, families)
        sizes = {rng.randint(1, 5): 4, rng.randint(6, 30): 3, rng.randint(31, 120): 1}
        topics = [next(stream) for _ in range(pick(rng, sizes))]
        user_data = rng.choice([None, "", rng.randbytes(rng.randint(1, 20)).hex()])
        partitions = _partitions(rng, topics)
        generation_id = rng.choice([-1, 0, 1, 41, 2**31 - 1, -(2**31)])
        kind = list(ENCODERS)[n % len(ENCODERS)]
        request = {
            "version": n // len(ENCODERS) % 4,
            "topics": [topic for topic in topics if rng.random() < 0.9],
            "user_data": user_data,
            "owned_partitions": partitions,
            "partitions": partitions,
            "generation_id": generation_id,
            "rack_id": rng.choice([None, "", "r1", "é"]),
        }
        yield {"wire": kind} | {name: request[name] for name in ENCODERS[kind]}


ENCODERS = {
    "encode_subscription": (
        "version",
        "topics",
        "user_data",
        "owned_partitions",
        "generation_id",
        "rack_id",
    ),
    "encode_assignment": ("version", "partitions", "user_data"),
    "encode_sticky": ("partitions", "generation_id"),
    "encode_cooperative": ("generation_id",),
}


def hostile(seed: int, message: bytes) -> Iterator[bytes]:
    """Yields damaged copies of a message: with changed bytes or wrong lengths, cut or extended."""
    rng = random.Random(f"{seed}/{message.hex()}")
    for _ in range(6):
        data = bytearray(message)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data) + 1)
            kind = rng.randrange(6)
            if kind == 0 and at < len(data):
                data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            elif kind == 1:
                lengths = [-1, -2, 0, 1, 2**31 - 1, -(2**31), 1_000_000]
                data[at : at + 4] = struct.pack(">i", rng.choice(lengths))
            elif kind == 2:
                data[at : at + 2] = struct.pack(">h", rng.choice([-1, -2, 0, 1, 4, 32767, -32768]))
            elif kind == 3:
                del data[at:]
            elif kind == 4:
                data[at:at] = data[: rng.randrange(len(data) + 1)]
            else:
                data += rng.randbytes(rng.randint(1, 8))
        yield bytes(data)


def malformed(seed: int, count: int) -> Iterator[Request]:
    """Yields requests to decode messages of all kinds in turn; most names are not UTF-8."""
    rng = random.Random(seed)
    for n in range(count):
        names = [_not_utf8(rng) for _ in range(rng.randint(1, 4))]
        topics = struct.pack(">i", len(names)) + b"".join(map(_string, names))
        one = struct.pack(">ii", 1, 7)
        owned = struct.pack(">i", len(names)) + b"".join(_string(name) + one for name in names)
        null, generation = b"\xff" * 4, struct.pack(">i", 5)
        kind, data = (
            (
                "decode_subscription",
                b"\0\3" + topics + null + owned + generation + _string(names[0]),
            ),
            ("decode_assignment", b"\0\3" + owned + null),
            ("decode_sticky", owned + generation),
        )[n % 3]
        yield {"wire": kind, "bytes": data.hex()}


def _string(name: bytes) -> bytes:
    return struct.pack(">h", len(name)) + name


def _not_utf8(rng: random.Random) -> bytes:
    """Returns random bytes, whole characters, and malformed UTF-8 sequences.

    Malformed sequences are cut short, overlong, beyond U+10FFFF, or halves of surrogate pairs.
    """
    pieces = []
    for _ in range(rng.randint(0, 6)):
        lead = rng.choice([0x41, 0x80, 0xC0, 0xC3, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF3, 0xF4, 0xF5])
        follow = [rng.choice([0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC3]) for _ in range(3)]
        random_bytes = rng.randbytes(rng.randint(1, 4))
        good = rng.choice("aé主\U0001f600").encode()
        pieces.append(rng.choice([bytes([lead, *follow])[: rng.randint(1, 4)], random_bytes, good]))
    return b"".join(pieces)

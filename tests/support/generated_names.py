# SPDX-License-Identifier: Apache-2.0
"""Names for generated groups: simple names, and names that are hard for hash tables and sorting."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Names = Iterator[str]
T = TypeVar("T")

# Java sorts by UTF-16 unit, so U+1F600 and U+10000 (surrogate pairs) come before U+E000.
UNICODE = ["é", "ß", "主", "题", "\ue000", "\uf8ff", "\uff5e", "\ufffd", "\U0001f600", "\U00010000"]


def _plain(rng: random.Random) -> Names:
    prefix = rng.choice(["m", "C", "t", "topic-", "app.events.", "a.b_", "consumer"])
    return (f"{prefix}{n}" for n in itertools.count(rng.choice([0, 1, 8, 98])))


def _words(rng: random.Random) -> Names:
    words = ["payments", "orders", "refunds", "users", "clicks", "a", "aa", "a.b", "b", "B", "z"]
    rng.shuffle(words)
    return itertools.chain(words, (f"{word}-{n}" for n in itertools.count() for word in words))


def _consumers(rng: random.Random) -> Names:
    """Yields member ids as Kafka's group coordinator makes them."""
    group = rng.choice(["payments", "orders", "click-stream"])
    for n in itertools.count(1):
        yield f"consumer-{group}-{n}-{uuid.UUID(int=rng.getrandbits(128), version=4)}"


def _unicode(rng: random.Random) -> Names:
    prefix = rng.choice(["", "", "m", "主题"])
    while True:
        yield prefix + "".join(rng.choices(UNICODE, k=rng.randint(1, 3)))


def colliding(rng: random.Random) -> Names:
    """Yields names made of "Aa" and "BB": those of one length have equal hashes."""
    prefix = rng.choice(["", "", "m-", "x"])
    for pairs in itertools.count(6):
        names = ["".join(name) for name in itertools.product(["Aa", "BB"], repeat=pairs)]
        rng.shuffle(names)
        yield from (prefix + name for name in names)


def _one_bucket(rng: random.Random) -> Names:
    """Yields names that share a bucket in a table of 16 (or 64) slots, but not in larger tables."""
    prefix = rng.choice(["m", "member-", "t"])
    buckets = rng.choice([16, 16, 64])
    bucket = rng.randrange(buckets)
    for n in itertools.count(rng.randrange(1_000)):
        if _spread(f"{prefix}{n}") % buckets == bucket:
            yield f"{prefix}{n}"


def _spread(name: str) -> int:
    """Returns the hash of a name in java.util.HashMap, if each character is one UTF-16 unit."""
    h = 0
    for character in name:
        h = (31 * h + ord(character)) & 0xFFFFFFFF
    return h ^ (h >> 16)


FAMILIES = {_plain: 4, _words: 2, _consumers: 4, _unicode: 2, colliding: 3, _one_bucket: 2}
CROWDED = (colliding, _one_bucket)


def names(rng: random.Random, families: Sequence[Callable[[random.Random], Names]]) -> Names:
    """Yields distinct names without end, each from a random family."""
    seen: set[str] = set()
    streams = [family(rng) for family in families]
    while True:
        name = next(rng.choice(streams))
        if name not in seen:
            seen.add(name)
            yield name


def pick(rng: random.Random, weights: dict[T, int]) -> T:
    """Chooses a random key; its probability is in proportion to its weight."""
    return rng.choices(list(weights), list(weights.values()))[0]

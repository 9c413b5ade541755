# SPDX-License-Identifier: Apache-2.0
"""Names that a stranger may choose, and a check that no output passes them on to a terminal."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator

import kafka_rebalance as kr

PIECES = (
    "\x1b]0;PWNED\x07",
    "\x1b[31mRED\x1b[0m",
    "\x1b[2J",
    "\x9b31m",
    "\nkafka-rebalance: FORGED",
    "\r",
    "\t",
    "\0",
    "\x7f",
    "\u202etxt.exe",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\u2028FORGED",
    "\u2029",
    "\u3164",
    "\ufe0f",
    "\U000e0041",
    "\u3000",
    "主题组",
    "e\u0301",
    "$x$^$",
    "Outer$Inner$1",
    "{}%s",
    "'; touch FORGED #",
    '"$(touch FORGED)`id`\\',
    "<script>alert(1)</script>",
    "../../forged",
    " ",
)
_INVISIBLE = "\u3164\ufe0f"
_CONTROLS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def names(seed: int) -> Iterator[str]:
    """Yields distinct names; the first ones contain one piece each, so that no piece is missing."""
    rng = random.Random(seed)
    yield "--help"
    for number, piece in enumerate(PIECES):
        yield f"n{number}{piece}z"
    while True:
        yield "".join(rng.choices([*PIECES, "orders", "a.b-c", "-"], k=rng.randint(2, 4)))


def hostile_group(names: Iterator[str], assignor: str = "cooperative-sticky") -> kr.GroupSpec:
    """Returns a group of three members whose every name is hostile, and whose racks match."""
    topics = [next(names) for _ in range(2)]
    racks = [next(names) for _ in range(2)]
    members = tuple(
        kr.Member(
            next(names),
            tuple(topics),
            group_instance_id=next(names) if number else None,
            client_id=next(names),
            client_host=f"/{next(names)}",
            rack_id=racks[number % 2],
        )
        for number in range(3)
    )
    group = kr.GroupSpec(
        next(names),
        tuple(
            kr.Topic(name, 4, tuple((rack,) for rack in racks * 2), f"AAAAAAAAAAEAAAAAAAAA{n}g")
            for n, name in enumerate(topics)
        ),
        members,
        assignor,
    )
    return group.owning(kr.assign(group))


def dangerous(text: str) -> list[str]:
    """Returns the characters that move a cursor, turn or break a line, or that nobody sees."""
    return sorted(
        {
            repr(one)
            for one in text
            if one != "\n" and (unicodedata.category(one) in _CONTROLS or one in _INVISIBLE)
        }
    )


def check(text: str) -> None:
    """Checks that a report contains no dangerous character, and no line that a name forged."""
    assert dangerous(text) == []
    assert not [
        line for line in text.splitlines() if line.startswith(("FORGED", "kafka-rebalance: FORGED"))
    ]

# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of the consumer protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .random_heartbeat_members import REBALANCES, HeartbeatMember
from .random_topics import NAMES, PATTERNS, RACKS, Command, Partitions

if TYPE_CHECKING:
    from collections.abc import Callable

ASSIGNORS = (None, "uniform", "range", "nobody's")
ASSIGNOR_WEIGHTS = (60, 18, 18, 1)


@dataclass
class ConsumerMember(HeartbeatMember):
    """A member of the consumer protocol."""

    OP = "chb"
    OTHERS = ("A0", "B0")
    RENAMED = 0.7

    fixed: Command = field(default_factory=dict)
    assigned: Partitions = field(default_factory=dict, init=False)
    before: Partitions = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        rng = self.rng
        self.fixed = {
            "rt": rng.choice(REBALANCES),
            "topics": self.topics.names(),
            "rack": rng.choice((None, None, *RACKS)),
            "assignor": rng.choices(ASSIGNORS, ASSIGNOR_WEIGHTS)[0],
            **self.fixed,
        }

    def _weights(self) -> dict[Callable[[], Command], int]:
        return {
            self._beat: 26,
            self._acknowledge: 34,
            self._full: 7,
            self._late: 6,
            self._repeat: 8,
            self._wrong: 5,
            self._change: 8,
            self._join: 2,
            self._leave: 6,
            self._invalid: 2,
            self._commit: 10,
        }

    def _take(self, answer: Command) -> None:
        if answer["asg"] is not None:
            self.before, self.assigned = self.assigned, answer["asg"]

    def _lose(self) -> None:
        super()._lose()
        self.before, self.assigned = self.assigned, {}

    def _first(self) -> Command:
        return {**self.fixed, "epoch": 0, "owned": {}}

    def _owned(self) -> Command:
        return {"owned": self.assigned}

    def _full(self) -> Command:
        return self._request(**self.fixed, owned=self.assigned)

    def _late(self) -> Command:
        """Acknowledges an older assignment, a part of the present one, or random partitions."""
        part = {name: numbers[1:] for name, numbers in self.assigned.items()}
        owned = self.rng.choice((self.before, part, {}, self.topics.partitions()))
        return self._request(owned=owned)

    def _repeat(self) -> Command:
        """Repeats a request as if its answer was lost: the epoch is the previous one."""
        owned = self.rng.choice((self.assigned, self.assigned, self.before, {}, None))
        previous = self.epochs[-2:][0]
        full = self.fixed if self.rng.random() < 0.3 else {}
        return self._request(**full, epoch=previous, owned=owned)

    def _change(self) -> Command:
        """Changes the subscription or another field; the later requests repeat the new value."""
        rng = self.rng
        changed: Command = rng.choice(
            (
                {"topics": self.topics.names()},
                {"topics": self.topics.names()},
                {"topics": []},
                {"regex": rng.choice(PATTERNS)},
                {"regex": rng.choice(PATTERNS)},
                {"regex": ""},
                {"assignor": rng.choices(ASSIGNORS, ASSIGNOR_WEIGHTS)[0]},
                {"assignor": rng.choice(("uniform", "range"))},
                {"rack": rng.choice(RACKS)},
                {"rt": rng.choice(REBALANCES)},
            )
        )
        if changed.get("assignor") != ASSIGNORS[-1] and changed.get("regex") not in PATTERNS[-2:]:
            self.fixed |= changed
        return self._request(**changed)

    def _leave(self) -> Command:
        return self._request(epoch=self._leaving_epoch())

    def _invalid(self) -> Command:
        joins = self._first()
        return self.rng.choice(
            (
                self._request(m=""),
                self._request(g=self.rng.choice(("", " "))),
                self._request(inst=""),
                self._request(rack=""),
                self._request(**joins | {"rt": -1}),
                self._request(**joins | {"owned": None}),
                self._request(**joins | {"owned": {"t": [0]}}),
                self._request(**joins | {"topics": None, "regex": None}),
                self._request(epoch=-2) | {"inst": None},
                self._request(epoch=-3),
                self._request(**joins | {"m": "", "v": 0}),
                self._request(**joins | {"assignor": ASSIGNORS[-1]}),
            )
        )

    def _commit(self) -> Command:
        rng = self.rng
        topic = rng.choice(list(self.assigned) or list(NAMES))
        held = self.assigned.get(topic) or self.before.get(topic) or [0]
        partition = rng.choice(held) if rng.random() < 0.8 else rng.randrange(6)
        epoch = self.epochs[-1] if rng.random() < 0.5 else rng.choice(self.epochs)
        return {
            "op": rng.choices(("commit", "txncommit"), (9, 1))[0],
            "g": self.group,
            "m": self.member_id if rng.random() < 0.95 else "stranger",
            "gen": epoch + (rng.random() < 0.1),
            "topic": topic,
            "p": self.topics.existing(topic, partition),
            "off": rng.randrange(100),
            "v": rng.choice((9, 9, 9, 8)),
            "pid": 7,
        }

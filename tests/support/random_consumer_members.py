# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of the consumer protocol.

A member knows what a client knows: its id, its epochs, and its partitions. Most of its requests are
the next ones of a real client; the others are late, repeated or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .random_topics import NAMES, PATTERNS, RACKS, Command, Partitions, RandomTopics

if TYPE_CHECKING:
    import random

REBALANCES = (1_500, 20_000, 20_000, 60_000)
ASSIGNORS = (None, "uniform", "range", "nobody's")
ASSIGNOR_WEIGHTS = (60, 18, 18, 1)


@dataclass
class ConsumerMember:
    """A member of the consumer protocol, which names itself."""

    rng: random.Random
    topics: RandomTopics
    name: str
    group: str
    instance: str | None
    fixed: Command = field(default_factory=dict)
    ids: int = 0
    epochs: list[int] = field(default_factory=lambda: [0])
    joined: bool = False
    assigned: Partitions = field(default_factory=dict)
    before: Partitions = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = self.rng
        self.fixed = {
            "rt": rng.choice(REBALANCES),
            "topics": self.topics.names(),
            "rack": rng.choice((None, None, *RACKS)),
            "assignor": rng.choices(ASSIGNORS, ASSIGNOR_WEIGHTS)[0],
            **self.fixed,
        }

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.ids}"

    def draw(self) -> Command:
        """Draws the next request."""
        rng = self.rng
        if not self.joined and rng.random() < 0.9:
            return self._join()
        kinds = {
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
        return rng.choices(list(kinds), list(kinds.values()))[0]()

    def told(self, command: Command, answer: Command) -> None:
        """Receives the answer to a request of this member."""
        error = answer.get("err")
        if error is None or command["op"] != "chb":
            return
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"):
            self._lose()
        if error != "NONE" or command["m"] != self.member_id:
            return
        if answer["epoch"] < 0:
            self._lose()
            if self.rng.random() < 0.7:
                self.ids += 1
            return
        self.joined = True
        if answer["epoch"] != self.epochs[-1]:
            self.epochs.append(answer["epoch"])
        if answer["asg"] is not None:
            self.before, self.assigned = self.assigned, answer["asg"]

    def _lose(self) -> None:
        self.joined = False
        self.before, self.assigned = self.assigned, {}

    def _request(self, **fields: Any) -> Command:
        command = {"op": "chb", "g": self.group, "m": self.member_id, "epoch": self.epochs[-1]}
        if self.instance is not None:
            command["inst"] = self.instance
        return command | fields

    def _join(self) -> Command:
        if not self.joined and self.rng.random() < 0.1:
            self.ids += 1
        return self._request(**self.fixed, epoch=0, owned={})

    def _beat(self) -> Command:
        return self._request()

    def _acknowledge(self) -> Command:
        return self._request(owned=self.assigned)

    def _full(self) -> Command:
        return self._request(**self.fixed, owned=self.assigned)

    def _late(self) -> Command:
        """Acknowledges an older assignment, a part of this one, or anything."""
        part = {name: numbers[1:] for name, numbers in self.assigned.items()}
        owned = self.rng.choice((self.before, part, {}, self.topics.partitions()))
        return self._request(owned=owned)

    def _repeat(self) -> Command:
        """Sends the request again whose answer was lost: its epoch is the previous one."""
        owned = self.rng.choice((self.assigned, self.assigned, self.before, {}, None))
        previous = self.epochs[-2:][0]
        full = self.fixed if self.rng.random() < 0.3 else {}
        return self._request(**full, epoch=previous, owned=owned)

    def _wrong(self) -> Command:
        """Sends an epoch, an id or an instance id that is not this member's."""
        rng = self.rng
        return rng.choice(
            (
                self._request(epoch=self.epochs[-1] + rng.choice((1, 5))),
                self._request(epoch=rng.choice(self.epochs)),
                self._request(epoch=max(1, self.epochs[-1] - 1), owned=self.assigned),
                self._request(m=rng.choice(("stranger", "A0", "B0", f"{self.name}0"))),
                self._request(inst=rng.choice(("i", "j", "nobody"))),
                self._request(g="none"),
            )
        )

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
        static = self.instance is not None and self.rng.random() < 0.7
        return self._request(epoch=-2 if static else -1)

    def _invalid(self) -> Command:
        joins = {**self.fixed, "epoch": 0, "owned": {}}
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

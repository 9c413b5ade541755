# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of share groups.

A member knows what a client knows: its id and its epochs. Most of its requests are the next ones of
a real client; the others are late, repeated or wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .random_topics import NAMES, RACKS, Command, RandomTopics

if TYPE_CHECKING:
    import random


@dataclass
class ShareMember:
    """A member of a share group, which names itself."""

    rng: random.Random
    topics: RandomTopics
    name: str
    group: str
    names: list[str]
    ids: int = 0
    epochs: list[int] = field(default_factory=lambda: [0])
    joined: bool = False

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.ids}"

    def draw(self) -> Command:
        """Draws the next request."""
        rng = self.rng
        if not self.joined and rng.random() < 0.9:
            return self._join()
        kinds = {
            self._beat: 50,
            self._full: 8,
            self._repeat: 8,
            self._wrong: 6,
            self._change: 12,
            self._join: 3,
            self._leave: 8,
            self._invalid: 2,
            self._other_protocol: 3,
        }
        return rng.choices(list(kinds), list(kinds.values()))[0]()

    def told(self, command: Command, answer: Command) -> None:
        """Receives the answer to a request of this member."""
        error = answer.get("err")
        if command["op"] != "shb" or error is None:
            return
        if error in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"):
            self.joined = False
        if error != "NONE" or command["m"] != self.member_id:
            return
        if answer["epoch"] < 0:
            self.joined = False
            self.ids += self.rng.random() < 0.7
            return
        self.joined = True
        if answer["epoch"] != self.epochs[-1]:
            self.epochs.append(answer["epoch"])

    def _request(self, **fields: Any) -> Command:
        command = {"op": "shb", "g": self.group, "m": self.member_id, "epoch": self.epochs[-1]}
        return command | fields

    def _join(self) -> Command:
        if not self.joined and self.rng.random() < 0.1:
            self.ids += 1
        rack = self.rng.choice((None, None, *RACKS))
        return self._request(epoch=0, topics=self.names, rack=rack)

    def _beat(self) -> Command:
        return self._request()

    def _full(self) -> Command:
        return self._request(topics=self.names)

    def _repeat(self) -> Command:
        """Sends the request again whose answer was lost: its epoch is the previous one."""
        full = {"topics": self.names} if self.rng.random() < 0.3 else {}
        return self._request(**full, epoch=self.epochs[-2:][0])

    def _wrong(self) -> Command:
        """Sends an epoch or an id that is not this member's."""
        rng = self.rng
        return rng.choice(
            (
                self._request(epoch=self.epochs[-1] + rng.choice((1, 5))),
                self._request(epoch=rng.choice(self.epochs)),
                self._request(epoch=max(1, self.epochs[-1] - 1)),
                self._request(m=rng.choice(("stranger", "P0", "Q0", f"{self.name}0"))),
                self._request(g="none"),
            )
        )

    def _change(self) -> Command:
        """Changes the subscription or the rack; the later requests repeat the new names."""
        rng = self.rng
        if rng.random() < 0.2:
            return self._request(rack=rng.choice(RACKS))
        if rng.random() < 0.1:
            return self._request(topics=[])
        self.names = rng.choice((self.topics.names(), list(NAMES[:2])))
        return self._request(topics=self.names)

    def _leave(self) -> Command:
        return self._request(epoch=-1)

    def _invalid(self) -> Command:
        return self.rng.choice(
            (
                self._request(m=""),
                self._request(m=" "),
                self._request(g=self.rng.choice(("", " "))),
                self._request(rack=""),
                self._request(epoch=0),
                self._request(epoch=0, topics=[]),
                self._request(epoch=-2),
            )
        )

    def _other_protocol(self) -> Command:
        """Sends a request of another protocol, with this member's id."""
        rng = self.rng
        whose = {"g": self.group, "m": self.member_id}
        epoch = self.epochs[-1]
        offset = whose | {"topic": rng.choice(NAMES), "off": 3, "gen": rng.choice((epoch, -1))}
        return rng.choice(
            (
                whose | {"op": "chb", "epoch": 0, "rt": 9_000, "topics": ["t"], "owned": {}},
                whose | {"op": "chb", "epoch": epoch},
                whose | {"op": "hb", "gen": epoch},
                whose | {"op": "sync", "gen": epoch},
                {"op": "leave", "g": self.group, "members": [{"m": self.member_id}]},
                offset | {"op": "commit", "v": rng.choice((8, 9))},
                offset | {"op": "txncommit", "pid": 7},
            )
        )

# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members that send heartbeats, to a group of any type whose broker assigns.

A member knows what a client knows: its id, its epochs, and what it owns. Most of its requests are
the next ones of a real client; the others are late, repeated or wrong. This module contains the
rules that the types of groups share; `random_consumer_members`, `random_share_members` and
`random_streams_members` contain the rules of one type each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .random_topics import Command, RandomTopics

if TYPE_CHECKING:
    import random

REBALANCES = (1_500, 20_000, 20_000, 60_000)
FENCED = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND")


@dataclass
class HeartbeatMember(ABC):
    """A member that names itself: its id is its name and the number of times it was renamed."""

    OP: ClassVar[str]
    """The command of this type's heartbeat."""
    OTHERS: ClassVar[tuple[str, ...]]
    """Ids of other members, some of which are in the group."""
    RENAMED: ClassVar[float]
    """The probability that a member that left comes back under a new id."""

    rng: random.Random
    topics: RandomTopics
    name: str
    group: str
    instance: str | None
    ids: int = field(default=0, init=False)
    epochs: list[int] = field(default_factory=lambda: [0], init=False)
    joined: bool = field(default=False, init=False)

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.ids}"

    def draw(self) -> Command:
        """Draws the next request."""
        rng = self.rng
        if not self.joined and rng.random() < 0.9:
            return self._join()
        requests = self._weights()
        return rng.choices(list(requests), list(requests.values()))[0]()

    def told(self, command: Command, answer: Command) -> None:
        """Receives the answer to a request of this member."""
        error = answer.get("err")
        if error is None or command["op"] != self.OP:
            return
        if error in FENCED:
            self._lose()
        if error != "NONE" or command["m"] != self.member_id:
            return
        if answer["epoch"] < 0:
            self._lose()
            if self.rng.random() < self.RENAMED:
                self.ids += 1
            return
        self.joined = True
        if answer["epoch"] != self.epochs[-1]:
            self.epochs.append(answer["epoch"])
        self._take(answer)

    @abstractmethod
    def _weights(self) -> dict[Callable[[], Command], int]:
        """Returns the requests of a joined member, each with its weight in the draw."""

    def _take(self, answer: Command) -> None:  # noqa: B027 - members of share groups take nothing
        """Applies the broker's assignment, if the answer contains one."""

    def _lose(self) -> None:
        """Forgets the membership; a subclass also forgets what the member owned."""
        self.joined = False

    def _request(self, **fields: Any) -> Command:
        command = {"op": self.OP, "g": self.group, "m": self.member_id, "epoch": self.epochs[-1]}
        if self.instance is not None:
            command["inst"] = self.instance
        return command | fields

    @abstractmethod
    def _first(self) -> Command:
        """Returns the fields of a member's first heartbeat."""

    def _owned(self) -> Command:
        """Returns the fields that report what the member owns."""
        return {}

    def _join(self) -> Command:
        if not self.joined and self.rng.random() < 0.1:
            self.ids += 1
        return self._request(**self._first())

    def _beat(self) -> Command:
        return self._request()

    def _acknowledge(self) -> Command:
        return self._request(**self._owned())

    def _wrong(self) -> Command:
        """Sends an epoch, an id or an instance id that is not this member's."""
        rng = self.rng
        return rng.choice(
            (
                self._request(epoch=self.epochs[-1] + rng.choice((1, 5))),
                self._request(epoch=rng.choice(self.epochs)),
                self._request(epoch=max(1, self.epochs[-1] - 1), **self._owned()),
                self._request(m=rng.choice(("stranger", *self.OTHERS, f"{self.name}0"))),
                *self._wrong_instances(),
                self._request(g="none"),
            )
        )

    def _wrong_instances(self) -> tuple[Command, ...]:
        """Draws requests whose instance id is not this member's."""
        return (self._request(inst=self.rng.choice(("i", "j", "nobody"))),)

    def _leaving_epoch(self) -> int:
        """Draws whether a static member leaves only for a while, and returns the epoch to send."""
        is_static = self.instance is not None and self.rng.random() < 0.7
        return -2 if is_static else -1

# SPDX-License-Identifier: Apache-2.0
"""Draws requests of members of share groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .random_heartbeat_members import HeartbeatMember
from .random_topics import NAMES, RACKS, Command

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class ShareMember(HeartbeatMember):
    """A member of a share group: it owns nothing, and has no instance id."""

    OP = "shb"
    OTHERS = ("P0", "Q0")
    RENAMED = 0.7

    names: list[str]

    def _weights(self) -> dict[Callable[[], Command], int]:
        return {
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

    def _first(self) -> Command:
        return {"epoch": 0, "topics": self.names, "rack": self.rng.choice((None, None, *RACKS))}

    def _full(self) -> Command:
        return self._request(topics=self.names)

    def _repeat(self) -> Command:
        """Repeats a request as if its answer was lost: the epoch is the previous one."""
        full = {"topics": self.names} if self.rng.random() < 0.3 else {}
        return self._request(**full, epoch=self.epochs[-2:][0])

    def _wrong_instances(self) -> tuple[Command, ...]:
        return ()

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

# SPDX-License-Identifier: Apache-2.0
"""Makes random changes to a group that a coordinator assigns, ours or Kafka's own."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import assigns_tasks
from kafka_rebalance.group.model import StreamsMember, Subtopology

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Command = dict[str, Any]

NAMES = ("t", "u", "v")
_SOURCE = "t"
_PAUSES_MS = (0, 300, 1_500)
"""The pauses in ms between two changes: shorter and longer than the assignment interval of 1 s."""

_OPS = {"consumer": "chb", "share": "shb", "streams": "sthb"}
_ROLES = ("active", "standby", "warmup")


@dataclass
class Transitions:
    """A group on a coordinator: its clients send heartbeats, and it changes at random."""

    command: Callable[[Command], Command]
    rng: random.Random
    assignor: str
    standby: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    members: dict[str, Command] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        self.kind, self.name = self.assignor.split("/")
        self.command({"op": "init", "tird": 0, "tsr": self.standby})
        for name in NAMES[: self.rng.randint(1, 2)]:
            self.topics[name] = self.rng.randint(1, 9)
        self._change_topics()
        for _ in range(self.rng.randint(1, 4)):
            self.join()
            self.command({"op": "advance", "ms": 1_500})

    # Changes --------------------------------------------------------------------------------------

    def join(self) -> bool:
        self.made += 1
        member_id = f"{self.rng.randrange(16**6):06x}-{self.made}"
        self.members[member_id] = {
            "epoch": 0,
            "owned": {},
            "topics": self._subscription(),
            "process": f"p{self.rng.randint(1, 3)}",
            "fresh": True,
        }
        self.beat(member_id)
        return True

    def leave(self) -> bool:
        if len(self.members) < 2:
            return False
        member_id = self.rng.choice(sorted(self.members))
        del self.members[member_id]
        self.command({"op": _OPS[self.kind], "g": "g", "m": member_id, "epoch": -1})
        return True

    def restart(self, member_id: str, meanwhile: Callable[[], object]) -> str:
        """Lets a member leave, and come back with the id that is returned."""
        back = self.members.pop(member_id)
        self.command({"op": _OPS[self.kind], "g": "g", "m": member_id, "epoch": -1})
        meanwhile()
        self.made += 1
        new_id = f"{self.rng.randrange(16**6):06x}-{self.made}"
        self.members[new_id] = back | {"epoch": 0, "owned": {}, "fresh": True}
        self.beat(new_id)
        return new_id

    def subscribe(self) -> bool:
        member_id = self.rng.choice(sorted(self.members))
        topics = self._subscription()
        if self.kind == "streams" or set(topics) == set(self.members[member_id]["topics"]):
            return False
        self.members[member_id] |= {"topics": topics, "fresh": True}
        self.beat(member_id)
        return True

    def grow(self) -> bool:
        if self.kind == "streams":
            return False
        self.topics[self.rng.choice(sorted(self.topics))] += self.rng.randint(1, 2)
        self._change_topics()
        return True

    def create(self) -> bool:
        left = [name for name in NAMES if name not in self.topics]
        if self.kind == "streams" or not left:
            return False
        self.topics[left[0]] = self.rng.randint(1, 6)
        self._change_topics()
        return True

    def changed(self, most: int = 2) -> list[str]:
        """Makes at most `most` changes, and returns their kinds, with the pauses between them."""
        kinds = ("join", "join", "leave", "leave", "subscribe", "grow", "create")
        done: list[str] = []
        while len(done) < most:
            kind = self.rng.choice(kinds)
            if getattr(self, kind)():
                pause = self.rng.choice(_PAUSES_MS)
                done.append(f"{kind} {pause}")
                self.command({"op": "advance", "ms": pause})
                for member_id in self.rng.sample(sorted(self.members), len(self.members) // 2):
                    self.beat(member_id)
        return done

    # States ---------------------------------------------------------------------------------------

    def settled(self) -> kr.GroupSpec:
        """Lets all members send heartbeats until nothing changes; returns the group."""
        known: object = None
        for _ in range(40):
            self.command({"op": "advance", "ms": 1_500})
            for member_id in list(self.members):
                self.beat(member_id)
            state = self.command({"op": "mstate", "g": "g"})["state"]
            state.pop("timers")
            if state == known and self._rests(state):
                return self._group(state)
            known = state
        raise AssertionError(f"the group does not settle: {known}")

    def _rests(self, state: Command) -> bool:
        epochs = {one["epoch"] for one in state["members"].values()}
        return epochs | {state["assignment_epoch"]} == {state["epoch"]}

    def _group(self, state: Command) -> kr.GroupSpec:
        members, epoch = state["members"], state["epoch"]
        if assigns_tasks(self.assignor):
            return kr.GroupSpec(
                "g",
                (),
                tuple(self._streams_member(id_, one) for id_, one in members.items()),
                self.assignor,
                epoch,
                subtopologies=(Subtopology("0", self.topics[_SOURCE], stateful=True),),
                num_standby_replicas=self.standby,
            )
        read = {name for one in self.members.values() for name in one["topics"]}
        owned = {name for one in members.values() for name in one["target"]}
        topics = tuple(
            kr.Topic(name, count, topic_id=topic_id(name))
            for name, count in self.topics.items()
            if name in read | owned
        )
        return kr.GroupSpec(
            "g",
            topics,
            tuple(
                kr.Member(
                    member_id,
                    tuple(self.members[member_id]["topics"]),
                    owned_partitions=_partitions(one["target"]),
                    generation_id=one["epoch"],
                )
                for member_id, one in members.items()
            ),
            self.assignor,
            epoch,
        )

    def _streams_member(self, member_id: str, one: Command) -> kr.Member:
        active, standby = (_partitions(one["target"][role] or {}) for role in _ROLES[:2])
        running = StreamsMember(self.members[member_id]["process"], active, standby)
        return kr.Member(member_id, (), generation_id=one["epoch"], streams=running)

    # Requests -------------------------------------------------------------------------------------

    def _subscription(self) -> list[str]:
        return sorted(self.rng.sample(NAMES, self.rng.choice((1, 2, 2, 3))))

    def _change_topics(self) -> None:
        there = dict(self.topics)
        if self.kind == "streams":
            there["c"] = there[_SOURCE]
        self.command({"op": "topics", "topics": there})

    def beat(self, member_id: str) -> None:
        member = self.members[member_id]
        request = {"op": _OPS[self.kind], "g": "g", "m": member_id, "epoch": member["epoch"]}
        joins = member["epoch"] == 0
        if self.kind == "streams":
            request |= self._tasks(member)
        else:
            if member.pop("fresh", False) or joins:
                request["topics"] = member["topics"]
            if self.kind == "consumer":
                request |= {"owned": member["owned"]}
                request |= {"rt": 60_000, "assignor": self.name} if joins else {}
        answer = self.command(request)
        assert answer["err"] == "NONE", (request, answer)
        member["epoch"] = answer["epoch"]
        if self.kind == "streams":
            if answer["active"] is not None:
                member["owned"] = {role: answer[role] or {} for role in _ROLES}
        elif answer["asg"] is not None:
            member["owned"] = answer["asg"]

    def _tasks(self, member: Command) -> Command:
        owned = member["owned"] or {role: {} for role in _ROLES}
        if member["epoch"]:
            return owned
        one = {"sources": [_SOURCE], "changelogs": ["c"]}
        return {
            **owned,
            "rt": 60_000,
            "process": member["process"],
            "topology": {"epoch": 1, "subtopologies": {"0": one}},
        }


def _partitions(listed: Command) -> tuple[kr.TopicPartition, ...]:
    return tuple(kr.TopicPartition(name, p) for name, each in listed.items() for p in each)


def topic_id(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode().ljust(16, b"\0")).decode().rstrip("=")

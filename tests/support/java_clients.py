# SPDX-License-Identifier: Apache-2.0
"""Plays rounds with Java's classes and real clients' claims, without using plans/rounds.py.

Each client claims partitions as its library does, and Kafka's class (the oracle) assigns. A
cooperative client that must revoke a claimed partition joins again. A client that also lists an
eager assignor has revoked all partitions, but sends its generation. `KINDS` lists the kinds of
clients; in a contract line, `subscription_version` and `user_data` show a member's kind.

In a rolling bounce, members list different assignors (`bounced`): some are then eager, others
cooperative. Each client remembers an assignment only in the assignor that made it.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import kafka_rebalance as kr
from kafka_rebalance.plans import Step
from tests.support.generate_sent import sticky_bytes, subscription_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_rebalance.group.model import UserData
    from tests.support.oracle import Oracle

Held = list[tuple[str, int]]
Listed = tuple[str, ...]

COOPERATIVE = "cooperative-sticky"

# First line: the current Java client (twice as likely), then Java 3.2, 2.4 and 2.3. Second line:
# the sticky assignors of the Python clients.
KINDS: tuple[tuple[int | None, UserData | None], ...] = (
    *((None, None), (None, None), (2, None), (1, None), (0, None)),
    *((0, "partitions"), (0, "none"), (1, "none")),
)


def with_clients(group: kr.GroupSpec, rng: random.Random) -> kr.GroupSpec:
    """Chooses a random kind of client for each member; in half of the groups, one kind for all
    members.
    """
    alike = rng.choice(KINDS) if rng.random() < 0.5 else None
    members = []
    for member in group.members:
        version, user_data = alike or rng.choice(KINDS)
        members.append(replace(member, subscription_version=version, user_data=user_data))
    return group.edited(members=tuple(members))


class Bounced(NamedTuple):
    """A step, the assignors that each member lists, and the assignor of the rebalance before it."""

    step: Step
    lists: dict[str, Listed]
    last: str

    @property
    def selected(self) -> str:
        """Returns the assignor for which most members vote, of those that all members list."""
        lists = self.lists.values()
        common = set.intersection(*map(set, lists))
        votes = Counter(next(name for name in names if name in common) for names in lists)
        return votes.most_common(1)[0][0]


def bounced(began: kr.GroupSpec, new: str, steps: Iterable[Step]) -> Iterator[Bounced]:
    """Yields the steps of a switch to `new`: members with new ids have restarted, and list both.

    `began` is the group before the switch.
    """
    known, last = alone(began), began.assignor or ""
    both = (new, last)
    for step in steps:
        one = Bounced(
            step, {m.member_id: known.get(m.member_id, both) for m in step.before.members}, last
        )
        yield one
        last = one.selected if step.rounds else last


def alone(group: kr.GroupSpec) -> dict[str, Listed]:
    """Returns what members list outside of a bounce: an eager assignor, too, in an eager group."""
    assignor = group.assignor or ""
    also_eager = assignor == COOPERATIVE and group.rebalance_protocol == "eager"
    listed = (assignor, "an eager one") if also_eager else (assignor,)
    return {member.member_id: listed for member in group.members}


@dataclass
class Client:
    member: kr.Member
    held: Held
    generation_id: int | None
    is_eager: bool

    def claims(self, assignor: str, last: str) -> Held:
        """Returns the partitions to claim under `assignor`; `last` made the last assignment."""
        if assignor == COOPERATIVE:
            return [] if self.is_eager else self.subscribed()
        return self.held if assignor == last else []

    def subscribed(self) -> Held:
        """Returns the partitions that a cooperative client keeps when it joins."""
        return [tp for tp in self.held if tp[0] in self.member.topics]

    def sends(self, assignor: str, last: str) -> dict[str, Any]:
        """Returns the member in the form of the oracle's input."""
        claims = self.claims(assignor, last)
        generation = self.generation_id if assignor == last else None
        member = self.member
        fields = {"member_id": member.member_id, "group_instance_id": member.group_instance_id}
        if member.subscription_version is None and member.user_data is None:
            # The oracle encodes such a member with Java's own encoder.
            return fields | {
                "topics": list(member.topics),
                "owned_partitions": [{"topic": t, "partitions": [p]} for t, p in claims],
                "generation_id": generation,
                "rack_id": member.rack_id,
            }
        number = -1 if generation is None else generation
        cooperative = assignor == COOPERATIVE
        data = self._user_data(assignor, claims, number)
        return fields | {
            "subscription": subscription_bytes(
                member.version,
                member.topics,
                data,
                claims if cooperative else [],
                number,
                member.rack_id,
            ).hex()
        }

    def _user_data(self, assignor: str, claims: Held, generation: int) -> bytes | None:
        kind = self.member.user_data
        if assignor == COOPERATIVE:
            return None if kind else struct.pack(">i", generation)
        if assignor != "sticky" or (not claims and generation < 0):
            return None
        data = sticky_bytes(claims, -1 if kind else generation)
        return struct.pack(">h", 1) + data if kind == "none" else data


def difference(oracle: Oracle, step: Step) -> str | None:
    """Plays a step outside of a bounce; returns the first difference as a string, or None."""
    return difference_in_bounce(
        oracle, Bounced(step, alone(step.before), step.before.assignor or "")
    )


def difference_in_bounce(oracle: Oracle, bounced: Bounced) -> str | None:
    """Plays a step's rounds with the oracle; returns the first difference as a string, or None."""
    step, lists, last = bounced
    if not step.before.members:
        return None
    assignor = bounced.selected
    if not step.rounds:
        return None if assignor == last else f"the members select {assignor}: a rebalance follows"
    if assignor != step.before.assignor:
        return f"the members select {assignor}"
    clients = [
        Client(
            member,
            [(t, p) for t, p in member.owned_partitions],
            member.generation_id,
            is_eager={COOPERATIVE} != {*lists[member.member_id]},
        )
        for member in step.before.members
    ]
    for number, planned in enumerate(step.rounds, 1):
        sent = [client.sends(assignor, last) for client in clients]
        topics = [_topic(one) for one in step.before.topics]
        answer = oracle.ask(
            {"group_id": "g", "assignor": assignor, "topics": topics, "members": sent}
        )
        if "error" in answer:
            return f"round {number}: Java throws {answer['error']}"
        if answer["assignment"] != planned.assignment.to_dict():
            return f"round {number}: Java gives {answer['assignment']}"
        loses = False
        for client in clients:
            got = [(t, p) for t, p in answer["assignment"][client.member.member_id]]
            loses |= not client.is_eager and bool({*client.subscribed()} - {*got})
            client.held, client.generation_id = got, planned.generation_id
        last = assignor
        if loses == (number == len(step.rounds)) and step.settled:
            return f"round {number}: {'another follows' if loses else 'it is the last'}"
    held = {client.member.member_id: [list(tp) for tp in client.held] for client in clients}
    if held != {m.member_id: [list(tp) for tp in m.owned_partitions] for m in step.after.members}:
        return "the members end with other partitions"
    return None


def _topic(topic: kr.Topic) -> dict[str, Any]:
    """Returns the topic in the form of the oracle's input."""
    racks = {} if topic.racks is None else {"racks": [list(one) for one in topic.racks]}
    return {"name": topic.name, "partitions": topic.partitions} | racks

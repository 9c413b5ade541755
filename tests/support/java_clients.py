# SPDX-License-Identifier: Apache-2.0
"""Plays rounds with Java's classes and real clients' claims, without using plans/rounds.py.

Each client claims partitions as its library does, and Kafka's class (the oracle) assigns. A
cooperative client that must revoke a claimed partition joins again. A client of an eager group
with a cooperative assignor has revoked all partitions, but sends its generation. `KINDS` lists the
kinds of clients; in a contract line, `subscription_version` and `user_data` show a member's kind.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance.plans import Step
from tests.support.generate_sent import sticky_bytes, subscription_bytes

if TYPE_CHECKING:
    from kafka_rebalance.group.model import UserData
    from tests.support.oracle import Oracle

Held = list[tuple[str, int]]

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


@dataclass
class Client:
    member: kr.Member
    held: Held
    generation_id: int | None

    def claims(self, assignor: str) -> Held:
        """Returns the partitions to claim; a cooperative client leaves out unsubscribed topics."""
        if assignor != "cooperative-sticky":
            return self.held
        return [tp for tp in self.held if tp[0] in self.member.topics]

    def sends(self, assignor: str, *, starts_over: bool, lists_eager: bool) -> dict[str, Any]:
        """Returns the member in the form of the oracle's input."""
        claims = [] if starts_over or lists_eager else self.claims(assignor)
        generation = None if starts_over else self.generation_id
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
        cooperative = assignor == "cooperative-sticky"
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
        if assignor == "cooperative-sticky":
            return None if kind else struct.pack(">i", generation)
        if assignor != "sticky" or (not claims and generation < 0):
            return None
        data = sticky_bytes(claims, -1 if kind else generation)
        return struct.pack(">h", 1) + data if kind == "none" else data


def difference(oracle: Oracle, step: Step, *, mixed: bool = False) -> str | None:
    """Plays a step's rounds with the oracle; returns the first difference as a string, or None.

    With `mixed`, the clients list an eager assignor too, as in a change of assignor.
    """
    group = step.before
    assignor = group.assignor or ""
    starts_over = "takes over" in step.cause
    mixed = mixed or group.rebalance_protocol == "eager"
    lists_eager = assignor == "cooperative-sticky" and mixed
    cooperative = assignor == "cooperative-sticky" and not starts_over and not lists_eager
    clients = [
        Client(m, [(t, p) for t, p in m.owned_partitions], m.generation_id) for m in group.members
    ]
    topics = [
        {"name": t.name, "partitions": t.partitions}
        | ({} if t.racks is None else {"racks": [list(racks) for racks in t.racks]})
        for t in group.topics
    ]
    for number, planned in enumerate(step.rounds, 1):
        how = {"starts_over": starts_over, "lists_eager": lists_eager}
        sent = [client.sends(assignor, **how) for client in clients]
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
            loses |= cooperative and bool(set(client.claims(assignor)) - set(got))
            client.held, client.generation_id = got, planned.generation_id
        last = number == len(step.rounds)
        if loses == last and step.settled:
            return f"round {number}: {'another follows' if loses else 'it is the last'}"
    held = {client.member.member_id: [list(tp) for tp in client.held] for client in clients}
    if held != {m.member_id: [list(tp) for tp in m.owned_partitions] for m in step.after.members}:
        return "the members end with other partitions"
    return None

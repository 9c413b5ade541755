# SPDX-License-Identifier: Apache-2.0
"""Rolling restarts from the classic to the consumer protocol and back, judged after each step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_rebalance.errors import GroupError
from kafka_rebalance.plans import plans_by_leader
from kafka_rebalance.plans.changes import SwitchProtocol

from .judge import Outcome, joined, judge, settled
from .members import JAVA, LIBRARIES, LIBRDKAFKA, Client, Members

if TYPE_CHECKING:
    from random import Random

    from kafka_rebalance.group.spec import GroupSpec

_ASSIGNORS = {
    JAVA: ("range", "roundrobin", "sticky", "cooperative-sticky"),
    LIBRDKAFKA: ("range", "roundrobin", "cooperative-sticky"),
}
_INTERVAL_S = 1.3
"""Longer than the assignment interval of 1 s: then each step has its own target."""

_REFUSED_S = 3.0

Play = Callable[[Members, "Random", int], Iterator[Outcome]]


def play_migrations(protocol: str) -> Play:
    """Returns the function that plays migrations to this protocol."""
    other = {"consumer": "classic", "classic": "consumer"}[protocol]

    def play(members: Members, random: Random, number: int) -> Iterator[Outcome]:
        for n in range(number):
            group_id = f"to-{protocol}-{n}"
            library = LIBRARIES[n % 2]
            classic = random.choice(_ASSIGNORS[library])
            topics = {f"{word}.{group_id}": random.randint(1, 8) for word in "ab"}
            members.create(topics)
            clients = [
                Client(
                    f"{group_id}-{i}",
                    group_id,
                    library,
                    tuple(topics),
                    protocol=other,
                    assignor=classic if other == "classic" else None,
                    instance_id=f"{group_id}-pod-{i}" if n % 3 == 2 else None,
                )
                for i in range(random.randint(2, 4))
            ]
            for client in clients:
                members.start(client)
            yield _migrate(members, clients, protocol, classic)

    return play


def _migrate(members: Members, clients: list[Client], protocol: str, classic: str) -> Outcome:
    server, group_id = members.server, clients[0].group_id
    before = settled(server, group_id, len(clients))
    dialect = f"librdkafka/{classic}" if clients[0].library == LIBRDKAFKA else classic
    change = SwitchProtocol(protocol, dialect if protocol == "classic" else None)
    try:
        planned = plans_by_leader(before, [change])[0].plan
    except GroupError as error:
        return _refused(members, clients, before, str(error))
    assert planned
    by_name = {client.name: client for client in clients}
    known = [one.member_id for one in before.members]
    seen = []
    for member in before.members:
        client = by_name[member.client_id or ""]
        members.close(client)
        if client.instance_id is None:
            time.sleep(_INTERVAL_S)
            seen.append(settled(server, group_id, len(clients) - 1))
        time.sleep(_INTERVAL_S)
        back = replace(
            client, protocol=protocol, assignor=classic if protocol == "classic" else None
        )
        by_name[client.name] = back
        members.start(back)
        joined(server, group_id, back.name, known)  # a static member was never absent
        seen.append(settled(server, group_id, len(clients)))
    for client in by_name.values():
        members.close(client)
    what = f"{group_id}: {len(clients)} members, {clients[0].library}, {classic}"
    what += " (static)" if clients[0].instance_id else ""
    return judge(what, planned, (change,), seen, range(len(planned.steps)))


def _refused(members: Members, clients: list[Client], before: GroupSpec, error: str) -> Outcome:
    """Restarts one member; the broker must refuse it, as the plan predicts."""
    group_id = before.group_id
    members.close(clients[0])
    left = settled(members.server, group_id, len(clients) - 1)
    back = replace(clients[0], protocol="consumer", assignor=None)
    members.start(back)
    time.sleep(_REFUSED_S)
    after = settled(members.server, group_id, len(clients) - 1)
    for client in (back, *clients[1:]):
        members.close(client)
    is_right = "user data" in error and after.assignor == left.assignor
    what = f"{group_id}: {len(clients)} members, {clients[0].library}, refused"
    problem = None if is_right else f"wrong: {error}, but {after.to_json()}"
    return Outcome(what, problem, with_planned_ids=True, observed={})

# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.weighted_rolling`: groups that come to `Weighted` and go back, on a real broker.

Plays the steps of docs/balance.md ("How to come and go"): members are closed and started again with
another list of assignors, one after another or all at once, while a producer writes. After each
step every partition must have exactly one reader, every member must be alive, and the broker must
have chosen the assignor that the step leads to. Prints a line for each step: the assignor, moves
from one living member to another, and the longest time of a partition without a reader.

The exit code is 1 if a step ends otherwise.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

from tests.support.broker import Broker

from .weighted_live import MEMBERS, PARTITIONS, TOPIC, Members, Producer, judged

WEIGHTED, EAGER = "kafka-rebalance/weighted", "kafka-rebalance/weighted-eager"
_SETTLES_S, _STAYS_S = 60.0, 3.0


class Step(NamedTuple):
    """The list of assignors to restart with, all at once or not, and the assignor chosen then."""

    listed: str
    chosen: str
    at_once: bool = False


WAYS = {
    "kafka-python, cooperative-sticky": [
        Step("own", "cooperative-sticky"),
        Step("weighted,cooperative-sticky", WEIGHTED),
        Step("weighted", WEIGHTED),
        Step("cooperative-sticky,weighted", "cooperative-sticky"),
        Step("own", "cooperative-sticky"),
    ],
    "kafka-python, range": [
        Step("range", "range"),
        Step("weighted,range", WEIGHTED),
        Step("weighted", WEIGHTED),
        Step("range,weighted", "range"),
        Step("range", "range"),
    ],
    "aiokafka, roundrobin": [
        Step("own", "roundrobin", at_once=True),
        Step("weighted", EAGER, at_once=True),
        Step("own", "roundrobin", at_once=True),
    ],
}


def restart(members: Members, client: str, group_id: str, step: Step) -> None:
    """Restarts the members with the step's list; a member that did not end well raises."""
    old = list(members.running[group_id])

    def close(name: str) -> None:
        code = members.stop(group_id, name)
        members.events.append({"at": time.time(), "killed": True, "group": group_id, "name": name})
        if code:
            raise RuntimeError(f"{name} ended with exit code {code}")

    if step.at_once or not old:
        for name in old:
            close(name)
        for _ in range(MEMBERS):
            members.start(client, group_id, step.listed)
        return
    for name in old:
        close(name)
        members.start(client, group_id, step.listed)
        settle(members, group_id)


def settle(members: Members, group_id: str) -> str:
    """Waits until each partition has had exactly one reader for a while; returns what is wrong."""
    deadline, since = time.time() + _SETTLES_S, None
    while time.time() < deadline:
        ended = [n for n, one in members.running[group_id].items() if one.poll() is not None]
        if ended:
            return f"ended: {', '.join(ended)}"
        readers = _readers(members, group_id)
        is_read = sorted(p for held in readers.values() for p in held) == list(range(PARTITIONS))
        since = (since or time.time()) if is_read and len(readers) == MEMBERS else None
        if since is not None and time.time() - since >= _STAYS_S:
            return ""
        time.sleep(0.1)
    return f"not every partition has one reader after {_SETTLES_S:.0f} s"


def _readers(members: Members, group_id: str) -> dict[str, set[int]]:
    held: dict[str, set[int]] = {name: set() for name in members.running[group_id]}
    for event in [one for one in members.events if one["group"] == group_id]:
        name = event["name"]
        if name in held:
            held[name] = (held[name] - {*event.get("lost", ())}) | {*event.get("got", ())}
    return {name: partitions for name, partitions in held.items() if partitions}


def main() -> int:
    from kafka import KafkaAdminClient

    right = True
    with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_server) as admin:
        server = broker.bootstrap_server
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
        members, producer = Members(server), Producer(server, "zipf")
        producer.start()
        try:
            for way, steps in WAYS.items():
                client, group_id = way.split(", ")[0], way.replace(", ", "-")
                moves = gaps = 0
                for number, step in enumerate(steps):
                    restart(members, client, group_id, step)
                    problem = settle(members, group_id)
                    chosen = admin.describe_groups([group_id])[group_id]["protocol_data"]
                    if not problem and chosen != step.chosen:
                        problem = f"{chosen} in place of {step.chosen}"
                    events = [one for one in members.events if one["group"] == group_id]
                    seen = judged(events, [], "zipf", producer.began, time.time())
                    right &= not (problem or seen.in_second or seen.without_weights)
                    print(
                        f"{way}: {number}. [{step.listed}]: {problem or chosen}, "
                        f"moves {seen.moves - moves}, longest unread "
                        f"{max(seen.longest[gaps:], default=0.0):.2f} s, "
                        f"taken in second rounds {seen.in_second}",
                        flush=True,
                    )
                    moves, gaps = seen.moves, len(seen.longest)
        finally:
            members.close()
            producer.stopped.set()
            producer.join(20)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

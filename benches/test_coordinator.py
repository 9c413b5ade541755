# SPDX-License-Identifier: Apache-2.0
"""Measures the coordinator: requests a second while 1,000 members rebalance, and bytes a member.

Run it with `pytest -q -s benches/test_coordinator.py`. The coordinator is pure Python
on one core. Compare figures of one run only.
"""

import gc
import tracemalloc
from typing import Any

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.events import (
    Append,
    Appended,
    CoordinatorEvent,
    Received,
    Respond,
)
from kafka_rebalance.wire.classic_groups import (
    JoinGroup,
    JoinGroupProtocol,
    JoinGroupResponse,
    SyncGroup,
)
from kafka_rebalance.wire.consumer_protocol import Subscription, encode_subscription
from kafka_rebalance.wire.messages import Request, Response, Tick

MEMBERS = 1_000
METADATA = encode_subscription(Subscription(("orders", "payments")))


class Group:
    """A group whose members join and sync in every round."""

    def __init__(self) -> None:
        config = CoordinatorConfig(group_initial_rebalance_delay_ms=0)
        self.coordinator = Coordinator(config)
        self.now_ms = 0
        self.requests = 0
        self.position = 0

    def handle(self, event: CoordinatorEvent) -> list[Response]:
        answers = []
        waiting = [event]
        while waiting:
            for effect in self.coordinator.handle(waiting.pop(), self.now_ms):
                if isinstance(effect, Append):
                    waiting.append(Appended(effect.append_id, self.position))
                    self.position += len(effect.records)
                elif isinstance(effect, Respond):
                    answers.append(effect.response)
        return answers

    def send(self, request: Request, version: int) -> list[Response]:
        self.requests += 1
        return self.handle(Received(self.requests, request, version, "c"))

    def join(self, member_ids: list[str]) -> list[JoinGroupResponse]:
        self.now_ms += 1_000
        answers: list[Response] = []
        for member_id in member_ids:
            join = JoinGroup(
                group_id="g",
                member_id=member_id,
                protocols=(JoinGroupProtocol("range", METADATA + self.now_ms.to_bytes(8, "big")),),
            )
            answers += self.send(join, 3)
        # The initial delay, of 0 ms, runs twice: members joined during its first part.
        while (due := self.coordinator.next_deadline_ms()) is not None and due <= self.now_ms:
            answers += self.handle(Tick())
        return [one for one in answers if isinstance(one, JoinGroupResponse)]

    def sync(self, joined: list[JoinGroupResponse]) -> None:
        leader = joined[0].leader
        given = tuple((one.member_id, b"assignment") for one in joined)
        for one in joined:
            sync = SyncGroup(
                group_id="g",
                member_id=one.member_id,
                generation_id=one.generation_id,
                assignments=given if one.member_id == leader else (),
            )
            self.send(sync, 4)


def test_requests_a_second(benchmark: Any) -> None:
    group = Group()
    joined = group.join([""] * MEMBERS)
    assert len(joined) == MEMBERS
    group.sync(joined)

    def rebalance() -> None:
        again = group.join(list(group.coordinator.classic_groups()["g"].members))
        assert len(again) == MEMBERS
        group.sync(again)

    before = group.requests
    rebalance()
    requests = group.requests - before
    benchmark(rebalance)
    a_second = round(requests / benchmark.stats["median"])
    benchmark.extra_info["requests_a_second"] = a_second
    print(f"\n{MEMBERS:,} members rebalance: {a_second:,} requests a second")


def test_bytes_a_member() -> None:
    gc.collect()
    tracemalloc.start()
    group = Group()
    joined = group.join([""] * MEMBERS)
    group.sync(joined)
    del joined
    gc.collect()
    used, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"\n{used // MEMBERS:,} bytes a member, at most {peak // MEMBERS:,}")
    assert used < 5_000 * MEMBERS

# SPDX-License-Identifier: Apache-2.0
"""The simulated side: plays the scenario and records the consumers' callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.member.consumer_group.async_consumer import AsyncConsumer
from kafka_rebalance.member.interface import Assigned, Lost, Revoked, Send
from kafka_rebalance.simulator import Kind, Scenario, simulate
from kafka_rebalance.wire.classic_groups import JoinGroup

from .played import KILLED, Event, Played, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_rebalance.member.interface import MemberEffect, MemberEvent
    from kafka_rebalance.simulator.process import AnyConsumer

KINDS = {Revoked: "revoked", Assigned: "assigned", Lost: "lost"}


class _Watch:
    """Replaces `handle` of consumers: calls it, and records its callbacks."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.seen: list[Event] = []
        self._names = names  # by member id, with the consumer protocol
        self._joined_ms: dict[AnyConsumer, int] = {}  # first JoinGroup of this rebalance
        self._handles: dict[type, Any] = {one: one.handle for one in (Consumer, AsyncConsumer)}

    def handle(self, consumer: AnyConsumer, event: MemberEvent, now_ms: int) -> list[MemberEffect]:
        # These values are read before the call, which may reset them: a real callback sees the old
        # values.
        member_id, generation_id = consumer.member_id, consumer.generation_id
        member = self._names.get(member_id) or name_of(member_id)
        effects: list[MemberEffect] = self._handles[type(consumer)](consumer, event, now_ms)
        for effect in effects:
            match effect:
                case Revoked(partitions) | Assigned(partitions) | Lost(partitions):
                    kind, joined_ms = KINDS[type(effect)], None
                    if isinstance(effect, Assigned):
                        joined_ms = self._joined_ms.pop(consumer, None)
                    names = tuple(map(str, partitions))
                    self.seen.append(Event(now_ms, member, kind, names, generation_id, joined_ms))
                case Send(request=JoinGroup()):
                    self._joined_ms.setdefault(consumer, now_ms)
                case _:
                    pass
        return effects


def play(scenario: Scenario) -> Played:
    """Plays in virtual time. It is not thread-safe, because it replaces a method of a class."""
    watch = _Watch({id_: one.name for one in scenario.members for id_ in one.member_ids})

    def handle(consumer: AnyConsumer, event: MemberEvent, now_ms: int) -> list[MemberEffect]:
        return watch.handle(consumer, event, now_ms)

    # `watch.handle` is bound to `watch` already, so it would not receive the consumer.
    with (
        mock.patch.object(Consumer, "handle", handle),
        mock.patch.object(AsyncConsumer, "handle", handle),
    ):
        run = simulate(scenario)
    assert not run.crashed, run.crashed
    killed = (one for one in scenario.happenings if one.kind is Kind.KILL)
    events = [*watch.seen, *(Event(one.at_ms, one.member, KILLED) for one in killed)]
    events.sort(key=lambda one: one.at_ms)
    network = scenario.network
    return Played(tuple(events), 2 * (network.delay_ms + network.spread_ms))

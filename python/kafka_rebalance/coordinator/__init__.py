# SPDX-License-Identifier: Apache-2.0
"""Kafka's group coordinator, without I/O: `handle(event, now_ms)` returns effects.

    machine          events, effects, the state, deadlines, appends, loading
    offsets          committed offsets
    classic_group    groups whose leader assigns: `join_group`, and the other requests in `kind`
    broker_assigned  what all broker-assigned groups have in common
    consumer_group, share_group, streams_group   the kinds of these (KIP-848, 932, 1071)

The classes of requests and responses are in the modules of `kafka_rebalance.wire`.

>>> from kafka_rebalance.coordinator.coordinator import Coordinator
>>> from kafka_rebalance.coordinator.machine.events import Received
>>> from kafka_rebalance.wire.classic_groups import JoinGroup, JoinGroupProtocol
>>> coordinator = Coordinator()
>>> join = JoinGroup(group_id="orders", protocols=(JoinGroupProtocol("range", b""),))
>>> effects = coordinator.handle(Received(1, join, api_version=3, client_id="c"), now_ms=0)
>>> coordinator.next_deadline_ms()
3000
"""

# SPDX-License-Identifier: Apache-2.0
"""Kafka's group coordinator, without I/O: `handle(event, now_ms)` returns effects.

    machine          events, effects, the state, deadlines, appends, loading
    offsets          committed offsets
    classic_group    leader-assigned groups: `join_group`, `member_requests`, `rebalance`
    broker_assigned  the parts that all broker-assigned groups share
    consumer_group, share_group, streams_group   their kinds (KIP-848, 932, 1071)

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

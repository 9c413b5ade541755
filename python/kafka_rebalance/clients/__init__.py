# SPDX-License-Identifier: Apache-2.0
"""Plug-ins for live Python clients: Kafka's own answers from a Python leader.

    from kafka_rebalance.clients.kafka_python import CooperativeSticky
    KafkaConsumer(..., partition_assignment_strategy=[CooperativeSticky])

    from kafka_rebalance.clients.aiokafka import Sticky
    AIOKafkaConsumer(..., partition_assignment_strategy=[Sticky])

A leader that has them answers as a Java leader would: Java and Python members can share a group.
docs/clients.md says what they send, and where a leader sends another answer than Kafka's.
"""

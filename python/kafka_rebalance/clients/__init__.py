# SPDX-License-Identifier: Apache-2.0
"""Plug-ins for live Python clients, so that a Python leader returns the answers of Kafka's classes.

    from kafka_rebalance.clients.kafka_python import CooperativeSticky
    KafkaConsumer(..., partition_assignment_strategy=[CooperativeSticky])

    from kafka_rebalance.clients.aiokafka import Sticky
    AIOKafkaConsumer(..., partition_assignment_strategy=[Sticky])

A leader with a plug-in answers as a Java leader does, so Java and Python members can share a group.
docs/clients.md describes the bytes that plug-ins send, and the cases in which the answer of such a
leader differs from Kafka's answer.
"""

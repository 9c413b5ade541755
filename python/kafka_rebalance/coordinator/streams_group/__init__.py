# SPDX-License-Identifier: Apache-2.0
"""Streams groups: groups whose broker assigns the tasks of a Kafka Streams application (KIP-1071).

tasks, member, group, replay, records   the state of a group, and the records that change it
topology, partition_counts              which topics and tasks a topology has, and what is missing
heartbeat, answer, members, leaving     the member's request, and who may send it
target, reconciliation, timeouts        what a member will have, and how it gets there
offsets, describe                       commits and fetches by epoch; what administrators see

The parts that consumer groups and share groups have too are in `broker_assigned/`.
"""

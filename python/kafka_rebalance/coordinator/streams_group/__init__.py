# SPDX-License-Identifier: Apache-2.0
"""Streams groups: groups whose broker assigns the tasks of a Kafka Streams application (KIP-1071).

kind                             what is special in them: replay, leaving, offsets, descriptions
tasks, member, group, records    the state of a group, and its records
topology, partition_counts       which topics and tasks a topology has, and what is missing
heartbeat, members               the member's request, and who may send it
target, reconciliation           what a member will have, and how it gets there
"""

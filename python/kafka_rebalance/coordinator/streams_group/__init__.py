# SPDX-License-Identifier: Apache-2.0
"""Streams groups: groups whose broker assigns the tasks of a Kafka Streams application (KIP-1071).

kind                      what is special in them: replay, leaving, offsets, descriptions
member, group             the state of a group, and its records
topology                  which topics and tasks a topology has, and what is missing
heartbeat                 the member's request
target, reconciliation    what a member will have, and how it gets there
"""

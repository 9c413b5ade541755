# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the consumer protocol, byte for byte as Kafka's Java classes do.

A member sends a subscription in JoinGroup, to which a sticky assignor adds user data, and receives
an assignment in SyncGroup. A length greater than the number of bytes left is an error, and no
memory is reserved for it, so hostile bytes do no harm. All errors are WireErrors.

Source   ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, StickyAssignor,
         CooperativeStickyAssignor (Kafka 4.4.0); KIP-429 (v1), KIP-792 (v2), KIP-881 (v3).
"""

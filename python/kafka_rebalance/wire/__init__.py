# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the consumer protocol, byte for byte as Kafka's Java classes do.

    subscription   sent by a member in JoinGroup: ConsumerProtocolSubscription, versions 0 to 3
    assignment     received in SyncGroup: ConsumerProtocolAssignment, versions 0 to 3
    user data      bytes that a sticky assignor adds to a subscription

A length greater than the number of bytes left is an error, and no memory is reserved for it, so
hostile bytes do no harm. Errors are WireError.

Source   ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, StickyAssignor,
         CooperativeStickyAssignor (Kafka 4.4.0); KIP-429 (v1), KIP-792 (v2), KIP-881 (v3).
"""

from .consumer_protocol import (
    AssignmentData,
    Subscription,
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from .sent_members import sent_member
from .user_data import (
    StickyUserData,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    encode_cooperative_user_data,
    encode_sticky_user_data,
)

__all__ = [
    "AssignmentData",
    "StickyUserData",
    "Subscription",
    "by_topic",
    "decode_assignment",
    "decode_cooperative_user_data",
    "decode_sticky_user_data",
    "decode_subscription",
    "encode_assignment",
    "encode_cooperative_user_data",
    "encode_sticky_user_data",
    "encode_subscription",
    "sent_member",
]

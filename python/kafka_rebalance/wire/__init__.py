# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the consumer protocol, byte for byte as Kafka's Java classes do.

A member sends a subscription in JoinGroup, to which a sticky assignor adds user data, and receives
an assignment in SyncGroup. A length greater than the number of bytes left is an error, and no
memory is reserved for it, so hostile bytes do no harm. All errors are WireErrors.

Source   ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json, StickyAssignor,
         CooperativeStickyAssignor (Kafka 4.4.0); KIP-429 (v1), KIP-792 (v2), KIP-881 (v3).
"""

from .consumer_protocol import AssignmentData as AssignmentData
from .consumer_protocol import StickyUserData as StickyUserData
from .consumer_protocol import Subscription as Subscription
from .consumer_protocol import by_topic as by_topic
from .consumer_protocol import decode_assignment as decode_assignment
from .consumer_protocol import decode_cooperative_user_data as decode_cooperative_user_data
from .consumer_protocol import decode_sticky_user_data as decode_sticky_user_data
from .consumer_protocol import decode_subscription as decode_subscription
from .consumer_protocol import encode_assignment as encode_assignment
from .consumer_protocol import encode_cooperative_user_data as encode_cooperative_user_data
from .consumer_protocol import encode_sticky_user_data as encode_sticky_user_data
from .consumer_protocol import encode_subscription as encode_subscription
from .sent_members import client_library as client_library
from .sent_members import leader_library as leader_library
from .sent_members import sent_member as sent_member

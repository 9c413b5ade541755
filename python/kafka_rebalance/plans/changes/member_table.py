# SPDX-License-Identifier: Apache-2.0
"""The order in which a broker visits the members of a group whose target it computes.

The broker keeps members in a hash map (the *table*). The highest bits of a member's hash select its
slot; in a slot, newer members come first. Before a member is put into the table (or replaced
there), the table doubles if one more member would be too many. It never shrinks: a group that once
was larger may have a larger table. This can only change the order of members that share a slot of
the assignor's own map.

Source   BaseHashTable: baseAddOrReplace, findSlot; SnapshottableHashTable (Kafka 4.4.0).
"""

from collections.abc import Sequence

from kafka_rebalance.group.model import Member
from kafka_rebalance.java.order import string_hash

_GOLDEN = 0x9E3779B97F4A7C15
SMALLEST, LOAD = 2, 0.75


def in_table_order(
    members: Sequence[Member], *, has_joined: bool = True, most: int = 0
) -> list[Member]:
    """Returns `members` (newest first) in the order of the broker's table.

    The table once held `most` members. `has_joined` is False if the newest member is in the table,
    but its first record has not replaced that entry yet.
    """
    slots = SMALLEST
    while max(len(members) + has_joined, most + 1) * LOAD > slots:
        slots *= 2
    shift = 65 - slots.bit_length()

    def slot(member: Member) -> int:
        hashed = string_hash(member.member_id)
        signed = hashed - 2**32 if hashed >= 2**31 else hashed
        return (signed * _GOLDEN & 2**64 - 1) >> shift

    return sorted(members, key=slot)

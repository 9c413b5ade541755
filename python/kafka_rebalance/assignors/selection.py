# SPDX-License-Identifier: Apache-2.0
"""Selects a group's protocol: members vote for one of the protocols that all of them list.

    1. candidates     names that every member lists
    2. votes          each member votes for the first candidate of its own list
    3. winner         most votes; tie-break: the first in the order of a java.util.HashMap

By this tie-break, sticky wins over range, range over roundrobin, roundrobin over
cooperative-sticky.

Source   ClassicGroup.selectProtocol, with Stream.max over a HashMap (Kafka 4.4.0).
"""

from collections import Counter
from collections.abc import Sequence

from kafka_rebalance.java.order import java_hash_order


def candidates(lists: Sequence[Sequence[str]]) -> frozenset[str]:
    """Returns the names that every list contains."""
    different = dict.fromkeys(map(tuple, lists))  # most lists are equal: each counts once
    return frozenset.intersection(*map(frozenset, different))


def select_protocol(lists: Sequence[Sequence[str]]) -> str:
    """Returns the winner; `lists` holds each member's protocol names, preferred names first.

    >>> select_protocol([["B", "A"], ["A", "B", "C"], ["D", "B", "A"]])
    'B'
    >>> select_protocol([["range", "sticky"], ["sticky", "range"]])
    'sticky'

    Errors: ValueError if there is no member, or no common name.
    """
    if not lists:
        raise ValueError("a group without members selects no protocol")
    common = candidates(lists)
    if not common:
        raise ValueError("the members have no protocol in common")
    votes = Counter(next(name for name in names if name in common) for names in lists)
    most = max(votes.values())
    return next(name for name in java_hash_order(list(votes)) if votes[name] == most)

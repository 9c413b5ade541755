# SPDX-License-Identifier: Apache-2.0
"""Which protocol a group uses: every member votes, among those that all of them list.

    1. candidates     names that every member lists
    2. votes          each member: the first of its own list that is a candidate
    3. winner         most votes; a tie goes to the first in the order of a java.util.HashMap

Source   ClassicGroup.selectProtocol; the tie is what Stream.max makes of HashMap's order, so
         sticky > range > roundrobin > cooperative-sticky among the built-in names.
"""

from collections import Counter
from collections.abc import Sequence

from kafka_rebalance.java.order import java_hash_order


def candidates(lists: Sequence[Sequence[str]]) -> frozenset[str]:
    """Names that every list has."""
    return frozenset.intersection(*(frozenset(names) for names in lists))


def select_protocol(lists: Sequence[Sequence[str]]) -> str:
    """The winner; `lists` are the members' names in their order of preference, at least one.

    >>> select_protocol([["B", "A"], ["A", "B", "C"], ["D", "B", "A"]])
    'B'
    >>> select_protocol([["range", "sticky"], ["sticky", "range"]])
    'sticky'

    Errors: ValueError where there is no member, or no common name.
    """
    if not lists:
        raise ValueError("a group without members selects no protocol")
    common = candidates(lists)
    if not common:
        raise ValueError("the members have no protocol in common")
    votes = Counter(next(name for name in names if name in common) for names in lists)
    most = max(votes.values())
    return next(name for name in java_hash_order(list(votes)) if votes[name] == most)

# SPDX-License-Identifier: Apache-2.0
"""The states of a member, as its client knows them.

    UNJOINED               no generation; the next poll joins
    PREPARING_REBALANCE    a JoinGroup is under way; no heartbeats
    COMPLETING_REBALANCE   it has a generation, and waits for its assignment; heartbeats
    STABLE                 it has its assignment; heartbeats

    UNJOINED --> PREPARING_REBALANCE --> COMPLETING_REBALANCE --> STABLE
        ^             ^        |                  |                  |
        |             +--------|------------------+------------------+
        +----------------------+---- reset: left, or its generation is gone

Source   AbstractCoordinator.MemberState (Kafka 4.4.0); docs/behaviour/member.md#1-states.
"""

from enum import Enum


class MemberState(Enum):
    """A member's state."""

    UNJOINED = "Unjoined"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"

    def __str__(self) -> str:
        return self.value


_S = MemberState

# state -> the states that a member may come from
LEGAL_PREDECESSORS: dict[MemberState, frozenset[MemberState]] = {
    _S.UNJOINED: frozenset(_S),
    _S.PREPARING_REBALANCE: frozenset(_S),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
}

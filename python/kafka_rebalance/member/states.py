# SPDX-License-Identifier: Apache-2.0
"""The states of a member, and the legal transitions between them.

    UNJOINED               no generation, no heartbeats; the next poll joins
    PREPARING_REBALANCE    a JoinGroup is unanswered; no heartbeats
    COMPLETING_REBALANCE   the member has a generation, sends heartbeats, waits for its assignment
    STABLE                 the member has its assignment, and sends heartbeats

`python -m tools.tables` draws `LEGAL_PREDECESSORS` into docs/behaviour/member.md.

Source   AbstractCoordinator.MemberState (Kafka 4.4.0); docs/behaviour/member.md#1-states.
"""

from enum import Enum


class MemberState(Enum):
    """A member's state, with Kafka's names."""

    UNJOINED = "Unjoined"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"

    def __str__(self) -> str:
        return self.value


_S = MemberState

# Each state, with the states from which a member can enter it.
LEGAL_PREDECESSORS: dict[MemberState, frozenset[MemberState]] = {
    _S.UNJOINED: frozenset(_S),
    _S.PREPARING_REBALANCE: frozenset(_S),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
}

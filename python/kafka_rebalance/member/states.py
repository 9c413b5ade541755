# SPDX-License-Identifier: Apache-2.0
"""The states of members, and the legal transitions between them.

A member of a classic group:

    UNJOINED               no generation, no heartbeats; the next poll joins
    PREPARING_REBALANCE    a JoinGroup is unanswered; no heartbeats
    COMPLETING_REBALANCE   the member has a generation, sends heartbeats, waits for its assignment
    STABLE                 the member has its assignment, and sends heartbeats

A member of a broker-assigned consumer group:

    UNSUBSCRIBED       not in the group, no heartbeats
    JOINING            heartbeats with epoch 0 are sent at once, one after the other
    RECONCILING        a new assignment has arrived and is not applied yet
    ACKNOWLEDGING      the assignment is applied; the next heartbeat, sent at once, reports it
    STABLE             the member only sends heartbeats
    FENCED             removed by the coordinator; joins again after onPartitionsLost
    PREPARE_LEAVING    gives up its partitions before it leaves
    LEAVING            the next heartbeat, sent at once, leaves the group
    STALE              has left, because the application did not poll; joins at the next poll
    FATAL              an error ended the membership; poll throws it

`python -m tools.tables` draws `LEGAL_PREDECESSORS` into docs/behaviour/member.md.

Source   AbstractCoordinator.MemberState (Kafka 4.4.0); docs/behaviour/member.md#1-states;
         MemberState of org.apache.kafka.clients.consumer.internals (Kafka 4.4.0);
         docs/behaviour/consumer-members.md#1-states.
"""

from enum import Enum


class MemberState(Enum):
    """The state of a member of a classic group, with Kafka's names."""

    UNJOINED = "Unjoined"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"

    def __str__(self) -> str:
        return self.value


class ConsumerMemberState(Enum):
    """The state of a member of a broker-assigned consumer group, with Kafka's names."""

    UNSUBSCRIBED = "Unsubscribed"
    JOINING = "Joining"
    RECONCILING = "Reconciling"
    ACKNOWLEDGING = "Acknowledging"
    STABLE = "Stable"
    FENCED = "Fenced"
    PREPARE_LEAVING = "PrepareLeaving"
    LEAVING = "Leaving"
    STALE = "Stale"
    FATAL = "Fatal"

    def __str__(self) -> str:
        return self.value


AnyState = MemberState | ConsumerMemberState

_S, _C = MemberState, ConsumerMemberState

# Each state, with the states from which a member can enter it.
LEGAL_PREDECESSORS: dict[MemberState, frozenset[MemberState]] = {
    _S.UNJOINED: frozenset(_S),
    _S.PREPARING_REBALANCE: frozenset(_S),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
}

IN_GROUP = frozenset({_C.JOINING, _C.STABLE, _C.RECONCILING, _C.ACKNOWLEDGING})

CONSUMER_LEGAL_PREDECESSORS: dict[ConsumerMemberState, frozenset[ConsumerMemberState]] = {
    _C.UNSUBSCRIBED: frozenset({_C.PREPARE_LEAVING, _C.LEAVING, _C.FENCED}),
    _C.JOINING: frozenset({_C.FENCED, _C.UNSUBSCRIBED, _C.STALE}),
    _C.RECONCILING: IN_GROUP - {_C.RECONCILING},
    _C.ACKNOWLEDGING: frozenset({_C.RECONCILING}),
    _C.STABLE: IN_GROUP - {_C.STABLE},
    _C.FENCED: IN_GROUP | {_C.PREPARE_LEAVING, _C.LEAVING},
    _C.PREPARE_LEAVING: IN_GROUP | {_C.UNSUBSCRIBED},
    _C.LEAVING: frozenset({_C.PREPARE_LEAVING}),
    _C.STALE: frozenset({_C.LEAVING}),
    _C.FATAL: IN_GROUP | {_C.PREPARE_LEAVING, _C.LEAVING, _C.UNSUBSCRIBED},
}

NOT_IN_GROUP = frozenset({_C.UNSUBSCRIBED, _C.FENCED, _C.FATAL, _C.STALE})
SENDS_AT_ONCE = frozenset({_C.JOINING, _C.ACKNOWLEDGING, _C.LEAVING})

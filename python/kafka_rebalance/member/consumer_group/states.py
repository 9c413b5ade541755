# SPDX-License-Identifier: Apache-2.0
"""The states of a member of a consumer group, and the legal transitions between them.

    UNSUBSCRIBED       not in the group, no heartbeats
    JOINING            heartbeats with epoch 0 are sent at once, one after the other
    RECONCILING        a new assignment has arrived and is not applied yet
    ACKNOWLEDGING      the assignment is applied; the next heartbeat, sent at once, reports it
    STABLE             the member only sends heartbeats
    FENCED             removed by the coordinator; joins again after onPartitionsLost
    PREPARE_LEAVING    gives up its partitions before it leaves
    LEAVING            the heartbeat that leaves is sent at once
    STALE              has left, because the application did not poll; joins at the next poll
    FATAL              an error ended the membership; poll throws it

Source   MemberState of org.apache.kafka.clients.consumer.internals (Kafka 4.4.0);
         docs/behaviour/consumer-members.md#1-states.
"""

from enum import Enum


class ConsumerMemberState(Enum):
    """A member's state, with Kafka's names."""

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


_S = ConsumerMemberState
_IN_GROUP = frozenset({_S.JOINING, _S.STABLE, _S.RECONCILING, _S.ACKNOWLEDGING})

# Each state, with the states from which a member can enter it.
LEGAL_PREDECESSORS: dict[ConsumerMemberState, frozenset[ConsumerMemberState]] = {
    _S.UNSUBSCRIBED: frozenset({_S.PREPARE_LEAVING, _S.LEAVING, _S.FENCED}),
    _S.JOINING: frozenset({_S.FENCED, _S.UNSUBSCRIBED, _S.STALE}),
    _S.RECONCILING: _IN_GROUP - {_S.RECONCILING},
    _S.ACKNOWLEDGING: frozenset({_S.RECONCILING}),
    _S.STABLE: _IN_GROUP - {_S.STABLE},
    _S.FENCED: _IN_GROUP | {_S.PREPARE_LEAVING, _S.LEAVING},
    _S.PREPARE_LEAVING: _IN_GROUP | {_S.UNSUBSCRIBED},
    _S.LEAVING: frozenset({_S.PREPARE_LEAVING}),
    _S.STALE: frozenset({_S.LEAVING}),
    _S.FATAL: _IN_GROUP | {_S.PREPARE_LEAVING, _S.LEAVING, _S.UNSUBSCRIBED},
}

NOT_IN_GROUP = frozenset({_S.UNSUBSCRIBED, _S.FENCED, _S.FATAL, _S.STALE})
TAKES_ASSIGNMENTS = _IN_GROUP
SENDS_AT_ONCE = frozenset({_S.JOINING, _S.ACKNOWLEDGING, _S.LEAVING})

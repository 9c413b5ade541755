# SPDX-License-Identifier: Apache-2.0
"""The states of a classic group, and the legal transitions between them.

    Empty                no members, perhaps offsets; the first member starts a rebalance
    PreparingRebalance   JoinGroups are parked until all members have joined or time is up
    CompletingRebalance  the members have a generation; the leader's SyncGroup is awaited
    Stable               the assignment is stored; a member gets its part when it sends SyncGroup
    Dead                 removed, or moved to another coordinator

`python -m tools.tables` draws `LEGAL_PREDECESSORS` into docs/behaviour/coordinator.md.

Source   ClassicGroupState.java; docs/behaviour/coordinator.md#21-states.
"""

from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.wire.group_states import GroupState

_S = GroupState

# Each state, with the states from which a group can enter it.
LEGAL_PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE}),
    _S.PREPARING_REBALANCE: frozenset({_S.EMPTY, _S.COMPLETING_REBALANCE, _S.STABLE}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
    _S.DEAD: frozenset(_S),
}


class IllegalTransition(KafkaRebalanceError):
    """A transition that LEGAL_PREDECESSORS does not allow; the group is unchanged."""

    def __init__(self, group_id: str, before: GroupState, after: GroupState) -> None:
        allowed = ", ".join(sorted(str(state) for state in LEGAL_PREDECESSORS[after]))
        super().__init__(f"group {group_id!r}: {after} comes after {allowed}, not after {before}")

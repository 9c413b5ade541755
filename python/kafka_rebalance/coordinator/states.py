# SPDX-License-Identifier: Apache-2.0
"""The states of a classic group: what each answers, and when a group leaves it.

    Empty                no members; offsets may be left. Leaves with the first member.
    PreparingRebalance   JoinGroups are parked until all members have come, or time is up.
    CompletingRebalance  all have their generation; waits for the leader's SyncGroup.
    Stable               every member has its assignment.
    Dead                 removed or moved away; answers COORDINATOR_NOT_AVAILABLE.

                    +------------------------------------------+
                    v                                          |
    Empty --> PreparingRebalance --> CompletingRebalance --> Stable
      ^            |    ^                   |
      +------------+    +-------------------+          any --> Dead

Source   ClassicGroupState.java; docs/behaviour/coordinator.md#21-states.
"""

from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.protocol.group_state import GroupState

_S = GroupState

# state -> the states that a group may come from
LEGAL_PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE}),
    _S.PREPARING_REBALANCE: frozenset({_S.EMPTY, _S.COMPLETING_REBALANCE, _S.STABLE}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.STABLE: frozenset({_S.COMPLETING_REBALANCE}),
    _S.DEAD: frozenset(_S),
}


class IllegalTransition(KafkaRebalanceError):
    """A transition that the table does not have; the group is as it was."""

    def __init__(self, group_id: str, before: GroupState, after: GroupState) -> None:
        allowed = ", ".join(sorted(str(state) for state in LEGAL_PREDECESSORS[after]))
        super().__init__(f"group {group_id!r}: {after} comes after {allowed}, not after {before}")

# SPDX-License-Identifier: Apache-2.0
"""The states of groups of each kind, with their names in responses."""

from enum import Enum


class GroupState(Enum):
    """A group's state; the value is its name in a DescribeGroups response."""

    # Each request looks up its group's state in a table, and Enum's own hash is Python code.
    __hash__ = object.__hash__

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value


class ConsumerGroupState(Enum):
    """The state of a group whose broker assigns (KIP-848)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value


class StreamsGroupState(Enum):
    """The state of a streams group (KIP-1071)."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value

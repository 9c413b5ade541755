# SPDX-License-Identifier: Apache-2.0
"""The states of a classic group, with their names in DescribeGroups and ListGroups."""

from enum import Enum


class GroupState(Enum):
    """A group's state; the value is its name in a DescribeGroups response."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def __str__(self) -> str:
        return self.value

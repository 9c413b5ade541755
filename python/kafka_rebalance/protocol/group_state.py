# SPDX-License-Identifier: Apache-2.0
"""The states of a classic group, as DescribeGroups and ListGroups report them."""

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

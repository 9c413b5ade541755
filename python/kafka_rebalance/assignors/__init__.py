# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors: `assign` computes the assignment of a group by the name of its assignor."""

from .assigning import assign, validate_cooperative
from .interface import Assignor, RebalanceProtocol
from .objects import CooperativeSticky, Range, RoundRobin, Sticky
from .registry import assignor_names, register, unregister

__all__ = [
    "Assignor",
    "CooperativeSticky",
    "Range",
    "RebalanceProtocol",
    "RoundRobin",
    "Sticky",
    "assign",
    "assignor_names",
    "register",
    "unregister",
    "validate_cooperative",
]

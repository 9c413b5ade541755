# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors, and registered ones: `assign` runs a group's assignor on the group."""

from .assigning import assign, validate_cooperative
from .interface import Assignor, RebalanceProtocol
from .objects import CooperativeSticky, Range, RoundRobin, Sticky
from .registry import Engine, assignor_names, register, unregister

__all__ = [
    "Assignor", "CooperativeSticky", "Engine", "Range", "RebalanceProtocol", "RoundRobin", "Sticky",
    "assign", "assignor_names", "register", "unregister", "validate_cooperative",
]  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors, other libraries' and users' own: `assign` runs one of them on a group."""

from .assigning import assign, validate_cooperative
from .interface import Assignor, RebalanceProtocol
from .objects import CooperativeSticky, Range, RoundRobin, Sticky
from .registry import Engine, assignor_names, register, unregister

__all__ = [
    "Assignor", "CooperativeSticky", "Engine", "Range", "RebalanceProtocol", "RoundRobin", "Sticky",
    "assign", "assignor_names", "register", "unregister", "validate_cooperative",
]  # fmt: skip

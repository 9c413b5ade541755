# SPDX-License-Identifier: Apache-2.0
"""assign: GroupSpec -> Assignment, by the assignor's name."""

from .assigning import assign
from .interface import Assignor, RebalanceProtocol
from .objects import CooperativeSticky, Range, RoundRobin, Sticky
from .registry import BUILT_IN, assignor_names, register, unregister
from .validate import validate_cooperative

__all__ = [
    "BUILT_IN",
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

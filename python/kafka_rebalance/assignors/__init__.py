"""assign: GroupSpec -> Assignment, by the assignor's name."""

from .engine import assign
from .objects import CooperativeSticky, Range, RoundRobin, Sticky
from .protocol import Assignor, RebalanceProtocol
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

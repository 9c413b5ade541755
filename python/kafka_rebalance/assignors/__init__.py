# SPDX-License-Identifier: Apache-2.0
"""Kafka's assignors, and registered ones: `assign` runs a group's assignor on the group."""

from .assigning import assign as assign
from .assigning import validate_cooperative as validate_cooperative
from .interface import Assignor as Assignor
from .interface import RebalanceProtocol as RebalanceProtocol
from .objects import CooperativeSticky as CooperativeSticky
from .objects import Range as Range
from .objects import RoundRobin as RoundRobin
from .objects import Sticky as Sticky
from .registry import assignor_names as assignor_names
from .registry import register as register
from .registry import unregister as unregister

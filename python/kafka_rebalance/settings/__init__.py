# SPDX-License-Identifier: Apache-2.0
"""Judges settings of clients by rules; the simulator plays what happens with the given numbers."""

from .clients import LIBRARIES, Client, Library
from .files import judge, read_broker, read_clients
from .rule import Breach, Rule, Surroundings
from .rules import RULES

__all__ = [
    "LIBRARIES", "RULES", "Breach", "Client", "Library", "Rule", "Surroundings", "judge",
    "read_broker", "read_clients",
]  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Defines the event at which a coordinator or a member runs deadlines that are due."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock has reached a deadline."""

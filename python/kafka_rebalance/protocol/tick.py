# SPDX-License-Identifier: Apache-2.0
"""Defines the event at which a coordinator or a member runs a deadline that is due."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock has reached `now_ms`: the earliest due deadline runs."""

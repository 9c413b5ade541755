# SPDX-License-Identifier: Apache-2.0
"""Defines the event that lets a due deadline of a coordinator or a member run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock has reached `now_ms`: the first deadline that is due runs now."""

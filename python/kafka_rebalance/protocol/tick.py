# SPDX-License-Identifier: Apache-2.0
"""The event of a deadline, which coordinators and members share."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """The clock has reached `now_ms`, so that the first deadline that is due runs."""

# SPDX-License-Identifier: Apache-2.0
"""The event of a deadline, the same one for a coordinator and for a member."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    """The time is `now_ms`: the first deadline that is due runs, if there is one."""

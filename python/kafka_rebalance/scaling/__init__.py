# SPDX-License-Identifier: Apache-2.0
"""How many members: what each number of members of a group brings, and what the step costs."""

from .choice import choose
from .counts import Count, Scaled, scale
from .steps import Given, Loads, Ranges

__all__ = ["Count", "Given", "Loads", "Ranges", "Scaled", "choose", "scale"]

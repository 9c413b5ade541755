# SPDX-License-Identifier: Apache-2.0
"""How many members: what each number of members of a group brings, and what the step costs."""

from .choice import Choice, choose
from .counts import Count, Scaled, scale
from .load import Given, Load, MemberLoad
from .variants import Ranges, Times

__all__ = [
    "Choice", "Count", "Given", "Load", "MemberLoad", "Ranges", "Scaled", "Times", "choose",
    "scale",
]  # fmt: skip

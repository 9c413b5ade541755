# SPDX-License-Identifier: Apache-2.0
"""Another assignor or protocol: which one is better for a group, and the way to it."""

from .comparison import Comparison, compare
from .migrations import Migration
from .recommendation import Candidate
from .rounds import Bounce

__all__ = ["Bounce", "Candidate", "Comparison", "Migration", "compare"]

# SPDX-License-Identifier: Apache-2.0
"""Finds which assignor or protocol is better for a group, and the way to change to it."""

from .comparison import Comparison, compare
from .migrations import Migration
from .recommendation import Candidate
from .rounds import Bounce

__all__ = ["Bounce", "Candidate", "Comparison", "Migration", "compare"]

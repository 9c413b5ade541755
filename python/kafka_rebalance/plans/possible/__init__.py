# SPDX-License-Identifier: Apache-2.0
"""Computes the best possible balance, and the least number of moves that leads to it."""

from .optimum import Level as Level
from .optimum import Possible as Possible
from .optimum import best_possible as best_possible

# SPDX-License-Identifier: Apache-2.0
"""Computes the best possible balance, and the least number of moves that leads to it."""

from .curve import Curve as Curve
from .curve import CurvePoint as CurvePoint
from .curve import balance_curve as balance_curve
from .optimum import Level as Level
from .optimum import Possible as Possible
from .optimum import best_possible as best_possible

# SPDX-License-Identifier: Apache-2.0
"""The best balance that is possible, and the least moves to reach it."""

from .optimum import Level, Possible, best_possible

__all__ = ["Level", "Possible", "best_possible"]

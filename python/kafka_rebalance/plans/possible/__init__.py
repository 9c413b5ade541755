# SPDX-License-Identifier: Apache-2.0
"""What would have been possible: the best balance, and the least moves there."""

from .optimum import Level, Possible, best_possible

__all__ = ["Level", "Possible", "best_possible"]

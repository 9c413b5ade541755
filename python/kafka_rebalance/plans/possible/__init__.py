# SPDX-License-Identifier: Apache-2.0
"""The best balance that is possible, and the least moves to reach it."""

# `as` marks a name that this package exports.
from .optimum import Level as Level
from .optimum import Possible as Possible
from .optimum import best_possible as best_possible

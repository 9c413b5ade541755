# SPDX-License-Identifier: Apache-2.0
"""Checks: findings and limits as a verdict, for pipelines (`kafka-rebalance check`)."""

from .verdict import LIMITS, CheckLimits, Problem, Verdict, of_group, of_plan, of_settings

__all__ = ["LIMITS", "CheckLimits", "Problem", "Verdict", "of_group", "of_plan", "of_settings"]

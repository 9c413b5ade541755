# SPDX-License-Identifier: Apache-2.0
"""Checks: findings and limits as a verdict, for pipelines (`kafka-rebalance check`)."""

from .verdict import LIMITS, Problem, Verdict, of_group, of_plan, of_settings

__all__ = ["LIMITS", "Problem", "Verdict", "of_group", "of_plan", "of_settings"]

# SPDX-License-Identifier: Apache-2.0
"""Answers many groups in one call, as JSON lines or as Arrow record batches."""

from .batch import assign_batch, compare_batch, plan_batch
from .lines import LineAnswer, assign_lines

__all__ = ["LineAnswer", "assign_batch", "assign_lines", "compare_batch", "plan_batch"]

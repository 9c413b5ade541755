# SPDX-License-Identifier: Apache-2.0
"""Notes: facts that a person should know beside the figures of a plan or the state of a group."""

from .all_notes import comparison_notes, plan_notes
from .findings import FINDINGS, Finding, FindingKind, Severity
from .never_ends import Endless, WayOut, endless
from .note import Note, PlanKind

__all__ = [
    "FINDINGS", "Endless", "Finding", "FindingKind", "Note", "PlanKind", "Severity", "WayOut",
    "comparison_notes", "endless", "plan_notes",
]  # fmt: skip

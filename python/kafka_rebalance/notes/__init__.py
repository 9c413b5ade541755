# SPDX-License-Identifier: Apache-2.0
"""What a person should know beside the figures of a plan or the state of a group."""

from .finding import Finding, FindingKind
from .never_ends import Endless, WayOut, endless

__all__ = ["Endless", "Finding", "FindingKind", "WayOut", "endless"]

# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's assignors, which decide which worker runs which connectors and tasks."""

from .assigning import assign_eager, handle
from .memory import Memory
from .spec import ConnectSpec, Result
from .work import Task, Work

__all__ = [
    "ConnectSpec",
    "Memory",
    "Result",
    "Task",
    "Work",
    "assign_eager",
    "handle",
]

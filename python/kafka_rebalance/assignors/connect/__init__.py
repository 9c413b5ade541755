"""Kafka Connect's assignors: who runs which connectors and tasks."""

from .cluster import RoundAnswer
from .engine import assign_eager, handle
from .memory import Memory
from .script import Script, play, run_script
from .spec import ConnectSpec, Result
from .work import Task, Work

__all__ = [
    "ConnectSpec",
    "Memory",
    "Result",
    "RoundAnswer",
    "Script",
    "Task",
    "Work",
    "assign_eager",
    "handle",
    "play",
    "run_script",
]

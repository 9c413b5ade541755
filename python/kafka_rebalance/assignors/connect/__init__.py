# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's assignors, which decide which worker runs which connectors and tasks."""

from .assigning import assign_eager as assign_eager
from .assigning import handle as handle
from .memory import Memory as Memory
from .spec import ConnectSpec as ConnectSpec
from .spec import Result as Result
from .work import Task as Task
from .work import Work as Work

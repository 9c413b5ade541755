# SPDX-License-Identifier: Apache-2.0
"""Finds what `describe` shows: the present state of a group, and the findings."""

from kafka_rebalance.assignors.connect.work import Task, Work

from .broker_assigned import AssignedByBroker, StreamsGroupWithLag
from .connect_workers import ConnectGroup, ConnectWorker
from .description import Description, describe

__all__ = [
    "AssignedByBroker", "ConnectGroup", "ConnectWorker", "Description", "StreamsGroupWithLag",
    "Task", "Work", "describe",
]  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Runs the leader of a classic Kafka Streams group in the core or in the reference."""

from types import MappingProxyType
from typing import Any

import kafka_rebalance._core as _core
from kafka_rebalance.wire.streams_protocol import TaskId

from . import leader
from .application import Application, LeaderAnswer, Partition, ProcessTasks, ThreadAssignment


def assign(
    application: Application, *, reference: bool = False, with_lags: bool = True
) -> LeaderAnswer:
    """Returns the leader's answer. With `with_lags=False`, the core omits `processes`: faster.

    Errors   AssignorThrows if Kafka's class throws.
    """
    if reference:
        return leader.assign(application)
    members, stable, probing, processes, *hosts = _core.assign_application(application, with_lags)
    active, standby = (_by_host(one) for one in hosts)
    return LeaderAnswer(
        {member_id: _thread(*fields) for member_id, fields in members},
        stable,
        probing,
        None if processes is None else {one[0]: _process(*one[1:]) for one in processes},
        active,
        standby,
    )


def _thread(partitions: Any, active: Any, standby: Any, *rest: Any) -> ThreadAssignment:
    return ThreadAssignment(tuple(partitions), _tasks(active), _tasks(standby), *rest)


def _process(active: Any, standby: Any, lags: Any) -> ProcessTasks:
    return ProcessTasks(_tasks(active), _tasks(standby), {TaskId(*task): lag for task, lag in lags})


def _tasks(pairs: Any) -> tuple[TaskId, ...]:
    return tuple(TaskId(*pair) for pair in pairs)


def _by_host(hosts: Any) -> MappingProxyType[str, tuple[Partition, ...]]:
    return MappingProxyType({host: tuple(partitions) for host, partitions in hosts})

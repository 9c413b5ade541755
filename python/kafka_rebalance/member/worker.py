# SPDX-License-Identifier: Apache-2.0
"""A Connect worker's membership: starts and stops connectors and tasks (see `group_member`).

Kafka's herder thread polls all the time; here, the host polls at `next_poll_ms()`, but not while
the worker starts or stops work. ConfigurationUpdated reports new entries of Connect's topic.

Source   DistributedHerder, WorkerCoordinator, WorkerGroupMember (Connect 4.3.1).
"""

import random

from kafka_rebalance.assignors.connect import Work

from . import joining
from .config import WorkerConfig
from .group_member import GroupMember
from .herder import Configuration, Herder
from .interface import Close, ConfigurationUpdated, MemberEvent, Poll
from .membership import Membership
from .states import MemberState


class Worker(GroupMember):
    """A Connect worker: starts and stops the connectors and tasks of its group's assignment."""

    def __init__(self, config: WorkerConfig, *, url: str, rng: random.Random) -> None:
        self._herder = Herder(config, url)
        self._looks_since_ms = -1  # when it began only to look for a coordinator; -1: not yet
        super().__init__(Membership(config, rng, self._herder))

    @property
    def config(self) -> WorkerConfig:
        return self._herder.config

    @property
    def running(self) -> Work:
        return self._herder.running

    def is_at_work(self) -> bool:
        """Returns whether no rebalance runs or is expected, so that a leader can serve requests."""
        state = self._state
        return (
            state.state is MemberState.STABLE
            and not (joining.needs_rejoin(state) or state.is_joining())
            and self._herder.is_at_work(state)
        )

    def next_poll_ms(self) -> int | None:
        """Returns when a poll will change something, or when the worker gives up its work.

        A worker that finds no coordinator gives up its work; if it is starting or stopping work, it
        does so afterwards.
        """
        due = super().next_poll_ms()
        alone = self._gives_up_ms()
        if alone is not None:
            return alone if due is None else min(due, alone)
        return due

    def _gives_up_ms(self) -> int | None:
        """Returns when the worker gives up its work; None while it has a coordinator or joins.

        The worker gives up a heartbeat interval after the first poll at which it only looked for a
        coordinator. Before that poll, returns the present time, so that this poll comes at once.
        """
        state = self._state
        unknown = state.unknown_since_ms
        if unknown is None or not state.needs_prepare or self._herder.work is None:
            return None
        if self._looks_since_ms < unknown:
            return state.now_ms
        return self._looks_since_ms + self._herder.config.heartbeat_interval_ms

    def _poll(self, event: Poll) -> None:
        state, alone = self._state, self._gives_up_ms()
        if alone is not None and alone <= state.now_ms:
            assert state.unknown_since_ms is not None
            if self._looks_since_ms < state.unknown_since_ms:
                self._looks_since_ms = state.now_ms
            else:
                self._herder.lose(state)
        super()._poll(event)

    def _handle_own(self, event: MemberEvent) -> None:
        match event:
            case ConfigurationUpdated(offset, connectors):
                self._herder.update(Configuration(offset, dict(connectors)))
            case Close():
                self._leave()
                self._herder.is_in = False
            case _:
                super()._handle_own(event)

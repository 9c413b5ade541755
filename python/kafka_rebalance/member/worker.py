# SPDX-License-Identifier: Apache-2.0
"""A Connect worker's membership: what it starts, what it stops (see `group_member`).

The herder's thread polls all the time: poll when `next_poll_ms()` says so, but not while the
worker is busy starting or stopping. What comes from the configuration topic is an event.

Source   DistributedHerder, WorkerCoordinator, WorkerGroupMember (Connect 4.3.1).
"""

import random

from kafka_rebalance.assignors.connect import Work

from . import joining
from .group_member import GroupMember
from .herder import Configuration, Herder
from .interface import Close, ConfigurationUpdated, MemberEvent, Poll
from .membership import Membership
from .states import MemberState
from .worker_config import WorkerConfig


class Worker(GroupMember):
    """Getters besides those of every member: config, running, is_at_work."""

    def __init__(self, config: WorkerConfig, *, url: str, rng: random.Random) -> None:
        self._herder = Herder(config, url)
        self._looks_since_ms = -1  # for a coordinator, doing nothing else
        super().__init__(Membership(config, rng, self._herder))

    @property
    def config(self) -> WorkerConfig:
        """The settings."""
        return self._herder.config

    @property
    def running(self) -> Work:
        """What it has started and not stopped."""
        return self._herder.running

    def is_at_work(self) -> bool:
        """Whether no rebalance is under way or expected: then a leader takes requests."""
        state = self._state
        return (
            state.state is MemberState.STABLE
            and not (joining.needs_rejoin(state) or state.is_joining())
            and self._herder.is_at_work(state)
        )

    def next_poll_ms(self) -> int | None:
        """As for every member; without a coordinator also when it gives up its work.

        Without one it first has to notice: a worker that is busy looks for it later.
        """
        due = super().next_poll_ms()
        alone = self._gives_up_ms()
        if alone is not None:
            return alone if due is None else min(due, alone)
        return due

    def _gives_up_ms(self) -> int | None:
        """Without a coordinator for a heartbeat's interval, unless it waits for one to join."""
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

"""A Connect worker's membership: what it starts, what it stops (see `group_member`).

The herder's thread polls all the time: poll when `next_poll_ms()` says so, but not while the
worker is busy starting or stopping. What comes from the configuration topic is an event.

Source   DistributedHerder, WorkerCoordinator, WorkerGroupMember (Connect 4.3.1).
"""

import random

from kafka_rebalance.assignors.connect import Work

from . import joining
from .events import Close, ConfigurationUpdated, MemberEvent, Poll
from .group_member import GroupMember
from .herder import Configuration, Herder
from .state import State
from .states import MemberState
from .worker_config import WorkerConfig


class Worker(GroupMember):
    """Getters besides those of every member: config, running, is_at_work."""

    def __init__(self, config: WorkerConfig, *, url: str, rng: random.Random) -> None:
        self._herder = Herder(config, url)
        super().__init__(State(config, rng, self._herder))

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
        """As for every member; without a coordinator also when it gives up its work."""
        due = super().next_poll_ms()
        alone = self._gives_up_ms()
        if alone is not None:
            return alone if due is None else min(due, alone)
        return due

    def _gives_up_ms(self) -> int | None:
        """Without a coordinator for a heartbeat's interval, others may run its work."""
        unknown = self._state.unknown_since_ms
        if unknown is None or not self._herder.running:
            return None
        return unknown + self._herder.config.heartbeat_interval_ms

    def _poll(self, event: Poll) -> None:
        alone = self._gives_up_ms()
        if alone is not None and alone <= self._state.now_ms:
            self._herder.give_up(self._state)
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

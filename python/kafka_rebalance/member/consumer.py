# SPDX-License-Identifier: Apache-2.0
"""A classic consumer's membership: subscriptions, callbacks, commits (see `group_member`).

The application's calls are events: Subscribe, Poll, Close and others (`interface`).

Source   ConsumerCoordinator of kafka-clients 4.4.0; docs/behaviour/member.md.
"""

import random
from collections.abc import Iterable
from typing import Literal

from kafka_rebalance.assignors.interface import Assignor
from kafka_rebalance.group.model import Topic
from kafka_rebalance.wire.classic_groups import JoinedMember

from . import interface
from .config import ConsumerConfig
from .group_member import GroupMember, needs_rejoin
from .membership import Membership, Shares
from .states import MemberState
from .subscriber import Subscriber, assignments


class Consumer(GroupMember):
    """A consumer of a classic group, without I/O. `group_member` explains its use."""

    kind: Literal["consumer"] = "consumer"

    def __init__(self, config: ConsumerConfig, *, rng: random.Random) -> None:
        self._subscriber = Subscriber(config, config.assignors())
        super().__init__(Membership(config, rng, self._subscriber))

    @property
    def config(self) -> ConsumerConfig:
        return self._subscriber.config

    @property
    def owned_partitions(self) -> interface.Partitions:
        return self._subscriber.owned

    @property
    def subscription(self) -> frozenset[str]:
        """Returns the subscribed topics; for a pattern, the topics that match it at present."""
        return self._subscriber.subscription

    @property
    def misses_topics(self) -> bool:
        """Returns whether the metadata lack a subscribed topic; the client then requests them."""
        subscriber = self._subscriber
        wanted = subscriber.group_subscription
        if subscriber.pattern is None:
            wanted = wanted | subscriber.subscription
        return not subscriber.topics.keys() >= wanted

    @property
    def reads_nothing(self) -> bool:
        """Returns whether polls return no records, because an eager member repeats a commit.

        The result is False during the first commit, which is short.
        """
        return self._subscriber.commits_again and self._subscriber.is_pending_revocation

    @property
    def matches_before_joining(self) -> bool:
        """Returns whether the next poll requests metadata, to match a pattern before it joins."""
        state = self._state
        if self._subscriber.pattern is None:
            return False
        return needs_rejoin(state) and not state.is_joining()

    def assigns(self, assignor: Assignor, members: Iterable[JoinedMember]) -> Shares:
        """Returns the assignments that this consumer would send as a leader with this assignor."""
        return assignments(assignor, members, self._subscriber.topics)

    def sees(self, topics: tuple[Topic, ...]) -> bool:
        return tuple(self._subscriber.topics.values()) != topics

    def _poll(self, event: interface.Poll) -> None:
        self._subscriber.positions = dict(event.positions)
        super()._poll(event)

    def _handle_own(self, event: interface.MemberEvent) -> None:
        state, subscriber = self._state, self._subscriber
        match event:
            case interface.Subscribe(topics):
                subscriber.subscription, subscriber.pattern = frozenset(topics), None
                state.effects.append(interface.FetchMetadata())
            case interface.SubscribePattern(pattern):
                subscriber.pattern = pattern
                subscriber.match()
                state.effects.append(interface.FetchMetadata())
            case interface.MetadataUpdated(topics):
                subscriber.topics = {topic.name: topic for topic in topics}
                subscriber.match()
            case interface.Unsubscribe() | interface.Close():
                commits = isinstance(event, interface.Close) and self.config.enable_auto_commit
                if commits and state.state is MemberState.STABLE:
                    subscriber.commit(state)
                self._leave()
                subscriber.subscription, subscriber.pattern = frozenset(), None
            case _:
                super()._handle_own(event)

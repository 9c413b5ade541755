# SPDX-License-Identifier: Apache-2.0
"""A consumer of a classic group, without I/O; `group_member` explains its use.

The application's calls are events: Subscribe, Poll, Close and others (`interface`). The steps of a
rebalance:

    prepare     commits; then an eager member revokes everything, and a cooperative member revokes
                partitions of topics to which it no longer subscribes; without a generation all
                partitions are lost. While an eager member waits for its commit, poll returns no
                records
    protocols   the subscription and the owned partitions, encoded for every assignor
    lead        assigns, and from then on watches the topics of all members
    take        calls onPartitionsAssigned; if a cooperative member has to give up partitions, it
                first calls onPartitionsRevoked, and joins again afterwards

Source   ConsumerCoordinator.onJoinPrepare/maybeMarkPartitionsPendingRevocation/onLeaderElected/
         onJoinComplete/onLeavePrepare (Kafka 4.4.0); KIP-881 (a leader with a rack watches racks);
         docs/behaviour/member.md#4-join,
         docs/behaviour/member.md#5-callbacks, docs/behaviour/member.md#8-when-a-member-rejoins,
         docs/behaviour/member.md#9-commits.
"""

import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, field
from typing import ClassVar, Literal

from kafka_rebalance.assignors.interface import Assignor, RebalanceProtocol
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.wire.classic_groups import JoinedMember, JoinGroupProtocol, JoinGroupResponse
from kafka_rebalance.wire.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_subscription,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse

from . import interface
from .answers import OFFSET_COMMIT, Reaction, react
from .config import ConsumerConfig
from .group_member import GroupMember
from .interface import Assigned, Lost, Partitions, Revoked
from .membership import SentRequest, Shares
from .states import MemberState
from .subscriber import assignments, subscribed_topics


class Consumer(GroupMember):
    """A consumer of a classic group; the module's docstring describes its steps."""

    config: ConsumerConfig
    _: KW_ONLY
    kind: ClassVar[Literal["consumer"]] = "consumer"
    protocol_type = "consumer"
    assignors: dict[str, Assignor] = field(init=False)
    is_cooperative: bool = field(init=False)  # keeps reading in rebalances (KIP-429)
    owned_partitions: Partitions = ()
    # The subscription, and the cluster's topics.
    subscription: frozenset[str] = frozenset()
    pattern: str | None = None
    joined_subscription: frozenset[str] | None = None  # the subscription of the last JoinGroup
    topics: dict[str, Topic] = field(default_factory=dict)
    # The topics that a leader watches, and their data when it last assigned.
    group_subscription: frozenset[str] = frozenset()
    assigned_by: tuple[Topic, ...] | None = None
    # Commits.
    prepare_until_ms: int | None = None  # when the wait for the commit before a join ends
    prepare_commit: SentRequest | None = None  # the commit before a join
    is_committed: bool = False  # the commit before a join is over, and is not repeated
    commits_again: bool = False  # the commit before a join has failed, and is repeated
    commit_at_ms: int = 0
    positions: dict[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.assignors = self.config.assignors()
        self.is_cooperative = self.config.rebalance_protocol() is RebalanceProtocol.COOPERATIVE

    # For the host ---------------------------------------------------------------------------------

    @property
    def misses_topics(self) -> bool:
        """Returns whether to request metadata: a topic that is named or watched is unknown."""
        named = self.subscription if self.pattern is None else frozenset()
        return not self.topics.keys() >= self.group_subscription | named

    @property
    def reads_nothing(self) -> bool:
        """Returns whether polls return no records, because an eager member repeats a commit.

        The result is False during the first commit, which is short.
        """
        return self.commits_again and self.is_pending_revocation

    @property
    def matches_before_joining(self) -> bool:
        """Returns whether the next poll requests metadata, to match a pattern before it joins."""
        return self.pattern is not None and self.needs_rejoin() and not self.is_joining()

    def assigns(self, assignor: Assignor, members: Iterable[JoinedMember]) -> Shares:
        """Returns the assignments that this consumer would send as a leader with this assignor."""
        return assignments(assignor, members, self.topics)

    def sees(self, topics: tuple[Topic, ...]) -> bool:
        return tuple(self.topics.values()) != topics

    def _poll(self, event: interface.Poll) -> None:
        self.positions = dict(event.positions)
        super()._poll(event)

    def _handle_own(self, event: interface.MemberEvent) -> None:
        match event:
            case interface.Subscribe(topics):
                self.subscription, self.pattern = frozenset(topics), None
                self.effects.append(interface.FetchMetadata())
            case interface.SubscribePattern(pattern):
                self.pattern = pattern
                self._match()
                self.effects.append(interface.FetchMetadata())
            case interface.MetadataUpdated(topics):
                self.topics = {topic.name: topic for topic in topics}
                self._match()
            case interface.Unsubscribe() | interface.Close():
                commits = isinstance(event, interface.Close) and self.config.enable_auto_commit
                if commits and self.state is MemberState.STABLE:
                    self._commit()
                self._leave()
                self.subscription, self.pattern = frozenset(), None
            case _:
                super()._handle_own(event)

    # The subscription -----------------------------------------------------------------------------

    def wants_in(self) -> bool:
        """Returns whether there is a subscription; a pattern counts even if no topic matches it."""
        return bool(self.subscription) or self.pattern is not None

    def has_news(self) -> bool:
        """Returns whether the subscription, or a topic that this leader assigned, has changed."""
        joined = self.joined_subscription
        if joined is not self.subscription and joined != self.subscription:
            return True
        watches = self.is_leader and self.assigned_by is not None
        return watches and self._snapshot() != self.assigned_by

    def _snapshot(self) -> tuple[Topic, ...]:
        """Returns the data that affect an assignment: partition counts and, with a rack, racks."""
        names, has_rack = sorted(self.group_subscription), bool(self.config.client_rack)
        there = (self.topics[name] for name in names if name in self.topics)
        return tuple(one if has_rack else Topic(one.name, one.partitions) for one in there)

    def _match(self) -> None:
        if self.pattern is not None:
            self.subscription = frozenset(filter(self._wants, self.topics))

    # Before the join ------------------------------------------------------------------------------

    def prepare(self) -> bool:
        """Commits, then revokes partitions; returns False while it waits for the commit."""
        if self.config.enable_auto_commit and not self._has_committed():
            return False
        self.is_committed, self.prepare_until_ms, self.prepare_commit = False, None, None
        self.commits_again = False
        owned = self.owned_partitions
        if not self.generation.is_known:
            if owned:
                self.effects.append(Lost(owned))
            self.owned_partitions = ()
        elif self.is_cooperative:
            dropped = tuple(one for one in owned if one.topic not in self.subscription)
            if dropped:
                self.effects.append(Revoked(dropped))
                self.owned_partitions = tuple(one for one in owned if one not in set(dropped))
        else:
            self.effects.append(Revoked(owned))
            self.owned_partitions = ()
        self.group_subscription = frozenset()
        return True

    def _has_committed(self) -> bool:
        """Returns whether the join may go on. If not, the commit is in flight, or is sent here.

        The join may go on if no commit is needed, if the commit is done, or if its time is over.
        """
        if self.is_committed or not self.generation.is_known:
            return True
        if self.prepare_until_ms is None:
            self.prepare_until_ms = self.now_ms + self.config.rebalance_timeout_ms
        if self.now_ms >= self.prepare_until_ms:
            return True
        if self._is_preparing():
            return False
        # A periodic commit in flight does not cover records read later, so commit once more.
        self.prepare_commit = self._commit()
        return self.prepare_commit is None

    def _is_preparing(self) -> bool:
        return any(one is self.prepare_commit for one in self.sent.values())

    @property
    def is_pending_revocation(self) -> bool:
        """Returns whether an eager member waits for a commit before it revokes its partitions."""
        return self.prepare_until_ms is not None and not self.is_cooperative

    def prepares_until_ms(self) -> int | None:
        """Returns until when (ms) a join waits for its commit; None if no commit is in flight."""
        return self.prepare_until_ms if self._is_preparing() else None

    def protocols(self) -> tuple[JoinGroupProtocol, ...]:
        self.joined_subscription = self.subscription
        topics = tuple(sorted(self.subscription))
        known = self.generation_id
        return tuple(
            JoinGroupProtocol(
                name,
                encode_subscription(
                    Subscription(
                        topics,
                        assignor.subscription_user_data(topics),
                        self.owned_partitions,
                        known if known >= 0 else None,
                        self.config.client_rack or None,
                    )
                ),
            )
            for name, assignor in self.assignors.items()
        )

    # The leader -----------------------------------------------------------------------------------

    def lead(self, response: JoinGroupResponse) -> Shares:
        """Returns the assignments (none if `skip_assignment`), and watches all members' topics."""
        self.group_subscription = subscribed_topics(response.members)
        self.assigned_by = self._snapshot()
        if response.skip_assignment:
            return ()
        assignor = self.assignors[response.protocol_name or ""]
        return assignments(assignor, response.members, self.topics)

    # After the join -------------------------------------------------------------------------------

    def take(self, assignment: bytes) -> None:
        assigned = decode_assignment(assignment).partitions
        if not self.is_leader:
            self.assigned_by = None
        if not all(self._wants(one.topic) for one in assigned):
            self.rejoin_needed = True  # the assignment is for an older subscription
            return
        if self.is_cooperative:
            kept = set(assigned)
            revoked = tuple(one for one in self.owned_partitions if one not in kept)
            if revoked:
                self.effects.append(Revoked(revoked))
                self.rejoin_needed = True
        if self.pattern is not None and self.joined_subscription is not None:
            # The leader has already assigned these topics, so they are not a reason to join again.
            added = {one.topic for one in assigned} - self.joined_subscription
            self.subscription |= added
            self.joined_subscription |= added
        name = self.generation.protocol_name
        if name in self.assignors:
            self.assignors[name].on_assignment(assigned, self.generation_id)
        self.commit_at_ms = self.now_ms + self.config.auto_commit_interval_ms
        held = set(self.owned_partitions)
        self.owned_partitions = tuple(assigned)
        self.effects.append(Assigned(tuple(one for one in assigned if one not in held)))

    def _wants(self, topic: str) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.subscription

    def settle(self) -> None:
        if (
            self.config.enable_auto_commit
            and self.state is MemberState.STABLE
            and self.now_ms >= self.commit_at_ms
            and not self.is_waiting_for(OffsetCommit)
        ):
            self.commit_at_ms = self.now_ms + self.config.auto_commit_interval_ms
            self._commit()

    def give_up(self) -> None:
        """Revokes all partitions before a leave; in a join or without a generation, loses them."""
        owned, self.owned_partitions = self.owned_partitions, ()
        if owned:
            sure = self.generation.is_known and self.state not in (
                MemberState.PREPARING_REBALANCE,
                MemberState.COMPLETING_REBALANCE,
            )
            self.effects.append(Revoked(owned) if sure else Lost(owned))

    # Commits --------------------------------------------------------------------------------------

    def _commit(self) -> SentRequest | None:
        ids = self.member_id, self.generation_id
        return self.send_commit(self.owned_partitions, self.positions, *ids)

    def commit_answered(self, sent: SentRequest, response: OffsetCommitResponse) -> None:
        codes = (one.error_code for one in response.partitions)
        errors = [code for code in codes if code is not ErrorCode.NONE]
        reaction = OFFSET_COMMIT.get(errors[0]) if errors else None
        again = reaction in (Reaction.BACK_OFF, Reaction.REDISCOVER)
        if sent is self.prepare_commit:
            self.commits_again = again
            self.is_committed = not again  # if False, `prepare` commits again until its deadline
        elif again:
            self.commit_at_ms = self.now_ms + self.config.retry_backoff_ms
        if reaction is Reaction.FATAL:
            if sent.generation == self.generation:
                self.throw(errors[0], f"OffsetCommit was answered {errors[0]}")
        elif reaction is not None:
            react(self, sent, reaction, errors[0])

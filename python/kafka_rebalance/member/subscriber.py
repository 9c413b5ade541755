# SPDX-License-Identifier: Apache-2.0
"""A consumer's role in a classic group: metadata, callbacks, commits, and its work as a leader.

    prepare     commits; then an eager member revokes everything, and a cooperative member revokes
                partitions of topics to which it no longer subscribes; without a generation all
                partitions are lost. While an eager member waits for its commit, poll returns no
                records
    protocols   the subscription and the owned partitions, encoded for every assignor
    lead        assigns, and from then on watches the topics of all members
    take        calls onPartitionsRevoked, then onPartitionsAssigned; after a revocation the member
                joins again

Source   ConsumerCoordinator.onJoinPrepare/maybeMarkPartitionsPendingRevocation/onLeaderElected/
         onJoinComplete/onLeavePrepare (Kafka 4.4.0); KIP-881 (a leader with a rack watches racks);
         docs/behaviour/member.md#4-join,
         docs/behaviour/member.md#5-callbacks, docs/behaviour/member.md#8-when-a-member-rejoins,
         docs/behaviour/member.md#9-commits.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from kafka_rebalance.assignors.interface import Assignor, RebalanceProtocol
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire.classic_groups import JoinedMember, JoinGroupProtocol, JoinGroupResponse
from kafka_rebalance.wire.consumer_protocol import (
    AssignmentData,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Response
from kafka_rebalance.wire.offsets import OffsetCommit, OffsetCommitResponse
from kafka_rebalance.wire.sent_members import sent_member

from .answers import OFFSET_COMMIT, Reaction, react
from .config import ConsumerConfig
from .interface import Assigned, Lost, Partitions, Revoked
from .membership import Membership, SentRequest, Shares
from .states import MemberState

Snapshot = tuple[Topic, ...]

_NO_LIMIT = 2**31 - 1


def assignments(
    assignor: Assignor, members: Iterable[JoinedMember], topics: Mapping[str, Topic]
) -> tuple[tuple[str, bytes], ...]:
    """Returns pairs (member id, encoded assignment). Errors: WireError, AssignorThrows."""
    known = tuple(
        sent_member(
            one.member_id,
            decode_subscription(one.metadata),
            assignor.name,
            group_instance_id=one.group_instance_id,
        )
        for one in members
    )
    wanted = dict.fromkeys(topic for member in known for topic in member.topics)
    there = tuple(topics[topic] for topic in wanted if topic in topics)
    given = assignor.assign(GroupSpec("", there, known, max_partitions=_NO_LIMIT))
    return tuple(
        (one.member_id, encode_assignment(AssignmentData(tuple(given.get(one.member_id, ())))))
        for one in known
    )


def subscribed_topics(members: Iterable[JoinedMember]) -> frozenset[str]:
    subscriptions: Iterable[Subscription] = (decode_subscription(one.metadata) for one in members)
    return frozenset(topic for sent in subscriptions for topic in sent.topics)


def snapshot(topics: Mapping[str, Topic], names: Iterable[str], *, racks: bool) -> Snapshot:
    """Returns the data that affect an assignment: partition counts and, if `racks`, the racks."""
    there = (topics[name] for name in sorted(names) if name in topics)
    return tuple(one if racks else Topic(one.name, one.partitions) for one in there)


_NONE = ErrorCode.NONE


class Subscriber(Mutable):
    """A consumer's role, and the state that only consumers have."""

    config: ConsumerConfig
    assignors: dict[str, Assignor]
    is_cooperative: bool = field(init=False)  # whether it reads during rebalances (KIP-429)
    owned: Partitions = ()
    # The subscription, and the cluster's topics.
    subscription: frozenset[str] = frozenset()
    pattern: str | None = None
    joined_subscription: frozenset[str] | None = None  # the subscription of the last JoinGroup
    topics: dict[str, Topic] = field(default_factory=dict)
    # The topics that a leader watches, and their data when it last assigned.
    group_subscription: frozenset[str] = frozenset()
    assigned_by: Snapshot | None = None
    # Commits.
    prepare_until_ms: int | None = None  # when the wait for the commit before a join ends
    prepare_commit: SentRequest | None = None  # the commit before a join
    is_committed: bool = False  # the commit before a join has ended
    commits_again: bool = False  # the commit before a join has failed, and is repeated
    commit_at_ms: int = 0
    positions: dict[TopicPartition, int] = field(default_factory=dict)

    protocol_type = "consumer"

    def __post_init__(self) -> None:
        self.is_cooperative = self.config.rebalance_protocol() is RebalanceProtocol.COOPERATIVE

    def wants_in(self) -> bool:
        """Returns whether there is a subscription; a pattern counts even if no topic matches it."""
        return bool(self.subscription) or self.pattern is not None

    def has_news(self, state: Membership) -> bool:
        """Returns whether the subscription, or a topic that this leader assigned, has changed."""
        joined = self.joined_subscription
        if joined is not self.subscription and joined != self.subscription:
            return True
        watches = state.is_leader and self.assigned_by is not None
        return watches and self._snapshot() != self.assigned_by

    def _snapshot(self) -> Snapshot:
        racks = bool(self.config.client_rack)
        return snapshot(self.topics, self.group_subscription, racks=racks)

    def match(self) -> None:
        if self.pattern is not None:
            matching = (name for name in self.topics if re.fullmatch(self.pattern, name))
            self.subscription = frozenset(matching)

    # Before the join ------------------------------------------------------------------------------

    def prepare(self, state: Membership) -> bool:
        """Commits, then revokes partitions; returns False while it waits for the commit."""
        if self.config.enable_auto_commit and not self._has_committed(state):
            return False
        self.is_committed, self.prepare_until_ms, self.prepare_commit = False, None, None
        self.commits_again = False
        owned = self.owned
        if not state.generation.is_known:
            if owned:
                state.effects.append(Lost(owned))
            self.owned = ()
        elif self.is_cooperative:
            dropped = tuple(one for one in owned if one.topic not in self.subscription)
            if dropped:
                state.effects.append(Revoked(dropped))
                self.owned = tuple(one for one in owned if one not in set(dropped))
        else:
            state.effects.append(Revoked(owned))
            self.owned = ()
        self.group_subscription = frozenset()
        return True

    def _has_committed(self, state: Membership) -> bool:
        """Returns whether the join may continue. If not, the commit is in flight, or is sent here.

        The join may continue if no commit is needed, if it is done, or if the time for it is over.
        """
        if self.is_committed or not state.generation.is_known:
            return True
        if self.prepare_until_ms is None:
            self.prepare_until_ms = state.now_ms + self.config.rebalance_timeout_ms
        if state.now_ms >= self.prepare_until_ms:
            return True
        if self._is_preparing(state):
            return False
        # A periodic commit in flight does not cover records read later, so commit once more.
        self.prepare_commit = self.commit(state)
        return self.prepare_commit is None

    def _is_preparing(self, state: Membership) -> bool:
        return any(one is self.prepare_commit for one in state.sent.values())

    @property
    def is_pending_revocation(self) -> bool:
        """Returns whether an eager member waits for a commit before it revokes its partitions."""
        return self.prepare_until_ms is not None and not self.is_cooperative

    def prepares_until_ms(self, state: Membership) -> int | None:
        """Returns until when (ms) a join waits for its commit; None if none is in flight."""
        return self.prepare_until_ms if self._is_preparing(state) else None

    def protocols(self, state: Membership) -> tuple[JoinGroupProtocol, ...]:
        self.joined_subscription = self.subscription
        topics = tuple(sorted(self.subscription))
        known = state.generation.generation_id
        return tuple(
            JoinGroupProtocol(
                name,
                encode_subscription(
                    Subscription(
                        topics,
                        assignor.subscription_user_data(topics),
                        self.owned,
                        known if known >= 0 else None,
                        self.config.client_rack or None,
                    )
                ),
            )
            for name, assignor in self.assignors.items()
        )

    # The leader -----------------------------------------------------------------------------------

    def lead(self, state: Membership, response: JoinGroupResponse) -> Shares:
        """Returns the assignments, unless `skip_assignment` is set; watches all members' topics."""
        self.group_subscription = subscribed_topics(response.members)
        self.assigned_by = self._snapshot()
        if response.skip_assignment:
            return ()
        assignor = self.assignors[response.protocol_name or ""]
        return assignments(assignor, response.members, self.topics)

    # After the join -------------------------------------------------------------------------------

    def take(self, state: Membership, assignment: bytes) -> None:
        assigned = decode_assignment(assignment).partitions
        if not state.is_leader:
            self.assigned_by = None
        if not all(self._wants(one.topic) for one in assigned):
            state.rejoin_needed = True  # the assignment is for an older subscription
            return
        if self.is_cooperative:
            kept = set(assigned)
            revoked = tuple(one for one in self.owned if one not in kept)
            if revoked:
                state.effects.append(Revoked(revoked))
                state.rejoin_needed = True
        if self.pattern is not None and self.joined_subscription is not None:
            # The leader has already assigned these topics, so they are not a reason to join again.
            added = {one.topic for one in assigned} - self.joined_subscription
            self.subscription |= added
            self.joined_subscription |= added
        name = state.generation.protocol_name
        if name in self.assignors:
            self.assignors[name].on_assignment(assigned, state.generation.generation_id)
        self.commit_at_ms = state.now_ms + self.config.auto_commit_interval_ms
        held = set(self.owned)
        self.owned = tuple(assigned)
        state.effects.append(Assigned(tuple(one for one in assigned if one not in held)))

    def _wants(self, topic: str) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.subscription

    def settle(self, state: Membership) -> None:
        if (
            self.config.enable_auto_commit
            and state.state is MemberState.STABLE
            and state.now_ms >= self.commit_at_ms
            and not state.is_waiting_for(OffsetCommit)
        ):
            self.commit_at_ms = state.now_ms + self.config.auto_commit_interval_ms
            self.commit(state)

    def next_settle_ms(self, state: Membership) -> int | None:
        """Returns None: automatic commits happen in polls that the application makes anyway."""
        return None

    def give_up(self, state: Membership) -> None:
        """Revokes all partitions before a leave; in a join or without a generation, loses them."""
        if self.owned:
            sure = state.generation.is_known and state.state not in (
                MemberState.PREPARING_REBALANCE,
                MemberState.COMPLETING_REBALANCE,
            )
            state.effects.append(Revoked(self.owned) if sure else Lost(self.owned))
        self.owned = ()

    # Commits --------------------------------------------------------------------------------------

    def commit(self, state: Membership) -> SentRequest | None:
        """Sends the positions of owned partitions without waiting; None if nothing can be sent."""
        ids = state.generation.member_id, state.generation.generation_id
        request = state.offset_commit(self.owned, self.positions, *ids)
        if request is None or state.coordinator_node is None:
            return None
        return state.send(request)

    def answered(self, state: Membership, sent: SentRequest, response: Response) -> None:
        if not isinstance(response, OffsetCommitResponse):
            return
        errors = [one.error_code for one in response.partitions if one.error_code is not _NONE]
        reaction = OFFSET_COMMIT.get(errors[0]) if errors else None
        again = reaction in (Reaction.BACK_OFF, Reaction.REDISCOVER)
        if sent is self.prepare_commit:
            self.commits_again = again
            self.is_committed = not again  # if False, `prepare` commits again until its deadline
        elif again:
            self.commit_at_ms = state.now_ms + self.config.retry_backoff_ms
        if reaction is Reaction.FATAL:
            if sent.generation == state.generation:
                state.throw(errors[0], f"OffsetCommit was answered {errors[0]}")
        elif reaction is not None:
            react(state, sent, reaction, errors[0])

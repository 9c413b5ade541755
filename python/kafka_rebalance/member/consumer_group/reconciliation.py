# SPDX-License-Identifier: Apache-2.0
"""Applies the coordinator's assignment: one reconciliation at a time.

    1. start     in a poll; without automatic commits and without a revocation also between polls.
                 The member stops reading the partitions that it has to give up
    2. commit    if commits are automatic: all positions, tried again until the rebalance timeout
    3. revoke    onPartitionsRevoked, if the member has to give up partitions
    4. assign    onPartitionsAssigned with the gained partitions, even if there are none
    5. state     ACKNOWLEDGING, which sends a heartbeat at once

A reconciliation ends early if the member is no longer RECONCILING, or has joined again.
Topics whose names the client does not know are left out; the other topics are acknowledged
meanwhile.

librdkafka's main thread does step 1 without a poll. The next poll does step 3; then step 2 commits
only the revoked partitions, and step 4 is in the same poll.

Source   AbstractMembershipManager.maybeReconcile, revokeAndAssign, maybeAbortReconciliation,
         CommitRequestManager.maybeAutoCommitSyncBeforeRebalance (Kafka 4.4.0);
         rd_kafka_cgrp_consumer_handle_next_assignment, rd_kafka_assignment_serve_removals,
         rd_kafka_cgrp_consumer_incr_unassign_done (librdkafka 2.16);
         docs/behaviour/consumer-members.md#3-reconciliation.
"""

from kafka_rebalance.wire.error_codes import ErrorCode

from ..interface import Assigned, FetchMetadata, Partitions, PendingRevocation, Revoked
from ..membership import SentRequest
from ..states import ConsumerMemberState
from .membership import AsyncMembership, Callback, LocalReconciliation, Purpose

_S = ConsumerMemberState
_RETRIABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.STALE_MEMBER_EPOCH,
)


def reconcile(state: AsyncMembership, *, is_poll: bool) -> None:
    """Reconciles a new assignment, unless a reconciliation runs or has to wait for a poll."""
    is_new = state.state is _S.RECONCILING and state.current != state.target
    if not is_new or state.reconciliation is not None:
        return
    _resolve(state)
    taken = state.target.resolved(state.names)
    if not state.current.is_none and taken.partitions == state.current.partitions:
        if taken.epoch != state.current.epoch:
            state.current = taken
            state.move(_S.ACKNOWLEDGING)
        return
    owned = taken.named(state.names)
    held, wanted = set(state.owned_partitions), set(owned)
    revoked = tuple(one for one in state.owned_partitions if one not in wanted)
    waits_for_poll = not state.is_librdkafka and (state.config.enable_auto_commit or revoked)
    if waits_for_poll and not is_poll:
        return
    added = tuple(one for one in owned if one not in held)
    until_ms = state.now_ms + state.config.rebalance_timeout_ms
    state.reconciliation = LocalReconciliation(taken, owned, revoked, added, until_ms)
    if revoked:
        state.effects.append(PendingRevocation(revoked))
    if state.is_librdkafka and revoked:
        _call_revoked(state, state.reconciliation)
    elif state.config.enable_auto_commit and not state.is_librdkafka:
        _start_commit(state, state.reconciliation)
    else:
        _committed(state)


def needs_poll(state: AsyncMembership) -> bool:
    """Returns whether the next poll starts a reconciliation."""
    if state.state is not _S.RECONCILING or state.reconciliation is not None:
        return False
    taken = state.target.resolved(state.names | state.topics)
    return state.current.is_none or taken.partitions != state.current.partitions


def _resolve(state: AsyncMembership) -> None:
    """Stores the names of the assigned topics; requests metadata if an id has no name."""
    for topic in state.target.partitions:
        if topic in state.topics:
            state.names[topic] = state.topics[topic]
        elif topic not in state.names:
            state.effects.append(FetchMetadata())


# The commit ---------------------------------------------------------------------------------------


def _start_commit(state: AsyncMembership, running: LocalReconciliation) -> None:
    running.commit_at_ms = state.now_ms
    go_on(state)


def go_on(state: AsyncMembership) -> None:
    running = state.reconciliation
    if running is None or running.commit_at_ms is None or running.commit_at_ms > state.now_ms:
        return
    if running.commit_failures and state.now_ms >= running.until_ms:
        running.commit_at_ms = None
        _committed(state)
    elif state.coordinator_node is not None:
        running.commit_at_ms = None
        running.commit = commit(
            state, running.revoked if state.is_librdkafka else state.owned_partitions
        )
        if running.commit is None:
            _committed(state)


def commit(state: AsyncMembership, partitions: Partitions) -> SentRequest | None:
    """Commits these partitions' positions; returns None if nothing can be sent."""
    return state.send_commit(partitions, state.positions, state.member_id, state.member_epoch)


def commit_answered(state: AsyncMembership, sent: SentRequest, error: ErrorCode) -> None:
    """Handles the response to a reconciliation's commit, which is repeated after some errors."""
    running = state.reconciliation
    if running is None or sent is not running.commit:
        return
    running.commit = None
    has_epoch = state.member_epoch > 0
    stale = error is ErrorCode.STALE_MEMBER_EPOCH and not has_epoch
    if error in _RETRIABLE and not stale and state.now_ms < running.until_ms:
        running.commit_at_ms = state.now_ms + state.backoff_ms(running.commit_failures)
        running.commit_failures += 1
    else:
        _committed(state)


# The callbacks ------------------------------------------------------------------------------------


def _committed(state: AsyncMembership) -> None:
    running = _unless_void(state)
    if running is None:
        return
    if running.revoked and not running.has_revoked:
        _call_revoked(state, running)
    else:
        _assign(state, running)


def _call_revoked(state: AsyncMembership, running: LocalReconciliation) -> None:
    state.callbacks.append(Callback(Revoked(running.revoked), Purpose.REVOKE))


def returned(state: AsyncMembership, callback: Callback) -> None:
    if callback.purpose is Purpose.RELEASE:
        state.released()
        return
    running = _unless_void(state)
    if running is None:
        return
    if callback.purpose is Purpose.REVOKE:
        running.has_revoked = True
        if state.is_librdkafka and state.config.enable_auto_commit:
            _start_commit(state, running)
        else:
            _assign(state, running)
    else:
        state.current = running.assignment
        state.commit_at_ms = state.now_ms + state.config.auto_commit_interval_ms
        state.reconciliation = None
        state.move(_S.ACKNOWLEDGING)


def _assign(state: AsyncMembership, running: LocalReconciliation) -> None:
    state.owned_partitions = running.owned
    there = {one.topic for one in running.owned}
    state.names = {topic: name for topic, name in state.names.items() if name in there}
    state.callbacks.append(Callback(Assigned(running.added), Purpose.ASSIGN))


def _unless_void(state: AsyncMembership) -> LocalReconciliation | None:
    """Returns the reconciliation; if it no longer applies, ends it and returns None."""
    running = state.reconciliation
    if running is not None and (running.is_void or state.state is not _S.RECONCILING):
        state.reconciliation = running = None
    return running

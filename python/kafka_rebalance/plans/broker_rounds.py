# SPDX-License-Identifier: Apache-2.0
"""Plays rounds of a broker-assigned group: the broker computes a target, and the members follow.

A member keeps the partitions that both its old and its new target contain. It revokes the others at
its next heartbeat. Their new owner gets them at its own next heartbeat. In a share group, no new
owner waits for a revocation.

1. A heartbeat finds that the group epoch has changed, and the broker computes the target. The
   assignor visits the members in the order of the broker's hash map, a new member last (in a share
   group, at its place in the map). If several members join more than
   `group.consumer.assignment.interval.ms` (1 s) apart, each gets a target of its own; here, the
   group reaches each target before the next member joins.
2. Compare the new target with the old one.
3. A partition is unavailable between its revocation and the heartbeat of its new owner. A new
   partition, or one of a member that left, is unavailable until its owner's heartbeat. A member
   of the classic protocol with an eager assignor revokes all partitions to join again.
4. Only changed targets are written, so an unchanged one keeps its order.
5. Sort the members as the broker's hash map does, newer members first (`changes/member_table.py`).
6. A share group gets two targets if it has partitions that it has never read. The heartbeat that
   finds them computes a target without them, and starts to initialise their share state. A later
   heartbeat computes a target with them. The first target is a round only if it moves a partition.

Errors   those of `assign`.
Source   TargetAssignmentBuilder, CurrentAssignmentBuilder; KIP-848, KIP-932, KIP-1071.
         GroupMetadataManager: shareGroupHeartbeat, initializeShareGroupState.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.registry import Engine, assigns_tasks, shares_partitions
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .changes.member_table import in_table_order
from .rounds import Played, Round, gained_of, next_generation, without_reader


def play_by_broker(
    group: GroupSpec,
    *,
    eager: Collection[str],
    engine: Engine,
    held: Assignment | None = None,
    most: int = 0,
) -> Played:
    """Plays a round for each new member (without a generation); only one if none or all are new.

    `most` is the largest number of members that the group has had. `eager` holds the ids of classic
    members that revoke all partitions in each round. `held` are the partitions that members hold;
    None means those in `group`.
    """
    new = [member for member in group.members if member.generation_id is None]
    known = [member for member in group.members if member.generation_id is not None]
    rounds = []
    if not known or not new:
        last = _round(group, eager, engine, held)
        return Played((last,), _settled(last, new[::-1], most), settled=True)
    after = group.edited(members=tuple(known))
    for one in new:
        seen = after.edited(members=_with_new(after, one, most))
        rounds.append(_round(seen, eager, engine, held if len(new) == 1 else None))
        after = _settled(rounds[-1], [one], most)
    return Played(tuple(rounds), after, settled=True)


def play_shared(
    before: GroupSpec, group: GroupSpec, *, engine: Engine, held: Assignment | None, most: int
) -> Played:
    """Plays a change of a share group; `before` is the group before the change.

    A topic without subscribers in `before` counts as never read, except for the partitions in its
    `initialized`. In the returned group, this field is None for topics with subscribers.
    """
    # 6.
    was, reads = _read_counts(before), _read_counts(group)
    known = {topic.name: topic.initialized for topic in before.topics}
    first, last = [], []
    for topic in group.topics:
        ready = known.get(topic.name)
        if ready is None and topic.name in was | reads:
            ready = tuple(range(min(was.get(topic.name, 0), topic.partitions)))
        first.append(replace(topic, initialized=ready))
        last.append(replace(topic, initialized=None) if topic.name in reads else first[-1])
    later = any(one.name in reads and len(one.initialized or ()) < one.partitions for one in first)
    play = partial(play_by_broker, eager=(), engine=engine, most=most)
    played = play(group.edited(topics=tuple(first if later else last)), held=held)
    if not later:
        return played
    rounds = [one for one in played.rounds if one.moves or any(one.revoked.values())]
    after = play(played.group.edited(topics=tuple(last)))
    return Played((*rounds, *after.rounds), after.group, settled=True)


def _read_counts(group: GroupSpec) -> dict[str, int]:
    read = {name for member in group.members for name in member.topics}
    return {topic.name: topic.partitions for topic in group.topics if topic.name in read}


def _with_new(group: GroupSpec, new: Member, most: int) -> tuple[Member, ...]:
    """Returns the members in the order in which the assignor visits them after `new` has joined."""
    if shares_partitions(group.assignor) and not assigns_tasks(group.assignor):
        return tuple(in_table_order([new, *group.members], has_joined=False, most=most))
    return (*group.members, new)


def joined_together(group: GroupSpec, engine: Engine) -> GroupSpec:
    """Returns the group after all its new members have joined within one assignment interval: the
    first one gets a target at once, the others get one from the first heartbeat after the interval.
    """
    new = [member for member in group.members if member.generation_id is None]
    known = tuple(member for member in group.members if member.generation_id is not None)
    first = _round(group.edited(members=(*known, new[0])), (), engine)
    after = _settled(first, new[:1])
    return with_one_target(after.edited(members=(*after.members, *new[1:])), engine)


def with_one_target(group: GroupSpec, engine: Engine) -> GroupSpec:
    """Returns the group after the broker has computed one target for all members, old and new."""
    newest = [member for member in group.members[::-1] if member.generation_id is None]
    known = [member for member in group.members if member.generation_id is not None]
    members = in_table_order([*newest, *known])
    return _settled(_round(group.edited(members=tuple(members)), (), engine), newest)


def _round(
    group: GroupSpec, eager: Collection[str], engine: Engine, held: Assignment | None = None
) -> Round:
    # 1.
    name = group.assignor or ""
    held = Assignment.owned(group) if held is None else held
    answer = assign(group, name, engine=engine)
    # 2.
    delta = answer - held
    # 3.
    given_up = {tp for owned in delta.revoked.values() for tp in owned}
    reading = {one: owned for one, owned in delta.kept.items() if one not in eager}
    nobody_waits = shares_partitions(name) and not assigns_tasks(name)
    return Round(
        group=group,
        assignor=name,
        generation_id=next_generation(group),
        protocol=RebalanceProtocol.COOPERATIVE,
        held=held,
        assignment=answer,
        delta=delta,
        withheld=Assignment.of({}) if nobody_waits else gained_of(delta, given_up),
        unavailable=without_reader(group, Assignment.of(reading)),
    )


def _settled(one: Round, newest_first: Sequence[Member], most: int = 0) -> GroupSpec:
    """Returns the group after a round, with its new targets; `newest_first` are the members that
    joined in it.
    """
    owning = _with_target(one)
    # 5.
    by_id = {member.member_id: member for member in owning.members}
    newest = [by_id.pop(member.member_id) for member in newest_first]
    return owning.edited(members=tuple(in_table_order([*newest, *by_id.values()], most=most)))


def _with_target(one: Round) -> GroupSpec:
    if assigns_tasks(one.group.assignor):
        after = one.group.owning(one.assignment)
        members = (replace(member, generation_id=one.generation_id) for member in after.members)
        return after.edited(members=tuple(members), generation_id=one.generation_id)
    # 4.
    target, topics = {}, {}
    old = Assignment.owned(one.group)  # not `one.held`: a member that came back has no target yet
    for member in one.group.members:
        member_id, new = member.member_id, one.assignment
        has_same = _entries(old, member_id) == _entries(new, member_id)
        target[member_id] = (old if has_same else new)[member_id]
        topics[member_id] = (old if has_same else new).owned_topics.get(member_id, ())
    owning = Assignment.of(target, owned_topics=topics)
    return one.group.owning(owning, generation_id=one.generation_id)


def _entries(targets: Assignment, member_id: str) -> tuple[set[TopicPartition], set[str]]:
    """Returns a member's target as sets: its partitions, and its topics if one of them has no
    partitions (else none).
    """
    return set(targets[member_id]), set(targets.owned_topics.get(member_id, ()))

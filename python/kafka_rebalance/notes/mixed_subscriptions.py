# SPDX-License-Identifier: Apache-2.0
"""Plays a plan while old and new subscriptions mix: members change theirs at different moments.

1. A draw puts the members in a random order, and divides them into parts. The members of a part
   change their subscriptions simultaneously; then the group settles. If racks are known, the draw
   places replicas of new topics in random racks; a plan leaves these racks unknown.

Source   librdkafka 2.16 (rd_kafka_cgrp_metadata_update_check); ConsumerCoordinator.poll asks for
         fresh metadata before a member with a pattern joins again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Self

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.edits import Edited, GroupEvent
from kafka_rebalance.plans.changes.made_up import MadeUp
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, played

from .never_ends import MOST_WORK, work
from .other_courses import Further, changes_all

_DRAWS = 32
_MOST_PARTS = 9
"""The largest number of parts of a draw; each part starts one rebalance or more."""


def played_apart(plan: RebalancePlan, draws: int | None = None) -> Further:
    """Returns how the plan ends if members change their subscriptions at different moments.

    Each draw plays all changes. The result holds the largest number of additional rebalances, the
    smallest and the largest number of additional moves, and the partitions that have another
    owner in some draw.

    Cost     a plan in Python for each draw, of up to 9 parts; large groups have fewer draws.
    """
    draws = _DRAWS if draws is None else draws
    draws = min(draws, MOST_WORK // ((1 + work(plan.final)) * _MOST_PARTS))
    owners = _owners(plan)
    rounds, moves, elsewhere = [0], [], set()
    for number in range(1, draws + 1):
        changes = tuple(_Apart(one, number) if changes_all(one) else one for one in plan.changes)
        ids = MadeUp(plan.group.group_id)
        try:
            one = played(plan.group, changes, plan.engine, ids, plan.possible)
        except GroupError:  # the assignor throws while old and new subscriptions are mixed
            continue
        rounds.append(len(one.rounds) - len(plan.rounds))
        moves.append(one.moves - plan.moves)
        elsewhere |= {tp for tp, owner in _owners(one).items() if owner != owners.get(tp)}
    moves = moves or [0]
    return Further(max(rounds), draws, (min(moves), max(moves)), tuple(sorted(elsewhere)))


def _owners(plan: RebalancePlan) -> dict[TopicPartition, str]:
    return {tp: member_id for member_id, owned in plan.after.items() for tp in owned}


# 1.
@dataclass(frozen=True, slots=True)
class _Apart(Change):
    """A change to all subscriptions that is made in steps: each event is one part of the draw
    number `draw`.
    """

    change: Change
    draw: int

    VERBS = ()

    @classmethod
    def parse(cls, verb: str, value: str) -> Self:
        raise NotImplementedError  # a draw has no text: `played_apart` makes the object

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        (whole,) = self.change.events(group)
        edited = whole.edit(group, MadeUp(group.group_id))
        after = edited.group.edited(topics=tuple(self._placed(group, edited.group.topics)))
        topics = {member.member_id: member.topics for member in after.members}

        def event(part: set[str]) -> GroupEvent:
            def edit(now: GroupSpec, _: MadeUp) -> Edited:
                members = tuple(
                    replace(one, topics=topics[one.member_id]) if one.member_id in part else one
                    for one in now.members
                )
                return edited._replace(group=now.edited(topics=after.topics, members=members))

            return GroupEvent(whole.cause, edit)

        return [event(part) for part in self._parts(list(topics))]

    def _placed(self, group: GroupSpec, topics: tuple[Topic, ...]) -> Iterator[Topic]:
        """Yields the topics; each partition of a new one gets as many random racks as an old
        partition has at most.
        """
        random, known = Random(f"{self.draw}/racks"), {topic.name for topic in group.topics}
        placed = [racks for topic in group.topics for racks in topic.racks or ()]
        racks = sorted({rack for one in placed for rack in one if rack is not None})
        most = max((len({*one} - {None}) for one in placed), default=0)
        for topic in topics:
            if racks and topic.name not in known:
                places = (tuple(random.sample(racks, most)) for _ in range(topic.partitions))
                topic = replace(topic, racks=tuple(places))
            yield topic

    def _parts(self, members: list[str]) -> Iterator[set[str]]:
        random = Random(f"{self.draw}/{','.join(members)}")
        random.shuffle(members)
        most = min(_MOST_PARTS, len(members))
        cuts = sorted(random.sample(range(1, len(members)), random.randint(1, most) - 1))
        for start, end in zip([0, *cuts], [*cuts, len(members)], strict=True):
            yield {*members[start:end]}

# SPDX-License-Identifier: Apache-2.0
"""Logs a run of the reference assignors, through subclasses, for the checks of explanations."""

from __future__ import annotations

from typing import Any

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, TopicPartition
from kafka_rebalance.assignors.classic import claims, constrained, general
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.assignors.librdkafka import claims as librdkafka_claims
from kafka_rebalance.assignors.librdkafka import general as librdkafka
from kafka_rebalance.assignors.librdkafka.subscriptions import members_with_topics, name_bytes
from kafka_rebalance.assignors.registry import library_of
from kafka_rebalance.java.order import name_key

Holdings = dict[str, list[TopicPartition]]
Sizes = dict[str, int]


class Log:
    """The steps of the reference for one group.

    `after`    the state after each named step, for example the partitions of each member
    `given`    (partition, the member that gained it, sizes), in order
    `moved`    (partition that balancing chose, partition that moved, old owner, new owner, sizes),
               in order; the moved partition can differ from the chosen one

    `sizes` maps each member to its number of partitions before that gain or move.
    """

    def __init__(self, group: GroupSpec, assignor: str) -> None:
        self.group = group
        self.assignor = assignor
        self.members = {member.member_id: member for member in group.members}
        self.counts = group.partition_counts()
        self.answer = kr.assign(group, assignor, engine="reference")
        self.after: dict[str, Any] = {}
        self.build: Any = None
        self.given: list[tuple[TopicPartition, str, Sizes]] = []
        self.moved: list[tuple[TopicPartition, TopicPartition, str, str, Sizes]] = []
        if library_of(assignor) == "librdkafka":
            self._run_librdkafka()
        elif "sticky" in assignor:
            self._run_sticky()

    def _run_sticky(self) -> None:
        cooperative = self.assignor == "cooperative-sticky"
        send = claims.sent_by_cooperative if cooperative else claims.sent_by_sticky
        sent = {member.member_id: send(member) for member in self.group.members}
        self.claims = claims.settle(self.group, sent)
        self.believed = {m: list(owned) for m, owned in self.claims.owned.items()}
        self.racks: Any = Racks.of(self.group, self.claims)
        if self.claims.equal_subscriptions:
            self._run_constrained()
        else:
            self._run_general()

    def _run_constrained(self) -> None:
        log = self

        class Logged(constrained.ConstrainedBuild):
            def _give(self, tp: TopicPartition, member_id: str) -> int:
                log.given.append((tp, member_id, _sizes(self.assignment)))
                return super()._give(tp, member_id)

        self.build = build = Logged(self.assignor, self.claims, self.racks)
        build.keep_owned()
        self.after["keep"] = _copy(build.assignment)
        unassigned = build.sort(build.unassigned())
        self.after["to hand out"] = (list(unassigned), list(build.short), list(build.at_least))
        if self.racks.active():
            unassigned = build.assign_near(unassigned)
        self.after["rack pass"] = len(self.given)
        build.assign_round_robin(unassigned)
        self.target = build.assignment

    def _run_general(self) -> None:
        log = self

        class Logged(general.GeneralBuild):
            def give(self, member_id: str, tp: TopicPartition) -> None:
                if not log.after.get("balancing"):
                    log.given.append((tp, member_id, _sizes(self.current)))
                super().give(member_id, tp)

            def relocate(self, tp: TopicPartition, destination: str) -> None:
                sizes, owner = _sizes(self.current), dict(self.owner)
                super().relocate(tp, destination)
                (went,) = [one for one in owner if owner[one] != self.owner[one]] or [tp]
                log.moved.append((tp, went, owner[went], destination, sizes))

        self.build = build = Logged(self.assignor, self.claims, self.racks)
        build.sort_partitions()
        build.remember_previous()
        unassigned = build.keep_owned()
        self.after["keep"], self.after["unassigned"] = _copy(build.current), list(unassigned)
        initializing = not any(build.current.values())
        left = unassigned
        if self.racks.active():
            left = [tp for tp in unassigned if not build._assign_smallest(tp, self.racks)]
        self.after["near"] = len(self.given)
        for tp in left:
            build._assign_smallest(tp, None)
        build.take_out_fixed()
        self.after["balancing"] = True
        self.after["before"] = _copy(build.current)
        build.balance(unassigned, initializing=initializing)
        self.target = build.current | build.fixed

    def _run_librdkafka(self) -> None:
        log = self

        class Logged(librdkafka.LibrdkafkaBuild):
            def _append(self, member_id: str, tp: TopicPartition) -> None:
                if not log.after.get("balancing"):
                    log.given.append((tp, member_id, _sizes(self.current)))
                super()._append(member_id, tp)

            def _move(self, tp: TopicPartition, destination: str) -> None:
                sizes, holder = _sizes(self.current), dict(self.holder)
                super()._move(tp, destination)
                (went,) = [one for one in holder if holder[one] != self.holder[one]] or [tp]
                log.moved.append((tp, went, holder[went], destination, sizes))

        order = members_with_topics(self.group)
        settled = librdkafka_claims.settle(order)
        self.believed = {m: list(owned) for m, owned in settled.owned.items()}
        self.build = build = Logged(self.group, order, settled)
        self.racks = build.racks
        build.sort_partitions()
        unassigned = build.keep_owned()
        self.after["keep"], self.after["unassigned"] = _copy(build.current), list(unassigned)
        initializing = build.by_size[-1][0] == 0
        left = unassigned
        if build.racks.active:
            left = [tp for tp in unassigned if not build._assign_smallest(tp, build.racks)]
        self.after["near"] = len(self.given)
        for tp in left:
            build._assign_smallest(tp, None)
        build.take_out_fixed()
        self.after["balancing"] = True
        self.after["before"] = _copy(build.current)
        build.balance(unassigned, initializing=initializing)
        self.target = build.current | build.fixed

    @property
    def has_racks(self) -> bool:
        """Returns whether racks make a difference."""
        active = self.racks.active
        return active if isinstance(active, bool) else bool(active())

    def by_id(self, member_id: str) -> bytes:
        """Returns the sort key of ids: by UTF-16 units in Java, by bytes in librdkafka."""
        of_java = library_of(self.assignor) is None
        return name_key(member_id) if of_java else name_bytes(member_id)

    def holders(self, holdings: Any, tp: TopicPartition) -> list[str]:
        return [member_id for member_id, owned in holdings.items() if tp in owned]

    def subscribers(self, topic: str) -> set[str]:
        return {m for m, member in self.members.items() if topic in member.topics}

    def near_or_no_rack(self, member_id: str, tp: TopicPartition) -> bool:
        if library_of(self.assignor) == "librdkafka":
            return not self.racks.mismatch(member_id, tp)  # an empty rack counts as one
        return self.members[member_id].rack in (None, *self.replicas(tp))

    def replicas(self, tp: TopicPartition) -> set[str]:
        """Returns the known racks of its replicas; a member without a rack is near none of them."""
        racks = next(topic.racks for topic in self.group.topics if topic.name == tp.topic)
        return set() if racks is None else {rack for rack in racks[tp.partition] if rack}


def _sizes(holdings: Any) -> Sizes:
    return {member_id: len(owned) for member_id, owned in holdings.items()}


def _copy(holdings: Any) -> Holdings:
    return {member_id: list(owned) for member_id, owned in holdings.items()}

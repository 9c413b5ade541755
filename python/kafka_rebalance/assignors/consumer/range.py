# SPDX-License-Identifier: Apache-2.0
"""The brokers' range assignor: assigns runs of each topic's partitions to its sorted subscribers.

1. Members are sorted: static ones by instance id, then the others by member id.
2. In a homogeneous group, the first member's topics are shared by all members, in that member's
   order. In any other group, each topic is shared by the members that subscribe to it.
3. Of a topic with n partitions and k subscribers, each subscriber gets n // k, the first n % k
   subscribers one more.

Order    a member's topics: the order of a `HashMap` with room for the first member's topics, or
         in a heterogeneous group with room for all names of the member's own subscription.
Cost     O(M log M + S + P): M members, S subscriptions, P partitions.
Errors   those of `view_of` (`targets.py`).
Ignores  racks and present targets.
Source   org.apache.kafka.coordinator.group.assignor.RangeAssignor (Kafka 4.4.0); KIP-848.
"""

from collections import Counter

from kafka_rebalance.group.model import static_first
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.java.hash_map import HashMap, Uuid, slots_for, uuid_hash

from .targets import View, view_of

NAME = "consumer/range"


def assign(group: GroupSpec) -> Assignment:
    view = view_of(group, NAME)
    return view.answer(targets_of(view))


def targets_of(view: View) -> dict[str, HashMap[Uuid, range]]:
    # 1.
    by_id = {one.member.member_id: one for one in view.members}
    members = [by_id[m.member_id] for m in static_first(one.member for one in view.members)]
    # 2.
    first = members[0]
    topics = [(first if view.homogeneous else one).topics for one in members]
    subscribers = Counter(topic for each in topics for topic in each)
    places = Counter[Uuid]()
    targets: dict[str, HashMap[Uuid, range]] = {}
    for one, own in zip(members, topics, strict=True):
        room = len(first.topics) if view.homogeneous else one.names
        target = HashMap[Uuid, range](uuid_hash, slots_for(int(room / 0.75 + 1)))
        # 3.
        for topic in own:
            if run := _run(view.counts[topic], subscribers[topic], places[topic]):
                target.put(topic, run)
            places[topic] += 1
        targets[one.member.member_id] = target
    return targets


def _run(partitions: int, subscribers: int, place: int) -> range:
    each, more = divmod(partitions, subscribers)
    start = each * place + min(place, more)
    return range(start, start + each + (place < more))

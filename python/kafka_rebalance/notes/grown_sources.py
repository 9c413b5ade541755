# SPDX-License-Identifier: Apache-2.0
"""Finds applications of Kafka Streams that stop if a topic that they read gets more partitions.

The source topics decide the number of tasks, which is also the number of partitions of changelog
topics and of most repartition topics. Kafka Streams creates these topics once. If the numbers
differ later, the leader's assignor throws in a classic group; in a streams group (KIP-1071) the
broker answers INCORRECTLY_PARTITIONED_TOPICS. By default, the clients then stop.

Source   classic: InternalTopicManager.validateTopics, ChangelogTopics, RepartitionTopics;
         StreamThread.handleStreamsRebalanceData (Kafka Streams 4.3.1). Broker:
         InternalTopicManager.missingInternalTopics (Kafka 4.4.0).
"""

from collections.abc import Sequence

from kafka_rebalance.assignors.registry import STREAM, assigns_tasks
from kafka_rebalance.errors import NotAffected
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.topics import AddPartitions

STOPS = (
    "a topic that it reads grows. Kafka Streams never adds partitions to its changelog and "
    "repartition topics: if the number of one of these follows from this topic, the application "
    "stops. Reset it first, which deletes its state, or start it under a new application.id"
)


def check_sources(group: GroupSpec, changes: Sequence[Change]) -> None:
    """Checks that a streams group (KIP-1071) with known source topics reads each topic that grows.

    Errors   NotAffected at `changes[i]`.
    """
    sources = [one.source_topics for one in group.subtopologies or ()]
    if not assigns_tasks(group.assignor) or not all(sources):
        return
    for i, change in enumerate(changes):
        if isinstance(change, AddPartitions) and not any(change.topic in one for one in sources):
            raise NotAffected(f"changes[{i}]", f"no subtopology reads topic {quoted(change.topic)}")


def may_stop(group: GroupSpec, changes: Sequence[Change]) -> bool:
    """Returns whether the group is a Streams application that a change stops or may stop."""
    grown = [one for one in changes if isinstance(one, AddPartitions)]
    if group.assignor == STREAM:
        read = {topic for member in group.members for topic in member.topics}
        return any(one.topic in read for one in grown)
    return any(_outgrows(group, one) for one in grown)


def _outgrows(group: GroupSpec, change: AddPartitions) -> bool:
    """Returns whether the change adds tasks although internal topics that exist already fix the
    number of tasks.
    """
    subtopologies = group.subtopologies or ()
    more = [
        one
        for one in subtopologies
        if change.topic in one.source_topics and change.partitions > one.tasks
    ]
    read = [name for one in subtopologies for name in one.source_topics]
    own, end = f"{group.group_id}-", "-repartition"  # of a repartition topic, which Streams names
    repartitions = any(name.startswith(own) and name.endswith(end) for name in read)
    return bool(more) and (repartitions or any(one.stateful for one in more))

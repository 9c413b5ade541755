# SPDX-License-Identifier: Apache-2.0
"""`balanced` as a plug-in of the brokers (KIP-848), which this project's jar adds to them.

1. A plug-in sees the ids of topics and not their names: each topic gets its id as its name.
2. `balanced` assigns. The claim of a member is its present target.
3. The topics get their names back.

Order    topics by the two signed halves of their ids, as `Uuid.compareTo` orders them.
Errors   those of `uuids_of` (`targets.py`).
Mirror   `src/assignors/consumer/balanced.rs`.
Source   tools/balanced-assignor (docs/balance-broker.md); KIP-848.
"""

from dataclasses import replace

from kafka_rebalance.assignors.balance import balanced
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .targets import uuids_of

NAME = f"consumer/{balanced.NAME}"
_SIGN = 1 << 63


def assign(group: GroupSpec) -> Assignment:
    # 1.
    uuids = uuids_of(group, NAME)
    ids = {
        name: f"{most + _SIGN:016x}{least + _SIGN:016x}" for name, (most, least) in uuids.items()
    }
    topics = tuple(replace(topic, name=ids[topic.name]) for topic in group.topics)
    members = tuple(
        replace(
            member,
            topics=tuple(ids[name] for name in member.topics if name in ids),
            owned_partitions=tuple(
                tp._replace(topic=ids[tp.topic]) for tp in member.owned_partitions
            ),
            owned_topics=(),
            generation_id=None,
        )
        for member in group.members
    )
    # 2.
    answer = balanced.assign(group.edited(topics=topics, members=members))
    # 3.
    names = {one: name for name, one in ids.items()}
    return Assignment.of(
        {who: [tp._replace(topic=names[tp.topic]) for tp in owned] for who, owned in answer.items()}
    )

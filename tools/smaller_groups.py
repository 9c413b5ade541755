# SPDX-License-Identifier: Apache-2.0
"""Makes smaller and changed copies of contract lines, to look for the smallest group with a
fault.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

Group = dict[str, Any]  # a contract line


def size(group: Group) -> tuple[int, ...]:
    """Returns the numbers of members, partitions, topics, subscriptions and owned partitions."""
    members = group["members"]
    owned = [len(one["partitions"]) for m in members for one in m.get("owned_partitions", ())]
    partitions = sum(topic["partitions"] for topic in group["topics"])
    subscriptions = sum(len(m["topics"]) for m in members)
    return len(members), partitions, len(group["topics"]), subscriptions, sum(owned)


def parts_left_out(group: Group) -> Iterator[Group]:
    """Yields smaller copies of the group.

    Each lacks one member, subscription, owned partition or topic, or some partitions of a topic.
    """
    for m in range(len(group["members"])):
        yield _edited(group, lambda g, m=m: g["members"].pop(m))
        for topic in group["members"][m]["topics"]:
            yield _edited(group, lambda g, m=m, t=topic: g["members"][m]["topics"].remove(t))
        for o, owned in enumerate(group["members"][m].get("owned_partitions", ())):
            for partition in owned["partitions"]:
                yield _edited(
                    group,
                    lambda g, m=m, o=o, p=partition: g["members"][m]["owned_partitions"][o][
                        "partitions"
                    ].remove(p),
                )
    for t in range(len(group["topics"])):
        yield _edited(group, lambda g, t=t: g["topics"].pop(t))
        count = group["topics"][t]["partitions"]
        for fewer in {1, count // 4} & set(range(1, count)):
            yield _edited(group, lambda g, t=t, n=fewer: _grow(g["topics"][t], -n))


def changed(group: Group, rng: random.Random) -> Group:
    """Returns a copy of the group with one to three random changes."""

    def edit(g: Group) -> None:
        for _ in range(rng.randint(1, 3)):
            topic, member = rng.choice(g["topics"]), rng.choice(g["members"])
            what = rng.randrange(6)
            if what == 0:
                _grow(topic, rng.choice([1, 2, -1, -2, -5]))
            elif what == 1:
                topics = set(member["topics"]) ^ {topic["name"]}
                member["topics"] = sorted(topics)
            elif what == 2:
                other = rng.choice(g["members"])
                swapped = other["member_id"], member["member_id"]
                member["member_id"], other["member_id"] = swapped
            elif what == 3:
                other = rng.choice(g["topics"])
                topic["partitions"], other["partitions"] = other["partitions"], topic["partitions"]
            elif owns(g) and topic["name"] in member["topics"]:
                _own(g, member, topic, rng.randrange(topic["partitions"]), kept=what == 4)

    return _edited(group, edit)


def _edited(group: Group, edit: Any) -> Group:
    """Returns a changed copy, without subscriptions and owned partitions that no longer exist."""
    new = copy.deepcopy(group)
    edit(new)
    counts = {topic["name"]: topic["partitions"] for topic in new["topics"]}
    for member in new["members"]:
        member["topics"] = [t for t in member["topics"] if t in counts]
        for owned in member.get("owned_partitions", ()):
            count = counts.get(owned["topic"], 0) if owned["topic"] in member["topics"] else 0
            owned["partitions"] = [p for p in owned["partitions"] if p < count]
    return new


def _grow(topic: Group, by: int) -> None:
    topic["partitions"] = max(1, topic["partitions"] + by)


def _own(group: Group, member: Group, topic: Group, partition: int, *, kept: bool) -> None:
    for each in group["members"]:
        for owned in each.get("owned_partitions", ()):
            if owned["topic"] == topic["name"] and partition in owned["partitions"]:
                owned["partitions"].remove(partition)
    if kept:
        entry = {"topic": topic["name"], "partitions": [partition]}
        member.setdefault("generation_id", 1)
        member.setdefault("owned_partitions", [])
        same = [o for o in member["owned_partitions"] if o["topic"] == topic["name"]]
        if same:
            same[0]["partitions"] = sorted([*same[0]["partitions"], partition])
        else:
            member["owned_partitions"].append(entry)


def owns(group: Group) -> bool:
    """Returns whether any member owns a partition."""
    return size(group)[4] > 0

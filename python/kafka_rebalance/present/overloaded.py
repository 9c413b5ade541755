# SPDX-License-Identifier: Apache-2.0
"""Finds a member that carries more load than it must, in a group whose weights are known.

The load of a member is the sum of the weights of its partitions, divided by its capacity. The
assignor `weighted`, without a budget, decides whether moves are worth it: for a gain of less than a
tenth, it takes no partition from its owner.
"""

from collections.abc import Iterator

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.registry import WEIGHTED, Engine, shares_partitions
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.notes.note import Note


def has_weights(group: GroupSpec) -> bool:
    return any(weight is not None for topic in group.topics for weight in topic.weights or ())


def overloaded(group: GroupSpec, assignment: Assignment, engine: Engine) -> Iterator[Note]:
    """Yields a finding if a member of the assignment carries more load than it must."""
    if (
        not has_weights(group)
        or group.subtopologies is not None
        or shares_partitions(group.assignor)
    ):
        return
    from kafka_rebalance.assignors.balance.weights import loads_of

    answer = assign(group, f"{WEIGHTED}?budget=none", engine=engine)
    loads = loads_of(group)
    reader = {tp: who for who, owned in answer.items() for tp in owned}
    moves = sum(reader.get(tp) != who for who, owned in assignment.items() for tp in owned)
    (fullest, now), (_, then) = loads.fullest(group, assignment), loads.fullest(group, answer)
    if moves and then < now:
        text = f"the fullest member carries {now:.3g} times the mean load; "
        text += f"{counted(moves, 'move')} would bring it to {then:.3g}"
        detail = {"of_mean": round(now, 3), "moves": moves, "then": round(then, 3)}
        ask = f"plan --assignor {WEIGHTED} --budget none"
        yield Note("overloaded", text, (fullest,), ask=ask, detail=detail)

"""Why an assignor gave a partition to the member that got it, in terms of its own steps.

The reference algorithm is run step by step (the numbers are those of its docstring) and looked at
in between: who holds the partition now, and what the step went by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafka_rebalance.assignors.classic import (
    constrained,
    cooperative_sticky,
    general,
    range,
    round_robin,
    sticky,
)
from kafka_rebalance.assignors.classic.claims import (
    Claims,
    sent_by_cooperative,
    sent_by_sticky,
    settle,
)
from kafka_rebalance.assignors.classic.racks import Racks
from kafka_rebalance.assignors.classic.subscriptions import members_in_order
from kafka_rebalance.assignors.registry import BUILT_IN
from kafka_rebalance.model import GroupSpec, TopicPartition
from kafka_rebalance.order import by_name, static_first

Holdings = Mapping[str, Sequence[TopicPartition]]


def reasons(group: GroupSpec, assignor: str, tp: TopicPartition) -> list[str]:
    """A sentence a step, for an existing partition of a topic that somebody subscribes to."""
    if assignor not in BUILT_IN:
        return [f"{assignor} is not one of Kafka's: nothing is known of its steps"]
    if assignor == "range":
        return list(_range(group, tp))
    if assignor == "roundrobin":
        return list(_round_robin(group, tp))
    return list(_sticky(group, assignor, tp))


def _range(group: GroupSpec, tp: TopicPartition) -> Iterator[str]:
    shares = range.topic_shares(group)
    topic = next(share for share in shares if share.name == tp.topic)
    order = [member.member_id for member in topic.subscribers]
    extras = f", the first {topic.extras} one more" if topic.extras else ""
    yield (
        f"1. {tp.topic} is shared out by itself: {len(topic.unassigned)} partitions to "
        f"{_count(order)}, {topic.share} each{extras}"
    )
    assignment: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    if any(share.needs_racks for share in shares):
        range.assign_with_racks(shares, assignment)
        if holder := _holder(assignment, tp):
            yield f"2. rack pass: {holder} is the first with room for it that is near a replica"
            return
        yield "2. rack pass: nobody with room for it is near a replica"
    range.assign_ranges(topic, lambda _member, _partition: True, assignment)
    holder = _holder(assignment, tp) or ""
    run = [str(p.partition) for p in assignment[holder] if p.topic == tp.topic]
    yield (
        f"3. {holder} is number {order.index(holder) + 1} in the order of ids, static members "
        f"first, and has {tp.topic}[{', '.join(run)}]"
    )


def _round_robin(group: GroupSpec, tp: TopicPartition) -> Iterator[str]:
    counts = group.partition_counts()
    subscribed = {topic for member in group.members for topic in member.topics}
    row = [
        TopicPartition(topic, partition)
        for topic in by_name(subscribed & counts.keys())
        for partition, _ in enumerate([None] * counts[topic])
    ]
    answer = round_robin.assign(group)
    circle = [member.member_id for member in static_first(members_in_order(group))]
    holder = _holder(answer, tp) or ""
    at = row.index(tp)
    yield (
        f"1. {_count(circle)} in a circle, by id, static ones first; partitions in a row, by topic "
        f"and number: this is number {at + 1} of {len(row)}"
    )
    before = (_holder(answer, row[at - 1]) or "") if at else circle[-1]
    start = circle.index(before) + 1
    following = circle[start:] + circle[:start]
    passed = following[: following.index(holder)]
    over = f", passing over {_count(passed)} that do not subscribe to {tp.topic}" if passed else ""
    went = f"{row[at - 1]} went to {before}; " if at else "the circle begins: "
    yield f"2. {went}next comes {holder}{over}"


def _sticky(group: GroupSpec, name: str, tp: TopicPartition) -> Iterator[str]:
    cooperative = name == "cooperative-sticky"
    send = sent_by_cooperative if cooperative else sent_by_sticky
    claims = settle(group, {member.member_id: send(member) for member in group.members})
    claimants = [member_id for member_id, sent in claims.sent.items() if tp in sent.partitions]
    believed = _holder(claims.owned, tp)
    yield f"1. {_claim(claimants, believed, claims, tp)}"
    racks = Racks.of(group, claims)
    if claims.equal_subscriptions:
        yield "2. all subscribe to the same topics: the constrained algorithm"
        yield from _constrained(constrained.Build(name, claims, racks), tp, believed)
    else:
        yield "2. subscriptions differ: the general algorithm"
        yield from _general(_Watched(name, claims, racks, tp), tp, believed)
    if cooperative:
        target = _holder(sticky_target(group, claims), tp)
        if _holder(cooperative_sticky.assign(group), tp) is None and target is not None:
            yield (
                f"3. cooperative: {' and '.join(claimants)} may still be reading it, so nobody is "
                f"given it in this round; it was meant for {target}, and the next assigns anew"
            )


def sticky_target(group: GroupSpec, claims: Claims) -> Holdings:
    """What sticky would answer to the same claims."""
    again = settle(group, claims.sent)
    if again.equal_subscriptions:
        return constrained.assign(sticky.__name__, group, again).assignment
    return general.assign(sticky.__name__, group, again)


def _claim(
    claimants: Sequence[str], believed: str | None, claims: Claims, tp: TopicPartition
) -> str:
    if not claimants:
        return "nobody says that they own it"
    if len(claimants) == 1:
        return f"{claimants[0]} says that it owns it"
    if tp in claims.multiply_owned or believed is None:
        return (
            f"{' and '.join(claimants)} say that they own it, in one generation: none is believed"
        )
    return f"{' and '.join(claimants)} say that they own it; {believed}'s claim is the newest"


def _constrained(
    build: constrained.Build, tp: TopicPartition, believed: str | None
) -> Iterator[str]:
    count = sum(build.claims.counts.values())
    share = f"{build.least}" + (f" or {build.most}" if build.extras else "")
    say = f"constrained 1: {count} partitions to {_count(build.assignment)} make {share} each; "
    build.keep_owned()
    if holder := _holder(build.assignment, tp):
        kept = len(build.assignment[holder])
        yield f"{say}{holder} keeps it, one of the first {kept} of what it owned, by number"
        return
    if believed is None:
        yield f"{say}it has no owner that could keep it"
    elif build.racks.mismatch(believed, tp):
        yield f"{say}{believed} gives it up: no replica is in its rack"
    else:
        owned, kept = len(build.claims.owned[believed]), len(build.assignment[believed])
        yield (
            f"{say}{believed} owned {owned} and keeps the first {kept} by number; "
            "this is not one of them"
        )
    unassigned = build.sort(build.unassigned())
    short = list(build.short)
    yield (
        f"constrained 2, 3: it is one of {len(unassigned)} unassigned partitions, for "
        f"{_count(short)} with fewer than {build.least}"
        + (f" and {_count(build.at_least)} that may have one more" if build.at_least else "")
    )
    if build.racks.active():
        unassigned = build.assign_near(unassigned)
        if holder := _holder(build.assignment, tp):
            yield f"constrained 4: {holder} is the next with room that is near a replica"
            return
        yield "constrained 4: nobody with room is near a replica"
    build.assign_round_robin(unassigned)
    holder = _holder(build.assignment, tp)
    what = "was short" if holder in short else "may have one more"
    yield f"constrained 5: in turn, by id, it falls to {holder}, which {what}"


class _Watched(general.Build):
    """The general algorithm, which tells what happens to one partition."""

    def __init__(self, name: str, claims: Claims, racks: Racks, watched: TopicPartition) -> None:
        super().__init__(name, claims, racks)
        self.watched = watched
        self.told: list[str] = []

    def add(self, member_id: str, tp: TopicPartition) -> None:
        if tp == self.watched and not self.movements.has_any():
            size = len(self.current[member_id])
            rack = " among those near it" if self.racks.active() else ""
            self.told.append(
                f"general 4: {member_id} has the fewest ({size}) of its subscribers{rack}, "
                "ties by id"
            )
        super().add(member_id, tp)

    def move(self, tp: TopicPartition, destination: str) -> None:
        before = self.owner.get(self.watched)
        sizes = {member_id: len(owned) for member_id, owned in self.current.items()}
        super().move(tp, destination)
        after = self.owner.get(self.watched)
        if before != after and before is not None and after is not None:
            self.told.append(
                f"general 6: {before} has {sizes[before]}, {after} has {sizes[after]}: it moves "
                f"to {after}"
            )


def _general(build: _Watched, tp: TopicPartition, believed: str | None) -> Iterator[str]:
    build.sort_partitions()
    build.remember_previous()
    unassigned = build.keep_owned()
    initializing = not any(build.current.values())
    if holder := _holder(build.current, tp):
        yield f"general 3: {holder} keeps it for now"
    elif believed is not None:
        why = "no replica is in its rack"
        if tp.topic not in build.topics_of[believed]:
            why = f"it does not subscribe to {tp.topic} any more"
        yield f"general 3: {believed} gives it up: {why}"
    else:
        yield "general 3: it has no owner that could keep it"
    build.assign_unassigned(unassigned)
    build.take_out_fixed()
    if holder := _holder(build.fixed, tp):
        yield from build.told
        yield f"general 5: {holder} takes no part in balancing: all that it has is its own"
        return
    target = _holder(build.current, tp)
    build.balance(unassigned, initializing=initializing)
    yield from build.told
    holder = _holder(build.current, tp)
    if holder != build.owner.get(tp):
        yield f"general 7: that did not lower the score and is undone: it stays with {holder}"
    elif holder == target:
        yield f"general 6: balancing leaves it with {holder}"


def _holder(assignment: Holdings, tp: TopicPartition) -> str | None:
    return next((member_id for member_id, owned in assignment.items() if tp in owned), None)


def _count(members: Iterable[str]) -> str:
    count = len(list(members))
    return f"{count} member{'' if count == 1 else 's'}"

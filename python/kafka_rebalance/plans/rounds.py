# SPDX-License-Identifier: Apache-2.0
"""Plays one rebalance after another, until a group has settled.

    eager         all members revoke all partitions, join, and get new ones: one round
    cooperative   members keep reading while the leader assigns. A member that loses partitions
                  revokes them and joins again; the next round assigns them

1. Cooperative members revoke partitions of topics to which they no longer subscribe, and claim the
   others. Eager members claim their whole last assignment. Members claim nothing after a change of
   assignor, or if they are eager with an assignor that also supports the cooperative protocol: such
   an assignor reads claims from the subscription's own field, which eager members leave empty.
   During a bounce to another assignor, the members in `forgets` are eager in a cooperative group.
2. The leader's assignor computes the answer. Another library's assignor visits the members in the
   order of the broker's hash map. `balanced` and `weighted` withhold nothing themselves: the leader
   withholds a partition that another member claims, and in the next round assigns the partitions
   that it withheld. Members of aiokafka are eager with both.
3. Compare the answer with the partitions held before: kept, revoked and gained partitions.
4. Find the partitions that no member reads in this round: all in an eager round, the unclaimed ones
   in a cooperative round.
5. The members hold the answer's partitions, in a new generation. A cooperative member that loses
   some of its claims joins again.

A cooperative group with racks may never settle: `play` stops when an assignment occurs a second
time, or after `MOST_ROUNDS` rounds. Mirror: `src/plans/rounds.rs`.

Source   ConsumerCoordinator: onJoinPrepare, metadata, onJoinComplete, its constructor (Kafka
         4.4.0). CooperativeStickyAssignor.memberData; KIP-429.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.classic.subscriptions import members_in_order
from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.librdkafka.subscriptions import reported
from kafka_rebalance.assignors.registry import (
    OURS,
    SERVER_SIDE,
    Engine,
    bare,
    library_of,
    protocol_name,
    protocol_of,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import MAX_INT32
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.ownership import Assignment, Delta
from kafka_rebalance.group.spec import GroupSpec, counted

from .clients import lists_eager_plug_in

MOST_ROUNDS = 100


class LazyFields:
    """The base of frozen dataclasses with slots whose fields are computed at their first use."""

    __slots__ = ("_computed",)

    _computed: dict[str, Callable[[], Any]]

    @classmethod
    def lazy(cls, **computed: Callable[[], Any]) -> Self:
        value = cls.__new__(cls)
        object.__setattr__(value, "_computed", computed)
        return value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for a field whose slot has no value yet.
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            found = self._computed[name]()
            object.__setattr__(self, name, found)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Round(LazyFields):
    """One rebalance.

    `group`          the group as the leader sees it: the members with their claims.
    `assignor`       the name of the assignor that answers.
    `generation_id`  the generation that the rebalance creates.
    `held`           the partitions that the members held at the beginning; `delta` is the
                     difference between them and `assignment`.
    `withheld`       partitions that members revoke in this round, listed by the member that gains
                     them later.
    `unavailable`    the partitions that no member reads during the round, by topic and partition.
    """

    group: GroupSpec = field(repr=False)
    assignor: str
    generation_id: int
    protocol: RebalanceProtocol
    held: Assignment = field(repr=False)
    assignment: Assignment = field(repr=False)
    delta: Delta
    withheld: Assignment = field(repr=False)
    unavailable: tuple[TopicPartition, ...] = field(repr=False)

    def _repr_html_(self) -> str:
        without = counted(len(self.unavailable), "partition")
        title = f"generation {self.generation_id}, {self.kind}: {without} without a reader"
        return f"<p>{title}</p>{self.delta._repr_html_()}"

    @property
    def kind(self) -> str:
        """Returns "eager", "cooperative", or "broker" for a target that the broker computes."""
        return "broker" if self.assignor in SERVER_SIDE else self.protocol.name.lower()

    @property
    def moves(self) -> int:
        """Returns the number of partitions that members gain in this round."""
        return self.delta.moves

    @property
    def kept(self) -> Assignment:
        """Returns partitions held both before and after; eager members revoke them in between."""
        return self.delta.kept

    @property
    def revoked(self) -> Assignment:
        """Returns the partitions held before the round and not after it, by member."""
        return self.delta.revoked

    @property
    def gained(self) -> Assignment:
        """Returns the partitions held after the round and not before it, by member."""
        return self.delta.gained

    @property
    def standby(self) -> Delta | None:
        """Returns the changes of standby tasks; None if the group is not a streams group."""
        held, assigned = self.held.standby, self.assignment.standby
        return None if held is None or assigned is None else assigned - held


@dataclass(frozen=True, slots=True)
class Step(LazyFields):
    """One event and the rounds that it causes, if any.

    `before` is the group when the rounds begin, `after` when they end, both with the partitions
    that the members hold. `origins` maps each id that a member has had so far to its id at the
    beginning of the plan, for members that existed then. `waiting` are partitions whose member is
    down before any round, `leaderless` are partitions that lose all replicas
    (`changes.edits.Edited`).
    """

    cause: str
    before: GroupSpec = field(repr=False)
    after: GroupSpec = field(repr=False)
    rounds: tuple[Round, ...]
    settled: bool
    origins: dict[str, str] = field(repr=False, hash=False)
    waiting: tuple[TopicPartition, ...] = field(default=(), repr=False)
    leaderless: tuple[TopicPartition, ...] = field(default=(), repr=False)


class Played(NamedTuple):
    """The rounds that were played, the group after them, and whether it has settled."""

    rounds: tuple[Round, ...]
    group: GroupSpec
    settled: bool


def lists_eager(group: GroupSpec, assignor: str) -> bool:
    """Returns whether the group's members are eager although this assignor supports the cooperative
    protocol.

    False if the group's own assignor has another protocol name: members list only `assignor` then.

    Errors   GroupError at `rebalance_protocol` if the group is cooperative and the assignor eager.
    """
    own = group.assignor
    if own is None or assignor in SERVER_SIDE or protocol_name(own) != protocol_name(assignor):
        return False
    is_cooperative = protocol_of(assignor) is RebalanceProtocol.COOPERATIVE
    if group.rebalance_protocol == "cooperative" and not is_cooperative:
        problem = f"{quoted(assignor)} supports only {quoted('eager')}"
        raise GroupError("rebalance_protocol", problem)
    return is_cooperative and group.rebalance_protocol == "eager"


def play(
    group: GroupSpec,
    assignor: str,
    *,
    starts_over: bool,
    forgets: Collection[str] = (),
    engine: Engine,
) -> Played:
    """Plays rounds until the group has settled.

    If `starts_over`, as for a change of assignor, members revoke all partitions and claim none.
    `forgets` are ids of eager members of a cooperative group; they claim nothing.
    """
    starts_over = starts_over or lists_eager(group, assignor)
    eager = starts_over or lists_eager_plug_in(group, assignor)
    protocol = RebalanceProtocol.EAGER if eager else protocol_of(assignor)
    rounds: list[Round] = []
    seen, settled = set[Any](), False
    target: Assignment | None = None
    while not settled and len(rounds) < MOST_ROUNDS:
        # 1.
        held = Assignment.owned(group)
        sent = claiming(group, assignor, protocol, starts_over=starts_over, forgets=forgets)
        claimed = Assignment.owned(sent)
        # 2.
        assignment = target or _answer(sent, group, assignor, engine)
        if bare(assignor) in OURS and protocol is RebalanceProtocol.COOPERATIVE:
            target, assignment = assignment, _withholding(sent, assignment)
        # 3.
        delta = assignment - held
        # 4.
        reading = claimed if protocol is RebalanceProtocol.COOPERATIVE else Assignment.of({})
        generation_id = next_generation(group)
        rounds.append(
            Round(
                group=sent,
                assignor=assignor,
                generation_id=generation_id,
                protocol=protocol,
                held=held,
                assignment=assignment,
                delta=delta,
                withheld=Assignment.of({}),
                unavailable=without_reader(group, reading),
            )
        )
        # 5.
        group = group.owning(as_claimed(assignor, assignment), generation_id=generation_id)
        loses = (assignment - claimed).revoked.partitions
        settled = protocol is RebalanceProtocol.EAGER or not loses
        state = tuple(member.owned_partitions for member in group.members)
        if state in seen:
            break
        seen.add(state)
    return Played(tuple(_with_withheld(rounds)), group, settled)


def _answer(sent: GroupSpec, group: GroupSpec, assignor: str, engine: Engine) -> Assignment:
    """Returns the answer for the group as it is `sent` to the leader, with members in the order of
    `group`.
    """
    answer = assign(sent, assignor, engine=engine)
    if not library_of(assignor):
        return answer
    members = {one.member_id: answer[one.member_id] for one in group.members}
    return Assignment.of(members, answer.anomalies)


def _withholding(group: GroupSpec, target: Assignment) -> Assignment:
    """Returns the target without those partitions that a member gains and another one claims."""
    claimed = {tp for member in group.members for tp in member.owned_partitions}
    given = {
        one.member_id: (claimed.difference(one.owned_partitions), target[one.member_id])
        for one in group.members
    }
    return Assignment.of(
        {who: [tp for tp in owned if tp not in others] for who, (others, owned) in given.items()}
    )


def _with_withheld(rounds: Sequence[Round]) -> Iterator[Round]:
    for one, later in pairwise(rounds):
        given_up = {tp for owned in one.revoked.values() for tp in owned}
        given_up.difference_update(tp for owned in one.assignment.values() for tp in owned)
        yield replace(one, withheld=gained_of(later.delta, given_up))
    yield rounds[-1]


def gained_of(delta: Delta, partitions: Collection[TopicPartition]) -> Assignment:
    """Returns, by member, which of the `partitions` it gains."""
    return Assignment.of(
        {m: [tp for tp in owned if tp in partitions] for m, owned in delta.gained.items()}
    )


def claiming(
    group: GroupSpec,
    assignor: str | None,
    protocol: RebalanceProtocol,
    *,
    starts_over: bool,
    forgets: Collection[str] = (),
) -> GroupSpec:
    """Returns the group with the claims that its members send to the leader."""
    if library_of(assignor):
        group = group.edited(members=tuple(members_in_order(group)))
    if starts_over or forgets:
        empty = (starts_over or one.member_id in forgets for one in group.members)
        pairs = zip(group.members, empty, strict=True)
        group = group.edited(members=tuple(one.owning() if bare else one for one, bare in pairs))
    if starts_over or protocol is RebalanceProtocol.EAGER:
        return group
    return _still_subscribed(group)


def as_claimed(
    assignor: str | None, assignment: Assignment
) -> Mapping[str, Sequence[TopicPartition]]:
    """Returns the assignment, with each member's partitions in the order of its next claim."""
    if library_of(assignor) != "librdkafka":
        return assignment
    return {member_id: reported(owned) for member_id, owned in assignment.items()}


def _still_subscribed(group: GroupSpec) -> GroupSpec:
    if all(tp.topic in m.topics for m in group.members for tp in m.owned_partitions):
        return group
    members = []
    for member in group.members:
        topics = frozenset(member.topics)
        owned = tuple(tp for tp in member.owned_partitions if tp.topic in topics)
        members.append(replace(member, owned_partitions=owned))
    return group.edited(members=tuple(members))


def without_reader(group: GroupSpec, reading: Assignment) -> tuple[TopicPartition, ...]:
    """Returns the subscribed partitions that are not in `reading`."""
    read = {tp for owned in reading.values() for tp in owned}
    return tuple(tp for tp in subscribed_partitions(group) if tp not in read)


def subscribed_partitions(group: GroupSpec) -> Iterator[TopicPartition]:
    """Yields every partition whose topic has a subscriber, in the group's order of topics.

    For a streams group, yields every task instead.
    """
    for one in group.subtopologies or ():
        for number in range(one.tasks):
            yield TopicPartition(one.subtopology_id, number)
    subscribed = {topic for member in group.members for topic in member.topics}
    for topic in group.topics:
        if topic.name in subscribed:
            for partition in range(topic.partitions):
                yield TopicPartition(topic.name, partition)


def unsubscribed(before: GroupSpec, after: GroupSpec) -> tuple[TopicPartition, ...]:
    """Returns the partitions of topics that lose their last subscriber, but still exist.

    A streams group has none: each of its members can run every task.
    """
    if before.subtopologies is not None:
        return ()
    had, have = ({t for one in group.members for t in one.topics} for group in (before, after))
    return tuple(
        TopicPartition(topic.name, partition)
        for topic in after.topics
        if topic.name in had - have
        for partition in range(topic.partitions)
    )


def next_generation(group: GroupSpec) -> int:
    """Returns the number of the next rebalance's generation, or of its group epoch."""
    known = [group.generation_id, *(member.generation_id for member in group.members)]
    return min(1 + max(0, *(generation_id or 0 for generation_id in known)), MAX_INT32)

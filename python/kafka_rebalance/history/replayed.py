# SPDX-License-Identifier: Apache-2.0
"""Computes each recorded rebalance again, from the inputs in its record.

1. Members are made from the bytes that they sent, in the order of the record.
2. Partition counts are tried in turn. The first are the inventory's, if the record fits them; the
   next are the smallest that the record needs (one more than the highest partition of each topic
   that was assigned or claimed). The last are the smallest ones without topics that are neither
   assigned nor subscribed by the leader. A new leader may lack the metadata of such topics, and
   then does not assign them even if members claim them. The real counts of that time may differ
   from all of these.
3. If the leader wrote librdkafka's format, the assignor is librdkafka's. If it wrote the format of
   the Python libraries, Kafka's is tried first, because it is quick and usually returns the same
   answer; then the assignors that the leader's library may use, as in a plan (`plans/leaders.py`).
   If the library is not installed, that is an error. Otherwise the assignor is Kafka's: a leader
   with one of our plug-ins writes Java's format.
4. The answer is compared partition by partition. If the leader writes Java's format, the order of
   each member's partitions is compared, too.

The first equal answer counts. If none is equal, the result shows the first difference from the
assignor of the leader's library. An error of that assignor ends the attempts at once. A record
shows neither the racks of partitions, nor the fields that a leader ignored.

kafka-python's sticky assignor reads the generation and the partitions in its own user data, and the
order of topics in a subscription: a record contains all of them. It lacks only the order of a
Python set, which this assignor follows if members claim a partition in two generations.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from kafka_rebalance.assignors.assigning import assign
from kafka_rebalance.assignors.registry import BUILT_IN, Engine, is_known, library_of
from kafka_rebalance.errors import KafkaRebalanceError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import each_of
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.leaders import possible_dialects
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.sent_members import sent_member

from .epoch_inputs import EpochInputs
from .group_log import CONSUMER, RecordedGeneration

Owners = Mapping[str, Sequence[TopicPartition]]

ASSIGNMENTS, INVENTORY, ASSIGNED = "assignments", "inventory", "assigned topics"
_OWN_USER_DATA = ("kafka-python/sticky",)
"""Assignors that read user data which Kafka's assignor of the same name cannot read."""


class ReplayedRebalance(Frozen):
    """A recorded rebalance, compared with the computed one.

    `equal`       None if no answer could be computed: `difference` is then the reason.
    `computed_by` the assignor that was run; `counts` is the source of the partition counts.
    `difference`  the first member and partition that differ; `likely` is the likely cause.
    """

    group_id: str
    generation_id: int
    time_ms: int
    protocol: str | None
    leader_library: str | None
    equal: bool | None
    computed_by: str = ""
    counts: str = ""
    difference: str = ""
    likely: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class ReplayShare(NamedTuple):
    """How many replayed rebalances are equal, for one assignor and one library of the leader."""

    protocol: str
    leader_library: str
    equal: int
    computed: int
    not_computed: int


def replay(
    generations: Iterable[RecordedGeneration],
    topics: Iterable[Topic] = (),
    *,
    engine: Engine = "rust",
) -> list[ReplayedRebalance]:
    """Computes each rebalance of consumers again, and each target that a broker computed.

    Records without members, second records of one generation, and group epochs that another epoch
    followed before their targets were computed are left out.

    Errors   TypeError at `generations` or `topics` for anything else.
    """
    topics = tuple(each_of(topics, "topics", Topic, "Topic(name, partitions) makes one"))
    inventory = {topic.name: topic for topic in topics}
    last: dict[str, int] = {}
    found = []
    made = "each row of recorded_generations has one, or None, as its second part"
    for one in each_of(generations, "generations", RecordedGeneration, made):
        if one.group_type != "classic":
            if one.inputs is not None and (one.owners or not one.inputs.has_tasks):
                found.append(_replayed_epoch(one, one.inputs, topics, engine))
            continue
        is_again = last.get(one.group_id) == one.generation_id
        last[one.group_id] = one.generation_id
        if one.members and not is_again and one.protocol_type == CONSUMER:
            found.append(_replayed(one, inventory, engine))
    return found


def _replayed_epoch(
    one: RecordedGeneration, inputs: EpochInputs, inventory: Sequence[Topic], engine: Engine
) -> ReplayedRebalance:
    """Compares the targets of a group epoch with those that each possible assignor computes."""
    first: ReplayedRebalance | None = None
    for name in one.assignors:
        place = (one.group_id, one.generation_id, one.joined_ms, name, "broker")
        try:
            group = inputs.group(one.group_id, name, inventory)
            difference = inputs.difference(group, assign(group, engine=engine))
        except KafkaRebalanceError as error:
            return ReplayedRebalance(*place, None, name, ASSIGNMENTS, str(error))
        if not difference:
            return ReplayedRebalance(*place, True, name, ASSIGNMENTS)
        first = first or ReplayedRebalance(*place, False, name, ASSIGNMENTS, difference)
    assert first is not None
    return first


def replay_shares(replayed: Iterable[ReplayedRebalance]) -> list[ReplayShare]:
    """Returns how many rebalances are equal, for each assignor and library of the leader, by name.

    Errors   TypeError at `replayed` for anything else.
    """
    counts: Counter[tuple[str, str, bool | None]] = Counter(
        (one.protocol or "none", one.leader_library or "unknown", one.equal)
        for one in each_of(replayed, "replayed", ReplayedRebalance, "replay returns them")
    )
    return [
        ReplayShare(
            protocol, library, equal := counts[protocol, library, True],
            equal + counts[protocol, library, False], counts[protocol, library, None],
        )
        for protocol, library in sorted({name[:2] for name in counts})
    ]  # fmt: skip


def recorded_group(
    one: RecordedGeneration, topics: Sequence[Topic], assignor: str | None = None
) -> GroupSpec:
    """Returns the group as its leader's assignor read it. Errors: GroupError."""
    members = tuple(
        sent_member(
            member.member_id,
            member.subscription,
            assignor if assignor in _OWN_USER_DATA else one.protocol or "",
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
        )
        for member in one.members
        if member.subscription is not None
    )
    return GroupSpec(
        one.group_id,
        tuple(topics),
        members,
        assignor or one.protocol,
        one.generation_id,
        leader_library=one.leader_library,
    )


def _replayed(
    one: RecordedGeneration, inventory: Mapping[str, Topic], engine: Engine
) -> ReplayedRebalance:
    place = (
        one.group_id, one.generation_id, one.joined_ms, one.protocol, one.leader_library
    )  # fmt: skip
    if any(member.subscription is None for member in one.members):
        return ReplayedRebalance(*place, None, difference="a member's bytes cannot be read")
    try:
        names = _assignors(one)
    except KafkaRebalanceError as error:  # a record may hold any numbers
        return ReplayedRebalance(*place, None, difference=str(error))
    if not names:
        return ReplayedRebalance(*place, None, difference=f"no assignor {one.protocol} is known")
    first: ReplayedRebalance | None = None
    for name in names:
        is_librarys = len(names) == 1 or name != one.protocol
        for counts, topics in _topics(one, inventory):
            try:
                group = recorded_group(one, topics, name)
                difference = _difference(one, dict(assign(group, engine=engine)))
            except KafkaRebalanceError as error:
                if is_librarys:
                    return ReplayedRebalance(*place, None, name, counts, str(error))
                continue
            if not difference:
                return ReplayedRebalance(*place, True, name, counts)
            if first is None and is_librarys:
                likely = _likely(one, group, engine)
                first = ReplayedRebalance(*place, False, name, counts, difference, likely)
    assert first is not None
    return first


def _assignors(one: RecordedGeneration) -> list[str]:
    """Returns the known assignors to try for this record; of several, Kafka's own is the first."""
    name = one.protocol or ""
    if one.leader_library == "librdkafka":
        return [own for own in [f"librdkafka/{name}"] if is_known(own)]
    if not is_known(name):
        return []
    if one.leader_library != "python":
        return [name]
    (_, topics), *_ = _topics(one, {})
    group = recorded_group(one, topics).edited(leader=one.leader)
    return list(dict.fromkeys([name, *possible_dialects(group)]))


def _topics(
    one: RecordedGeneration, inventory: Mapping[str, Topic]
) -> Iterator[tuple[str, list[Topic]]]:
    needed = one.partition_counts
    known = {name: inventory[name] for name in one.topics if name in inventory}
    if known and all(known[name].partitions >= n for name, n in needed.items() if name in known):
        others = [Topic(name, n) for name, n in needed.items() if name not in known]
        yield INVENTORY, [*known.values(), *others]
    racks = {name: topic.racks for name, topic in known.items()}
    smallest = []
    for name in sorted(needed):
        rows = racks.get(name)
        smallest.append(Topic(name, needed[name], rows[: needed[name]] if rows else None))
    yield ASSIGNMENTS, smallest
    leader = one.by_id.get(one.leader or "")
    known_to_leader = {tp.topic for tp in one.owners} | (leader.topics if leader else set())
    if not needed.keys() <= known_to_leader:
        yield ASSIGNED, [topic for topic in smallest if topic.name in known_to_leader]


def _difference(one: RecordedGeneration, answer: Owners) -> str:
    """Returns the answer's first difference from the record in words; "" if there is none."""
    for member in one.members:
        given = list(member.assignment.partitions) if member.assignment else []
        computed = wire.by_topic(answer.get(member.member_id, ()))
        listed = [TopicPartition(t, p) for t, numbers in computed.items() for p in numbers]
        if set(given) != set(listed):
            more, less = sorted(set(given) - set(listed)), sorted(set(listed) - set(given))
            parts = [f"was given {tp}" for tp in more[:1]] + [f"computed {tp}" for tp in less[:1]]
            return f"{member.member_id}: {', '.join(parts)}"
        if given != listed and one.leader_library == "java":
            return f"{member.member_id}: the order of its partitions"
    return ""


def _likely(one: RecordedGeneration, group: GroupSpec, engine: Engine) -> str:
    """Returns the likely cause of a difference, for example a field that the leader ignored."""
    for words, fields in _IGNORED.items():
        members = tuple(replace(member, **fields) for member in group.members)
        with suppress(KafkaRebalanceError):  # the assignor refuses or fails without these fields
            if not _difference(one, dict(assign(group.edited(members=members), engine=engine))):
                return f"equal if the leader ignored {words}"
    if group.assignor in _OWN_USER_DATA and _is_claimed_in_two_generations(group):
        return (
            "members claim a partition in two generations; the class then follows the order of a "
            "Python set, which is not in the record"
        )
    if _lacks_racks(group):
        return (
            "members sent racks, and records lack those of partitions; give the topics with their "
            "racks (--topics)"
        )
    library = library_of(group.assignor)
    if one.leader_library not in (None, "java") and library is None:
        return f"the leader used an assignor of another library ({one.leader_library})"
    text = "the leader knew other partition counts, or other topics"
    return text if library is None else f"{text}, or ran another version of {library}"


def _lacks_racks(group: GroupSpec) -> bool:
    """Returns whether the assignor reads racks and members sent racks, but no topic has any."""
    row = BUILT_IN.get(group.assignor or "")
    sent = any(member.rack_id for member in group.members)
    return sent and not (row and row.ignores_racks) and not any(t.racks for t in group.topics)


def _is_claimed_in_two_generations(group: GroupSpec) -> bool:
    claims = defaultdict(set)
    for member in group.members:
        of = (member.generation_id, member.user_data_generation_id)
        for tp in member.owned_partitions:
            claims[tp].add(of)
    return any(len(generations) > 1 for generations in claims.values())


_IGNORED: dict[str, dict[str, Any]] = {
    "generations": {"generation_id": None, "user_data_generation_id": None},
    "claims": {"owned_partitions": ()},
    "racks": {"rack_id": None},
    "instance ids": {"group_instance_id": None},
}

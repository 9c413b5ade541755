# SPDX-License-Identifier: Apache-2.0
"""Plays a group's recorded sequence of events under another assignor, or with static members.

1. An event is a record whose members, subscriptions or partition counts differ from those before,
   or a rebalance that a member asked for. Other records are skipped, such as records of second
   rounds: the play computes its own rounds (`plans/rounds.py`, as `plan` plays them).
2. With static membership, a member that came back within the session timeout stays in the group:
   nobody reads its partitions while it is away, and its return causes no rebalance.
3. After each event, the members rebalance until they have settled. They own the partitions that
   the play assigned to them, not those in the record.

4. A consumer group (KIP-848) is also played under the brokers' assignors, by the rounds of
   `plans/broker_rounds.py`. Share and streams groups have only one assignor: they are omitted.

The inventory holds each topic's number of partitions. If the records up to an event's follow-ups
contain higher partition numbers, or the inventory lacks the topic, the least fitting number counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from kafka_rebalance.assignors.registry import KAFKAS, Engine
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import each_of
from kafka_rebalance.group.model import Member, Topic, TopicPartition
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.broker_rounds import play_by_broker
from kafka_rebalance.plans.rounds import Round, play

from .all_groups import Recorded
from .epoch_inputs import id_of
from .group_log import RecordedMember
from .patterns import away_ms, session_for

_BROKERS = ("consumer/uniform", "consumer/range")
_NO_EVENTS = ("second round", "probing", "follow-up", "static restart", "written again")


class Counterfactual(Frozen):
    """One group's recorded events, played under one assignor.

    `rebalances`   the number of rounds, second rounds of cooperative members included.
    `moves`        the partitions that members gained, in all rounds together
    `unavailable`  the partitions that nobody read during a round, in all rounds together
    `waiting`      the partitions that waited for static members that were away
    `settled`      False if the play of an event did not settle.
    """

    group_id: str
    assignor: str
    is_static: bool
    session_ms: int | None
    events: int
    rebalances: int
    moves: int
    unavailable: int
    waiting: int
    settled: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_Topics = Mapping[str, frozenset[str]]  # member id in the play -> topics


class _Event(NamedTuple):
    """The members and topics from a record on. If not `rebalances`, only `away` differs from that
    of the event before.
    """

    members: tuple[Member, ...]
    topics: tuple[Topic, ...]
    away: frozenset[str]
    rebalances: bool


def counterfactuals(
    recorded: Recorded,
    topics: Iterable[Topic] = (),
    *,
    engine: Engine = "rust",
) -> list[Counterfactual]:
    """Plays one group's records under each assignor that it can use, without and with static
    members.

    The plays with static members are left out if no member came back. The session timeout of static
    members is the shortest that covers 95% of the recorded absences.

    Errors   TypeError at `recorded` or `topics` for anything else; GroupError for a share or
             streams group, and for a consumer group with a pattern or an unknown topic name.
    """
    pairs = "recorded_generations returns pairs, of a row and its generation"
    recorded = [*each_of(recorded, "recorded", tuple, pairs)]
    topics = each_of(topics, "topics", Topic, "Topic(name, partitions) makes one")
    inventory = _ids(recorded) | {topic.name: topic for topic in topics}
    back = [one for row, _ in recorded for one in row.back]
    sessions = [None, session_for(back)] if back else [None]
    assignors = _assignors(recorded)
    return [
        _played(recorded, inventory, assignor, session_ms, engine)
        for session_ms in sessions
        for assignor in assignors
    ]


def _ids(recorded: Recorded) -> dict[str, Topic]:
    """Returns name -> topic of a consumer group, with the ids that a broker's assignor reads."""
    inputs = [one.inputs for _, one in recorded if one is not None and one.inputs is not None]
    names = inputs[-1].names if inputs else {}
    return {name: Topic(name, 0, None, id_of(one)) for one, name in names.items()}


def _assignors(recorded: Recorded) -> Sequence[str]:
    """Returns the assignors to play. Errors: as in `counterfactuals`."""
    found = [one for _, one in recorded if one is not None and one.group_type != "classic"]
    if not found:
        return KAFKAS
    kind = found[-1].group_type
    if kind != "consumer":
        raise GroupError("group_type", f"a {kind} group has one assignor, so nothing is played")
    if any(not {tp.topic for tp in one.owners} <= one.topics for one in found):
        problem = "subscribed by a pattern, or its name is in no record, so nothing is played"
        raise GroupError("topics", f"a topic is {problem}")
    return (*KAFKAS, *_BROKERS)


def _played(
    recorded: Recorded,
    inventory: Mapping[str, Topic],
    assignor: str,
    session_ms: int | None,
    engine: Engine,
) -> Counterfactual:
    group_id = recorded[0][0].group_id
    held: Mapping[str, Sequence[TopicPartition]] = {}
    away: frozenset[str] = frozenset()
    generation_id = events = waiting = 0
    rounds: list[Round] = []
    settled = True
    for event in _events(recorded, inventory, session_ms):
        waiting += sum(len(held.get(name, ())) for name in event.away - away)
        away = event.away
        if not event.rebalances:
            continue
        events += 1
        if not event.members:
            held = {}
            continue
        group = GroupSpec(group_id, event.topics, event.members, assignor)
        names = {topic.name for topic in event.topics}
        owned = {
            one.member_id: [tp for tp in held.get(one.member_id, ()) if tp.topic in names]
            for one in event.members
        }
        group = group.owning(owned, generation_id=generation_id)
        if assignor in _BROKERS:
            members = tuple(
                one if one.member_id in held else replace(one, generation_id=None)
                for one in group.members
            )
            played = play_by_broker(group.edited(members=members), eager=(), engine=engine)
        else:
            played = play(group, assignor, starts_over=False, engine=engine)
        rounds += played.rounds
        settled = settled and played.settled
        held = {member.member_id: member.owned_partitions for member in played.group.members}
        generation_id = played.rounds[-1].generation_id
    return Counterfactual(
        group_id,
        assignor,
        session_ms is not None,
        session_ms,
        events,
        len(rounds),
        sum(one.moves for one in rounds),
        sum(len(one.unavailable) for one in rounds),
        waiting,
        settled,
    )


def _events(
    recorded: Recorded, inventory: Mapping[str, Topic], session_ms: int | None
) -> Iterator[_Event]:
    """Yields the events of the play, with each member under the id from `_static_names`."""
    names, absent = _static_names(recorded, session_ms)
    counts: dict[str, int] = {}
    present: dict[str, Member] = {}
    before: tuple[_Topics, dict[str, int]] = ({}, {})
    away: frozenset[str] = frozenset()
    for place, (row, one) in enumerate(recorded):
        if one is None or row.again or row.cause in (*_NO_EVENTS, "created"):
            continue
        down = {name: present[name] for name in absent[place] if name in present}
        here = {names[m.member_id]: _plain(m, names[m.member_id]) for m in one.members}
        present = {**down, **here}
        counts = {**counts, **_needed(recorded, place, counts)}
        state: _Topics = {name: frozenset(member.topics) for name, member in present.items()}
        subscribed = frozenset().union(*state.values())
        known = {name: count for name, count in counts.items() if name in subscribed}
        changed = (state, known) != before or row.cause == "requested"
        if changed or frozenset(down) != away:
            topics = tuple(_topic(inventory, *item) for item in sorted(known.items()))
            yield _Event(tuple(present.values()), topics, frozenset(down), changed)
        before, away = (state, known), frozenset(down)


def _static_names(
    recorded: Recorded, session_ms: int | None
) -> tuple[dict[str, str], dict[int, list[str]]]:
    """Returns member id -> id in the play, and record index -> ids of members that are away."""
    names: dict[str, str] = {}
    instances: dict[str, str] = {}
    last_seen: dict[str, int] = {}
    absent: dict[int, list[str]] = defaultdict(list)
    for place, (row, one) in enumerate(recorded):
        returned = {back.new: back for back in row.back}
        for member in one.members if one is not None else ():
            if member.member_id not in names:
                name = member.member_id
                back = returned.get(name)
                if back is not None and session_ms is not None and away_ms(back) <= session_ms:
                    name = names.get(back.old, name)
                    for between in range(last_seen.get(back.old, place) + 1, place):
                        absent[between].append(name)
                elif back is None and member.group_instance_id is not None:
                    name = instances.get(member.group_instance_id, name)
                names[member.member_id] = name
            if member.group_instance_id is not None:
                instances[member.group_instance_id] = names[member.member_id]
            last_seen[member.member_id] = place
    return names, absent


def _needed(recorded: Recorded, place: int, counts: Mapping[str, int]) -> dict[str, int]:
    """Returns topic -> number of partitions that this record and its follow-ups need."""
    needed: dict[str, int] = {}
    for row, one in recorded[place:]:
        if one is None or (needed and row.cause not in _NO_EVENTS):
            break
        for topic, count in one.partition_counts.items():
            needed[topic] = max(count, needed.get(topic, 0), counts.get(topic, 0))
    return needed


def _plain(member: RecordedMember, name: str) -> Member:
    sent = member.subscription
    return Member(
        name,
        sent.topics if sent is not None else (),
        member.group_instance_id,
        member.client_id,
        member.client_host,
        rack_id=sent.rack_id if sent is not None else None,
    )


def _topic(inventory: Mapping[str, Topic], name: str, needed: int) -> Topic:
    known = inventory.get(name) or Topic(name, 0)
    return known if known.partitions >= needed else Topic(name, needed, None, known.topic_id)

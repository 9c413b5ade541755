# SPDX-License-Identifier: Apache-2.0
"""Without a broker: the judges of tests/prediction accept right answers and find wrong ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic, TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire
from kafka_rebalance.wire.group_records import GroupMetadataValue, MemberMetadata, encode_value
from tests.prediction import given, report, told
from tests.prediction.cast import (
    AIOKAFKA,
    JAVA,
    KAFKA_PYTHON,
    LIBRARIES,
    SESSION_MS,
    casts,
    next_name,
)
from tests.prediction.events import EVENTS, SWITCH, deck, draw
from tests.prediction.given import Verdict
from tests.prediction.log import Written, generations
from tests.prediction.observed import Inventory, Observed
from tests.prediction.result import result
from tests.prediction.settle import Expected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.prediction.told import Told

T = Topic("t", 4)
U = Topic("u", 3)


def member(
    name: str, *owned: tuple[str, int], generation_id: int | None = None, **more: Any
) -> Member:
    claims = tuple(TopicPartition(*tp) for tp in owned)
    fields: dict[str, Any] = {"topics": ("t", "u"), "client_id": name[:-2], **more}
    return Member(name, owned_partitions=claims, generation_id=generation_id, **fields)


def written(
    group: GroupSpec,
    answer: Mapping[str, Sequence[tuple[str, int]]] | None = None,
    *,
    subscription_version: int = 3,
) -> Written:
    """Makes a group's record after the leader assigned `answer`, by default Kafka's answer."""
    assert group.assignor
    assert group.generation_id is not None
    answer = kr.assign(group) if answer is None else answer
    members = []
    for n, one in enumerate(group.members, 1):
        subscription = wire.Subscription(
            one.topics,
            None,
            one.owned_partitions if group.assignor == "cooperative-sticky" else (),
            one.generation_id,
            one.rack_id,
            subscription_version,
        )
        assigned = wire.AssignmentData(tuple(TopicPartition(*tp) for tp in answer[one.member_id]))
        members.append(
            MemberMetadata(
                one.member_id,
                one.group_instance_id,
                one.client_id or "",
                "/127.0.0.1",
                15_000,
                SESSION_MS + n,
                wire.encode_subscription(subscription),
                wire.encode_assignment(assigned),
            )
        )
    first = group.members[0].member_id
    value = GroupMetadataValue(
        "consumer", group.generation_id, group.assignor, first, 0, tuple(members)
    )
    return Written(1_000 * group.generation_id, encode_value(value))


def observed(
    *records: Written,
    topics: Sequence[tuple[Topic, ...]] = ((T, U),),
    leader: str = JAVA,
    text: str = "",
    before: GroupSpec | None = None,
    earlier: Written | None = None,
) -> Observed:
    """Makes an observation; inventory n, counted from 0, is valid from second n on."""
    ids = {m.member_id for one in records for m in one.value.members}
    return Observed(
        "g",
        leader,
        records[-1].value.protocol or "",
        is_mixed=False,
        event="join",
        text=text,
        before=None if before is None else before.to_dict(),
        earlier=earlier,
        records=records,
        inventories=tuple(Inventory(1_000 * n, one) for n, one in enumerate(topics)),
        libraries=dict.fromkeys(ids, leader),
    )


def group(assignor: str, *members: Member, generation_id: int = 3) -> GroupSpec:
    return GroupSpec("g", (T, U), members, assignor, generation_id)


THREE = group("range", member("a-1"), member("a-2"), member("a-3"))


def verdicts(one: Observed) -> list[tuple[Verdict, str]]:
    return [(judged.verdict, judged.cause) for judged in given.judge(one)]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_kafkas_answer_is_found_right(assignor: str) -> None:
    assert verdicts(observed(written(replace(THREE, assignor=assignor)))) == [(Verdict.EQUAL, "")]


def test_another_answer_is_found() -> None:
    swapped = dict(zip(["a-1", "a-3", "a-2"], kr.assign(THREE).values(), strict=True))
    assert verdicts(observed(written(THREE, swapped))) == [(Verdict.DIFFERENT, "unknown")]


def test_the_order_counts_only_where_java_leads() -> None:
    backwards = {id_: list(owned)[::-1] for id_, owned in kr.assign(THREE).items()}
    record = written(THREE, backwards)
    assert verdicts(observed(record)) == [(Verdict.ORDER, "")]
    assert verdicts(observed(record, leader=KAFKA_PYTHON)) == [(Verdict.EQUAL, "")]


def test_a_leader_that_ignores_racks_is_named() -> None:
    racks = (("a",), ("b",), ("b",), ("a",))
    topics = (Topic("t", 4, racks), Topic("u", 3, racks[:3]))
    ids = zip("ab", ("b", "a"), strict=True)
    members = tuple(member(f"{name}-1", rack_id=rack) for name, rack in ids)
    asked = GroupSpec("g", topics, members, "range", 3)
    ignored = asked.edited(topics=(T, U))
    assert kr.assign(asked) != kr.assign(ignored)
    assert verdicts(observed(written(asked), topics=[topics])) == [(Verdict.EQUAL, "")]
    assert verdicts(observed(written(ignored), topics=[topics])) == [
        (Verdict.DIFFERENT, "the leader ignored racks of brokers")
    ]


def test_older_metadata_of_the_leader_are_counted_apart() -> None:
    now = [(T, U), (replace(T, partitions=8), U)]
    assert verdicts(observed(written(THREE), topics=now)) == [
        (Verdict.OLDER, "topics of another time")
    ]
    # A leader that has no metadata for topic u assigns no partition of it.
    (first, *others) = THREE.members
    asked = THREE.edited(members=(replace(first, topics=("t",)), *others))
    record = written(asked, kr.assign(asked.edited(topics=(T,))))
    assert verdicts(observed(record)) == [
        (Verdict.OLDER, "only topics of the leader's own subscription")
    ]
    # In its first generation, a leader may have no metadata at all.
    alone = group("range", member("a-1"))
    assert verdicts(observed(written(alone, {"a-1": ()}))) == [
        (Verdict.OLDER, "no metadata of t, u")
    ]


def test_a_generation_that_is_written_again_is_one() -> None:
    renamed = THREE.edited(members=(*THREE.members[:2], member("a-9")))
    records = (written(THREE), written(renamed), written(replace(THREE, generation_id=4)))
    assert [one.generation_id for one in generations(records)] == [3, 4]
    assert len(given.judge(observed(*records))) == 2
    assert len(given.judge(observed(*records, earlier=records[0]))) == 1


# Judging plans ------------------------------------------------------------------------------------


def settled(assignor: str, **more: Any) -> GroupSpec:
    """Makes a group of two members that own their assigned partitions in generation 3."""
    start = group(assignor, member("a-1", **more), member("b-1", **more))
    answer = kr.assign(start)
    members = tuple(
        replace(one, owned_partitions=tuple(answer[one.member_id]), generation_id=3)
        for one in start.members
    )
    return start.edited(members=members)


def compare(before: GroupSpec, text: str, *records: Written) -> Told:
    one = observed(*records, text=text, before=before, earlier=written(before))
    assert one.before is not None
    return told.compare(one, told.foresee(one.before, text))


def test_a_departure_that_goes_as_planned_is_right() -> None:
    before = settled("range")
    left = group("range", before.members[0], generation_id=4)
    found = compare(before, "remove-member=b-1", written(left))
    assert (found.is_right, found.direct, found.ids_decide, found.rounds) == (True, True, False, 1)


def test_a_new_member_whose_uuid_does_not_matter_is_right() -> None:
    """The new member sorts last with any UUID, so the samples are equal and the plan is right."""
    before = settled("range")
    joined = group("range", *before.members, member("b-2"), generation_id=4)
    found = compare(before, "add-members=1", written(joined))
    assert (found.is_right, found.direct) == (True, True)


def test_a_result_that_depends_on_the_uuid_is_among_the_samples() -> None:
    """Round-robin uses the order of ids, and the new member's real id may sort differently."""
    before = settled("roundrobin", client_id="b", topics=("t",))
    found = set()
    for uuid in ("0", "5", "8", "c", "f"):
        name = f"b-{uuid}0000000-0000-4000-8000-000000000000"
        newcomer = member(name, client_id="b", topics=("t",))
        joined = group("roundrobin", *before.members, newcomer, generation_id=4)
        one = compare(before, "add-members=1", written(joined))
        assert (one.is_right, one.ids_decide, one.among, one.real) == (True, True, True, True)
        found.add(one.direct)
    assert found == {True, False}


def test_a_false_certainty_is_a_miss() -> None:
    """The plan is wrong if the real new member sorts first, but is last in every sample."""
    before = settled("range", client_id="c")
    newcomer = member("A-1", client_id="A")
    joined = group("range", *before.members, newcomer, generation_id=4)
    one = compare(before, "add-members=1", written(joined))
    assert (one.is_right, one.direct, one.ids_decide, one.real) == (False, False, False, True)
    assert one.causes == ("ids, though 64 draws were alike: client id A where the plan had c",)


def test_a_rebalance_without_a_known_cause_disturbs_the_change() -> None:
    """A round without a known cause is idle if it moves nothing.

    If it moves partitions, the plan cannot be judged.
    """
    before = settled("cooperative-sticky")
    left = group("cooperative-sticky", before.members[0], generation_id=4)
    alone = written(left)
    repeated = written(replace(left, generation_id=5))
    one = compare(before, "remove-member=b-1", alone, repeated)
    assert (one.is_right, one.rounds, one.idle, one.unasked) == (True, 2, 1, 0)

    joined = group("range", *settled("range").members, member("b-2"), generation_id=4)
    answer = kr.assign(joined)
    swapped = dict(zip(answer, reversed(list(answer.values())), strict=True))
    records = (written(joined), written(replace(joined, generation_id=5), swapped))
    seen = observed(
        *records,
        text="add-members=1",
        before=settled("range"),
        earlier=written(settled("range")),
    )
    disturbed = result(seen)
    assert disturbed.told is None
    assert "joined again" in str(disturbed.observed.problem)


def test_a_generation_that_was_never_sent_is_named() -> None:
    """The cause is named if a member sent no generation, but the plan assumed the newest one."""
    before = settled("cooperative-sticky")
    one, other = before.members
    joined = group(
        "cooperative-sticky",
        one,
        replace(other, generation_id=None, owned_partitions=one.owned_partitions),
        member("c-1"),
        generation_id=4,
    )
    found = compare(before, "add-members=1,like=a-1", written(joined))
    assert not found.is_right
    assert any(cause.startswith(("claims", "generations")) for cause in found.causes)


def test_a_refusal_is_a_miss() -> None:
    before = settled("range")
    found = compare(before, "remove-member=nobody", written(before))
    assert not found.is_right
    assert found.causes[0].startswith("refused: ")


def test_an_observation_that_was_written_and_read_gives_the_same_result() -> None:
    before = settled("range")
    left = group("range", before.members[0], generation_id=4)
    one = observed(written(left), text="remove-member=b-1", before=before, earlier=written(before))
    back = Observed.from_json(one.to_json())
    assert back == one
    assert result(back) == result(one)
    assert not result(one).is_miss
    text = report.show([result(one), result(replace(one, problem="members [1] in place of [2]"))])
    assert "given what members sent: 2 of 2 (100.0%) of the generations" in text
    assert "as told:                 1 of 1 (100.0%) of the changes that settled" in text


# Random groups and changes ------------------------------------------------------------------------


def test_a_seed_always_draws_the_same() -> None:
    drawn = [
        [(cast.group_id, cast.topics, cast.parts, deck(cast)) for cast in islice(groups, 30)]
        for groups in (casts(5, LIBRARIES, 3), casts(5, LIBRARIES, 3), casts(6, LIBRARIES, 3))
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_every_kind_of_group_and_of_event_is_drawn() -> None:
    kinds, events = set(), set()
    for cast in islice(casts(1, LIBRARIES, 3), 60):
        kinds.add((cast.leader, cast.assignor, cast.is_mixed))
        assert cast.parts[0].library == cast.leader
        assert cast.is_mixed == (len({part.library for part in cast.parts}) > 1)
        assert len({len(racks) for topic in cast.topics.values() for racks in topic}) == 1
        ids = {part.number: f"id-{part.number}" for part in cast.parts}
        for event in deck(cast):
            happening = draw(event, cast, ids)
            if happening:
                assert happening.event == event
                events.add(event)
    assert len(kinds) == 2 * (4 + 4 + 3 + 3) + 4 + 3
    assert (AIOKAFKA, "cooperative-sticky", False) not in kinds
    assert events == {*EVENTS, SWITCH}


@pytest.mark.parametrize(
    ("name", "taken", "following"),
    [
        ("pod-1", {"pod-1"}, "pod-2"),
        ("pod-1", {"pod-1", "pod-2"}, "pod-3"),
        ("pod-9", {"pod-9"}, "pod-10"),
        ("pod", {"pod"}, "pod"),
    ],
)
def test_newcomers_are_counted(name: str, taken: set[str], following: str) -> None:
    assert next_name(name, taken) == following


def test_what_a_group_still_waits_for() -> None:
    record = written(THREE)
    (cast,) = islice(casts(1, [JAVA], 1), 1)
    parts = [replace(cast.parts[0], number=n, topics=("t", "u")) for n in (1, 2, 3)]
    there = Expected(parts, {"t": 4, "u": 3})
    assert there.problem([record]) is None
    assert there.holes(record) == 0
    assert replace(there, partitions={"t": 6, "u": 3}).holes(record) == 2
    assert replace(there, at_least=1).problem([record]) == "no newer record"
    assert "in place of" in str(replace(there, parts=parts[:2]).problem([record]))
    assert replace(there, replaced=["a-1"]).problem([record]) == "a-1 has not restarted"
    assert replace(there, staying=parts).away([record]) is None
    fourth = replace(parts[0], number=4)
    assert "was away" in str(replace(there, staying=[fourth]).away([record]))
    assert replace(there, keeping=["a-1"]).away([record]) is None
    assert "another id" in str(replace(there, keeping=["a-0"]).away([record]))
    elsewhere = [*parts[:2], replace(parts[2], topics=("t",))]
    assert "has not subscribed anew" in str(replace(there, parts=elsewhere).problem([record]))

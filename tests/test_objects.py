# SPDX-License-Identifier: Apache-2.0
"""Assignor objects, assignors by name, and custom assignors."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors import (
    Assignor,
    CooperativeSticky,
    Range,
    RebalanceProtocol,
    RoundRobin,
    Sticky,
    register,
    unregister,
    validate_cooperative,
)
from kafka_rebalance.assignors.registry import BUILT_IN, KAFKAS, in_core
from kafka_rebalance.bulk.lines import assign_lines
from kafka_rebalance.group import Anomaly, Balance
from kafka_rebalance.wire import consumer_protocol as wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kafka_rebalance.assignors.registry import Engine

T0, T1, T2 = (kr.TopicPartition("t", p) for p in range(3))
CLASSES: list[Callable[[], Assignor]] = [
    Range,
    RoundRobin,
    Sticky,
    CooperativeSticky,
]


def _member(name: str, *owned: kr.TopicPartition) -> kr.Member:
    return kr.Member(name, ("t",), owned_partitions=owned, generation_id=1)


GROUP = kr.GroupSpec(
    "g", (kr.Topic("t", 3),), (_member("A", T0, T1), _member("B", T2), _member("C"))
)


class Reversing:
    """A custom assignor that gives all partitions to the last member."""

    name = "reversing"
    version = 0
    supported_protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        return ",".join(topics).encode()

    def assign(self, group: kr.GroupSpec) -> Mapping[str, Sequence[kr.TopicPartition]]:
        return {group.members[-1].member_id: [T2, T1, T0]}

    def on_assignment(self, assignment: Sequence[kr.TopicPartition], generation_id: int) -> None:
        self.got = (assignment, generation_id)


class Grabbing(Reversing):
    """`Reversing`, declared as cooperative: it must not assign partitions that others still own."""

    name = "grabbing"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)


@pytest.fixture
def registered() -> Iterator[None]:
    for assignor in (Reversing(), Grabbing()):
        register(assignor)
    yield
    for name in ("reversing", "grabbing"):
        unregister(name)


# Kafka's own --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSES)
def test_built_in_objects_are_assignors(kind: Callable[[], Assignor]) -> None:
    assignor = kind()
    assert isinstance(assignor, Assignor)
    assert assignor.assign(GROUP) == kr.assign(GROUP, assignor.name)
    assert assignor.version == 0


def test_names_and_protocols_are_kafkas() -> None:
    eager, cooperative = (
        RebalanceProtocol.EAGER,
        RebalanceProtocol.COOPERATIVE,
    )
    assert {kind().name: tuple(kind().supported_protocols) for kind in CLASSES} == {
        "range": (eager,),
        "roundrobin": (eager,),
        "sticky": (eager,),
        "cooperative-sticky": (cooperative, eager),
    }
    assert [kind().name for kind in CLASSES] == list(KAFKAS)
    assert [BUILT_IN[name].withholds for name in KAFKAS] == [False, False, False, True]


@pytest.mark.parametrize("kind", [Range, RoundRobin])
def test_range_and_round_robin_remember_nothing(kind: Callable[[], Assignor]) -> None:
    assignor = kind()
    assignor.on_assignment([T0], 4)
    assert assignor.subscription_user_data(["t"]) is None


def test_sticky_sends_what_it_was_given() -> None:
    assignor = Sticky()
    assert assignor.subscription_user_data(["t"]) is None
    assignor.on_assignment([T0, T2], 4)
    sent = assignor.subscription_user_data(["t"])
    assert sent is not None
    assert wire.decode_sticky_user_data(sent) == wire.StickyUserData((T0, T2), 4)
    other = Sticky()
    assert other.subscription_user_data(["t"]) is None  # instances share no state


def test_cooperative_sticky_sends_its_generation() -> None:
    assignor = CooperativeSticky()
    assert assignor.subscription_user_data(["t"]) == b"\xff\xff\xff\xff"
    assignor.on_assignment([T0], 258)
    assert assignor.subscription_user_data(["t"]) == b"\x00\x00\x01\x02"


# By name ------------------------------------------------------------------------------------------


def test_an_unknown_name(engine: Engine) -> None:
    with pytest.raises(kr.GroupError) as raised:
        kr.assign(GROUP, "nope", engine=engine)
    assert str(raised.value) == (
        'assignor: "nope" is not known; known are range, roundrobin, sticky, cooperative-sticky, '
        "librdkafka/range, librdkafka/roundrobin, librdkafka/cooperative-sticky, "
        "balanced, weighted, consumer/uniform, consumer/range, consumer/balanced, share/simple, "
        "streams/sticky"
    )
    with pytest.raises(kr.GroupError, match=r"^assignor: missing; name one"):
        kr.assign(GROUP, engine=engine)


def test_an_unknown_engine() -> None:
    with pytest.raises(ValueError, match="not 'go'"):
        kr.assign(GROUP, "range", engine="go")  # type: ignore[arg-type]


def test_a_built_in_name_cannot_be_taken() -> None:
    taken = Reversing()
    taken.name = "sticky"
    with pytest.raises(ValueError, match='"sticky" is the name of a built-in assignor'):
        register(taken)
    assert kr.assignor_names() == list(in_core())


@pytest.mark.usefixtures("registered")
def test_a_custom_assignor_works_by_name(engine: Engine) -> None:
    assert kr.assignor_names() == [*in_core(), "reversing", "grabbing"]
    result = kr.assign(GROUP, "reversing", engine=engine)
    assert dict(result) == {"A": (), "B": (), "C": (T2, T1, T0)}
    assert result.anomalies == ()
    assert result.balance == Balance(0, 3, 1.0, 2**0.5)


@pytest.mark.usefixtures("registered")
def test_a_custom_assignor_works_in_bulk(engine: Engine) -> None:
    lines = [
        (kr.GroupSpec("g", GROUP.topics, GROUP.members, assignor).to_json()).encode()
        for assignor in ("reversing", "range", "nope")
    ]
    custom, built_in, unknown = assign_lines(lines, engine=engine)
    assert custom.line == (
        b'{"group_id":"g","assignor":"reversing",'
        b'"assignment":{"A":[],"B":[],"C":[["t",2],["t",1],["t",0]]}}'
    )
    assert b'"A":[["t",0]]' in built_in.line
    assert unknown.is_error
    assert b"streams/sticky, reversing, grabbing" in unknown.line


def test_a_custom_assignor_that_was_unregistered_is_unknown() -> None:
    register(Reversing())
    unregister("reversing")
    with pytest.raises(kr.GroupError, match="is not known"):
        kr.assign(GROUP, "reversing")
    with pytest.raises(kr.GroupError, match="name: 'reversing' is not a registered assignor"):
        unregister("reversing")


class Careless(Reversing):
    """Assigns one partition twice, one that does not exist, and one of an unsubscribed topic."""

    name = "careless"

    def assign(self, group: kr.GroupSpec) -> Mapping[str, Sequence[kr.TopicPartition]]:
        return {"A": [T0, kr.TopicPartition("t", 3)], "B": [T0, kr.TopicPartition("u", 0)]}


def test_a_careless_answer_is_given_with_its_anomalies() -> None:
    topics = (kr.Topic("t", 3), kr.Topic("u", 1))
    register(Careless())
    try:
        result = kr.assign(kr.GroupSpec("g", topics, GROUP.members), "careless")
    finally:
        unregister("careless")
    assert result.anomalies == (
        Anomaly("nonexistent", "t", 3, "A"),
        Anomaly("duplicate", "t", 0, "B"),
        Anomaly("unsubscribed", "u", 0, "B"),
        Anomaly("unassigned", "t", 1, None),
        Anomaly("unassigned", "t", 2, None),
    )


class Absent(Reversing):
    """Assigns partitions to a member that is not in the group."""

    name = "absent"

    def assign(self, group: kr.GroupSpec) -> Mapping[str, Sequence[kr.TopicPartition]]:
        return {"A": [T0, T1], "Z": [T2], "Y": []}


def test_partitions_for_nobody_in_the_group_are_refused(engine: Engine) -> None:
    register(Absent())
    try:
        with pytest.raises(kr.GroupError) as raised:
            kr.assign(GROUP, "absent", engine=engine)
    finally:
        unregister("absent")
    assert str(raised.value) == (
        'assignment["Z"]: not a member of the group, but "absent" assigns it partitions'
    )


# Cooperative --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registered")
def test_a_cooperative_assignor_must_not_give_what_is_still_owned() -> None:
    with pytest.raises(kr.GroupError) as raised:
        kr.assign(GROUP, "grabbing")
    assert str(raised.value) == (
        "assignment: t-2 is given to C while another member still owns it; "
        "a cooperative assignor first lets it be revoked, and assigns it a round later"
    )
    free = kr.GroupSpec("g", GROUP.topics, (kr.Member("A", ("t",)), kr.Member("C", ("t",))))
    assert kr.assign(free, "grabbing")["C"] == (T2, T1, T0)


def test_validate_cooperative() -> None:
    validate_cooperative(GROUP, {"A": [T0], "B": [T2], "C": []})
    validate_cooperative(GROUP, {"A": [T0, T1], "B": [T2]})
    validate_cooperative(GROUP, {})
    with pytest.raises(kr.GroupError, match=r"^assignment: t-1 is given to C while"):
        validate_cooperative(GROUP, {"A": [T0], "B": [T2], "C": [T1]})


def test_errors_survive_pickling() -> None:
    for error in (kr.GroupError("a.b", "bad"), kr.AssignorThrows.of("sticky", "X", "why")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.path) == (type(error), str(error), error.path)


def test_an_assignment_is_frozen_and_hashable() -> None:
    one = kr.Assignment.of({"a": [kr.TopicPartition("t", 0)], "b": []})
    other = kr.Assignment.of({"b": [], "a": [kr.TopicPartition("t", 0)]})
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other, kr.Assignment.of({"a": []})}) == 2
    assert hash(one - other) == hash(other - one)
    with pytest.raises(AttributeError, match="immutable: member_ids cannot be set"):
        one.member_ids = ("z",)
    assert str(one) == "a: t[0]\nb:"


class Fill(Assignor):
    """Gives all partitions to the first member, as pairs."""

    name = "fill"

    def __init__(self, answer: object = None) -> None:
        self.answer = answer

    def assign(self, group: kr.GroupSpec) -> Any:
        first = group.members[0].member_id
        pairs = [(topic.name, p) for topic in group.topics for p in range(topic.partitions)]
        return {first: pairs} if self.answer is None else self.answer


def test_a_derived_assignor_needs_a_name_and_an_answer() -> None:
    group = kr.GroupSpec("g", (kr.Topic("t", 2),), (kr.Member("a", ("t",)),), "fill")
    register(Fill())
    try:
        assert str(kr.assign(group)) == "a: t[0, 1]"
        assert kr.plan(group).moves == 2
        wrong = {"a": [("t", -1)]}, {"a": [0]}, ["t"]
        named = (
            'assignment["a"]: "fill" returns a wrong answer: -1 is not a partition',
            'assignment["a"]: "fill" returns a wrong answer: not a list of TopicPartition',
            "a list",
        )
        for answer, path in zip(wrong, named, strict=True):
            register(Fill(answer))
            with pytest.raises(kr.GroupError, match=re.escape(path)) as raised:
                kr.assign(group)
            assert raised.value.path.partition("[")[0] == "assignment"
    finally:
        unregister("fill")
    nothing: Any = type("Nothing", (Assignor,), {"name": "nothing"})
    with pytest.raises(TypeError, match="assign"):
        nothing()

# SPDX-License-Identifier: Apache-2.0
"""Members with our plug-ins and Java members share groups on a real broker.

Kafka's own classes compute each generation again.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from kafka_rebalance import Topic, TopicPartition
from kafka_rebalance.clients import aiokafka as ours_aiokafka
from kafka_rebalance.clients import kafka_python as ours_kafka
from kafka_rebalance.clients import leader
from kafka_rebalance.clients.leader import LegalAnswer, legal
from kafka_rebalance.wire import consumer_protocol as wire
from tests.support.live_members import JavaMembers, await_coordinators, await_stable
from tests.support.plug_in_members import PlugInMembers, asked, generations, question
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kafka_rebalance import Member
    from kafka_rebalance.wire.group_records import GroupMetadataValue
    from tests.support.oracle import Oracle

pytestmark = pytest.mark.live

RACKS = "abc"
REPLICAS = {
    "t": [[0, 1], [1, 2], [2, 0], [0, 1], [1, 2], [2, 0], [0, 1]],
    "u": [[0], [1], [2], [0]],
}
TOPICS = tuple(
    Topic(name, len(replicas), tuple(tuple(RACKS[n] for n in nodes) for nodes in replicas))
    for name, replicas in REPLICAS.items()
)
ALL = {TopicPartition(t, p) for t, replicas in REPLICAS.items() for p in range(len(replicas))}
TRIES = 3
"""How often the run is tried: kafka-python 3.0.12 can lose its membership and not join again."""


def _java(group_id: str, n: int, assignor: str, **fields: Any) -> dict[str, Any]:
    fields = {"topics": ["t", "u"], **fields}
    name = f"{group_id}-java-{n}"
    return {"client_id": name, "group_id": group_id, "assignors": [assignor], **fields}


class Asked(NamedTuple):
    """A leader's call of our plug-in, with the topics that its client knew at that time."""

    group_id: str
    topics: tuple[Topic, ...]
    members: tuple[Member, ...]


class Played(NamedTuple):
    """The recorded data of all groups: stored generations, calls of plug-ins, held partitions."""

    stored: list[tuple[str, GroupMetadataValue]]
    asked: list[Asked]
    held: dict[str, list[frozenset[TopicPartition]]]
    resubscribed: frozenset[TopicPartition]
    failures: dict[str, BaseException]


# Ways to pass a plug-in to several consumers of one process: group id -> client, assignor and a
# function that makes the strategy of one consumer.
_shared = ours_kafka.CooperativeSticky()
FORMS: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "ai-class": ("aiokafka", "sticky", lambda: ours_aiokafka.Sticky),
    "ai-instances": ("aiokafka", "sticky", ours_aiokafka.Sticky),
    "kp-class": ("kafka-python", "sticky", lambda: ours_kafka.Sticky),
    "kp-shared": ("kafka-python", "cooperative-sticky", lambda: _shared),
    "kp-factory": ("kafka-python", "cooperative-sticky", lambda: lambda: _fresh()),
}


# Groups with this project's own assignors: one partition in three is heavy.
WEIGHTS: dict[tuple[str, int], float] = {
    tp: 100.0 if tp.topic == "t" and tp.partition % 2 == 0 else 1.0 for tp in sorted(ALL)
}
OWN: dict[str, tuple[str, Callable[[], Any]]] = {
    "own-kp": ("kafka-python", lambda: ours_kafka.Weighted(WEIGHTS, "budget=none")),
    "own-ai": ("aiokafka", lambda: ours_aiokafka.Weighted(WEIGHTS, "budget=none")),
}


def _fresh() -> Any:
    return ours_kafka.CooperativeSticky()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    log = tmp_path_factory.mktemp("clients") / "java-members.log"
    for _ in range(TRIES - 1):
        with contextlib.suppress(TimeoutError), _playing(log) as result:
            yield result
            return
    with _playing(log) as result:
        yield result


@contextlib.contextmanager
def _playing(log: Path) -> Iterator[Played]:
    questions: list[Asked] = []

    def recording(
        group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], assignor: str
    ) -> LegalAnswer:
        questions.append(Asked(group_id, topics, members))
        return legal(group_id, topics, members, assignor)

    with pytest.MonkeyPatch.context() as patch, Broker(brokers=len(RACKS)) as broker:
        patch.setattr(leader, "legal", recording)
        server = broker.bootstrap_server
        _create_topics(server)
        with PlugInMembers(server) as ours, JavaMembers(server, log) as java:
            yield _play(server, ours, java, questions)


def _create_topics(server: str) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.create_topics(
            {name: {"assignments": dict(enumerate(nodes))} for name, nodes in REPLICAS.items()},
            wait_for_metadata=True,
        )


def _play(server: str, ours: PlugInMembers, java: JavaMembers, questions: list[Asked]) -> Played:
    await_coordinators(server, [*FORMS, *OWN, "racks-kp", "racks-ai", "resub"])
    # The first member of a group stays its leader to the end.
    for group_id, (client, _, strategy) in FORMS.items():
        for n in range(3):
            ours.add(client, group_id, f"{group_id}-{n}", strategy(), ["t", "u"])
    for group_id, (client, weighted) in OWN.items():
        for n in range(3):
            ours.add(client, group_id, f"{group_id}-{n}", weighted(), ["t", "u"])
    ours.add(
        "kafka-python", "racks-kp", "rk-0", ours_kafka.CooperativeSticky(rack_id="a"), ["t", "u"]
    )
    ours.add("aiokafka", "racks-ai", "ra-0", ours_aiokafka.Range(rack_id="a"), ["t", "u"])
    ours.add("aiokafka", "resub", "rs-0", ours_aiokafka.Sticky, ["t", "u"])
    sizes = dict.fromkeys((*FORMS, *OWN), 3) | {"racks-kp": 1, "racks-ai": 1, "resub": 1}
    await_stable(server, sizes)
    held = {g: [ours.held(f"{g}-{n}") for n in range(3)] for g in FORMS}
    for group_id, (client, _, strategy) in FORMS.items():
        ours.add(client, group_id, f"{group_id}-3", strategy(), ["t", "u"])
    for group_id, (client, weighted) in OWN.items():
        ours.add(client, group_id, f"{group_id}-3", weighted(), ["t", "u"])
    java.tell(
        add=[
            *(_java("racks-kp", n, "cooperative-sticky", client_rack=RACKS[n]) for n in (1, 2)),
            _java("racks-ai", 1, "range", client_rack="b"),
            _java("racks-ai", 2, "range", client_rack="c", group_instance_id="i2"),
            _java("resub", 1, "sticky"),
        ]
    )
    ours.add("aiokafka", "resub", "rs-1", ours_aiokafka.Sticky, ["t", "u"])
    ours.add(
        "kafka-python", "racks-kp", "rk-3", ours_kafka.CooperativeSticky(rack_id="a"), ["t", "u"]
    )
    ours.add("aiokafka", "racks-ai", "ra-3", ours_aiokafka.Range(rack_id="a"), ["t", "u"])
    sizes = dict.fromkeys((*FORMS, *OWN), 4) | {"racks-kp": 4, "racks-ai": 4, "resub": 3}
    await_stable(server, sizes)
    for group_id in FORMS:
        held[group_id] += [ours.held(f"{group_id}-{n}") for n in range(4)]
    held |= {g: [ours.held(f"{g}-{n}") for n in range(4)] for g in OWN}
    # rs-1 drops topic t; when the Java member has left, it changes from u to t.
    ours.subscribe("rs-1", ["u"])
    _await_topic(ours, "u")
    java.tell(close=["resub-java-1"])
    await_stable(server, {"resub": 2})
    ours.subscribe("rs-1", ["t"])
    _await_topic(ours, "t")
    return Played(list(generations(server)), questions, held, ours.held("rs-1"), ours.failures())


def _await_topic(ours: PlugInMembers, topic: str) -> None:
    until(f"rs-1 reads {topic}", lambda: {tp.topic for tp in ours.held("rs-1")} == {topic})


def test_every_generation_is_what_kafkas_class_answers(played: Played, oracle: Oracle) -> None:
    """Kafka's class computes each generation from the members' bytes and the brokers' racks.

    A leader whose client lacks the metadata of a topic or broker assigns without it, and rejoins
    when the client has received the metadata. So Kafka's class is given the topics that the client
    knew. In a group's last generation, the client must know all topics.
    """
    last = {}
    for group_id, value in played.stored:
        if group_id in OWN:
            continue
        group = asked((), value)
        known = {
            question.topics
            for question in played.asked
            if question.group_id == group_id and set(question.members) == set(group.members)
        }
        read = {m.member_id: wire.decode_assignment(m.assignment) for m in value.members}
        given = {member_id: list(map(list, one.partitions)) for member_id, one in read.items()}
        answers = [_by_topic(oracle.ask(question(topics, value))["assignment"]) for topics in known]
        assert given in answers, (group_id, [question(topics, value) for topics in known])
        assert {(one.version, one.user_data) for one in read.values()} == {(3, None)}
        last[group_id] = value, given
    for group_id, (value, given) in last.items():
        seen = {topic for member in asked((), value).members for topic in member.topics}
        whole = question(tuple(topic for topic in TOPICS if topic.name in seen), value)
        assert given == _by_topic(oracle.ask(whole)["assignment"]), (group_id, whole)
    assert last.keys() >= {*FORMS, "racks-kp", "racks-ai", "resub"}
    assert len(played.stored) >= 2 * len(last)


def _by_topic(answer: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """Groups partitions by topic, because an assignment's bytes name each topic once."""
    return {
        member_id: [
            tp
            for topic in dict.fromkeys(topic for topic, _ in owned)
            for tp in owned
            if tp[0] == topic
        ]
        for member_id, owned in answer.items()
    }


@pytest.mark.parametrize("group_id", FORMS)
def test_consumers_of_one_process_hold_each_their_own(played: Played, group_id: str) -> None:
    """Each partition has one owner, before and after a fourth consumer joins the three.

    The first three gain no partition by this.
    """
    first, second = played.held[group_id][:3], played.held[group_id][3:]
    for held in (first, second):
        assert sum(map(len, held)) == len(ALL)
        assert set().union(*held) == ALL
    assert all(now <= before for before, now in zip(first, second, strict=False))
    members = [value.members for name, value in played.stored if name == group_id][-1]
    sent = [wire.decode_subscription(one.subscription) for one in members]
    assert len({one.generation_id for one in sent if one.generation_id is not None}) <= 2


def test_a_resubscribed_consumer_survives(played: Played) -> None:
    assert played.failures == {}
    assert {tp.topic for tp in played.resubscribed} == {"t"}
    in_resub = [value for name, value in played.stored if name == "resub"]
    for value in in_resub:
        for member in value.members:
            topics = set(wire.decode_subscription(member.subscription).topics)
            given = wire.decode_assignment(member.assignment).partitions
            assert {tp.topic for tp in given} <= topics


@pytest.mark.parametrize("group_id", ["racks-kp", "racks-ai"])
def test_racks_count(played: Played, group_id: str) -> None:
    """In a group's last generation, the members have sent all three racks."""
    value = [value for name, value in played.stored if name == group_id][-1]
    assert {wire.decode_subscription(m.subscription).rack_id for m in value.members} == set(RACKS)


@pytest.mark.parametrize("group_id", OWN)
def test_weights_decide(played: Played, group_id: str) -> None:
    """Four members have one of the four heavy partitions each, and together have all."""
    held = played.held[group_id]
    assert sorted(tp for owned in held for tp in owned) == sorted(ALL)
    assert [sum(WEIGHTS[tp] == 100.0 for tp in owned) for owned in held] == [1, 1, 1, 1]
    stored = [value for name, value in played.stored if name == group_id]
    eager = "-eager" if group_id == "own-ai" else ""
    assert {value.protocol for value in stored} == {f"kafka-rebalance/weighted{eager}"}
    sent = [wire.decode_subscription(m.subscription) for value in stored for m in value.members]
    assert {one.version for one in sent} == {3}
    assert eager or {one.user_data for one in sent} == {None}

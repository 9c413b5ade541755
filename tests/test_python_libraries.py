# SPDX-License-Identifier: Apache-2.0
"""The assignors of kafka-python and aiokafka answer as the libraries' own coordinators do."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.bulk import assign_batch
from kafka_rebalance.bulk.lines import assign_lines
from kafka_rebalance.wire import consumer_protocol as wire

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")

from aiokafka.coordinator.assignors import range as aiokafka_range
from aiokafka.coordinator.assignors import roundrobin as aiokafka_roundrobin
from aiokafka.coordinator.assignors.sticky import sticky_assignor as aiokafka_sticky
from kafka.coordinator.assignors import cooperative_sticky as kafka_cooperative
from kafka.coordinator.assignors import range as kafka_range
from kafka.coordinator.assignors import roundrobin as kafka_roundrobin
from kafka.coordinator.assignors.sticky import sticky_assignor as kafka_sticky

from tests.support.client_members import Aiokafka, Joined, KafkaPython

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

OWN = {
    "kafka-python/range": (KafkaPython, kafka_range.RangePartitionAssignor),
    "kafka-python/roundrobin": (KafkaPython, kafka_roundrobin.RoundRobinPartitionAssignor),
    "kafka-python/sticky": (KafkaPython, kafka_sticky.StickyPartitionAssignor),
    "kafka-python/cooperative-sticky": (KafkaPython, kafka_cooperative.CooperativeStickyAssignor),
    "aiokafka/range": (Aiokafka, aiokafka_range.RangePartitionAssignor),
    "aiokafka/roundrobin": (Aiokafka, aiokafka_roundrobin.RoundRobinPartitionAssignor),
    "aiokafka/sticky": (Aiokafka, aiokafka_sticky.StickyPartitionAssignor),
}
TOPICS = (kr.Topic("t", 7), kr.Topic("u", 4))
BOTH = ("t", "u")


def test_all_dialects_are_tried() -> None:
    assert OWN.keys() == PYTHON_LIBRARIES.keys()


def _decoded(answer: dict[str, bytes]) -> dict[str, list[kr.TopicPartition]]:
    return {m: list(wire.decode_assignment(given).partitions) for m, given in answer.items()}


@pytest.mark.parametrize("name", OWN)
def test_the_librarys_coordinator_leads_alike(name: str) -> None:
    """In four rebalances, our answers equal those of the library's own class.

    A member joins after the second rebalance, and another one leaves after the third.
    """
    client, own = OWN[name]
    protocol = name.partition("/")[2]
    rng = random.Random(name)
    made = {f"m{n}": client(f"m{n}", [own], BOTH, TOPICS) for n in range(4)}
    if "aiokafka" in name and protocol == "sticky":  # all consumers share this class's state
        own = None
    running: dict[str, Any] = dict(list(made.items())[:3])
    held: dict[str, tuple[kr.TopicPartition, ...]] = {}
    for generation in range(1, 5):
        ids = rng.sample(sorted(running), len(running))
        if own is None:
            joined = [Joined(one, None, _aiokafka_sends(held.get(one), BOTH)) for one in ids]
        else:
            joined = [Joined(one, None, running[one].join()) for one in ids]
        group = kr.GroupSpec(
            "g",
            TOPICS,
            tuple(
                kr.Member(
                    one,
                    BOTH,
                    owned_partitions=held.get(one, ()),
                    generation_id=generation - 1 if one in held else None,
                )
                for one in ids
            ),
        )
        answer = running[ids[0]].lead(generation, joined, protocol)
        ours = kr.assign(group, name)
        assert {m: list(owned) for m, owned in ours.items()} == _decoded(answer)
        held = {member_id: tuple(owned) for member_id, owned in ours.items()}
        for one in ids:
            running[one].take(generation, answer[one], protocol)
        if generation == 2:
            running["m3"] = made["m3"]
        if generation == 3:
            del running["m0"], held["m0"]


def _aiokafka_sends(held: tuple[kr.TopicPartition, ...] | None, topics: tuple[str, ...]) -> bytes:
    """Returns the bytes of an aiokafka consumer that is the only one in its process."""
    own = aiokafka_sticky.StickyPartitionAssignor
    return bytes(own._metadata(topics, held, -1).encode())


def _group(assignor: str) -> kr.GroupSpec:
    members = (kr.Member("a", BOTH, group_instance_id="i"), kr.Member("b", ("t",)))
    return kr.GroupSpec("g", TOPICS, members, assignor)


def test_an_error_of_the_class_is_an_error_of_the_group(engine: Engine) -> None:
    """kafka-python 3.0.12 fails if round-robin has to skip a member."""
    with pytest.raises(kr.AssignorThrows, match="kafka-python/roundrobin raises KeyError here"):
        kr.assign(_group("kafka-python/roundrobin"), engine=engine)


def test_lines_take_the_names_and_batches_refuse_them(engine: Engine) -> None:
    names = ("kafka-python/range", "range", "kafka-python/nope")
    lines = [_group(name).to_json().encode() for name in names]
    first, second, third = assign_lines(lines, engine=engine)
    expected = kr.assign(_group("kafka-python/range")).to_dict()
    assert json.loads(first.line)["assignment"] == expected
    assert not second.is_error
    assert b'"kafka-python/nope\\" is not known' in third.line
    forced = assign_lines(lines[1:2], "kafka-python/range", engine=engine)
    assert json.loads(forced[0].line)["assignment"] == expected


def test_batches_refuse_the_names() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    rows = pyarrow.RecordBatch.from_pylist([_group("aiokafka/sticky").to_dict()])
    (row,) = assign_batch(rows).to_pylist()
    assert row["error"].startswith('assignor: "aiokafka/sticky" runs in Python only')


@pytest.mark.parametrize("name", ["kafka-python/range", "aiokafka/range"])
def test_without_the_library_the_error_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = "aiokafka" if name.startswith("aiokafka") else "kafka"
    monkeypatch.setitem(__import__("sys").modules, f"{package}.coordinator.assignors.range", None)
    with pytest.raises(kr.GroupError, match=r"pip install '\w+[\w-]*>=") as raised:
        kr.assign(_group(name))
    assert raised.value.path == "assignor"


def test_plans_and_comparisons_take_the_names() -> None:
    group = _group("kafka-python/range")
    planned = kr.plan(group, None, ["add-members=1", "switch-assignor=aiokafka/sticky"])
    assert planned.settled
    compared = kr.compare(group, assignors=["range", "kafka-python/range", "kafka-python/sticky"])
    assert [one.error for one in compared.candidates] == [None] * 3


def test_kafka_pythons_roundrobin_raises_or_leaves_a_static_member_without_partitions() -> None:
    """docs/reports/kafka-python-roundrobin.md: KeyError, and a static member without partitions."""
    name = "kafka-python/roundrobin"
    topics = (kr.Topic("a", 2), kr.Topic("b", 2))
    members = (kr.Member("c0", ("a",)), kr.Member("c1", ("a", "b")))
    with pytest.raises(kr.AssignorThrows, match="raises KeyError"):
        kr.assign(kr.GroupSpec("g", topics, members), name)
    static = [kr.Member(one, ("a",), one) for one in ("s1", "s2")]
    mixed = (static[0], kr.Member("d1", ("a",)), static[1])
    answer = kr.assign(kr.GroupSpec("g", (kr.Topic("a", 6),), mixed), name)
    assert {member: len(owned) for member, owned in answer.items()} == {"s1": 0, "d1": 3, "s2": 3}

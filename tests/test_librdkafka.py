# SPDX-License-Identifier: Apache-2.0
"""All interfaces know librdkafka's assignors; test_vectors.py tests the answers themselves."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import compare_batch
from kafka_rebalance.bulk.lines import assign_lines
from kafka_rebalance.cli import main
from kafka_rebalance.java.order import java_hash_order
from kafka_rebalance.notes.librdkafka_traps import librdkafka_traps
from kafka_rebalance.plans.clients import CLIENTS, LIBRDKAFKA, recipe
from tests.support.contract_lines import noted
from tools import differential
from tools.judge import Block

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

COOPERATIVE = "librdkafka/cooperative-sticky"
VECTORS = Path(__file__).resolve().parent / "vectors"


def _vectors(file: str) -> list[dict[str, Any]]:
    with gzip.open(VECTORS / file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _first(file: str) -> tuple[kr.GroupSpec, dict[str, Any]]:
    found = _vectors(file)[0]
    return kr.GroupSpec.from_dict(found["case"]), found["expected"]


# Engines ------------------------------------------------------------------------------------------


def test_the_engines_agree_on_generated_groups() -> None:
    """Both engines return equal lists, anomalies and errors.

    Some of the groups would kill the leader's process: these are errors.
    """
    found = differential.compare(
        Block(20261122, 1200), assignors=differential.DIALECTS, bytes_too=False
    )
    assert found.differences == []
    assert {name: found.met[name] for name in differential.DIALECTS} == dict.fromkeys(
        differential.DIALECTS, 400
    )
    assert found.met["errors"] > 5


def _old(version: int, rack: str | None) -> kr.GroupSpec:
    topic = kr.Topic("t", 2, (("a",), ("b",)))
    old = kr.Member("c1", ("t",), subscription_version=version)
    return kr.GroupSpec("g", (topic,), (kr.Member("c0", ("t",), rack_id=rack), old))


@pytest.mark.parametrize(("version", "rack"), [(0, None), (1, "a"), (2, "a")])
def test_old_versions_kill_the_leader(version: int, rack: str | None, engine: Engine) -> None:
    with pytest.raises(kr.AssignorThrows, match="kills the leader's process here: a subscription"):
        kr.assign(_old(version, rack), COOPERATIVE, engine=engine)


def test_a_group_without_a_subscription_kills_the_leader(engine: Engine) -> None:
    """All 44 such groups among 3,400 generated ones killed librdkafka 2.16.0; see `probe`."""
    group = kr.GroupSpec("g", (kr.Topic("t", 2),), (kr.Member("c0", ()), kr.Member("c1", ())))
    with pytest.raises(kr.AssignorThrows, match="kills the leader's process here: no member subs"):
        kr.assign(group, COOPERATIVE, engine=engine)
    assert kr.assign(group, "librdkafka/range", engine=engine).counts() == [0, 0]


@pytest.mark.parametrize(("version", "rack"), [(1, None), (2, None), (3, "a")])
def test_other_versions_do_not(version: int, rack: str | None, engine: Engine) -> None:
    answer = kr.assign(_old(version, rack), COOPERATIVE, engine=engine)
    assert sorted(answer.counts()) == [1, 1]
    assert kr.assign(_old(0, "a"), "librdkafka/range", engine=engine).balance.max == 1


# Interfaces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", differential.DIALECTS)
def test_every_entrance_takes_the_name(
    name: str, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, expected = _first(f"{name.replace('/', '-')}.jsonl.gz")
    assert group.assignor == name
    assert kr.assign(group, engine=engine).to_dict() == expected["assignment"]
    line = group.to_json()
    (answer,) = assign_lines([line.encode()], engine=engine)
    assert json.loads(answer.line)["assignment"] == expected["assignment"]
    file = tmp_path / "group.jsonl"
    file.write_text(group.edited(assignor="range").to_json() + "\n", encoding="utf-8")
    assert main(["assign", str(file), "--assignor", name, "--engine", engine]) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["assignor"], written["assignment"]) == (name, expected["assignment"])
    assert main(["plan", str(file), "--assignor", name, "--engine", engine, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assignor"] == name
    chosen = f"range,{name}"
    assert main(["compare", str(file), "--assignors", chosen, "--engine", engine, "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert [one["assignor"] for one in compared["candidates"]] == chosen.split(",")
    assert compared["recommended"] == "range"


def test_columns_take_the_name() -> None:
    """In columns, as in lines, an empty rack is not a missing rack."""
    pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    from tests.support.vector_columns import columns_answer

    columns_answer(_vectors("librdkafka-cooperative-sticky.jsonl.gz"))


def test_an_unknown_name_of_compare_is_refused(tmp_path: Path) -> None:
    group, _ = _first("librdkafka-range.jsonl.gz")
    file = tmp_path / "group.jsonl"
    file.write_text(group.to_json() + "\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["compare", str(file), "--assignors", "librdkafka/sticky"])


# Comparison ---------------------------------------------------------------------------------------


def _group(assignor: str, leader: str | None = None) -> kr.GroupSpec:
    members = tuple(kr.Member(f"c{n}", ("t",), rack_id="") for n in range(3))
    return kr.GroupSpec("g", (kr.Topic("t", 7),), members, assignor, leader_library=leader)


@pytest.mark.parametrize(
    ("assignor", "leader", "count"),
    [
        ("range", None, 4),
        ("range", "java", 4),
        ("range", "librdkafka", 7),
        ("librdkafka/range", None, 7),
    ],
)
def test_dialects_are_compared_where_the_group_can_meet_them(
    assignor: str, leader: str | None, count: int, engine: Engine
) -> None:
    compared = kr.compare(_group(assignor, leader), engine=engine)
    assert len(compared.candidates) == count
    # Another library's answer is shown, and is not recommended.
    assert compared.recommended is not None
    assert compared.recommended.startswith("librdkafka/") is ("/" in assignor)


def test_a_bulk_comparison_is_the_same() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="no pyarrow: pip install -e '.[arrow]'")
    groups = [_group(name) for name in ("range", *differential.DIALECTS)]
    rows = pyarrow.RecordBatch.from_pylist([group.to_dict() for group in groups])
    for row, group in zip(compare_batch(rows).to_pylist(), groups, strict=True):
        alone = kr.compare(group)
        assert (row["recommended"], row["reason"]) == (alone.recommended, alone.reason)
        assert [one["assignor"] for one in row["candidates"]] == [
            one.assignor for one in alone.candidates
        ]


def test_only_librdkafka_has_them_and_its_setting_has_no_prefix() -> None:
    for client in CLIENTS:
        assert (COOPERATIVE in client.assignors) == (client is LIBRDKAFKA)
    made = recipe(LIBRDKAFKA, "librdkafka/range", "librdkafka/roundrobin")
    assert made.settings == (
        "partition.assignment.strategy=roundrobin,range",
        "partition.assignment.strategy=roundrobin",
    )


# Plans --------------------------------------------------------------------------------------------


def test_a_plan_lists_members_as_the_broker_does(engine: Engine) -> None:
    """Members are in the order of the broker's hash map, and sort the partitions they receive."""
    ids = [f"rdkafka-{n}" for n in (7, 1, 5, 3)]
    members = tuple(kr.Member(one, ("b", "a"), rack_id="") for one in ids)
    group = kr.GroupSpec("g", (kr.Topic("b", 5), kr.Topic("a", 4)), members, COOPERATIVE)
    group = group.owning(kr.assign(group, engine=engine))
    planned = kr.plan(group, None, ["remove-members=1"], engine=engine)
    assert planned.settled
    (step,) = planned.steps
    for one in step.rounds:
        seen = [member.member_id for member in one.group.members]
        assert seen == java_hash_order(seen) != [member.member_id for member in step.before.members]
        assert kr.assign(one.group, COOPERATIVE, engine=engine) == one.assignment
    for member in planned.final.members:
        assert list(member.owned_partitions) == sorted(member.owned_partitions)
    unsorted = [
        owned for owned in step.rounds[-1].assignment.values() if list(owned) != sorted(owned)
    ]
    assert unsorted  # the answer itself is in librdkafka's order


def test_a_plan_tells_of_a_group_that_never_settles(engine: Engine) -> None:
    """Real consumers with these racks made 21 generations within 20 seconds."""
    racks = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"))
    members = (kr.Member("c0", ("a",), rack_id=""), kr.Member("c1", ("a",), rack_id="b"))
    group = kr.GroupSpec("g", (kr.Topic("a", 4, racks),), members, COOPERATIVE)
    first = kr.assign(group, engine=engine)
    assert kr.plan(group, engine=engine).settled  # the first rebalance takes one round
    again = kr.plan(group.owning(first), engine=engine)
    assert not again.settled


def _mixed(assignor: str, *more: kr.Member, leader: str | None = None) -> kr.GroupSpec:
    def alone(member_id: str, topic: str, count: int) -> kr.Member:
        owned = tuple(kr.TopicPartition(topic, p) for p in range(count))
        return kr.Member(member_id, (topic,), owned_partitions=owned, generation_id=1, rack_id="")

    members = (alone("c0", "b", 5), alone("c1", "a", 2), *more)
    topics = (kr.Topic("b", 5), kr.Topic("a", 2))
    return kr.GroupSpec("g", topics, members, assignor, leader_library=leader)


def test_a_join_can_kill_the_leader(engine: Engine) -> None:
    """In a group of three real consumers, the leader died with SIGSEGV."""
    group = _mixed(COOPERATIVE, kr.Member("c2", ("a", "b"), rack_id=""))
    with pytest.raises(kr.AssignorThrows, match="kills the leader's process"):
        kr.plan(group, engine=engine)
    assert kr.plan(group, "cooperative-sticky", engine=engine).settled  # Kafka's own class is safe


def test_compare_warns_of_a_switch_that_kills_a_leader(engine: Engine) -> None:
    """Alone in a rebalance of the switch, the member without topics leads, and dies."""
    members = (kr.Member("m0", (), rack_id=""), kr.Member("m1", ("t",), rack_id=""))
    group = kr.GroupSpec("g", (kr.Topic("t", 1),), members, "librdkafka/range")
    group = group.owning(kr.assign(group))
    compared = kr.compare(group, assignors=[COOPERATIVE], engine=engine)
    assert compared.migration is None
    assert "; but a leader dies in a rebalance of the switch to it." in compared.summary
    assert compared.to_dict()["migration"] is None
    other = kr.compare(group, assignors=["librdkafka/roundrobin"], engine=engine)
    assert "getting there costs" in other.summary


# Traps --------------------------------------------------------------------------------------------


def _told(
    group: kr.GroupSpec,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *more: str,
) -> tuple[str, list[tuple[Any, ...]]]:
    file = tmp_path / "group.jsonl"
    file.write_text(group.to_json() + "\n", encoding="utf-8")
    main([command, str(file), *more])
    text = " ".join(capsys.readouterr().out.split())
    main([command, str(file), *more, "--json"])
    answer = json.loads(capsys.readouterr().out)
    ends = ("dies", "never settles")
    return text, [(end, *found.values()) for end in ends for found in noted(answer, end)]


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_a_group_that_librdkafka_led_is_warned_before_it_hurts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If Java led, there is no warning, because Kafka's own class has no such problem."""
    new = kr.Member("c2", ("a", "b"), rack_id="")
    group = _mixed("cooperative-sticky", new, leader="librdkafka")
    text, traps = _told(group, command, tmp_path, capsys)
    assert "At the next rebalance, the process of a leader with librdkafka dies" in text
    assert traps == [("dies", "next", [])]
    text, traps = _told(_mixed("cooperative-sticky", new, leader="java"), command, tmp_path, capsys)
    assert ("WARNING" in text, traps) == (False, [])


def test_racks_are_warned_of_before_the_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """c1 has a rack, c0 has none: from the next rebalance on, the group never settles."""
    racks = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"))
    topics = (kr.Topic("a", 4, racks),)
    members = (kr.Member("c0", ("a",), rack_id=""), kr.Member("c1", ("a",), rack_id="b"))
    group = kr.GroupSpec("g", topics, members, COOPERATIVE)
    group = group.owning(kr.assign(group))
    text, traps = _told(group, "plan", tmp_path, capsys)
    assert (
        "At the next rebalance, a leader with librdkafka lets the group rebalance for ever" in text
    )
    assert traps == [("never settles", "next", [])]


def test_the_next_changes_are_tried(engine: Engine) -> None:
    calm = kr.GroupSpec(
        "g", (kr.Topic("t", 6),), tuple(kr.Member(f"c{n}", ("t",)) for n in range(3)), COOPERATIVE
    )
    assert librdkafka_traps(calm, engine=engine) == ()
    group = _mixed(COOPERATIVE)
    (trap,) = librdkafka_traps(group, engine=engine)
    assert trap == ("dies", "following", "a new member with all topics")
    assert librdkafka_traps(group, engine=engine, most_plays=0) == ()
    # After a change to range, the leader does not die.
    assert librdkafka_traps(group, changes=["switch-assignor=range"], engine=engine) == ()


@pytest.mark.parametrize(
    ("topics", "subscriptions", "change"),
    [
        ((3, 6, 6), ("abc", "bc", "a"), "add-members=1,like=c0"),
        ((2, 5, 3), ("a", "abc", "bc"), "add-members=1,like=c1"),
    ],
)
def test_a_change_that_kills_the_leader_is_a_trap_and_an_error(
    topics: tuple[int, ...], subscriptions: tuple[str, ...], change: str, engine: Engine
) -> None:
    counts = tuple(kr.Topic(name, count) for name, count in zip("abc", topics, strict=True))
    members = tuple(
        kr.Member(f"c{n}", tuple(names), rack_id="") for n, names in enumerate(subscriptions)
    )
    group = kr.GroupSpec("g", counts, members, COOPERATIVE)
    group = group.owning(kr.assign(group))
    traps = librdkafka_traps(group, engine=engine)
    assert change in {trap.change for trap in traps if trap.end == "dies"}
    with pytest.raises(kr.AssignorThrows, match="kills the leader's process"):
        kr.plan(group, None, [change], engine=engine)


def test_spark_takes_the_names_that_the_core_has() -> None:
    pytest.importorskip("pyspark", reason="no pyspark: pip install -e '.[spark]'")
    from kafka_rebalance.bulk import calls

    for name in differential.DIALECTS:
        calls.known(name)
    with pytest.raises(kr.GroupError, match=r"Spark's workers know range, .*, librdkafka/range"):
        calls.known("kafka-python/range")

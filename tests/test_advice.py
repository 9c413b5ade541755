# SPDX-License-Identifier: Apache-2.0
"""Advice that fits the client library, and the seconds of `compare`."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupError, GroupSpec, Topic
from kafka_rebalance.assignors.registry import KAFKAS, planned_names
from kafka_rebalance.cli import main
from kafka_rebalance.data import captured_lines
from kafka_rebalance.plans.changes import change_from_text
from kafka_rebalance.plans.clients import CLIENTS, clients_of, recipe
from kafka_rebalance.simulator import (
    scenario_from_group,
    simulate_seeds,
)
from kafka_rebalance.simulator.timing import MOST_WORK, SEEDS, timed
from tests.support.prompt import command
from tests.support.switched_groups import running

if TYPE_CHECKING:
    from pathlib import Path

# Which groups get advice --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignor", "whose"),
    [
        ("stream", '"stream" is Kafka Streams\' own assignor'),
        ("RoundRobinAssigner", "is KafkaJS's own assignor"),
        ("uniform", r"is the brokers' assignor of the consumer protocol \(KIP-848\)"),
        ("nope", '"nope" is not known; known are range'),
    ],
)
def test_an_assignor_that_is_not_kafkas_is_refused_by_its_right_name(
    assignor: str, whose: str
) -> None:
    """An application of Kafka Streams, for example, cannot change its assignor."""
    group = running("range").edited(assignor=assignor)
    for ask in (kr.compare, kr.plan, kr.assign):
        with pytest.raises(GroupError, match=f"assignor: .*{whose.lstrip('.*')}"):
            ask(group)
    (in_rust,) = json.loads(f"[{command('assign', '-', stdin=group.to_json()).stdout}]")
    with pytest.raises(GroupError) as raised:
        kr.plan(group)
    assert in_rust["error"] == str(raised.value)


def test_compare_refuses_kafka_streams_at_the_prompt() -> None:
    line = running("range").edited(assignor="stream").to_json()
    run = command("compare", "-", stdin=line)
    assert run.returncode == 3
    assert run.stdout.startswith("Left out: 1 group of Kafka Streams, ")
    assert "no group is left: its assignor is Kafka Streams' own assignor" in run.stderr


def test_clients_are_known_by_the_client_ids_that_they_have_of_themselves() -> None:
    told = {
        "kafka-python-3.0.12": "kafka-python",
        "aiokafka-0.14.0": "aiokafka",
        "rdkafka": "librdkafka",
        "consumer-g-3": "Java",
        "consumer-other-3": None,
        "orders-3": None,
        None: None,
    }
    for client_id, name in told.items():
        found = [one.name for one in clients_of(running("range", client=client_id))]
        assert found == ([] if name is None else [name]), client_id


def test_only_assignors_that_the_clients_have_are_recommended() -> None:
    """aiokafka has no cooperative rebalancing, librdkafka no eager sticky assignor."""
    anybody = kr.compare(running("range"), ["remove-members=1"])
    assert anybody.recommended == "cooperative-sticky"
    aiokafka = kr.compare(running("range", client="aiokafka-0.14.0"), ["remove-members=1"])
    assert aiokafka.recommended != "cooperative-sticky"
    assert aiokafka.reason.endswith(
        "; cooperative-sticky would do better, but aiokafka does not have it"
    )
    for client in CLIENTS:
        for old in planned_names():
            for new in {*planned_names()} - {old}:
                assert (recipe(client, old, new).way == "none") == (new not in client.assignors)
    none = kr.compare(running("range", client="aiokafka-0.14.0"), assignors=["cooperative-sticky"])
    assert (none.recommended, none.migration) == (None, None)
    assert none.reason == "aiokafka has none of these assignors that becomes stable"
    own = running("aiokafka/sticky", client="aiokafka-0.14.0")
    plug_in = kr.compare(own, assignors=["cooperative-sticky", "sticky"])
    assert plug_in.recommended == "sticky"
    assert plug_in.reason.startswith(
        "sticky is the only one that becomes stable and that the clients"
    )


@pytest.mark.parametrize(
    ("libraries", "lacks"),
    [
        (("python", "aiokafka", "python"), "aiokafka"),  # as in a snapshot of aiokafka members
        (("java", "aiokafka", "java"), "aiokafka"),
        (("java", "kafka-python", None), None),
    ],
)
def test_an_assignor_is_not_recommended_if_the_bytes_of_one_member_show_that_it_lacks_it(
    libraries: tuple[str | None, ...], lacks: str | None
) -> None:
    group = running("range")
    members = tuple(
        replace(member, client_library=library)
        for member, library in zip(group.members, libraries, strict=True)
    )
    compared = kr.compare(group.edited(members=members), ["remove-members=1"])
    assert (compared.recommended == "cooperative-sticky") == (lacks is None)
    if lacks:
        better = f"cooperative-sticky would do better, but {lacks} does not have it"
        assert compared.reason.endswith(f"; {better}")


def test_members_that_run_either_python_library_get_what_both_have() -> None:
    group = running("range")
    members = tuple(replace(member, client_library="python") for member in group.members)
    compared = kr.compare(group.edited(members=members), ["remove-members=1"])
    assert compared.recommended not in (None, "cooperative-sticky")
    assert compared.reason.endswith(
        "; cooperative-sticky would do better if no member runs aiokafka, which does not have it"
    )


def test_a_group_of_one_member_keeps_its_assignor() -> None:
    alone = running("range").edited(members=running("range").members[:1])
    assert kr.compare(alone).recommended == "range"
    assert kr.compare(alone, ["add-members=2"]).recommended == "cooperative-sticky"
    assert kr.compare(alone, assignors=["sticky", "roundrobin"]).recommended == "sticky"


def test_tables_do_not_say_which_python_library_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members with custom client ids send bytes that both libraries send."""
    either = replace(running("roundrobin"), group_id="either", leader_library="python")
    members = tuple(replace(m, client_library="python", client_id="x") for m in either.members)
    known = tuple(replace(m, client_library="aiokafka") for m in members)
    groups = (either.edited(members=members), replace(either, group_id="sure", members=known))
    file = tmp_path / "groups.jsonl"
    file.write_text("\n".join(group.to_json() for group in groups), encoding="utf-8")
    for words in (("describe", "--all"), ("plan",), ("compare",)):
        assert main([*words, str(file)]) == 0
        one, other = (
            line for line in capsys.readouterr().out.splitlines() if "/roundrobin " in line
        )
        assert one.split()[1] == "python/roundrobin"
        assert other.split()[1] == "aiokafka/roundrobin"


# The printed settings -----------------------------------------------------------------------------


def recipes(client: str) -> list[tuple[str, str, str | None, str]]:
    """Returns the settings of all switches: (way, setting, import before it, two assignors)."""
    (found,) = (one for one in CLIENTS if one.name == client)
    names = KAFKAS
    return [
        (made.way, setting, made.needs, f"{old} {new}")
        for old in names
        for new in names
        if old != new
        for made in [recipe(found, old, new)]
        for setting in made.settings
    ]


def test_kafka_pythons_settings_are_taken_by_kafka_python() -> None:
    """kafka-python accepts each printed setting.

    It refuses a list of its own classes that mixes cooperative and eager.
    """
    kafka = pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    from kafka import errors

    def consumer(setting: str, needs: str | None) -> Any:
        names: dict[str, Any] = {"KafkaConsumer": kafka.KafkaConsumer}
        exec(needs or "", names)
        nowhere = "bootstrap_servers='127.0.0.1:1', api_version=(3, 9), group_id='g'"
        return eval(f"KafkaConsumer({nowhere}, {setting})", names)

    tried = recipes("kafka-python")
    assert {way for way, *_ in tried} == {"rolling"}
    for _, setting, needs, _ in tried:
        consumer(setting, needs).close()
    own = (
        "from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor\n"
        "from kafka.coordinator.assignors.range import RangePartitionAssignor"
    )
    mixed = "partition_assignment_strategy=[CooperativeStickyAssignor, RangePartitionAssignor]"
    with pytest.raises(errors.KafkaConfigurationError, match="common RebalanceProtocol"):
        consumer(mixed, own)


def test_aiokafkas_settings_are_taken_by_aiokafka() -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="no aiokafka: pip install -e '.[aiokafka]'")

    async def consumer(setting: str, needs: str | None) -> None:
        names: dict[str, Any] = {"AIOKafkaConsumer": aiokafka.AIOKafkaConsumer}
        exec(needs or "", names)
        made = eval(f"AIOKafkaConsumer(group_id='g', {setting})", names)
        assert [one.name for one in made._partition_assignment_strategy]

    tried = recipes("aiokafka")
    assert {way for way, *_ in tried} == {"stop all"}
    for _, setting, needs, _ in tried:
        asyncio.run(consumer(setting, needs))


def test_librdkafkas_settings_have_one_kind_and_names_that_it_knows() -> None:
    """librdkafka refuses `sticky` and lists that mix eager and cooperative."""
    confluent_kafka = pytest.importorskip(
        "confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'"
    )

    def refused(names: str) -> bool:
        settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
        try:
            confluent_kafka.Consumer(settings | {"partition.assignment.strategy": names}).close()
        except confluent_kafka.KafkaException as error:
            return "partition.assignment.strategy" in str(error)
        return False

    for way, setting, needs, switch in recipes("librdkafka"):
        names = setting.removeprefix("partition.assignment.strategy=").split(",")
        assert {*names} <= {"range", "roundrobin", "cooperative-sticky"}
        assert needs is None
        assert not refused(",".join(names))
        assert (way == "rolling") == (not refused(",".join(switch.split())))
        # So a rolling switch is only possible between range and roundrobin.
        assert (way == "rolling") == (not {"cooperative-sticky", "sticky"} & {*switch.split()})


def test_javas_settings_are_kafkas_class_names() -> None:
    """tests/live/test_recipes.py constructs consumers with these class names."""
    for way, setting, _, _ in recipes("Java"):
        assert way == "rolling"
        for name in setting.removeprefix("partition.assignment.strategy=").split(","):
            assert name.startswith("org.apache.kafka.clients.consumer.")
            assert name.endswith("Assignor")


# Seconds ------------------------------------------------------------------------------------------


def captured(group_id: str) -> GroupSpec:
    (line,) = (line for line in captured_lines() if json.loads(line)["group_id"] == group_id)
    return GroupSpec.from_json(line)


def test_seconds_are_those_of_simulate() -> None:
    """The seconds of `compare` equal those of `simulate --from`: both play one scenario."""
    orders, changes = captured("orders"), [change_from_text("add-members=1")]
    for assignor in planned_names():
        runs = simulate_seeds(scenario_from_group(orders, changes, assignor=assignor), SEEDS)
        assert timed(orders, changes, assignor).unread == runs.spreads()["unavailable_ms"]
    # A restart takes 10 s; in that time, a static member keeps its partitions.
    static = timed(orders, [change_from_text("bounce-members=*,static")], "range")
    assert static.settled.median is not None
    assert 10_000 < static.settled.median < 11_000
    with pytest.raises(GroupError, match="none is given, and only a change is timed"):
        timed(orders, [], "range")
    with pytest.raises(GroupError, match="cannot play it"):
        timed(orders, [change_from_text("resubscribe=orders")], "range")
    large = GroupSpec("g", (Topic("t", MOST_WORK),), orders.members[:2])
    with pytest.raises(GroupError, match="too many to be played beside a plan"):
        timed(large, changes, "range")


def test_the_best_by_seconds_is_printed_if_rounds_recommend_another() -> None:
    line = captured("orders").to_json()
    run = command("compare", "-", "--add-members", 1, stdin=line)
    assert "Switch to cooperative-sticky" in run.stdout
    assert "0.7 under range, roundrobin and sticky." in " ".join(run.stdout.split())
    without = command("compare", "-", stdin=line)
    assert "partition-s" not in without.stdout.partition("Recommended")[0]
    arguments = ("compare", "-", "--group", "orders", "--add-members", 1, "--json")
    told = json.loads(command(*arguments, stdin=line).stdout)
    assert told["times"]["range"]["unread_partition_ms"]["median"] == 717
    assert "heartbeats every 3 s" in told["times_assumed"]


def test_the_row_of_an_eager_groups_own_assignor_alone_has_seconds() -> None:
    eager, plain = (
        running("cooperative-sticky").edited(rebalance_protocol=one) for one in ("eager", None)
    )
    arguments = ("compare", "-", "--group", eager.group_id, "--add-members", 1, "--json")
    of_eager, of_plain = (
        json.loads(command(*arguments, stdin=one.to_json()).stdout)["times"]
        for one in (eager, plain)
    )
    assert of_eager["cooperative-sticky alone"] == of_plain["cooperative-sticky"]
    assert of_eager["cooperative-sticky"] != of_plain["cooperative-sticky"]
    assert "cooperative-sticky alone" not in of_plain
    shown = command(*arguments[:-1], stdin=eager.to_json()).stdout
    assert re.search(
        r"[0-9.]+ partition-seconds without a reader under cooperative-sticky alone",
        " ".join(shown.split()),
    )

# SPDX-License-Identifier: Apache-2.0
"""`snapshot` agrees with Kafka's own ConsumerGroupCommand, on real brokers with real members."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.broker import Broker, java, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka_rebalance import GroupSpec, TopicPartition
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.live import ClusterError, group_lags, snapshot, snapshot_lines
from tests.support.live_members import JavaMembers, PythonMembers, await_stable, join_by_hand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.live

TOPICS = {"t": [[0, 1], [1, 2], [2, 0], [0, 1], [1, 2], [2, 0]], "u": [[0], [1], [2]]}
RACKS = "abc"
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
PYTHON = [
    ("kafka-python", "range"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
]
HEALTHY = {
    **{f"java-{assignor}": assignor for assignor in ASSIGNORS},
    **{f"{client}-{assignor}": assignor for client, assignor in PYTHON},
}
# A line that `--describe --members --verbose` prints. Instance id and assignment can be empty.
MEMBER = re.compile(
    r"(?P<group>\S+)\s+(?P<member_id>\S+)\s+(?:(?P<instance>\S+)\s+)?(?P<host>/\S+)\s+"
    r"(?P<client_id>\S+)\s+(?P<count>\d+)\s+-\s+(?P<assignment>\S+:\S+)?\s*-\s+-\s*"
)


class Cluster(NamedTuple):
    """A cluster, as our snapshot, Kafka's command and the Java members report it."""

    server: str
    lines: dict[str, dict[str, Any]]
    left_out: dict[str, str]
    members: list[dict[str, str]]
    strategies: dict[str, str]
    java: dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    log = tmp_path_factory.mktemp("live") / "java-members.log"
    with Broker(brokers=len(RACKS)) as broker:
        server = broker.bootstrap_server
        _create_topics(server)
        with JavaMembers(server, log) as members, PythonMembers(server) as python:
            for client, assignor in PYTHON:
                for n in range(2):
                    group_id = f"{client}-{assignor}"
                    python.add(client, group_id, f"{group_id}-{n}", assignor, ["t", "u"])
            members.tell(
                add=[
                    *(_java(assignor, n) for assignor in ASSIGNORS for n in range(2)),
                    _member("emptied", 0, ["range"]),
                    _member("rebalancing", 0, ["range"]),
                    _member("modern", 0, [], configs={
                        "group.protocol": "consumer", "heartbeat.interval.ms": None,
                    }),
                ]
            )  # fmt: skip
            members.tell(add=[_java(assignor, n) for assignor in ASSIGNORS for n in range(2, 5)])
            members.tell(stall=["rebalancing-0"], close=["emptied-0"])
            told = members.tell(add=[_member("rebalancing", 1, ["range"])])
            join_by_hand(server, "unsynced", _subscription("t"), assignment=None)
            join_by_hand(server, "bad-subscription", b"\0", assignment=b"")
            join_by_hand(server, "bad-assignment", _subscription("t"), assignment=b"\0\1\0")
            join_by_hand(server, "connect", b"", protocol_type="connect", assignment=b"")
            await_stable(server, {f"{client}-{assignor}": 2 for client, assignor in PYTHON})
            left_out: dict[str, str] = {}
            lines = {
                line["group_id"]: line
                for line in snapshot_lines(server, on_left_out=left_out.__setitem__)
            }
            yield Cluster(
                server,
                lines,
                left_out,
                _describe(server, *HEALTHY),
                _strategies(server, *HEALTHY),
                told,
            )


def _java(assignor: str, n: int) -> dict[str, Any]:
    """Member 1 is static; 2 subscribes only to t; 3 subscribes to u and to a topic that does not
    exist.
    """
    member = _member(f"java-{assignor}", n, [assignor], client_rack=RACKS[n % 3])
    if n == 1:
        member["group_instance_id"] = f"pod-{assignor}"
    member["topics"] = {2: ["t"], 3: ["u", "missing"]}.get(n, ["t", "u"])
    return member


def _member(group_id: str, n: int, assignors: list[str], **more: Any) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "client_id": f"{group_id}-{n}",
        "assignors": assignors,
        "topics": ["t"],
        **more,
    }


def _subscription(topic: str) -> bytes:
    """Encodes a ConsumerProtocolSubscription of version 0 without user data."""
    name = topic.encode()
    return b"\0\0" + (1).to_bytes(4) + len(name).to_bytes(2) + name + b"\xff\xff\xff\xff"


def _create_topics(server: str) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.create_topics(
            {name: {"assignments": dict(enumerate(replicas))} for name, replicas in TOPICS.items()},
            wait_for_metadata=True,
        )


def _command(server: str, groups: tuple[str, ...], *options: str) -> list[str]:
    named = [argument for group in groups for argument in ("--group", group)]
    main = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    # By default, the command gives a busy machine 5 s.
    how = ("--bootstrap-server", server, "--timeout", "120000", "--describe")
    command = java(main, *how, *named, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    return [
        line for line in done.stdout.splitlines() if line.strip() and not line.startswith("GROUP ")
    ]


def _describe(server: str, *groups: str) -> list[dict[str, str]]:
    members = []
    for line in _command(server, groups, "--members", "--verbose"):
        match = MEMBER.fullmatch(line)
        assert match, f"cannot be read: {line}"
        members.append({key: value or "" for key, value in match.groupdict().items()})
    return members


def _strategies(server: str, *groups: str) -> dict[str, str]:
    lines = [line.split() for line in _command(server, groups, "--state")]
    return {fields[0]: fields[3] for fields in lines if fields[4] == "Stable"}


def _owned(member: dict[str, Any]) -> set[tuple[str, int]]:
    return {(one["topic"], p) for one in member["owned_partitions"] for p in one["partitions"]}


def _assigned(text: str) -> set[tuple[str, int]]:
    """Parses partitions such as `t:0,1;u:0`."""
    topics = [topic.split(":") for topic in text.split(";") if topic]
    return {(topic, int(p)) for topic, partitions in topics for p in partitions.split(",")}


def test_the_same_members_as_kafkas_command(cluster: Cluster) -> None:
    theirs = [
        (one["group"], one["member_id"], one["instance"], one["client_id"], one["host"])
        for one in cluster.members
    ]
    ours = [
        (group_id, one["member_id"], one["group_instance_id"] or "", one["client_id"],
         one["client_host"])
        for group_id in HEALTHY
        for one in cluster.lines[group_id]["members"]
    ]  # fmt: skip
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == 4 * 5 + len(PYTHON) * 2


def test_the_same_partitions_as_kafkas_command(cluster: Cluster) -> None:
    theirs = {one["member_id"]: _assigned(one["assignment"]) for one in cluster.members}
    assert [int(one["count"]) for one in cluster.members] == list(map(len, theirs.values()))
    for group_id in HEALTHY:
        members = cluster.lines[group_id]["members"]
        for member in members:
            assert _owned(member) == theirs[member["member_id"]], member
        owned = [p for member in members for p in _owned(member)]
        assert sorted(owned) == [
            (t, p) for t, replicas in TOPICS.items() for p in range(len(replicas))
        ]


def test_the_same_assignor_as_kafkas_command(cluster: Cluster) -> None:
    assert cluster.strategies == HEALTHY
    assert {g: cluster.lines[g]["assignor"] for g in HEALTHY} == HEALTHY


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_the_generation_that_the_members_are_in(cluster: Cluster, assignor: str) -> None:
    line = cluster.lines[f"java-{assignor}"]
    told = cluster.java[f"java-{assignor}"]
    generations = {member["generation_id"] for member in told.values()}
    assert {line["generation_id"]} == generations
    assert {member["generation_id"] for member in line["members"]} == generations


def test_subscriptions_and_racks_of_members(cluster: Cluster) -> None:
    for assignor in ASSIGNORS:
        members = {m["client_id"]: m for m in cluster.lines[f"java-{assignor}"]["members"]}
        for n in range(5):
            sent, read = _java(assignor, n), members[f"java-{assignor}-{n}"]
            assert sorted(read["topics"]) == sorted(sent["topics"])
            assert read["rack_id"] == sent["client_rack"]
            assert read["group_instance_id"] == sent.get("group_instance_id")


def test_topics_with_the_racks_of_their_replicas(cluster: Cluster) -> None:
    wanted = [
        {
            "name": name,
            "partitions": len(replicas),
            "racks": [[RACKS[node] for node in nodes] for nodes in replicas],
        }
        for name, replicas in TOPICS.items()
    ]
    for group_id in HEALTHY:  # no snapshot line has the topic "missing"
        topics = sorted(cluster.lines[group_id]["topics"], key=lambda t: str(t["name"]))
        ids = [topic["topic_id"] for topic in topics]
        assert len({base64.urlsafe_b64decode(f"{one}==") for one in ids}) == len(wanted)
        assert [{**one, "topic_id": id} for one, id in zip(wanted, ids, strict=True)] == topics


@pytest.mark.parametrize(
    ("group_id", "error"),
    [
        ("rebalancing", "state: PreparingRebalance, "),
        ("unsynced", "state: CompletingRebalance, "),
        ("bad-subscription", "members[0].subscription: "),
        ("bad-assignment", "members[0].assignment: "),
    ],
)
def test_a_group_that_cannot_be_read_is_an_error_line(
    cluster: Cluster, group_id: str, error: str
) -> None:
    line = cluster.lines[group_id]
    assert line.keys() == {"group_id", "error"}
    assert line["error"].startswith(error)


@pytest.mark.parametrize(
    ("group_id", "why"),
    [
        ("connect", "protocol_type: connect, "),
        ("emptied", "state: Empty, "),
    ],
)
def test_a_group_without_a_classic_assignor_is_left_out(
    cluster: Cluster, group_id: str, why: str
) -> None:
    assert group_id not in cluster.lines
    assert cluster.left_out[group_id].startswith(why)
    assert list(snapshot_lines(cluster.server, [group_id])) == [
        {"group_id": group_id, "error": cluster.left_out[group_id]}
    ]


def test_groups_asked_for_by_name_come_in_that_order(cluster: Cluster) -> None:
    wanted = ["java-sticky", "no-such-group", "java-range"]
    first, second, third = snapshot_lines(cluster.server, wanted)
    assert [first, third] == [cluster.lines["java-sticky"], cluster.lines["java-range"]]
    assert second["error"].startswith("group_id: no such group")
    groups = snapshot(cluster.server, wanted)
    assert next(groups) == GroupSpec.from_dict(first)
    with pytest.raises(GroupError, match=r"^group_id: no such group") as raised:
        next(groups)
    assert raised.value.__notes__ == ['group_id: "no-such-group"']
    left_out: dict[str, str] = {}
    assert list(snapshot(cluster.server, wanted, on_left_out=left_out.__setitem__)) == [
        GroupSpec.from_dict(line) for line in (first, third)
    ]
    assert left_out == {"no-such-group": second["error"]}


def test_nothing_is_there_that_was_not_started(cluster: Cluster) -> None:
    broken = {"rebalancing", "unsynced", "bad-subscription", "bad-assignment"}
    assert cluster.lines.keys() == HEALTHY.keys() | broken | {"modern"}
    assert cluster.left_out.keys() == {"connect", "emptied"}


@pytest.mark.parametrize("server", ["127.0.0.1:1", "no-such-host.invalid:9092"])
def test_a_cluster_that_is_not_there(server: str) -> None:
    started = time.monotonic()
    with pytest.raises(ClusterError, match=re.escape(server)):
        next(snapshot_lines(server, configs={"bootstrap_timeout_ms": 500}))
    assert time.monotonic() - started < 10


def test_a_port_that_is_none() -> None:
    with pytest.raises(GroupError, match='"port" is not a port from 1 to 65535'):
        next(snapshot_lines("127.0.0.1:port"))


def test_a_setting_that_kafka_python_does_not_have() -> None:
    with pytest.raises(ClusterError, match="no_such_setting"):
        next(snapshot_lines("127.0.0.1:1", configs={"no_such_setting": 1}))


def test_commands_read_the_cluster_themselves(cluster: Cluster, tmp_path: Path) -> None:
    def command(*arguments: str) -> list[dict[str, Any]]:
        ran = subprocess.run(
            [sys.executable, "-m", "kafka_rebalance", *arguments, "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in ran.stdout.splitlines()]

    where = ("--bootstrap-server", cluster.server, "--group", "java-cooperative-sticky")
    line = cluster.lines["java-cooperative-sticky"]
    (planned,) = command("plan", *where, "--add-members", "1")
    assert planned["balance_before"]["max"] == max(
        sum(len(entry["partitions"]) for entry in member["owned_partitions"])
        for member in line["members"]
    )
    assert len(planned["made_up"]) == 1
    (simulated,) = command("simulate", *where, "--add-members", "1")
    saved = tmp_path / "groups.jsonl"
    saved.write_text(contract.dumps(line), encoding="utf-8")
    assert command("simulate", "--from", str(saved), "--add-members", "1") == [simulated]
    assert simulated["rebalances"]
    (compared,) = command("compare", *where)
    assert compared["assignor"] == "cooperative-sticky"
    assert {one["assignor"] for one in compared["candidates"]} == set(ASSIGNORS)


def test_lags_are_those_of_kafkas_command(cluster: Cluster) -> None:
    """Our lags of `emptied`, after some records and commits, equal those of Kafka's command."""
    from kafka import KafkaAdminClient, KafkaProducer
    from kafka import TopicPartition as Partition
    from kafka.structs import OffsetAndMetadata

    with KafkaProducer(bootstrap_servers=cluster.server) as producer:
        for partition, records in enumerate((5, 3, 0)):
            for _ in range(records):
                producer.send("t", b"record", partition=partition)
        producer.flush()
    with KafkaAdminClient(bootstrap_servers=cluster.server) as admin:
        commits = {Partition("t", p): OffsetAndMetadata(n, "", -1) for p, n in ((0, 2), (1, 3))}
        admin.alter_group_offsets("emptied", commits)
    partitions = [TopicPartition("t", p) for p in range(6)]
    lags = group_lags(cluster.server, {"emptied": partitions, "java-range": [], "unread": []})
    # A Java member of `emptied` committed all other partitions before it left.
    assert lags["emptied"] == {tp: 3 if tp.partition == 0 else 0 for tp in partitions}
    assert lags["java-range"] == lags["unread"] == {}
    theirs = [line.split() for line in _command(cluster.server, ("emptied",), "--offsets")]
    found = {(fields[1], int(fields[2])): int(fields[5]) for fields in theirs}
    assert {tuple(tp): lag for tp, lag in lags["emptied"].items()} == found
    ran = subprocess.run(
        [sys.executable, "-m", "kafka_rebalance", "describe", "--group", "java-range",
         "--bootstrap-server", cluster.server],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.search(r"^missing: java-range-3-.*: there is no topic missing", ran.stdout, re.M)
    assert "Lag: " in ran.stdout
    assert f"kafka-rebalance compare --bootstrap-server {cluster.server}" in ran.stdout

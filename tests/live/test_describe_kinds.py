# SPDX-License-Identifier: Apache-2.0
"""`describe` shows live groups that no classic assignor assigns as Kafka's own interfaces do."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.live import snapshot_lines
from kafka_rebalance.live.cluster import admin_client
from kafka_rebalance.live.connect_rest import read_cluster
from kafka_rebalance.live.raw_requests import ask_coordinator
from kafka_rebalance.plans import plan
from kafka_rebalance.wire.broker_groups import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from kafka_rebalance.wire.layout import layout_of
from tests.support.broker import Broker, java, missing_tools
from tests.support.connect_cluster import ConnectCluster, missing_connect
from tests.support.live_members import JavaMembers
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.live


class Described(NamedTuple):
    """A group as `describe` shows it (JSON and text), and as Kafka and `snapshot` show it."""

    shown: dict[str, Any]
    text: str
    kafkas: Any
    line: dict[str, Any] | None = None


def _describe(server: str, group: str) -> tuple[dict[str, Any], str]:
    def run(*options: str) -> str:
        command = [sys.executable, "-m", "kafka_rebalance", "describe", "--bootstrap-server"]
        ran = subprocess.run(
            [*command, server, "--group", group, *options],
            capture_output=True,
            text=True,
            timeout=FAR_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    shown: dict[str, Any] = json.loads(run("--json"))
    return shown, run()


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Described]]:
    missing = missing_tools() or missing_connect()
    if missing:
        pytest.skip(missing)
    log = tmp_path_factory.mktemp("live") / "java-members.log"
    with Broker() as broker:
        server = broker.bootstrap_server
        with ConnectCluster(server, workers=2) as cluster:
            cluster.create("files", tasks=3)
            cluster.create("orders", tasks=2)
            rest = read_cluster(cluster.url)
            found = {"connect": Described(*_describe(server, "connect"), rest)}
        with admin_client(server, None) as admin:
            admin.create_topics({"t": {"num_partitions": 6}, "u": {"num_partitions": 3}})
        with JavaMembers(server, log) as members, _share_member(server):
            members.tell(add=[_modern(n) for n in range(3)])
            for group, command in (("modern", "Consumer"), ("shared", "Share")):
                theirs = _kafkas(server, group, f"{command}GroupCommand")
                (line,) = snapshot_lines(server, [group])
                found[group] = Described(*_describe(server, group), theirs, line)
        yield found


def _modern(n: int) -> dict[str, Any]:
    return {
        "group_id": "modern",
        "client_id": f"modern-{n}",
        "assignors": [],
        "topics": ["t", "u"] if n else ["t"],
        "configs": {"group.protocol": "consumer", "heartbeat.interval.ms": None},
    }


@contextlib.contextmanager
def _share_member(server: str) -> Iterator[None]:
    """A member that sends ShareGroupHeartbeat; the block begins when it has partitions."""
    assigned, ended = threading.Event(), threading.Event()

    def beat() -> None:
        epoch = 0
        with admin_client(server, None) as admin:
            while not ended.wait(1 if assigned.is_set() else 0.2):
                heartbeat = ShareGroupHeartbeat(
                    group_id="shared",
                    member_id="A" * 22,
                    member_epoch=epoch,
                    subscribed_topic_names=("t",),
                )
                request = layout_of(ShareGroupHeartbeat).written(heartbeat)
                _, data = ask_coordinator(admin, "shared", 76, (1, 1), request)
                answer = layout_of(ShareGroupHeartbeatResponse, 1).read(data, "response")
                assert answer.error_code == 0, answer
                epoch = answer.member_epoch
                if answer.assignment:
                    assigned.set()

    with ThreadPoolExecutor(1) as pool:
        beating = pool.submit(beat)
        try:
            while not assigned.wait(1):
                assert not beating.done(), beating.exception()
            yield
        finally:
            ended.set()
        beating.result(FAR_S)


def _kafkas(server: str, group: str, command: str) -> dict[str, tuple[str, str]]:
    """Returns member id -> client id and partitions, such as `t:0,1;u:0`, of Kafka's command."""
    main = f"org.apache.kafka.tools.consumer.group.{command}"
    options = ("--describe", "--group", group, "--members", "--verbose")
    ran = subprocess.run(
        java(main, "--bootstrap-server", server, *options),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    head, *rows = [line.split() for line in ran.stdout.splitlines() if line.strip()]
    client = head.index("CLIENT-ID")
    place = next(i for i, name in enumerate(head) if name.endswith("ASSIGNMENT"))
    return {row[head.index("CONSUMER-ID")]: (row[client], row[place]) for row in rows}


def _assigned(text: str) -> list[str]:
    """Returns `t-0`, `t-1` and `u-0` for `t:0,1;u:0`."""
    topics = [topic.split(":") for topic in text.split(";")]
    return sorted(f"{topic}-{p}" for topic, partitions in topics for p in partitions.split(","))


@pytest.mark.parametrize(("group", "members"), [("modern", 3), ("shared", 1)])
def test_members_are_those_of_kafkas_command(
    groups: dict[str, Described], group: str, members: int
) -> None:
    shown, text, kafkas, _ = groups[group]
    assert {
        one["member_id"]: (one["client_id"], sorted(one["owned_partitions"]))
        for one in shown["members"]
    } == {id_: (client, _assigned(owned)) for id_, (client, owned) in kafkas.items()}
    assert len(kafkas) == members
    assert shown["state"] == "Stable"
    assert f"\n{group}, " in text  # after the answer in words
    assert all(f" {one['client_id']} " in text for one in shown["members"])


@pytest.mark.parametrize(
    ("group", "assignor"), [("modern", "consumer/uniform"), ("shared", "share/simple")]
)
def test_a_snapshot_has_the_members_of_kafkas_command(
    groups: dict[str, Described], group: str, assignor: str
) -> None:
    _, _, kafkas, line = groups[group]
    assert line
    assert line["assignor"] == assignor
    assert {
        member["member_id"]: sorted(
            f"{run['topic']}-{p}" for run in member["owned_partitions"] for p in run["partitions"]
        )
        for member in line["members"]
    } == {member_id: _assigned(owned) for member_id, (_, owned) in kafkas.items()}
    planned = plan(GroupSpec.from_dict(line))
    assert (planned.moves, len(planned.rounds)) == (0, 1)


def test_the_lag_of_a_group_that_has_read_nothing_is_zero(groups: dict[str, Described]) -> None:
    assert groups["modern"].shown["lag"] == 0
    assert groups["modern"].shown["assignor"] == "uniform"
    assert groups["shared"].shown["lag"] is None


def test_connects_work_is_that_of_its_rest_interface(groups: dict[str, Described]) -> None:
    connect = groups["connect"]
    ours = {
        one["url"].removeprefix("http://").rstrip("/"): (
            sorted(one["connectors"]),
            sorted(one["tasks"]),
        )
        for one in connect.shown["members"]
    }
    assert ours == {
        one["id"]: (sorted(one["connectors"]), sorted(map(list, one["tasks"])))
        for one in connect.kafkas["workers"]
    }
    assert sum(len(tasks) for _, tasks in ours.values()) == 5
    assert connect.shown["leader"] in {one["member_id"] for one in connect.shown["members"]}


def test_connects_table(groups: dict[str, Described]) -> None:
    connect = groups["connect"]
    assert "\nconnect, Kafka Connect, sessioned, Stable: 2 workers, " in connect.text
    for one in connect.kafkas["workers"]:
        assert f" {one['id']} " in connect.text
    assert "kafka-rebalance connect --url" in connect.text

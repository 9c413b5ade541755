# SPDX-License-Identifier: Apache-2.0
"""Real members of each library subscribe again to the same topics, and then one is deleted.

Each group reads two topics. The plan, made from a snapshot before each change, reports which groups
rebalance, and whose automatic commits delay the rebalance after the deletion.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("aiokafka", reason="aiokafka is not installed: pip install -e '.[aiokafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.notes.may_happen import commit_waits
from tests.prediction import python_member
from tests.prediction.cast import AIOKAFKA, KAFKA_PYTHON, LIBRDKAFKA, Part
from tests.prediction.log import OffsetsLog, generations
from tests.support.live_members import JavaMembers
from tests.support.member_processes import MemberProcesses
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.live

POLL_MS = 12_000
"""The max.poll.interval.ms of all members; librdkafka refuses less than the session timeout."""
COMMITS, BY_HAND = "java-range", "java-by-hand"
WAITS_FOR_EVER = "aiokafka-range"
CONSUMER = "java-consumer"
JAVA: dict[str, tuple[str | None, dict[str, str | None]]] = {
    COMMITS: ("range", {}),
    "java-cooperative": ("cooperative-sticky", {}),
    BY_HAND: ("range", {"enable.auto.commit": "false"}),
    CONSUMER: (None, {"group.protocol": "consumer", "heartbeat.interval.ms": None}),
}
PYTHON = {
    "librdkafka-range": (LIBRDKAFKA, "range", True),
    "librdkafka-cooperative": (LIBRDKAFKA, "cooperative-sticky", True),
    "kafka-python-range": (KAFKA_PYTHON, "range", True),
    WAITS_FOR_EVER: (AIOKAFKA, "range", True),
    "aiokafka-by-hand": (AIOKAFKA, "range", False),
}
CLASSIC = [one for one in (*JAVA, *PYTHON) if one != CONSUMER]
JOINS_ANYWAY = {"librdkafka-range", WAITS_FOR_EVER, "aiokafka-by-hand"}


def topics(group: str) -> tuple[str, str]:
    return f"{group}-deleted", f"{group}-kept"


def java_member(group: str, number: int) -> dict[str, Any]:
    assignor, own = JAVA[group]
    configs = {"max.poll.interval.ms": str(POLL_MS), "metadata.max.age.ms": "1000"} | own
    return {"group_id": group, "client_id": f"{group}-{number}", "topics": topics(group),
            "assignors": [assignor] if assignor else [], "configs": configs}  # fmt: skip


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str]) -> Callable[[str, str], dict[str, Any]]:
    def read(server: str, group: str) -> dict[str, Any]:
        capsys.readouterr()
        select = ["--group", group] + ["--leaders"] * (group != CONSUMER)
        assert main(["snapshot", "--bootstrap-server", server, *select]) == 0
        read: dict[str, Any] = json.loads(capsys.readouterr().out)
        return read

    return read


def test_what_members_do_when_topics_change(
    line: Callable[[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    from kafka import KafkaAdminClient
    from kafka.admin import NewPartitions

    python = MemberProcesses(python_member.run)
    with Broker() as broker, JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin, OffsetsLog(server) as log:
            names = [name for group in (*JAVA, *PYTHON) for name in topics(group)]
            counts = {"num_partitions": 2, "replication_factor": 1}
            admin.create_topics(dict.fromkeys((*names, "unread"), counts), wait_for_metadata=True)
            members = [java_member(group, number) for group in JAVA for number in (1, 2)]
            java.send(wait=False, add=members)
            for group, (library, assignor, commits) in PYTHON.items():
                for number in (1, 2):
                    # The bytes of aiokafka with our plug-in are Java's; its client id is
                    # aiokafka's.
                    client_id = "aiokafka-0.14.0" if library == AIOKAFKA else f"{group}-{number}"
                    part = Part(number, library, group, assignor, client_id, topics(group))
                    stacks = tmp_path / f"{group}-{number}.stacks"
                    python.start(part.name, part, server, POLL_MS, stacks, commits)
            try:
                until("each group has two members", lambda: all(settled(log, g) for g in CLASSIC))
                until("all groups are quiet", lambda: min(map(log.quiet_s, CLASSIC)) > 3)
                before = newest(log)
                groups = (*CLASSIC, CONSUMER)
                specs = {group: kr.GroupSpec.from_dict(line(server, group)) for group in groups}
                # Nobody reads the topic that grows; all members already subscribe to the topics of
                # the change.
                admin.create_partitions({"unread": NewPartitions(total_count=4)})
                for group in PYTHON:
                    for number in (1, 2):
                        python.subscribe(f"{group}/{number}", topics(group))
                again = {one["client_id"]: list(topics(one["group_id"])) for one in members}
                java.send(wait=False, subscribe=again)
                until("groups rebalance", lambda: later(log, before) >= JOINS_ANYWAY)
                until("all groups are quiet", lambda: min(map(log.quiet_s, CLASSIC)) > 3)
                assert later(log, before) == JOINS_ANYWAY
                for group, one in specs.items():
                    planned = kr.plan(one, changes=[f"resubscribe={','.join(topics(group))}"])
                    assert bool(planned.rounds) == (group in JOINS_ANYWAY), group

                plans = {g: kr.plan(one, changes=[deletion(g)]) for g, one in specs.items()}
                waits = {
                    group: [note.detail or {} for note in commit_waits(one)]
                    for group, one in plans.items()
                }
                now = newest(log)
                since_ms = time.time_ns() // 1_000_000
                admin.delete_topics([topics(group)[0] for group in (*JAVA, *PYTHON)])
                rebalancing = {*CLASSIC} - {WAITS_FOR_EVER}
                until("groups rebalance", lambda: later(log, now) >= rebalancing)
                until(CONSUMER, lambda: not holds_deleted(line(server, CONSUMER)))
                after = line(server, CONSUMER)
                first = {g: generation_after(log, g, now[g]) for g in CLASSIC}
            finally:
                python.kill_all()
    slow = {COMMITS, "java-cooperative", "kafka-python-range"}
    assert {g for g, at in first.items() if at is None} == {WAITS_FOR_EVER}
    assert {g for g, at in first.items() if at and at >= since_ms + POLL_MS} == slow
    assert held_by(after) == {m: len(owned) for m, owned in plans[CONSUMER].after.items()}
    told = {g for g, notes in waits.items() if any(n["java"] + n["kafka_python"] for n in notes)}
    assert slow <= told
    assert not told & {CONSUMER, "librdkafka-range", "librdkafka-cooperative", WAITS_FOR_EVER}
    assert WAITS_FOR_EVER in {
        g for g, notes in waits.items() if any(one["aiokafka"] for one in notes)
    }


def settled(log: OffsetsLog, group: str) -> bool:
    found = generations(log.of(group))
    held = found[-1].assigned() if found else {}
    return len(held) == 2 and sum(map(len, held.values())) == 4


def newest(log: OffsetsLog) -> dict[str, int]:
    return {group: generations(log.of(group))[-1].generation_id for group in CLASSIC}


def later(log: OffsetsLog, than: dict[str, int]) -> set[str]:
    """Returns the groups with a later generation."""
    return {group for group, generation_id in newest(log).items() if generation_id > than[group]}


def deletion(group: str) -> str:
    return f"remove-topics={topics(group)[0]}"


def holds_deleted(group: dict[str, Any]) -> bool:
    owned = (one["topic"] for m in group["members"] for one in m.get("owned_partitions", ()))
    return any(topic.endswith("deleted") for topic in owned)


def held_by(group: dict[str, Any]) -> dict[str, int]:
    return {
        one["member_id"]: sum(len(each["partitions"]) for each in one.get("owned_partitions", ()))
        for one in group["members"]
    }


def generation_after(log: OffsetsLog, group: str, generation_id: int) -> int | None:
    """Returns the time of the first generation after this one, in ms; None if there is none."""
    later = (one for one in generations(log.of(group)) if one.generation_id > generation_id)
    return next((one.timestamp_ms for one in later), None)

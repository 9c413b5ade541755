# SPDX-License-Identifier: Apache-2.0
"""`history --bootstrap-server` prints what `history` prints for a file of the broker's records."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")
pytest.importorskip("confluent_kafka", reason="no confluent-kafka: pip install -e '.[confluent]'")

import confluent_kafka
from kafka import KafkaAdminClient

from kafka_rebalance.cli import main
from kafka_rebalance.history.all_groups import recorded_generations
from kafka_rebalance.history.replayed import replay
from kafka_rebalance.live import offsets_records
from kafka_rebalance.report.history.table import row_text
from tests.support.live_members import JavaMembers
from tests.support.waiting import FAR_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.live

TOPIC = "__consumer_offsets"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with two groups at rest: members have joined, left, and joined again."""
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker() as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_server) as admin:
            admin.create_topics({"t": {"num_partitions": 6}}, wait_for_metadata=True)
        log = tmp_path_factory.mktemp("history") / "java.log"
        with JavaMembers(broker.bootstrap_server, log) as members:
            members.tell(add=[_member(group, n) for group in ("a", "b") for n in range(2)])
            members.tell(close=["a-0", "b-1"])
            members.tell(add=[_member("a", 0)])
            yield broker.bootstrap_server


def _member(group_id: str, n: int) -> dict[str, Any]:
    configs = {"group.protocol": "classic", "auto.commit.interval.ms": "500"}
    assignors = ["range" if group_id == "a" else "cooperative-sticky"]
    return {
        "group_id": group_id,
        "client_id": f"{group_id}-{n}",
        "assignors": assignors,
        "topics": ["t"],
        "configs": configs,
    }


def _read_by_librdkafka(server: str, path: Path) -> None:
    """Writes the topic's records as JSON lines, read by a client that the command does not use."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server, "group.id": "reader"})
    partitions = consumer.list_topics(TOPIC, FAR_S).topics[TOPIC].partitions
    places = [confluent_kafka.TopicPartition(TOPIC, p, 0) for p in partitions]
    ends = {place.partition: consumer.get_watermark_offsets(place, FAR_S)[1] for place in places}
    consumer.assign(places)
    left = {p for p, end in ends.items() if end}
    with path.open("w") as lines:
        deadline = time.monotonic() + FAR_S
        while left:
            assert time.monotonic() < deadline, f"the ends of partitions {left} are not read"
            message = consumer.poll(1)
            if message is None:
                continue
            assert message.error() is None
            fields = {
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "key": _text(message.key()),
                "value": _text(message.value()),
            }
            print(json.dumps(fields), file=lines)
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
    consumer.close()


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def test_a_live_cluster_has_the_history_of_its_records(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "records.jsonl"
    _read_by_librdkafka(server, path)
    for options in (["--json"], ["--group", "a"], ["--replay"], ["--what-if"], ["--patterns"]):
        assert main(["history", "--bootstrap-server", server, *options]) == 0
        live = capsys.readouterr().out
        assert main(["history", str(path), *options]) == 0
        assert live == capsys.readouterr().out
    assert main(["history", "--bootstrap-server", server, "--group", "a", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"started", "rejoined"} <= {row["cause"] for row in rows}


def test_reading_ends_at_the_end_that_the_topic_had(server: str) -> None:
    """The members commit meanwhile; progress counts up to the number of offsets at the start."""
    shown: list[tuple[int, int]] = []
    records = offsets_records(server, on_progress=lambda *counts: shown.append(counts))
    first = next(records)
    begun = sum(1 for _ in offsets_records(server))
    until("the members commit", lambda: sum(1 for _ in offsets_records(server)) > begun)
    count = 1 + sum(1 for _ in records)
    assert first.offset == 0
    assert {total for _, total in shown} == {count}
    assert [done for done, _ in shown] == sorted(done for done, _ in shown)
    assert shown[-1][0] == count
    assert sum(1 for _ in offsets_records(server)) > count


class _Steps:
    """The steps of Java members from now on, read in the logs of their processes."""

    def __init__(self, directory: Path) -> None:
        self._logs = {path.stem: path for path in directory.glob("*.log")}
        self._begin = {name: len(path.read_text()) for name, path in self._logs.items()}

    def wait(self, process: str, client_id: str, *steps: str) -> None:
        """Waits until a member has logged these steps, one after another, and sent the last one."""
        pattern = re.compile(".*\n(?:.*\n)*?".join(f".*{client_id}.*{re.escape(s)}" for s in steps))

        def are_logged() -> bool:
            text = self._logs[process].read_text()[self._begin[process] :]
            return pattern.search(text) is not None

        until(f"{client_id}: {', '.join(steps)}", are_logged)
        # Java logs that it joins, and sends the request within the same poll.
        time.sleep(0.5)


def test_a_member_that_misses_an_assignment_costs_a_rebalance(tmp_path: Path) -> None:
    """Java member b sends SyncGroup when a has already revoked, and joined again.

    To this end, c is stopped until b has joined again, and b from then on.
    """
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker() as broker, ExitStack() as stack:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics({"t": {"num_partitions": 12}}, wait_for_metadata=True)
        a, b, c = (
            stack.enter_context(JavaMembers(server, tmp_path / f"{name}.log")) for name in "abc"
        )
        for n, process in enumerate((a, b, c)):
            process.tell(add=[_member("late", n)])
        os.kill(c.pid, signal.SIGSTOP)
        steps = _Steps(tmp_path)
        a.send(wait=False, add=[_member("late", 3)])
        steps.wait("b", "late-1", "(Re-)joining group")
        os.kill(b.pid, signal.SIGSTOP)
        os.kill(c.pid, signal.SIGCONT)
        steps.wait("a", "late-0", "Successfully synced group", "(Re-)joining group")
        os.kill(b.pid, signal.SIGCONT)
        for process in (a, b, c):
            process.tell()
        recorded = recorded_generations(offsets_records(server))

    came, second, third = (row for row, _ in recorded[-3:])
    replayed = replay([generation for _, generation in recorded[-3:] if generation])
    assert [one.equal for one in replayed] == [True, True, True]
    (late,) = third.causes
    # c misses the generation too if a has joined again before c's SyncGroup.
    names = {member_id: "-".join(member_id.split("-")[:2]) for member_id in late.members}
    assert {"late-1"} <= set(names.values()) <= {"late-1", "late-2"}
    assert [cause.kind for cause in came.causes] == ["joined"]
    assert (came.revoked, second.gained, third.gained) == (3, 3 - len(names), len(names))
    assert [cause.detail for cause in second.causes] == [""]
    assert (late.kind, late.certainty) == ("second round", "exact")
    missed = f"had missed generation {came.generation_id}"
    assert late.detail == f"{', '.join(late.members)} {missed}"
    shown = ", ".join(names.values())
    assert row_text(third, names) == f"second round ({shown}), {shown} {missed}"


def test_a_cluster_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["history", "--bootstrap-server", "127.0.0.1:1", "--timeout", "1"]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("kafka-rebalance: 127.0.0.1:1: not connected: ")

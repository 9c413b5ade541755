# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/consumer_offsets.jsonl: the raw records of a real `__consumer_offsets`.

    make judges && .venv/bin/python -m tools.broker.capture_offsets

Consumers of several kinds join, commit and leave: Java's (eager, cooperative, static, the new
protocol), kafka-python's and aiokafka's. A transactional producer and hand-made requests commit,
too. While some consumers still run, the topic is read, and the broker describes every group for
consumer_offsets_groups.json. Nothing is written to the topic in between, so both files show one
state. It takes half a minute to two minutes, and also writes consumer_offsets.md, with the versions
used.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.parity.cluster import OFFSETS_TOPIC, create_topics, prepare
from tests.parity.compare import play
from tests.parity.scenarios import parse
from tests.parity.wire import Connection, WireError
from tests.parity.wire_player import WirePlayer
from tests.support.broker import LIB, Broker, BrokerError
from tests.support.live_members import JavaMembers, PythonMembers, await_stable
from tools.broker.capturing import say, time_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = ROOT / "tests" / "data"

TIME_LIMIT_S = 120
PARTITIONS = 4
"""The partitions of the offsets topic; tests/support/broker.py sets their number."""

QUIET_ATTEMPTS = 200
FETCH_BYTES = 4 * 1024 * 1024
COMMIT_MS = "1500"
MESSAGES = 40
CONTROL = {0: "ABORT", 1: "COMMIT"}

BY_HAND = """
== by-hand
# A wait makes up for what the steps before it took: these are long enough for every join.
# Offsets without a group: a leader epoch, metadata, and a time of expiry (version 1 of the value).
commit - g=simple off=42 le=3 md=by-hand
commit - g=simple off=7 p=1 retention=86400000
commit - g=simple off=43 le=4
# Tombstones: of a group and its offsets, of one offset, of a topic's offsets.
commit - g=deleted off=1
commit - g=deleted off=2 topic=u
delete_group g=deleted
commit - g=trimmed off=5
commit - g=trimmed off=6 p=1
delete_offsets g=trimmed p=1
commit - g=kept off=8
commit - g=kept off=9 topic=doomed
topic_deleted topic=doomed
# Workers of Kafka Connect, as far as a coordinator sees them; the second one leaves.
join A g=connect pt=connect protos=sessioned:hex:0001,compatible:hex:00 v=3 st=60000 client=worker
join B g=connect pt=connect protos=sessioned:hex:0002,compatible:hex:00 v=3 st=60000 client=worker
advance 1500
sync A g=connect asg=A:hex:0001000000,B:hex:0001000001
sync B g=connect
leave B g=connect
join A g=connect pt=connect protos=sessioned:hex:0003,compatible:hex:00 v=3 st=60000 client=worker
sync A g=connect asg=A:hex:0001000002
# Only an id was asked for: an empty group of no type.
join C g=visited
# A static member that was replaced by itself, and one that the administrator removed.
join D g=replaced inst=pod-1 st=60000
join E g=replaced inst=pod-2 st=60000
advance 1500
sync D g=replaced asg=D:left,E:right
sync E g=replaced
join E g=replaced m=none st=60000
sync E g=replaced
join F g=removed inst=pod-1
advance 1500
sync F g=removed asg=F:all
commit F g=removed off=11
leave /pod-1 g=removed
# The log's last word on this group is its first generation; the second one has no assignment yet.
join H g=joining v=3 st=60000
advance 1500
sync H g=joining asg=H:all
commit H g=joining off=12
join H g=joining v=3 st=60000
# Transactions: one of two groups, one that was aborted, one that is open, one that was overtaken.
txncommit - g=transactional pid=1 off=100
txncommit - g=simple pid=1 topic=u off=101
endtxn pid=1 commit=yes
txncommit - g=transactional pid=1 off=200
endtxn pid=1 commit=no
txncommit - g=transactional pid=2 p=1 off=300
commit - g=transactional p=1 off=301
endtxn pid=2 commit=yes
commit - g=transactional topic=u off=400
txncommit - g=transactional pid=3 topic=u off=401 md=open
txncommit - g=only-open pid=3 off=500
"""


def java(group_id: str, n: int, assignor: str, **more: Any) -> dict[str, Any]:
    """Describes consumer number n of a group, which commits every 1.5 s."""
    return {
        "group_id": group_id,
        "client_id": f"{group_id}-{n}",
        "assignors": [assignor],
        "topics": ["orders", "refunds"],
        "configs": {"auto.commit.interval.ms": COMMIT_MS},
        **more,
    }


def capture() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Starts the broker and the clients, reads the log and the groups, and stops all of them."""
    log = Path(tempfile.gettempdir()) / "kafka-rebalance-capture.log"
    with Broker() as broker:
        server = broker.bootstrap_server
        host, port = server.rsplit(":", 1)
        prepare(host, int(port))
        with (
            Connection(host, int(port), "capture") as connection,
            JavaMembers(server, log) as members,
            PythonMembers(server) as stay,
            WirePlayer(host, int(port), "raw", ["doomed"]) as by_hand,
        ):
            create_topics(connection, ["orders", "refunds"])
            _produce(server)
            _java_members(members)
            say("Java's consumers")
            _python_members(server, stay)
            say("Python's consumers")
            _transactions(server)
            (scenario,) = parse(BY_HAND, "BY_HAND")
            play(scenario, by_hand)
            say("requests by hand")
            members.tell(stall=["java-stalled-1"])
            members.tell(add=[java("java-stalled", 2, "range")])
            captured = _both(connection)
    log.unlink()
    return captured


def _java_members(members: JavaMembers) -> None:
    """Adds Java members of several kinds, and closes some of them."""
    modern = {"group.protocol": "consumer", "heartbeat.interval.ms": None}
    members.tell(
        add=[
            java("java-eager", 1, "range"),
            java("java-eager", 2, "range"),
            java("java-cooperative", 1, "cooperative-sticky"),
            java("java-static", 1, "sticky", group_instance_id="pod-1"),
            java("java-static", 2, "sticky", group_instance_id="pod-2"),
            java("java-gone", 1, "roundrobin"),
            java("java-stalled", 1, "range"),
            java("java-modern", 1, "range", assignors=[], configs=modern),
        ]
    )
    members.tell(
        add=[java("java-cooperative", n, "cooperative-sticky") for n in (2, 3)],
        close=["java-gone-1"],
    )
    members.tell(close=["java-cooperative-2", "java-static-2"])
    members.tell(add=[java("java-static", 3, "sticky", group_instance_id="pod-2")])


def _python_members(server: str, stay: PythonMembers) -> None:
    groups = [("kafka-python", "roundrobin"), ("aiokafka", "range")]
    for client, assignor in groups:
        stay.add(client, client, f"{client}-1", assignor, ["orders"])
    await_stable(server, dict.fromkeys([client for client, _ in groups], 1))
    with PythonMembers(server) as go:
        for client, assignor in groups:
            go.add(client, client, f"{client}-2", assignor, ["orders"])
            go.add(client, f"{client}-gone", f"{client}-3", assignor, ["refunds"])
        await_stable(server, dict.fromkeys([client for client, _ in groups], 2))
    await_stable(server, dict.fromkeys([client for client, _ in groups], 1))


def _produce(server: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=server)
    for number in range(MESSAGES):
        producer.send("orders", str(number).encode(), partition=number % 2)
        producer.send("refunds", str(number).encode(), partition=0)
    producer.close()


def _transactions(server: str) -> None:
    """Commits offsets with kafka-python's producer, in a committed and an aborted transaction."""
    from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition

    producer = KafkaProducer(bootstrap_servers=server, transactional_id="kafka-python-producer")
    producer.init_transactions()
    for offset, end in ((10, producer.commit_transaction), (20, producer.abort_transaction)):
        producer.begin_transaction()
        offsets = {TopicPartition("orders", 0): OffsetAndMetadata(offset, "in a transaction", -1)}
        producer.send_offsets_to_transaction(offsets, "kafka-python-transactions")
        end()
    producer.close()


def _both(connection: Connection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Reads the log and the groups; repeats this until nothing was written in between."""
    records = list(_log(connection))
    for _ in range(QUIET_ATTEMPTS):
        groups = list(_groups(connection))
        again = list(_log(connection))
        if again == records:
            return records, groups
        records = again
    raise WireError("the offsets topic never kept still")


def _log(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yields every record, even those of open and aborted transactions, and the markers."""
    from kafka.record import MemoryRecords

    for partition in range(PARTITIONS):
        offset = 0
        while True:
            answer = connection.ask(
                "fetch", 11,
                replica_id=-1, max_wait=0, min_bytes=0, max_bytes=FETCH_BYTES, isolation_level=0,
                session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
                topics=[{
                    "topic": OFFSETS_TOPIC,
                    "partitions": [{
                        "partition": partition, "fetch_offset": offset,
                        "partition_max_bytes": FETCH_BYTES, "current_leader_epoch": -1,
                        "log_start_offset": -1,
                    }],
                }],
            ).responses[0].partitions[0]  # fmt: skip
            if answer.error_code.value:
                raise WireError(f"{OFFSETS_TOPIC}-{partition}: {answer.error_code.name}")
            start = offset
            for batch in MemoryRecords(bytes(answer.records or b"")):
                for record in batch:
                    yield _record(partition, batch, record)
                offset = batch.next_offset
            if offset == start:
                break


def _record(partition: int, batch: Any, record: Any) -> dict[str, Any]:
    control = None
    if batch.is_control_batch:  # the key has a version and a kind, two bytes each
        control = CONTROL[int.from_bytes(record.key[2:4], "big")]
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "pid": batch.producer_id if batch.is_transactional else None,
        "control": control,
    }


def _groups(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yields every group as the broker lists and describes it, with its offsets."""
    listed = connection.ask("list_groups", 5, states_filter=[], types_filter=[]).groups
    for group in sorted(listed, key=lambda one: one.group_id):
        described = connection.ask("describe_groups", 5, groups=[group.group_id],
                                   include_authorized_operations=False).groups[0]  # fmt: skip
        offsets = _offsets(connection, group.group_id, stable=False)
        unstable = _offsets(connection, group.group_id, stable=True)
        yield {
            "group_id": group.group_id,
            "listed": {
                "protocol_type": group.protocol_type,
                "state": group.group_state,
                "group_type": group.group_type,
            },
            "described": _described(described),
            "offsets": [
                {
                    "topic": topic,
                    "partition": partition,
                    "offset": one.committed_offset,
                    "leader_epoch": one.committed_leader_epoch,
                    "metadata": one.metadata,
                }
                for (topic, partition), one in sorted(offsets.items())
            ],
            "unstable": [
                list(place) for place, one in sorted(unstable.items()) if one.error_code.value
            ],
        }


def _offsets(connection: Connection, group_id: str, *, stable: bool) -> dict[tuple[str, int], Any]:
    """Returns offsets by topic and partition; with `stable`, open transactions are errors."""
    groups = [{"group_id": group_id, "topics": None}]
    fetched = connection.ask("offset_fetch", 9, require_stable=stable, groups=groups)
    return {
        (topic.name, one.partition_index): one
        for topic in fetched.groups[0].topics
        for one in topic.partitions
    }


def _described(group: Any) -> dict[str, Any]:
    members = (
        {
            "member_id": one.member_id,
            "group_instance_id": one.group_instance_id,
            "client_id": one.client_id,
            "client_host": one.client_host,
            "metadata": one.member_metadata.hex(),
            "assignment": one.member_assignment.hex(),
        }
        for one in group.members
    )
    return {
        "error": group.error_code.name.upper(),
        "state": group.group_state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol_data,
        "members": sorted(members, key=lambda one: str(one["member_id"])),
    }


def readme(records: list[dict[str, Any]], groups: list[dict[str, Any]]) -> str:
    """Returns the text of consumer_offsets.md: date, versions and contents."""
    kafka = next(LIB.glob("kafka-clients-*.jar")).stem.removeprefix("kafka-clients-")
    made_on = datetime.datetime.now(datetime.UTC).date()
    clients = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("kafka-python", "aiokafka")
    )
    return f"""# A captured `__consumer_offsets`

`consumer_offsets.jsonl` is the topic of a running Apache Kafka {kafka} on {made_on}:
{len(records)} records in {PARTITIONS} partitions, a line each, in the order of the log, also those
of open and aborted transactions. Key and value are hex; a null value is a tombstone. `pid` is the
producer of a transactional record, `control` a marker's kind (its key and value are then Kafka's
own).

`consumer_offsets_groups.json` is what the broker said at that moment of its {len(groups)} groups:
`listed` (ListGroups), `described` (DescribeGroups), `offsets` (OffsetFetch of all), and `unstable`,
those of them that OffsetFetch does not tell when it has to be stable. A group of the new protocol
is only in the list: a classic DescribeGroups does not know it. Two groups were in a rebalance, of
which the log knows nothing: there they have their last generation.

Consumers were Java's, those of {clients}, and requests by hand,
which are written down in the script. Again:
`make judges && .venv/bin/python -m tools.broker.capture_offsets`
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Captures a real __consumer_offsets.")
    parser.add_argument("--output", type=Path, default=DATA, help="the directory to write to")
    output = parser.parse_args().output
    try:
        with time_limit(TIME_LIMIT_S):
            records, groups = capture()
    except (BrokerError, RuntimeError, TimeoutError) as error:
        print(f"capture: {error}", file=sys.stderr)
        return 1
    output.mkdir(parents=True, exist_ok=True)
    (output / "consumer_offsets.jsonl").write_text(
        "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records),
        encoding="utf-8",
    )
    (output / "consumer_offsets_groups.json").write_text(
        json.dumps(groups, indent=1) + "\n", encoding="utf-8"
    )
    (output / "consumer_offsets.md").write_text(readme(records, groups), encoding="utf-8")
    say(f"{len(records)} records, {len(groups)} groups in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

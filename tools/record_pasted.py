# SPDX-License-Identifier: Apache-2.0
"""Records what Kafka's own command prints of real groups, for `tests/test_pasted.py`.

    python -m tools record-pasted

Starts a broker with members, and writes to tests/data/pasted what `ConsumerGroupCommand` of each
version in VERSIONS prints of all groups, beside the snapshot of the same groups. Maven copies the
jars of these versions to build/pasted. rpk is not run: `rpk_text` writes what its source prints.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.group import contract
from kafka_rebalance.live import snapshot_lines
from tests.real_groups.librdkafka_members import LibrdkafkaMembers
from tests.support.broker import SMALL_JVM, Broker
from tests.support.live_members import JavaMembers, PythonMembers, await_stable, join_by_hand

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "pasted"
JARS = ROOT / "build" / "pasted"
NEW_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
VERSIONS = {
    "2.8.2": ("kafka_2.13", "kafka.admin.ConsumerGroupCommand"),
    "3.9.2": ("kafka-tools", NEW_COMMAND),
    "4.4.0": ("kafka-tools", NEW_COMMAND),
}
TABLES = {"members": ("--members", "--verbose"), "state": ("--state",), "offsets": ("--offsets",)}
TOPICS = {"orders": 12, "payments": 7, "audit": 1, "clicks.eu": 24, "empty": 3}
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>kafka-rebalance</groupId><artifactId>pasted</artifactId><version>0</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version></dependency>
</dependencies></project>
"""


def _jars(version: str) -> Path:
    """Returns the directory with the jars of a version's command; Maven copies them there."""
    place = JARS / version
    if not (place / "lib").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        pom = _POM.format(artifact=VERSIONS[version][0], version=version)
        (place / "pom.xml").write_text(pom, encoding="utf-8")
        copy = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
        subprocess.run([*copy, "-DincludeScope=runtime"], cwd=place, check=True, timeout=600)
    return place / "lib"


def _printed(server: str, version: str, options: tuple[str, ...]) -> str:
    """Returns what the command prints on both streams, as a terminal shows it."""
    path, main = f"{_jars(version)}/*", VERSIONS[version][1]
    how = ("--bootstrap-server", server, "--timeout", "120000", "--describe", "--all-groups")
    done = subprocess.run(
        ["java", *SMALL_JVM, "-cp", path, main, *how, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=True,
    )
    return done.stdout


def _member(group: str, n: int, assignors: list[str], topics: list[str], **more: Any) -> Any:
    name = {"client_id": f"{group}-{n}", "name": f"{group}-{n}"} | more
    return {"group_id": group, "assignors": assignors, "topics": topics, **name}


def _java() -> list[Any]:
    """Groups whose members subscribe alike, and those of which a paste knows too little."""
    modern = {"group.protocol": "consumer", "heartbeat.interval.ms": None}
    by_range = modern | {"group.remote.assignor": "range"}
    found = []
    for assignor in ASSIGNORS:
        found += [_member(f"one-{assignor}", n, [assignor], ["orders"]) for n in range(5)]
        two = ["orders", "payments"]
        found += [_member(f"two-{assignor}", n, [assignor], two) for n in range(3)]
        found += [_member(f"many-{assignor}", n, [assignor], ["orders", "clicks.eu", "audit"])
                  for n in range(7)]  # fmt: skip
        found += [_member(f"static-{assignor}", n, [assignor], two,
                          **({"group_instance_id": f"pod-{n}"} if n != 1 else {}))
                  for n in range(3)]  # fmt: skip
        # The first member subscribes to less; nobody of the last group owns the topic "empty".
        found += [_member(f"unlike-{assignor}", n, [assignor], two if n else ["orders"])
                  for n in range(3)]  # fmt: skip
    found += [_member("idle", n, ["range"], ["payments"]) for n in range(9)]
    found += [_member("two words", n, ["sticky"], ["audit", "orders"], client_id=f"cl {n}",
                      name=f"two words-{n}") for n in range(2)]  # fmt: skip
    found += [_member("racked", n, ["range"], ["orders"], client_rack="ab"[n % 2])
              for n in range(4)]  # fmt: skip
    found += [_member("modern-one", n, [], ["orders"], configs=modern) for n in range(5)]
    found += [_member("modern-two", n, [], ["orders", "audit"], configs=modern) for n in range(3)]
    found += [_member("modern-range", n, [], ["payments"], configs=by_range) for n in range(3)]
    found += [_member("emptied", 0, ["range"], ["orders"])]
    found += [_member("rebalancing", 0, ["range"], ["orders"])]
    return found


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as Go's tabwriter pads them: a minimal width of 6, and 2 spaces between."""
    last = len(rows[0]) - 1
    widths = [max(6, *(len(row[i]) + 2 for row in rows)) for i in range(last)] + [0]
    return "".join(
        "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + "\n"
        for row in rows
    )


def rpk_text(lines: Sequence[dict[str, Any]]) -> str:
    """Returns what `rpk group describe` prints of classic groups: describe.go, its printDescribed.

    Nothing is committed, and every log has 5 records.
    """
    texts = []
    for line in lines:
        members = line["members"]
        summary = {
            "GROUP": line["group_id"],
            "COORDINATOR": "0",
            "STATE": "Stable",
            "BALANCER": line["assignor"],
            "MEMBERS": str(len(members)),
            "TOTAL-LAG": "0",
        }
        static = any(one["group_instance_id"] for one in members)
        instance = ("INSTANCE-ID",) if static else ()
        head = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-START-OFFSET", "LOG-END-OFFSET", "LAG")
        rows = sorted(
            (run["topic"], number, one["member_id"], one["group_instance_id"] or "",
             one["client_id"], one["client_host"])
            for one in members for run in one["owned_partitions"] for number in run["partitions"]
        )  # fmt: skip
        shown = [
            (topic, str(number), "-", "0", "5", "5", member_id, *([pod] if static else []), *client)
            for topic, number, member_id, pod, *client in rows
        ]
        whole = [(*head, "MEMBER-ID", *instance, "CLIENT-ID", "HOST"), *shown]
        texts.append(_table([*summary.items()]) + "\n" + _table(whole))
    return "\n".join(texts)


def _record(server: str) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    lines = list(snapshot_lines(server, on_left_out=print))
    text = "".join(f"{contract.dumps(line)}\n" for line in lines)
    (DATA / "snapshot.jsonl").write_text(text, encoding="utf-8")
    classic = [line for line in lines if "/" not in line.get("assignor", "/")]
    (DATA / "rpk.txt").write_text(rpk_text(classic), encoding="utf-8")
    print(f"{len(lines)} groups")
    for version in VERSIONS:
        for table, options in TABLES.items():
            text = _printed(server, version, options)
            (DATA / f"{version}-{table}.txt").write_text(text, encoding="utf-8")
            print(f"{version} {table}: {len(text.splitlines())} lines")


def main() -> int:
    from kafka import KafkaAdminClient

    for version in VERSIONS:
        _jars(version)
    with tempfile.TemporaryDirectory() as place, Broker(brokers=2) as broker:
        server = broker.bootstrap_server
        with KafkaAdminClient(bootstrap_servers=server) as admin:
            admin.create_topics(
                {name: {"num_partitions": count} for name, count in TOPICS.items()},
                wait_for_metadata=True,
            )
        with (
            JavaMembers(server, Path(place) / "java.log") as java,
            PythonMembers(server) as python,
            LibrdkafkaMembers(server) as librdkafka,
        ):
            clients = ("librdkafka", "kafka-python", "aiokafka")
            for n in range(3):
                librdkafka.add("librdkafka", f"librdkafka-{n}", "range", ["orders", "payments"])
                for client in clients[1:]:
                    python.add(client, client, f"{client}-{n}", "roundrobin", ["orders"])
            # Together, they might join so fast that the first ones never own what they could claim.
            java.tell(add=[one for one in _java() if one["name"].endswith("-0")])
            java.tell(add=[one for one in _java() if not one["name"].endswith("-0")])
            java.tell(close=["emptied-0"], stall=["rebalancing-0"])
            java.send(add=[_member("rebalancing", 1, ["range"], ["orders"])], wait=False)
            join_by_hand(server, "connect", b"", protocol_type="connect", assignment=b"")
            await_stable(server, dict.fromkeys(clients, 3))
            time.sleep(6)  # the members commit their positions
            _record(server)
    return 0


if __name__ == "__main__":
    sys.exit(main())

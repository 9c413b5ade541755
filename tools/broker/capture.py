# SPDX-License-Identifier: Apache-2.0
"""Makes python/kafka_rebalance/data/captured_groups.jsonl: a `snapshot` of real consumers.

    make judges && .venv/bin/python -m tools.broker.capture

Runs three brokers in racks a, b and c with consumers of Kafka, kafka-python and aiokafka. Some
groups grow and some shrink, so that generations differ; one is still rebalancing. The program takes
one to three minutes, and also writes the README.md beside the sample, with the versions used.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_rebalance.live import snapshot_lines
from tests.support.broker import LIB, Broker, BrokerError
from tests.support.live_members import JavaMembers, PythonMembers, await_stable
from tools.broker.capturing import say, time_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = ROOT / "python" / "kafka_rebalance" / "data"

TIME_LIMIT_S = 180
RACKS = "abc"
REPLICAS = 2

TELEMETRY = [f"telemetry.{kind}" for kind in ("cpu", "disk", "fan", "gps", "net", "power", "ram")]
TOPICS = {
    "payments": 24, "refunds": 6, "orders": 36, "order-events": 12, "clickstream": 96,
    "page-views": 48, "sessions": 16, "inventory": 12, "shipments": 9, "email": 3, "sms": 3,
    "push": 3, "fraud-scores": 10, "audit": 1, "products": 30, "images": 8, "positions": 12,
    "chat": 15, "webhooks": 7, "rates": 4, "carts": 6, "points": 10,
    **dict.fromkeys(TELEMETRY, 2),
}  # fmt: skip

_Members = list[dict[str, Any]]


def java_members(
    group_id: str,
    numbers: range,
    assignors: str,
    *subscriptions: str,
    racks: bool = False,
    static: bool = False,
) -> _Members:
    """Describes a group's consumers with these numbers; they use the subscriptions in turn."""
    return [
        {
            "client_id": f"{group_id}-{n}",
            "group_id": group_id,
            "assignors": assignors.split(),
            "topics": subscriptions[n % len(subscriptions)].split(),
            "client_rack": RACKS[n % len(RACKS)] if racks else None,
            "group_instance_id": f"{group_id}-pod-{n}" if static else None,
        }
        for n in numbers
    ]


def first_round() -> _Members:
    return [
        *java_members("audit", range(1, 4), "range", "audit"),
        *java_members("checkout", range(1, 3), "range", "carts"),
        *java_members(
            "clickstream", range(1, 16), "cooperative-sticky", "clickstream page-views", racks=True
        ),
        *java_members("fraud-detection", range(1, 4), "sticky",
                      "payments orders fraud-scores", "payments fraud-scores"),
        *java_members("inventory", range(1, 5), "roundrobin", "inventory shipments", static=True),
        *java_members("loyalty", range(1, 4), "cooperative-sticky range", "points orders"),
        *java_members("notifications", range(1, 5), "roundrobin", "email sms", "push", "email"),
        *java_members("orders", range(1, 7), "range", "orders order-events", racks=True),
        *java_members("payments", range(1, 7), "cooperative-sticky", "payments refunds"),
        *java_members("payments", range(7, 9), "cooperative-sticky", "payments refunds",
                      static=True),
        *java_members("reporting", range(1, 2), "cooperative-sticky",
                      "payments orders refunds shipments"),
        *java_members("search-index", range(1, 6), "cooperative-sticky",
                      "products", "products images", racks=True, static=True),
        *java_members("sessions", range(1, 5), "sticky", "sessions page-views"),
        *java_members("shipping-labels", range(1, 4), "range", "shipments shipments-v2"),
        *java_members("telemetry", range(1, 6), "range", " ".join(TELEMETRY)),
    ]  # fmt: skip


def scale_out() -> _Members:
    return [
        *java_members(
            "clickstream", range(16, 21), "cooperative-sticky", "clickstream page-views", racks=True
        ),
        *java_members("fraud-detection", range(4, 6), "sticky", "orders fraud-scores"),
        *java_members("orders", range(7, 10), "range", "orders order-events", racks=True),
        *java_members("payments", range(9, 12), "cooperative-sticky", "payments refunds"),
        *java_members("search-index", range(6, 7), "cooperative-sticky", "products images",
                      racks=True, static=True),
        *java_members("sessions", range(5, 8), "sticky", "sessions page-views"),
        *java_members("telemetry", range(6, 7), "range", " ".join(TELEMETRY)),
    ]  # fmt: skip


SCALE_IN = ["payments-2", "sessions-1", "clickstream-7"]

PYTHON = [
    ("kafka-python", "geo-enrichment", "roundrobin", ["positions"], 3),
    ("kafka-python", "recommendations", "cooperative-sticky", ["clickstream", "products"], 3),
    ("kafka-python", "thumbnails", "range", ["images"], 2),
    ("aiokafka", "chat-moderation", "sticky", ["chat"], 3),
    ("aiokafka", "exchange-rates", "roundrobin", ["rates"], 2),
    ("aiokafka", "webhooks", "range", ["webhooks"], 2),
]


def capture() -> list[dict[str, Any]]:
    """Starts brokers and consumers, takes the snapshot, and stops them."""
    # A broker would place the first replica at random; fixed replicas make every run equal.
    assignments = {
        topic: {p: [(t + p + r) % len(RACKS) for r in range(REPLICAS)] for p in range(count)}
        for t, (topic, count) in enumerate(TOPICS.items())
    }
    delay = {"group.initial.rebalance.delay.ms": "1000"}
    with Broker(brokers=len(RACKS), properties=delay) as broker:
        server = broker.bootstrap_server
        _create_topics(server, assignments)
        say(f"three brokers, {len(TOPICS)} topics")
        log = Path(tempfile.gettempdir()) / "kafka-rebalance-capture.log"
        with JavaMembers(server, log) as java, PythonMembers(server) as python:
            for client, group_id, assignor, topics, size in PYTHON:
                for n in range(1, size):
                    python.add(client, group_id, f"{group_id}-{n}", assignor, topics)
            java.tell(add=first_round())
            await_stable(server, {group_id: size - 1 for _, group_id, _, _, size in PYTHON})
            say("first round")
            for client, group_id, assignor, topics, size in PYTHON:
                python.add(client, group_id, f"{group_id}-{size}", assignor, topics)
            java.tell(add=scale_out())
            await_stable(server, {group_id: size for _, group_id, _, _, size in PYTHON})
            say("scaled out")
            java.tell(close=SCALE_IN)
            say("scaled in")
            # Member 2 stops polling, so the rebalance for member 3 does not end.
            java.tell(stall=["checkout-2"])
            java.tell(add=java_members("checkout", range(3, 4), "range", "carts"))
            lines = list(snapshot_lines(server))
        log.unlink()
    return lines


def _create_topics(server: str, assignments: dict[str, dict[int, list[int]]]) -> None:
    from kafka import KafkaAdminClient

    with KafkaAdminClient(bootstrap_servers=server) as admin:
        admin.create_topics(
            {topic: {"assignments": replicas} for topic, replicas in assignments.items()},
            wait_for_metadata=True,
        )


def readme(lines: list[dict[str, Any]]) -> str:
    """Returns the text of the README.md beside the sample: date, versions and groups."""
    kafka = next(LIB.glob("kafka-clients-*.jar")).stem.removeprefix("kafka-clients-")
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    version = re.search(r'"([^"]+)"', java)
    members = sum(len(line.get("members", ())) for line in lines)
    (rebalancing,) = (line["group_id"] for line in lines if "error" in line)
    made_with = {
        "Apache Kafka, brokers and Java clients": kafka,
        "Java": version[1] if version else "?",
        "kafka-python": importlib.metadata.version("kafka-python"),
        "aiokafka": importlib.metadata.version("aiokafka"),
    }
    made_on = datetime.datetime.now(datetime.UTC).date()
    python = [(group_id, f"{client}, {assignor}") for client, group_id, assignor, _, _ in PYTHON]
    return f"""# The captured sample

`captured_groups.jsonl` is what `kafka_rebalance.live.snapshot_lines` read from a running
Apache Kafka on {made_on}: {len(lines)} groups, one a line, ordered by name, with {members} members.
`{rebalancing}` was in the middle of a rebalance and is an error line.

Everything in it is real but the names. {len(RACKS)} brokers in racks {", ".join(RACKS)} ran on one
machine, and the members were consumers of Kafka's own client, or of a Python one in the groups
below. They joined, scaled out and scaled in before the snapshot, so that generations differ.

{_table("group", "client", python)}
{_table("made with", "version", made_with.items())}
Again, with other member ids: `make judges && .venv/bin/python -m tools.broker.capture`
"""


def _table(left: str, right: str, rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"| {a} | {b} |\n" for a, b in [(left, right), ("---", "---"), *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description="Captures the sample that the wheel ships.")
    parser.add_argument("--output", type=Path, default=DATA, help="the directory to write to")
    output = parser.parse_args().output
    try:
        with time_limit(TIME_LIMIT_S):
            lines = capture()
    except (BrokerError, RuntimeError, TimeoutError) as error:
        print(f"capture: {error}", file=sys.stderr)
        return 1
    text = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
        for line in sorted(lines, key=lambda line: str(line["group_id"]))
    )
    output.mkdir(parents=True, exist_ok=True)
    (output / "captured_groups.jsonl").write_text(text, encoding="utf-8")
    (output / "README.md").write_text(readme(lines), encoding="utf-8")
    say(f"{len(lines)} groups in {output / 'captured_groups.jsonl'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

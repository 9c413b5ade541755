# SPDX-License-Identifier: Apache-2.0
"""Shows a real group whose leader never ends its computation, for docs/never-ends.md.

    make judges && .venv/bin/python -m tools.broker.hang

Runs a real broker and five of Kafka's own consumers with the subscriptions of the second line of
tests/vectors/never_ends_smallest.jsonl. Client ids are chosen so that member ids sort as in that
line. The session timeout is 6 s. Prints each change of the group in DescribeGroups, for SECONDS.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.broker import Broker
from tests.support.live_members import JavaMembers

ROOT = Path(__file__).resolve().parent.parent.parent

SECONDS = 75
SESSION_MS = "6000"


def _look(admin: Any) -> tuple[str, tuple[str, ...]]:
    from kafka.errors import KafkaError

    try:
        group = admin.describe_groups(["g"])["g"]
    except KafkaError:
        return "no coordinator yet", ()
    members = sorted(member["client_id"] for member in group["members"])
    return group["group_state"], tuple(members)


def _tell(java: JavaMembers, members: list[dict[str, Any]]) -> None:
    # The Java program reports an error after a minute, because this group never becomes stable.
    with contextlib.suppress(RuntimeError):
        java.tell(add=members)


def main() -> None:
    """Starts broker and consumers, prints the group's changes, and ends all."""
    from kafka import KafkaAdminClient

    line = (ROOT / "tests/vectors/never_ends_smallest.jsonl").read_bytes().splitlines()[1]
    group = json.loads(line)
    members = [
        {
            "client_id": member["member_id"],
            "group_id": "g",
            "assignors": ["sticky"],
            "topics": member["topics"],
            "configs": {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": "2000"},
        }
        for member in group["members"]
    ]
    log = Path(tempfile.gettempdir()) / "kafka-rebalance-hang.log"
    with (
        Broker(properties={"group.initial.rebalance.delay.ms": "5000"}) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_server) as admin,
    ):
        topics = {t["name"]: {"num_partitions": t["partitions"]} for t in group["topics"]}
        admin.create_topics(topics, wait_for_metadata=True)
        java = JavaMembers(broker.bootstrap_server, log)
        threading.Thread(target=_tell, args=(java, members), daemon=True).start()
        begun, last = time.monotonic(), None
        while time.monotonic() < begun + SECONDS:
            now = _look(admin)
            if now != last:
                at_s = time.monotonic() - begun
                print(f"{at_s:5.1f} s  {now[0]:20} {' '.join(now[1])}", flush=True)
            last = now
            time.sleep(0.2)
        java._process.kill()


if __name__ == "__main__":
    main()

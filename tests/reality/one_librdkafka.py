# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.reality.one_librdkafka DESCRIPTION`: one real consumer of librdkafka.

Runs in its own process, so that it can be killed. Takes the description and the lines of standard
input, and writes the lines of standard output, of the Java program OneConsumer; a line has no
answer_ms and joining_ms, which librdkafka does not measure. The debug log is on standard error.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import TopicPartition

_MAGIC = b"CGMDv2:"
_CONNECT_TIMEOUT_S = 30


class OneConsumer:
    def __init__(self, description: dict[str, Any]) -> None:
        self._topics: list[str] = description["topics"]
        self._poll_s = description["poll_ms"] / 1000
        self._consumer = Consumer({**description["configs"], "debug": "cgrp"})
        self._consumer.list_topics(timeout=_CONNECT_TIMEOUT_S)  # connects to the broker
        self._polled_ms = self._gap_ms = 0

    def run(self) -> None:
        self._say("ready")
        if sys.stdin.readline() != "start\n":
            return
        ended = threading.Event()
        threading.Thread(target=_await_close, args=[ended], daemon=True).start()
        self._say("started")
        self._consumer.subscribe(
            self._topics,
            on_assign=lambda _, partitions: self._say("assigned", partitions),
            on_revoke=lambda _, partitions: self._say("revoked", partitions),
            on_lost=lambda _, partitions: self._say("lost", partitions),
        )
        self._polled_ms = _now_ms()
        while not ended.is_set():
            self._consumer.poll(self._poll_s)
            now_ms = _now_ms()
            self._gap_ms = max(self._gap_ms, now_ms - self._polled_ms)
            self._polled_ms = now_ms
        self._say("closing")
        self._consumer.close()

    def _say(self, event: str, partitions: Sequence[TopicPartition] = ()) -> None:
        now_ms = _now_ms()
        since_ms = now_ms - self._polled_ms if self._polled_ms else 0
        line = {
            "at_ms": now_ms,
            "event": event,
            "partitions": [f"{one.topic}-{one.partition}" for one in partitions],
            "generation_id": _generation_id(self._consumer.consumer_group_metadata()),
            "member_id": self._consumer.memberid(),
            "gap_ms": max(self._gap_ms, since_ms),
        }
        print(json.dumps(line), flush=True)
        self._gap_ms = 0


def _generation_id(metadata: bytes) -> int:
    """Returns the member epoch in the bytes that rd_kafka_consumer_group_metadata_write makes.

    After the magic: the epoch as an int32 in this machine's byte order, then the ids.
    """
    if not metadata.startswith(_MAGIC):
        raise ValueError(f"the group metadata of this librdkafka begin with {metadata[:8]!r}")
    epoch = metadata[len(_MAGIC) : len(_MAGIC) + 4]
    return int.from_bytes(epoch, sys.byteorder, signed=True)


def _await_close(ended: threading.Event) -> None:
    """Waits for the next line, or the end of the input."""
    sys.stdin.readline()
    ended.set()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    OneConsumer(json.loads(sys.argv[1])).run()

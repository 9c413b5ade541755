# SPDX-License-Identifier: Apache-2.0
"""Members that use librdkafka, through the package confluent-kafka."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

import confluent_kafka

if TYPE_CHECKING:
    from collections.abc import Sequence


class LibrdkafkaMembers:
    """Runs members, each in a thread that polls until `close`."""

    def __init__(self, bootstrap_server: str) -> None:
        self._server = bootstrap_server
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(
        self,
        group_id: str,
        client_id: str,
        assignor: str | None,
        topics: Sequence[str],
        *,
        is_static: bool = False,
    ) -> None:
        """Starts a member; without an assignor, it uses the consumer protocol of KIP-848."""
        settings: dict[str, object] = {
            "bootstrap.servers": self._server,
            "group.id": group_id,
            "client.id": client_id,
            "auto.commit.interval.ms": 1000,
        }
        if assignor is None:
            settings["group.protocol"] = "consumer"
        else:
            settings["partition.assignment.strategy"] = assignor
            settings["heartbeat.interval.ms"] = 300
        if is_static:
            settings["group.instance.id"] = client_id
        thread = threading.Thread(target=self._poll, args=(settings, list(topics)), daemon=True)
        thread.start()
        self._threads.append(thread)

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _poll(self, settings: dict[str, object], topics: list[str]) -> None:
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(topics)
        while not self._ended.is_set():
            consumer.poll(0.2)
        consumer.close()

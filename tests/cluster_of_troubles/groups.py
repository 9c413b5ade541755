# SPDX-License-Identifier: Apache-2.0
"""A cluster of groups of five client libraries, most of them well, six of them in trouble.

Real processes run a few groups (Java, kafka-python, aiokafka). The others have light members
(`tests/large_cluster/members.py`), which send the subscriptions of a library under its client id.

    with Broker(properties=PROPERTIES) as broker, Troubles(broker.bootstrap_server) as cluster:
        cluster.planted    # kind of finding -> group id
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kafka_rebalance import TopicPartition
from tests.large_cluster.members import Library as SentBy
from tests.large_cluster.members import LightGroups, create_topics, topic_names
from tests.support.live_members import JavaMembers, PythonMembers, await_coordinators, await_stable

if TYPE_CHECKING:
    from types import TracebackType

LIBRARIES = {
    "java": SentBy("consumer-java"),
    "librdkafka": SentBy(
        "rdkafka", "range", "librdkafka/range", 3, b"", "",
        assignment_version=0, assignment_data=b"",
    ),
    "kafka-python": SentBy(
        "kafka-python-3.0.12", "range", "kafka-python/range", 0, b"",
        assignment_version=0, assignment_data=b"",
    ),
    "aiokafka": SentBy(
        "aiokafka-0.14.0", "roundrobin", "aiokafka/roundrobin", 0, b"",
        assignment_version=0, assignment_data=b"",
    ),
    "kafkajs": SentBy(
        "kafkajs", "RoundRobinAssigner", "roundrobin", 0, b"",
        assignment_version=0, assignment_data=b"",
    ),
}  # fmt: skip
"""What a default consumer of each library sends."""

BEHIND = 5_000
GROWS = "grows"
_TOPICS = {"behind": 1, "one": 1, "six": 6, "seven": 7, GROWS: 3}
_STORM = 14
_FLAPS = 4


def java_member(group_id: str, number: int) -> dict[str, object]:
    """Returns a member as `JavaMembers` starts it."""
    client_id, topics = f"{group_id}-{number}", ["topic-1"]
    return {
        "group_id": group_id, "client_id": client_id, "assignors": ["range"], "topics": topics
    }  # fmt: skip


class Troubles:
    """Forms `groups` groups, six of them in trouble, and `real` groups of each real library.

    `light` and `java` run the members. Of the `well` groups, `read` has the topics of those with
    light members.
    """

    def __init__(self, server: str, groups: int = 300, real: int = 2) -> None:
        self._server, self._groups, self._real = server, groups, real
        self._topics = topic_names(30)
        self._open = contextlib.ExitStack()
        self.light: dict[str, LightGroups] = {}
        self.java: JavaMembers | None = None
        self.well: list[str] = []
        self.read: dict[str, list[str]] = {}
        self.planted: dict[str, str] = {}

    def __enter__(self) -> Self:
        create_topics(self._server, {**self._topics, **_TOPICS})
        await_coordinators(self._server, [f"group-{n:05}" for n in range(50)])
        topics = {**self._topics, **_TOPICS}
        for name, sent in LIBRARIES.items():
            light = LightGroups(self._server, topics, sent)
            self.light[name] = self._open.enter_context(light)
        self._add_real()
        names, topic_list = list(LIBRARIES), list(self._topics)
        for number in range(self._groups - len(self.well) - 6):
            library = names[number % len(names)]
            read = sorted({topic_list[number % 30], topic_list[(7 * number + 1) % 30]})
            group_id = f"{library}-{number:03}"
            self.light[library].form(group_id, read, 1 + number % 2)
            self.well.append(group_id)
            self.read[group_id] = read
        self._plant()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _add_real(self) -> None:
        """Starts two members of each real group; topic-1 has six partitions."""
        real = {
            library: [f"real-{library}-{n}" for n in range(self._real)]
            for library in ("java", "kafka-python", "aiokafka")
        }
        self.well += [group_id for ids in real.values() for group_id in ids]
        if not self._real:
            return
        log = Path(self._open.enter_context(tempfile.TemporaryDirectory())) / "java.log"
        self.java = self._open.enter_context(JavaMembers(self._server, log))
        self.java.tell(add=[java_member(group_id, n) for group_id in real["java"] for n in (0, 1)])
        python = self._open.enter_context(PythonMembers(self._server))
        for library in ("kafka-python", "aiokafka"):
            for group_id in real[library]:
                for n in range(2):
                    python.add(library, group_id, f"{group_id}-{n}", "roundrobin", ["topic-1"])
        await_stable(
            self._server,
            {group_id: 2 for one in ("kafka-python", "aiokafka") for group_id in real[one]},
        )

    def _plant(self) -> None:
        """Makes six groups in trouble; their members are of different client libraries."""
        six, seven = ([TopicPartition(t, n) for n in range(_TOPICS[t])] for t in ("six", "seven"))
        self.planted = {
            "stopped": "z-dead",
            "unread": "z-unread",
            "storm": "z-storm",
            "flapping": "z-flapping",
            "idle": "z-idle",
            "uneven": "z-uneven",
        }
        self._stop_behind(self.planted["stopped"])
        self.light["java"].form(self.planted["unread"], ["seven"], 2, [seven[:3], seven[3:6]])
        self.light["librdkafka"].form(self.planted["uneven"], ["six"], 2, [six[:5], six[5:]])
        self.light["kafka-python"].form(self.planted["idle"], ["one"], 2)
        storm, flapping = self.planted["storm"], self.planted["flapping"]
        self.light["aiokafka"].form(storm, ["six"])
        for _ in range(_STORM):
            self.light["aiokafka"].join_again(storm, ["six"])
        self.light["kafkajs"].form(flapping, ["six"])
        for _ in range(_FLAPS):
            self.light["kafkajs"].leave(flapping)
            self.light["kafkajs"].form(flapping, ["six"])

    def _stop_behind(self, group_id: str) -> None:
        """Commits offset 0 for a group without members, and lets records wait behind it."""
        import kafka

        with kafka.KafkaProducer(bootstrap_servers=self._server) as producer:
            for n in range(BEHIND):
                producer.send("behind", b"%d" % n)
            producer.flush()
        place = kafka.TopicPartition("behind", 0)
        with kafka.KafkaConsumer(bootstrap_servers=self._server, group_id=group_id) as consumer:
            consumer.assign([place])
            consumer.commit({place: kafka.OffsetAndMetadata(0, "", -1)})

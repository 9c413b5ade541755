# SPDX-License-Identifier: Apache-2.0
"""Random applications of classic Kafka Streams groups, in chains: each answer feeds the next case.

A case has the form of `vectors/stream.jsonl.gz`. Between two calls, tasks are restored in part,
processes and threads come and go, and settings change.
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

from kafka_rebalance.wire.streams_protocol import (
    SubscriptionInfo,
    TaskId,
    TaskOffsetSum,
    decode_assignment_info,
    encode_subscription_info,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Generator

Case = dict[str, Any]
ASSIGNORS = ("high_availability",) * 5 + ("legacy_sticky",) * 2 + ("sticky",) * 2
_RACKS = ("a", "b", "c")


def chain(rng: random.Random, name: str, steps: int) -> Generator[Case, dict[str, Any], None]:
    """Yields cases; send the answer to each (`members` with `partitions` and `user_data`)."""
    application = _Application(rng)
    for step in range(steps):
        answer = yield application.case(f"{name}-{step}")
        application.apply(answer)
        application.change()


class _Thread:
    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.owned: list[Any] = []
        self.active: set[TaskId] = set()
        self.standby: set[TaskId] = set()


class _Process:
    def __init__(
        self, rng: random.Random, racks: tuple[str | None, ...], versions: tuple[int, ...]
    ) -> None:
        self.process_id = uuid.UUID(int=rng.getrandbits(128))
        self.rack = rng.choice(racks)
        self.tags = {key: rng.choice(_RACKS) for key in ("zone", "cell") if rng.random() < 0.9}
        self.end_point = f"host-{rng.randrange(100)}-{self.process_id.hex[:4]}:80"
        self.offsets: dict[TaskId, int] = {}
        self.version = rng.choice(versions)
        self.threads: list[_Thread] = []


class _Application:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.assignor = rng.choice(ASSIGNORS)
        self.racks: tuple[str | None, ...] = _RACKS if rng.random() < 0.8 else (None, *_RACKS)
        # In one application of five, many processes have a future version: Kafka puts them into one
        # process, with their racks. In one of ten, a broker without a rack is among others.
        self.versions = (11, 12, 12) if rng.random() < 0.2 else (11,) * 12 + (7, 10, 5, 12)
        self.fewest = 2 if rng.random() < 0.1 else 1
        """The fewest brokers, and the fewest replicas of a partition."""
        self.brokers = {str(i): rng.choice(self.racks) for i in range(rng.randint(self.fewest, 5))}
        if self.fewest > 1:
            self.brokers["0"] = None
        self.topics: dict[str, list[list[int]]] = {}
        self.ends: dict[str, list[int]] = {}
        self.committed: dict[str, list[int | None]] = {}
        self.subtopologies = [self._subtopology(i) for i in range(rng.randint(1, 6))]
        self.settings = self._settings()
        self.processes = [self._process() for _ in range(rng.randint(1, rng.choice((4, 8, 16))))]

    def _topic(self, name: str, count: int) -> str:
        rng, ids = self.rng, [int(one) for one in self.brokers]
        replicas = rng.randint(self.fewest, min(3, len(ids)))
        self.topics[name] = [rng.sample(ids, replicas) for _ in range(count)]
        return name

    def _subtopology(self, number: int) -> Case:
        rng = self.rng
        count = rng.choice((1, 2, 3, 4, 6, 8, 12, 17, 24))
        sources = [
            self._topic(f"in-{number}-{i}", count if i == 0 else rng.randint(1, count))
            for i in range(rng.choice((1, 1, 2, 3)))
        ]
        repartition = [self._topic(f"by-{number}-repartition", count)] if rng.random() < 0.3 else []
        changelogs = [
            self._topic(f"store-{number}-{i}-changelog", count)
            for i in range(rng.choice((0, 0, 1, 1, 1, 2)))
        ]
        for topic in changelogs:
            self.ends[topic] = [self._end() for _ in range(count)]
        copied = sources[:1] if rng.random() < 0.15 else []
        for topic in copied:
            offsets = [self._end() for _ in self.topics[topic]]
            self.committed[topic] = [one if rng.random() < 0.9 else None for one in offsets]
        return {
            "subtopology_id": number,
            "source_topics": sources,
            "repartition_source_topics": repartition,
            "repartition_sink_topics": [],
            "changelog_topics": changelogs,
            "source_changelog_topics": copied,
            "unlogged_stores": int(rng.random() < 0.2),
        }

    def _end(self) -> int:
        return self.rng.choice((0, 10, 90, 110, self.rng.randrange(1_000_000)))

    def _settings(self) -> Case:
        rng, costs = self.rng, (None, 0, 1, 5, 10)
        strategies = ("none", "none", "min_traffic", "balance_subtopology")
        # KIP-924's class gives standby tasks in the order of identity hashes.
        standbys = 0 if self.assignor == "sticky" else rng.choice((0, 0, 1, 1, 2, 3))
        return {
            "acceptable_recovery_lag": rng.choice((0, 100, 10_000)),
            "max_warmup_replicas": rng.choice((1, 2, 2, 5, 20)),
            "num_standby_replicas": standbys,
            "probing_rebalance_interval_ms": 600_000,
            "rack_aware_assignment_strategy": rng.choice(strategies),
            "rack_aware_assignment_traffic_cost": rng.choice(costs),
            "rack_aware_assignment_non_overlap_cost": rng.choice(costs),
            "rack_aware_assignment_tags": rng.choice(([], [], ["zone"], ["cell", "zone"])),
        }

    def _process(self) -> _Process:
        new = _Process(self.rng, self.racks, self.versions)
        for _ in range(self.rng.choice((1, 1, 2, 3, 4))):
            self._thread(new)
        return new

    def _thread(self, process: _Process) -> None:
        number = len(process.threads) + 1
        tail = f"StreamThread-{number}-consumer-{uuid.UUID(int=self.rng.getrandbits(128))}"
        process.threads.append(_Thread(f"app-{process.process_id}-{tail}"))

    # What is asked -------------------------------------------------------------------------------

    def case(self, name: str) -> Case:
        rng = self.rng
        leader = rng.choice(self.processes)
        known = rng.random() > 0.05
        changelogs = sorted(self.ends)
        new = [rng.choice(changelogs)] if changelogs and rng.random() < 0.05 else []
        members = [one for process in self.processes for one in self._members(process)]
        rng.shuffle(members)
        return {
            "name": name,
            "assignor": self.assignor,
            "application_id": "app",
            "now_ms": 1_700_000_000_000,
            "leader_process_id": str(leader.process_id),
            "future_process_id": str(uuid.UUID(int=7)),
            "configs": self.settings,
            "brokers": self.brokers,
            "topics": self.topics,
            "subtopologies": self.subtopologies,
            "end_offsets": self.ends if known else None,
            "committed_offsets": self.committed,
            "new_changelog_topics": new,
            "members": members,
        }

    def _members(self, process: _Process) -> list[Case]:
        held = {task for one in process.threads for task in one.active | one.standby}
        sums: list[dict[TaskId, int]] = [{} for _ in process.threads]
        for thread, own in zip(process.threads, sums, strict=True):
            for task in thread.active:
                if self._is_stateful(task):
                    own[task] = -2 if self.rng.random() < 0.9 else process.offsets.get(task, 0)
            own |= {task: process.offsets.get(task, 0) for task in thread.standby}
        for task, offset in process.offsets.items():
            if task not in held:  # one thread gets the lock of the directory
                self.rng.choice(sums)[task] = offset
        return [
            {
                "member_id": one.member_id,
                "rack_id": process.rack,
                "owned_partitions": one.owned,
                "user_data": self._user_data(process, own),
            }
            for one, own in zip(process.threads, sums, strict=True)
        ]

    def _user_data(self, process: _Process, sums: dict[TaskId, int]) -> str:
        number, half = process.process_id.int, 1 << 63
        ids = tuple((part ^ half) - half for part in (number >> 64, number & (1 << 64) - 1))
        by_subtopology: dict[int, list[Any]] = {}
        for task, total in sums.items():
            by_subtopology.setdefault(task.subtopology_id, []).append((task.partition, total))
        info = SubscriptionInfo(
            process.version,
            max(process.version, 11),
            (ids[0], ids[1]),
            tuple(task for task, total in sums.items() if total == -2),
            tuple(task for task, total in sums.items() if total != -2),
            process.end_point.encode(),
            tuple((one, tuple(entries)) for one, entries in by_subtopology.items()),  # type: ignore[misc]
            tuple(TaskOffsetSum(*task, total) for task, total in sums.items()),
            client_tags=tuple((k.encode(), v.encode()) for k, v in process.tags.items()),  # type: ignore[misc]
        )
        return base64.b64encode(encode_subscription_info(info)).decode()

    def _is_stateful(self, task: TaskId) -> bool:
        one = self.subtopologies[task.subtopology_id]
        return bool(one["changelog_topics"] or one["source_changelog_topics"])

    # What happens next ---------------------------------------------------------------------------

    def apply(self, answer: dict[str, Any]) -> None:
        """Threads have what was assigned; standby tasks and new active ones restore in part."""
        for process in self.processes:
            for thread in process.threads:
                given = answer.get("members", {}).get(thread.member_id)
                if given is None:
                    continue
                info = decode_assignment_info(base64.b64decode(given["user_data"]))
                thread.owned = given["partitions"]
                thread.active = {one.task_id for one in info.active_tasks}
                thread.standby = {one.task.task_id for one in info.standby_tasks}
                for task in thread.active | thread.standby:
                    if self._is_stateful(task):
                        process.offsets[task] = self._restored(task)

    def _restored(self, task: TaskId) -> int:
        topics = self.subtopologies[task.subtopology_id]["changelog_topics"]
        end = sum(self.ends[topic][task.partition] for topic in topics)
        return max(0, self.rng.choice((end, end, end - 100, end // 2, end + 1)))

    def change(self) -> None:
        """Draws what changes before the next rebalance; often nothing."""
        rng = self.rng
        event = rng.choice(("nothing", "nothing", "join", "leave", "die", "thread", "settings"))
        if event == "join" and len(self.processes) < 20:
            self.processes.append(self._process())
        elif event == "leave" and len(self.processes) > 1:
            self.processes.remove(rng.choice(self.processes))
        elif event == "die":
            process = rng.choice(self.processes)
            if len(process.threads) > 1:
                process.threads.remove(rng.choice(process.threads))
        elif event == "thread":
            self._thread(rng.choice(self.processes))
        elif event == "settings":
            self.settings = self._settings()
        for offsets in self.ends.values():
            if rng.random() < 0.3:
                offsets[rng.randrange(len(offsets))] += rng.randrange(200)

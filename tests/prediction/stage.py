# SPDX-License-Identifier: Apache-2.0
"""Starts a real group, then plans, makes and observes one change after another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka_rebalance import Topic
from kafka_rebalance.live import snapshot_lines

from .cast import JAVA, RACKS
from .events import LOST_RACK, SWITCH, Step, deck, draw
from .observed import FORMATION, Inventory, Observed
from .settle import LOOK_AGAIN_S, Expected, NotSettledError, settle
from .told import Foreseen, foresee

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from .cast import Cast, Part
    from .events import Happening
    from .log import OffsetsLog, Written
    from .members import Members

    Seen = Callable[[Observed, Foreseen | None], None]

SNAPSHOT_ATTEMPTS = 5


class Stage:
    """Plays one group at a time; calls `seen` for the group's start and for every change.

    `brokers` is the number of nodes; each node has its own rack.
    """

    def __init__(
        self,
        server: str,
        brokers: int,
        members: Members,
        log: OffsetsLog,
        stop: threading.Event,
        seen: Seen,
        events: Sequence[str] = (),
        lose: Callable[[int], None] | None = None,
    ) -> None:
        """Takes the parts of a run; if `events` is not empty, only these happen; `lose` kills a
        node.
        """
        from kafka import KafkaAdminClient

        self._admin = KafkaAdminClient(bootstrap_servers=server)
        self._server = server
        self._brokers = brokers
        self._members = members
        self._log = log
        self._stop = stop
        self._seen = seen
        self._events = events
        self._lose = lose

    def close(self) -> None:
        self._admin.close()

    def play(self, cast: Cast, changes: int) -> int:
        """Plays `changes` changes, or fewer if the group does not settle or the run stops.

        Returns the number played.
        """
        self._admin.create_topics(
            {name: {"assignments": dict(enumerate(at))} for name, at in cast.topics.items()},
            wait_for_metadata=True,
        )
        self._inventories = [self._inventory(cast, _now_ms())]
        self._libraries: dict[str, str] = {}
        try:
            return self._play(cast, changes)
        finally:
            for part in cast.parts:
                self._members.kill(part)

    def _play(self, cast: Cast, changes: int) -> int:
        if not self._form(cast):
            return 0
        played = 0
        while played < changes and not self._stop.is_set():
            before = played
            for event in self._events or deck(cast):
                if played == changes or self._stop.is_set():
                    break
                line = self._snapshot(cast)
                happening = draw(event, cast, self._in_order(cast, line))
                if happening is None:
                    continue
                played += 1
                if not self._change(cast, happening, line) or event in (SWITCH, LOST_RACK):
                    return played
            if played == before:
                return played
        return played

    def _form(self, cast: Cast) -> bool:
        """Starts the leader first, then all other members at once."""
        everybody, cast.parts = cast.parts, []
        problem = self._steps(
            cast, [Step(starts=(everybody[0],)), Step(starts=tuple(everybody[1:]))]
        )
        self._see(cast, FORMATION, "", None, 0, problem)
        return problem is None

    def _in_order(self, cast: Cast, line: dict[str, Any]) -> dict[int, str]:
        """Returns member number -> member id, in the order of the snapshot's members."""
        numbers = {member_id: number for number, member_id in self._ids(cast).items()}
        there = [one["member_id"] for one in line.get("members", ())]
        return {numbers[one]: one for one in there if one in numbers}

    def _change(self, cast: Cast, happening: Happening, before: dict[str, Any]) -> bool:
        start = len(self._log.of(cast.group_id))
        if "error" in before:
            self._see(cast, happening.event, happening.text, None, start, str(before["error"]))
            return False
        before["leader"] = self._log.of(cast.group_id)[-1].value.leader
        foreseen = foresee(before, happening.text)
        problem = self._steps(cast, happening.steps)
        self._see(cast, happening.event, happening.text, before, start, problem, foreseen)
        return problem is None

    def _steps(self, cast: Cast, steps: list[Step] | tuple[Step, ...]) -> str | None:
        """Plays the steps; returns why the group did not settle, or None if it did."""
        for step in steps:
            there = len(self._log.of(cast.group_id))
            ids = self._ids(cast)
            self._act(cast, step)
            replaced = [ids[part.number] for part in step.starts if part.number in ids]
            counts = {name: len(at) for name, at in cast.topics.items()}
            starting = {part.number for part in step.starts if part.number not in ids}
            staying = [part for part in cast.parts if part.number not in starting]
            keeping = {ids[one.number] for one in staying if one.number in ids} - {*replaced}
            expected = Expected(cast.parts, counts, replaced, there, staying, keeping)
            try:
                settle(cast.group_id, expected, self._log, self._describe, self._stop)
            except NotSettledError as error:
                if self._stop.is_set():
                    return str(error)
                return "; ".join([str(error), *self._troubles(cast)])
        return None

    def _troubles(self, cast: Cast) -> list[str]:
        """Returns sentences about members that have ended by themselves, and the places where
        others hang.
        """
        failures = self._members.failures(cast.parts)
        there = self._ids(cast)
        missing = [part for part in cast.parts if part.number not in there]
        return [
            *(f"{name} ended: {why}" for name, why in failures.items()),
            *(
                f"{part.library} {part.name} is in {self._members.where(part)}"
                for part in missing
                if part.name not in failures and part.library != JAVA
            ),
        ]

    def _act(self, cast: Cast, step: Step) -> None:
        cast.parts = step.after(cast.parts)
        if step.creates:
            topic, replicas = step.creates
            cast.topics[topic] = [list(at) for at in replicas]
            from_ms = _now_ms()
            assigned = {"assignments": dict(enumerate(cast.topics[topic]))}
            self._admin.create_topics({topic: assigned}, wait_for_metadata=True)
            self._inventories.append(self._inventory(cast, from_ms))
        for part in step.closes:
            self._members.close(part)
        for part in step.kills:
            self._members.kill(part)
        for part in step.starts:
            self._members.start(part)
        for part in step.subscribes:
            self._members.subscribe(part)
        if step.grows:
            topic, count = step.grows
            from_ms = _now_ms()
            self._admin.create_partitions({topic: count})
            cast.topics[topic] += [[] for _ in range(count - len(cast.topics[topic]))]
            self._inventories.append(self._inventory(cast, from_ms))
        if step.deletes:
            del cast.topics[step.deletes]
            from_ms = _now_ms()
            self._admin.delete_topics([step.deletes])
            self._inventories.append(self._inventory(cast, from_ms))
        if step.loses is not None and self._lose:
            from_ms = _now_ms()
            self._lose(step.loses)
            self._inventories.append(self._inventory(cast, from_ms, lost=step.loses))

    def _see(
        self,
        cast: Cast,
        event: str,
        text: str,
        before: dict[str, Any] | None,
        start: int,
        problem: str | None,
        foreseen: Foreseen | None = None,
    ) -> None:
        records = self._log.of(cast.group_id)
        earlier: Written | None = records[start - 1] if start else None
        self._ids(cast)
        observed = Observed(
            cast.group_id,
            cast.leader,
            cast.assignor,
            cast.is_mixed,
            event,
            text,
            before,
            earlier,
            records[start:],
            tuple(self._inventories),
            dict(self._libraries),
            problem,
        )
        self._inventories = self._inventories[-1:]
        self._seen(observed, foreseen)

    def _ids(self, cast: Cast) -> dict[int, str]:
        """Returns member number -> member id in the newest record; records all ids' libraries."""
        parts: dict[int, Part] = {part.session_timeout_ms: part for part in cast.parts}
        ids: dict[int, str] = {}
        for record in self._log.of(cast.group_id):
            ids = {}
            for member in record.value.members:
                part = parts.get(member.session_timeout_ms)
                if part is not None:
                    ids[part.number] = member.member_id
                    self._libraries[member.member_id] = part.library
        return ids

    def _describe(self, group_id: str) -> Any:
        """Returns the coordinator's description of the group, or None if there is no answer."""
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        try:
            return self._admin.describe_groups([group_id])[group_id]
        except KafkaError:
            if self._lose is not None:  # the client keeps a lost coordinator
                self._admin.close()
                self._admin = KafkaAdminClient(bootstrap_servers=self._server)
            return None

    def _snapshot(self, cast: Cast) -> dict[str, Any]:
        """Returns the group's snapshot line; tries again while the group rebalances."""
        line: dict[str, Any] = {}
        for _ in range(SNAPSHOT_ATTEMPTS):
            (line,) = snapshot_lines(self._server, [cast.group_id])
            if "error" not in line:
                break
            time.sleep(1)
        return line

    def _inventory(self, cast: Cast, from_ms: int, lost: int | None = None) -> Inventory:
        """Waits until the cluster contains all partitions of the group's topics; returns the
        topics.

        Replicas on the `lost` node have no rack, as in the metadata of a leader.
        """
        wanted = {name: len(at) for name, at in cast.topics.items()}
        described: dict[str, Any] = {}
        while {name: len(partitions) for name, partitions in described.items()} != wanted:
            if self._stop.wait(LOOK_AGAIN_S):
                break
            found = self._admin.describe_topics(list(wanted))
            described = {one["name"]: one["partitions"] for one in found}
        topics = []
        for name, partitions in sorted(described.items()):
            ordered = sorted(partitions, key=lambda one: int(one["partition_index"]))
            racks = tuple(
                tuple(RACKS[node] for node in one["replica_nodes"] if node != lost)
                for one in ordered
            )
            topics.append(Topic(name, len(racks), racks))
        return Inventory(from_ms, tuple(topics))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

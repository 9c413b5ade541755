# SPDX-License-Identifier: Apache-2.0
"""Checks laws after every step of random sequences of requests.

A member sends the next request of a real client, or a stale, fenced or wrong one. Some appends
are delayed or fail. The coordinator moves away and returns.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from kafka_rebalance.coordinator.classic_group.group import Group
from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.coordinator.machine.deadlines import DeadlineKey
from kafka_rebalance.coordinator.machine.events import (
    Append,
    AppendFailed,
    Drop,
    Loaded,
    Received,
    Respond,
)
from kafka_rebalance.playback.virtual_broker import VirtualBroker
from kafka_rebalance.wire.classic_groups import (
    DeleteGroups,
    Heartbeat,
    JoinGroup,
    JoinGroupProtocol,
    JoinGroupResponse,
    LeaveGroup,
    MemberIdentity,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import GroupState, Request, Response
from kafka_rebalance.wire.offsets import (
    OffsetCommit,
    OffsetFetch,
    OffsetFetchResponse,
    OffsetToCommit,
)

if TYPE_CHECKING:
    from tests.support.seeds import Seeds

GROUPS = ("g", "h")
REFUSALS = {
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
}
CONFIG = CoordinatorConfig(
    group_initial_rebalance_delay_ms=1_000, group_min_session_timeout_ms=1_000, group_max_size=3
)


@dataclass
class Client:
    """The ids and generations that a client has received; it may send old ones."""

    group_id: str
    instance: str | None
    ids: list[str] = field(default_factory=lambda: [""])
    generations: list[int] = field(default_factory=lambda: [-1, 0])
    next: str = "join"  # the next action of a real client: join, sync, or wait


class Run:
    """One random sequence; laws are checked after every step, that of offsets at the end."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.broker = VirtualBroker(CONFIG)
        self.clients = [
            Client(self.rng.choice(GROUPS), instance) for instance in (None, None, None, "i", "i")
        ]
        self.asked: dict[int, Client | None] = {}
        self.open: set[int] = set()
        self.commits: dict[int, OffsetCommit] = {}
        self.acknowledged: list[OffsetCommit] = []
        self.generations: dict[str, tuple[Group, int]] = {}
        self.transcript: list[str] = []

    def play(self) -> None:
        for _ in range(self.rng.randint(10, 60)):
            before = self.described()
            number, request = self.step()
            refusal = self.observe(number)
            if refusal in REFUSALS and not isinstance(request, LeaveGroup | DeleteGroups):
                assert self.described() == before, (request, refusal)
            for group in self.broker.coordinator.classic_groups().values():
                self.check(group)
        self.check_offsets()

    def step(self) -> tuple[int | None, Request | None]:
        """Plays a random step; if it is a request, returns the request's number and the request."""
        draw = self.rng.random()
        broker = self.broker
        if draw < 0.22:
            broker.advance(self.rng.choice((0, 0, 1, 500, 1_000, 3_000, 10_000)))
        elif draw < 0.226:
            broker.hold()
        elif draw < 0.28:
            broker.release()
        elif draw < 0.30:
            broker.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
        elif draw < 0.303:
            broker.release()
            broker.unload()
            self.generations.clear()
            broker.reload()
        elif draw < 0.31:
            broker.sweep()
        else:
            waiting = {id(self.asked[number]) for number in self.open}
            idle = [one for one in self.clients if id(one) not in waiting]
            hasty = not idle or self.rng.random() < 0.1
            client = self.rng.choice(self.clients if hasty else idle)
            request = self.request(client)
            number = len(self.asked) + 1
            self.asked[number] = client
            self.open.add(number)
            if isinstance(request, OffsetCommit):
                self.commits[number] = request
            version = self.rng.choice((3, 4, 9, 9)) if isinstance(request, JoinGroup) else 4
            broker.send(request, api_version=version, client_id="c", request_id=number)
            return number, request
        return None, None

    def request(self, client: Client) -> Request:
        rng = self.rng
        newest = rng.random() < 0.8
        member_id = client.ids[-1] if newest else rng.choice([*client.ids, "stranger"])
        generation = client.generations[-1] if newest else rng.choice(client.generations)
        instance = client.instance if rng.random() < 0.9 else rng.choice((None, "i", "other"))
        draw = (
            rng.random() if rng.random() < 0.4 else {"join": 0.0, "sync": 0.5}.get(client.next, 1.0)
        )
        if draw < 0.4:
            lists = (("range",), ("range", "sticky"), ("sticky", "range"), ("other",))
            names = rng.choices(lists, (8, 4, 4, 1))[0]
            return JoinGroup(
                group_id=client.group_id,
                member_id=member_id,
                group_instance_id=instance,
                session_timeout_ms=rng.choice((2_000, 10_000)),
                rebalance_timeout_ms=rng.choice((3_000, 20_000)),
                protocols=tuple(
                    JoinGroupProtocol(name, rng.choice((b"a", b"b"))) for name in names
                ),
            )
        whose: dict[str, Any] = {
            "group_id": client.group_id,
            "member_id": member_id,
            "generation_id": generation,
            "group_instance_id": instance,
        }
        if draw < 0.6:
            group = self.broker.coordinator.classic_group(client.group_id)
            everybody = () if group is None else tuple((one, b"x") for one in group.members)
            return SyncGroup(**whose, assignments=everybody)
        if draw < 0.72 or (draw == 1 and rng.random() < 0.7):
            return Heartbeat(**whose)
        if draw < 0.78:
            entry = MemberIdentity(rng.choice((member_id, "")), instance)
            return LeaveGroup(group_id=client.group_id, members=(entry,))
        if draw < 0.8:
            return DeleteGroups(group_ids=(client.group_id,))
        offset = OffsetToCommit("t", rng.randrange(2), rng.randrange(100))
        return OffsetCommit(**whose, offsets=(offset,))

    def observe(self, number: int | None) -> ErrorCode | None:
        """Reads all new answers and records; returns the error code of the answer to `number`."""
        code = None
        for at, happened in self.broker.take():
            self.transcript.append(f"{at} {happened}")
            if isinstance(happened, Drop):
                self.open.remove(happened.request_id)
            if not isinstance(happened, Respond):
                continue
            assert happened.request_id in self.open, "answered twice"
            self.open.remove(happened.request_id)
            response = happened.response
            client = self.asked[happened.request_id]
            if client is not None:
                remember(client, response)
            codes = [one.error_code for one in getattr(response, "partitions", ())]
            said = codes[0] if codes else getattr(response, "error_code", None)
            commit = self.commits.get(happened.request_id)
            if commit is not None and said is ErrorCode.NONE:
                self.acknowledged.append(commit)
            if happened.request_id == number:
                code = said
        return code

    def described(self) -> str:
        coordinator = self.broker.coordinator
        return f"{dict(coordinator.groups())}{coordinator.deadlines()}"

    def check(self, group: Group) -> None:
        ids = set(group.members)
        assert group.leader_id is None if not ids else group.leader_id in ids
        assert not ids & set(group.pending)
        joined = [one for one in group.members.values() if one.parked_join is not None]
        assert group.awaiting_join == len(joined)
        names = [name for one in group.members.values() for name in one.names()]
        assert +group.votes == {name: names.count(name) for name in set(names)}
        statics = {
            one.group_instance_id: one.member_id for one in group.members.values() if one.is_static
        }
        assert group.static_members == statics
        for one in group.members.values():
            assert {one.parked_join, one.parked_sync} - {None} <= self.open
        if group.is_(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert ids
            assert all(group.protocol_name in one.names() for one in group.members.values())
            assert not joined or group.is_(GroupState.STABLE)  # a static one waits for its record
        if group.is_(GroupState.STABLE) and group.pending_sync:
            # The group waits for members without a SyncGroup, but only until its deadline.
            assert DeadlineKey("sync", group.group_id) in self.broker.coordinator.deadlines()
        if group.is_(GroupState.EMPTY):
            assert not ids
        known = self.generations.get(group.group_id)
        if known is not None and known[0] is group:
            assert group.generation_id >= known[1]
        self.generations[group.group_id] = (group, group.generation_id)

    def check_offsets(self) -> None:
        """Asserts that acknowledged offsets are in the log, unless their group was removed."""
        self.broker.release()
        self.observe(None)
        rebuilt = Coordinator(CONFIG)
        rebuilt.handle(Loaded(tuple(self.broker.log)), self.broker.now_ms)
        last: dict[tuple[str, int], int] = {}
        for entry in self.broker.log:
            assert entry.value is None or entry.key[:2] in (b"\0\1", b"\0\2")
        for commit in self.acknowledged:
            for one in commit.offsets:
                last[commit.group_id, one.partition] = one.offset
        for group_id in GROUPS:
            wanted = tuple(("t", number) for number in range(2))
            fetch = OffsetFetch(group_id=group_id, partitions=wanted)
            answers = []
            for coordinator in (self.broker.coordinator, rebuilt):
                effects = coordinator.handle(Received(0, fetch), self.broker.now_ms)
                (answer,) = [one.response for one in effects if isinstance(one, Respond)]
                assert isinstance(answer, OffsetFetchResponse)
                answers.append([one.offset for one in answer.offsets])
            assert answers[0] == answers[1]
            if group_id in self.broker.coordinator.groups() and not self.removed(group_id):
                for number, found in enumerate(answers[0]):
                    assert found == last.get((group_id, number), -1)

    def removed(self, group_id: str) -> bool:
        """Returns whether the log contains a tombstone of the group; its offsets are then
        removed.
        """
        name = len(group_id).to_bytes(2, "big") + group_id.encode()
        return any(entry.key == b"\0\2" + name and entry.value is None for entry in self.broker.log)


def remember(client: Client, response: Response) -> None:
    """Updates the client's memory from a response."""
    code = getattr(response, "error_code", ErrorCode.NONE)
    if isinstance(response, JoinGroupResponse):
        if code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            client.ids.append(response.member_id)
        if code is ErrorCode.NONE:
            client.generations.append(response.generation_id)
        client.next = "sync" if code is ErrorCode.NONE else "join"
    elif isinstance(response, SyncGroupResponse):
        client.next = "wait" if code is ErrorCode.NONE else "join"
    elif code is not ErrorCode.NONE:
        client.next = "join"


@pytest.mark.seeds(quick=300, whole=2_000)
def test_laws(seeds: Seeds) -> None:
    for seed in seeds:
        run = Run(seed)
        try:
            run.play()
        except Exception as error:
            raise AssertionError(f"seed {seed}, step {len(run.transcript)}") from error


@pytest.mark.seeds(quick=40, whole=200)
def test_the_same_sequence_gives_the_same_answers(seeds: Seeds) -> None:
    for seed in seeds:
        first, second = Run(seed), Run(seed)
        first.play()
        second.play()
        assert first.transcript == second.transcript


def test_the_random_runs_cover_every_kind_of_answer() -> None:
    """The random sequences contain failures, waits, fenced members and commits."""
    seen: dict[str, int] = {}
    for seed in range(300):
        run = Run(seed)
        run.play()
        for line in run.transcript:
            for code in ErrorCode:
                seen[code.name] = seen.get(code.name, 0) + (f"ErrorCode.{code.name}:" in line)
            for state in GroupState:
                seen[state.value] = seen.get(state.value, 0) + (
                    f"after=<GroupState.{state.name}:" in line
                )
        seen["commits"] = seen.get("commits", 0) + len(run.acknowledged)
        for kind in (Append, AppendFailed, Drop):
            named = sum(f" {kind.__name__}(" in line for line in run.transcript)
            seen[kind.__name__] = seen.get(kind.__name__, 0) + named
    wanted = {code.name for code in REFUSALS} | {
        "NONE",
        "REBALANCE_IN_PROGRESS",
        "MEMBER_ID_REQUIRED",
        "GROUP_MAX_SIZE_REACHED",
        "COORDINATOR_NOT_AVAILABLE",
        "commits",
        "Stable",
        "Append",
        "AppendFailed",
        "Drop",
    }
    assert {name for name in wanted if seen.get(name, 0) < 50} == set()

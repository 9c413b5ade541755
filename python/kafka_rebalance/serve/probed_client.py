# SPDX-License-Identifier: Apache-2.0
"""Lets a real client lead made-up groups: its SyncGroup request contains its library's assignment.

Each consumer of the client's process has a seat here, by its client id, and leads one made-up group
(a case) after another. Its JoinGroup is answered when a case is waiting, its SyncGroup contains the
assignment, and the error REBALANCE_IN_PROGRESS makes it rejoin. A process that dies while it
leads a group is started again; otherwise the probe ends.

A library may compute from older metadata: it may read the response to JoinGroup before the response
to Metadata, sent on another connection. So an assignment counts only if the consumer has joined
twice since the metadata of the case's topics was sent. librdkafka requests metadata at each
election, before it computes, so its first assignment after this metadata counts.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Self

from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.wire.consumer_protocol import decode_assignment, decode_subscription
from kafka_rebalance.wire.error_codes import ErrorCode

from .cluster import Cluster, ServedTopic
from .connections import Connections
from .frames import Asked
from .probe_cases import ProbeCase
from .probe_workers import CONSUMERS, PATIENCE_S, REFETCHES

_ELECTIONS = 2

Result = dict[str, Any]


class _Job:
    """A case that has no result yet."""

    def __init__(self, case: ProbeCase) -> None:
        self.case = case
        self.subscribed = case.subscribed()
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    def fail(self, problem: str) -> None:
        self._finish({"group_id": self.case.group_id, "error": problem})

    def answer(self, assignments: Mapping[str, bytes]) -> None:
        assigned = {
            one.member_id: _partitions(assignments.get(one.member_id, b""))
            for one in self.case.members
        }
        names = {"group_id": self.case.group_id, "assignor": self.case.assignor}
        self._finish({**names, "assignment": assigned})

    def _finish(self, result: Result) -> None:
        if not self.result.done():
            self.result.set_result(result)


class _Seat:
    """One consumer of the client. `own` contains the topics to which it really subscribes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.cluster = Cluster(())
        self.cluster.any_name = True
        self.cluster.host, self.cluster.port = address
        self.own: set[str] = set()
        self.job: _Job | None = None
        self.taking: asyncio.Task[_Job] | None = None
        self.joins = 0
        self.knows = False
        """Whether the consumer was sent the metadata of the case's topics."""
        self.informed = 0
        """The number of times that the consumer has joined since it was sent the metadata."""

    def lead(self, job: _Job) -> None:
        self.job, self.knows, self.informed = job, not job.subscribed, 0
        names = {topic.name for topic in job.case.topics}
        self.cluster.replace(job.case.topics)
        for name in self.own - names:
            self.cluster.put(ServedTopic(name, 1))


class Probe:
    """The client's server. With `refetches`, each leader requests metadata before it assigns."""

    def __init__(self, *, refetches: bool = False) -> None:
        self.connections = Connections(self._answer)
        self._refetches = refetches
        self._seats: dict[str, _Seat] = {}
        self._generations = count(1)
        self._waiting: deque[_Job] = deque()
        self._suspects: deque[_Job] = deque()
        self.in_flight: set[_Job] = set()
        self._alone = False
        self._changed = asyncio.Condition()

    async def end(self) -> None:
        self._leave_seats()
        await self.connections.__aexit__()

    async def ask(self, case: ProbeCase) -> Result:
        """Returns the client's answer as the fields of a result line (docs/contract.md)."""
        job = _Job(case)
        self._waiting.append(job)
        await self._notify()
        result = await job.result
        self.in_flight.discard(job)
        self._alone = self._alone and bool(self.in_flight)
        await self._notify()
        return result

    async def client_died(self, problem: str) -> None:
        """Handles the end of the client's process: if it led only one case, this case fails.

        Several cases are led again, one at a time, to find out which of them ends the process.
        """
        self._leave_seats()
        lost = list(self.in_flight)
        self.in_flight.clear()
        if len(lost) == 1:
            lost[0].fail(problem)
        else:
            self._suspects.extend(lost)
        self._alone = False
        await self._notify()

    def _leave_seats(self) -> None:
        for seat in self._seats.values():
            if seat.taking is not None:
                seat.taking.cancel()
        self._seats.clear()

    async def _take(self) -> _Job:
        async with self._changed:
            await self._changed.wait_for(
                lambda: not self.in_flight if self._suspects else self._waiting and not self._alone
            )
            self._alone = bool(self._suspects)
            job = (self._suspects or self._waiting).popleft()
            self.in_flight.add(job)
            return job

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, asked: Asked, _: str) -> Mapping[str, Any] | None:
        seat = self._seats.get(asked.client_id)
        if seat is None:
            address = (self.connections.host, self.connections.port)
            seat = self._seats[asked.client_id] = _Seat(address)
        match asked.api:
            case "join_group":
                return await self._join(seat, asked)
            case "sync_group":
                self._sync(seat, asked)
                return {"error_code": ErrorCode.REBALANCE_IN_PROGRESS}
            case "heartbeat" | "leave_group":
                return {}
            case "metadata":
                self._look(seat, asked)
        if asked.api not in seat.cluster.answers:
            raise WireError(f"{asked.api}: no request of a leader")
        return seat.cluster.answers[asked.api](asked)

    def _look(self, seat: _Seat, asked: Asked) -> None:
        topics = asked.body.topics
        everything = topics is None or (asked.version == 0 and not topics)
        names = {one.name for one in topics or ()}
        if seat.job is None:
            for name in names - seat.cluster.topics.keys():
                seat.cluster.put(ServedTopic(name, 1))
        elif everything or seat.job.subscribed <= names:
            seat.knows = True

    async def _join(self, seat: _Seat, asked: Asked) -> Mapping[str, Any] | None:
        offered = {one.name: one.metadata for one in asked.body.protocols}
        for metadata in offered.values():
            seat.own |= set(decode_subscription(metadata).topics)
        seat.joins += 1
        joins = seat.joins
        if seat.job is None:
            if seat.taking is None:
                seat.taking = asyncio.create_task(self._take())
            job = await asyncio.shield(seat.taking)
            if joins != seat.joins:
                return None  # the consumer has sent a newer request, and waits for that one
            seat.taking = None
            seat.lead(job)
        job = seat.job or job
        if job.case.protocol not in offered:
            job.fail(f"assignor: the client offers {', '.join(offered)}, not {job.case.protocol}")
        if job.result.done():
            seat.job = None
            return await self._join(seat, asked)
        seat.informed += seat.knows
        return self._elected(job, asked)

    def _elected(self, job: _Job, asked: Asked) -> Mapping[str, Any]:
        members = [one._asdict() for one in job.case.members]
        leader = job.case.members[0].member_id
        return {
            "generation_id": next(self._generations),
            "protocol_type": asked.body.protocol_type,
            "protocol_name": job.case.protocol,
            "leader": leader,
            "member_id": leader,
            "members": members,
        }

    def _sync(self, seat: _Seat, asked: Asked) -> None:
        counts = seat.knows if self._refetches else seat.informed >= _ELECTIONS
        if seat.job is not None and counts:
            seat.job.answer({one.member_id: one.assignment for one in asked.body.assignments})
            seat.job = None


def _partitions(assignment: bytes) -> list[list[Any]]:
    if not assignment:
        return []
    return [[tp.topic, tp.partition] for tp in decode_assignment(assignment).partitions]


# The process --------------------------------------------------------------------------------------

_MOST_ASKED = 64


class ProbedClient:
    """A client's process and the probe that it connects to.

    async with ProbedClient("range", library="kafka-python") as client:
        async for result in client.results(cases):
            …
    """

    def __init__(
        self,
        assignor: str,
        *,
        library: str | None = None,
        command: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.probe = Probe(refetches=library in REFETCHES)
        self._assignor, self._library, self._command = assignor, library, command
        self._patience_s = patience_s
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.probe.connections.__aenter__()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            await _kill(self._process)
        await self.probe.end()

    async def results(self, cases: Iterable[ProbeCase]) -> AsyncIterator[Result]:
        """Yields the fields of a result line (docs/contract.md) for each case, in order.

        Errors: GroupError if the client cannot run.
        """
        asked: deque[asyncio.Task[Result]] = deque()
        for case in cases:
            asked.append(asyncio.create_task(self.probe.ask(case)))
            if len(asked) == _MOST_ASKED:
                yield await self._first(asked)
        while asked:
            yield await self._first(asked)

    async def _first(self, asked: deque[asyncio.Task[Result]]) -> Result:
        assert self._running is not None
        await asyncio.wait((asked[0], self._running), return_when=asyncio.FIRST_COMPLETED)
        if not asked[0].done():
            self._running.result()  # raises the GroupError if the client cannot run
        return await asked.popleft()

    def _words(self) -> Sequence[str]:
        """Returns the command line, with the values of {address} and {assignor}."""
        address, assignor = self.probe.connections.address, self._assignor
        if self._command is not None:
            words = shlex.split(self._command)
            return [
                one.replace("{address}", address).replace("{assignor}", assignor) for one in words
            ]
        assert self._library is not None
        worker = [sys.executable, "-m", f"{__package__}.probe_workers"]
        return [*worker, self._library, address, assignor, str(CONSUMERS[self._library])]

    async def _run(self) -> None:
        while True:
            process = self._process = await self._started()
            assert process.stderr is not None
            last = asyncio.create_task(_last_line(process.stderr))
            problem = await self._watch(process)
            ended = problem or f"{_ended(await process.wait())}: {await last}".rstrip(": ")
            if not self.probe.in_flight:
                raise GroupError(self._option(), ended)
            await self.probe.client_died(ended)

    def _option(self) -> str:
        return "--client" if self._command is None else "--command"

    async def _started(self) -> asyncio.subprocess.Process:
        words = self._words()
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            problem = f"{words[0]} cannot be started: {error.strerror}"
            raise GroupError(self._option(), problem) from None

    async def _watch(self, process: asyncio.subprocess.Process) -> str | None:
        """Waits until the process has ended; returns the problem if it was killed as too slow."""
        oldest: dict[Any, float] = {}
        clock = asyncio.get_running_loop().time
        while process.returncode is None:
            with contextlib.suppress(TimeoutError):  # still running: check the age of its cases
                await asyncio.wait_for(process.wait(), 0.2)
            oldest = {job: oldest.get(job, clock()) for job in self.probe.in_flight}
            if any(clock() - since > self._patience_s for since in oldest.values()):
                await _kill(process)
                return f"no answer in {self._patience_s:.0f} s"
        return None


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kills the process and its child processes, which would keep its pipes open."""
    with contextlib.suppress(ProcessLookupError):  # the process has already ended
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _last_line(stream: asyncio.StreamReader) -> str:
    last = ""
    async for line in stream:
        last = line.decode(errors="replace").strip() or last
    return last


def _ended(code: int) -> str:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"the client's process ended with {how}"

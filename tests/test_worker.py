# SPDX-License-Identifier: Apache-2.0
"""A worker's bytes, and the times at which it must be polled.

The traces of workers (`traces/member/worker_*.txt`) show neither.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member.config import WorkerConfig
from kafka_rebalance.member.interface import (
    Answered,
    ConfigurationUpdated,
    Failed,
    Fatal,
    MemberEffect,
    MemberEvent,
    Poll,
    Send,
    Start,
    Subscribe,
)
from kafka_rebalance.member.worker import Worker
from kafka_rebalance.wire.classic_groups import (
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    JoinedMember,
    JoinGroup,
    JoinGroupResponse,
    SyncGroup,
    SyncGroupResponse,
)
from kafka_rebalance.wire.connect_protocol import (
    COMPATIBLE,
    EAGER,
    SESSIONED,
    ConnectAssignment,
    ConnectMetadata,
    decode_connect_assignment,
    decode_connect_metadata,
    encode_connect_assignment,
    encode_connect_metadata,
)
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Tick

CONFIG = WorkerConfig()
RUNS = ConnectAssignment(
    leader="x",
    leader_url="http://x/",
    config_offset=3,
    connectors=("c",),
    tasks=(("c", 0), ("d", 1)),
)


class Client:
    """A worker, with methods that send it a coordinator's answers."""

    def __init__(self, config: WorkerConfig = CONFIG, connectors: tuple[tuple[str, int], ...] = ()):
        self.worker = Worker(config, url="http://m/", rng=random.Random(1))
        self.now_ms = 0
        self.sent: list[Send] = []
        self.do(ConfigurationUpdated(3, connectors))

    def do(self, event: MemberEvent) -> list[MemberEffect]:
        effects = self.worker.handle(event, self.now_ms)
        self.sent += [one for one in effects if isinstance(one, Send)]
        return effects

    def take(self, kind: type) -> Send:
        """Removes and returns the oldest sent request of this kind."""
        found = next(one for one in self.sent if isinstance(one.request, kind))
        self.sent.remove(found)
        return found

    def join(self, generation: int = 1, *, protocol: str = "", others: bool = False) -> JoinGroup:
        """Joins, as the leader if `others`; returns the JoinGroup that was sent."""
        self.do(Poll())
        sent = self.take(JoinGroup)
        assert isinstance(sent.request, JoinGroup)
        protocol = protocol or sent.request.protocols[0].name
        own = {one.name: one.metadata for one in sent.request.protocols}[protocol]
        other = encode_connect_metadata(replace(decode_connect_metadata(own), url="http://o/"))
        response = JoinGroupResponse(
            generation_id=generation,
            protocol_type="connect",
            protocol_name=protocol,
            leader="m" if others else "x",
            member_id="m",
            members=(JoinedMember("m", None, own), JoinedMember("o", None, other))
            if others
            else (),
        )
        self.do(Answered(sent.request_id, response))
        return sent.request

    def sync(self, assignment: bytes) -> list[MemberEffect]:
        self.do(Answered(self.take(SyncGroup).request_id, SyncGroupResponse(assignment=assignment)))
        return self.do(Poll())

    def find(self) -> None:
        self.do(Poll())
        self.do(Answered(self.take(FindCoordinator).request_id, FindCoordinatorResponse(node_id=3)))


def test_what_a_worker_reports_in_every_version() -> None:
    client = Client()
    client.find()
    client.join()
    client.sync(encode_connect_assignment(RUNS))
    client.do(ConfigurationUpdated(4, (("new", 0),)))
    client.do(Poll())
    request = client.join(2)
    assert request.protocol_type == "connect"
    assert request.group_instance_id is None
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (10_000, 60_000)
    said = {one.name: one.metadata for one in request.protocols}
    assert list(said) == ["sessioned", "compatible", "default"]
    assert said["default"] == b"\0\0\0\x09http://m/\0\0\0\0\0\0\0\x04"
    for name, version in (("sessioned", SESSIONED), ("compatible", COMPATIBLE)):
        # The worker reports its last assignment unchanged, except for the version.
        assert decode_connect_metadata(said[name]) == ConnectMetadata(
            url="http://m/",
            config_offset=4,
            assignment=replace(RUNS, version=version),
            version=version,
        )


@pytest.mark.parametrize(
    ("protocol", "version"),
    [("sessioned", SESSIONED), ("compatible", COMPATIBLE), ("default", EAGER)],
)
def test_what_a_leader_tells_in_every_version(protocol: str, version: int) -> None:
    client = Client(connectors=(("c", 1), ("d", 1)))
    client.find()
    client.join(protocol=protocol, others=True)
    request = client.take(SyncGroup).request
    assert isinstance(request, SyncGroup)
    assert (request.protocol_type, request.protocol_name) == ("connect", protocol)
    common = ConnectAssignment(leader="m", leader_url="http://m/", config_offset=3, version=version)
    assert {name: decode_connect_assignment(data) for name, data in request.assignments} == {
        "m": replace(common, connectors=("c",), tasks=(("c", 0),)),
        "o": replace(common, connectors=("d",), tasks=(("d", 0),)),
    }


def test_connectors_come_in_the_order_of_a_hash_set_each_with_its_tasks() -> None:
    names = ("orders", "files", "payments")
    assigned = ConnectAssignment(
        leader="x",
        leader_url="http://x/",
        config_offset=3,
        connectors=names,
        tasks=(("files", 1), ("other", 0), ("orders", 0)),
    )
    client = Client()
    client.find()
    client.join()
    effects = client.sync(encode_connect_assignment(assigned))
    tasks = (Task("orders", 0), Task("files", 1), Task("other", 0))
    assert effects == [Start(Work(names, tasks))]  # in the order of the bytes
    client.do(ConfigurationUpdated(4, (("new", 0),)))
    client.do(Poll())
    report = decode_connect_metadata(client.join(2).protocols[0].metadata)
    assert report.assignment is not None
    work = Work(names, tasks).after_wire()
    assert report.assignment.connectors == work.connectors == ("payments", "files", "orders")
    assert report.assignment.tasks == work.tasks


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x02\0\0\0\x01x", b"\0\x02" + b"\xff" * 60])
def test_an_assignment_that_cannot_be_read_is_thrown_by_every_poll(data: bytes) -> None:
    client = Client()
    client.find()
    client.join()
    for effects in (client.sync(data), client.do(Poll()), client.do(Poll())):
        (fatal,) = [one for one in effects if isinstance(one, Fatal)]
        assert fatal.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert fatal.message.startswith("the assignment cannot be read: assignment.")


def test_a_report_that_cannot_be_read_is_thrown() -> None:
    client = Client()
    client.find()
    client.do(Poll())
    sent = client.take(JoinGroup)
    response = JoinGroupResponse(
        generation_id=1,
        protocol_type="connect",
        protocol_name="sessioned",
        leader="m",
        member_id="m",
        members=(JoinedMember("m", None, b"\0\x02\0"),),
    )
    client.do(Answered(sent.request_id, response))
    (fatal,) = [one for one in client.do(Poll()) if isinstance(one, Fatal)]
    assert fatal.message == "metadata.url: needs 2 bytes, 1 are left"


def test_when_a_worker_wants_to_be_polled() -> None:
    client = Client()
    assert client.worker.next_poll_ms() == 0
    client.find()
    assert client.worker.next_poll_ms() == 0
    client.join()
    assert client.worker.next_poll_ms() is None
    delayed = replace(RUNS, delay_ms=5_000)
    client.sync(encode_connect_assignment(delayed))
    assert client.worker.next_poll_ms() == 5_000
    # Without a coordinator, a poll is due at once, and another poll when the worker must stop its
    # work.
    client.now_ms = 3_000
    client.do(Tick())
    client.do(Failed(client.take(Heartbeat).request_id))
    assert client.worker.next_poll_ms() == 3_000
    client.do(Poll())
    assert client.worker.next_poll_ms() == 6_000
    client.do(Tick())
    client.do(Answered(client.take(FindCoordinator).request_id, FindCoordinatorResponse(node_id=4)))
    assert client.worker.next_poll_ms() == 5_000
    # If the assignment needs a newer configuration, the worker waits for it, and needs no poll.
    client.now_ms = 5_000
    client.do(Poll())
    client.join(2)
    client.sync(encode_connect_assignment(replace(RUNS, config_offset=9)))
    assert client.worker.next_poll_ms() is None
    assert not client.worker.is_at_work()
    client.do(ConfigurationUpdated(9, ()))
    assert client.worker.next_poll_ms() == 5_000
    client.do(Poll())
    assert client.worker.next_poll_ms() is None


def test_settings_that_no_worker_can_have() -> None:
    with pytest.raises(GroupError, match=r"connect_protocol: 'v1' is none of eager, compatible"):
        WorkerConfig(connect_protocol="v1")
    with pytest.raises(GroupError, match=r"heartbeat_interval_ms: 10000 is not less"):
        WorkerConfig(heartbeat_interval_ms=10_000)
    with pytest.raises(TypeError, match="Worker takes no Subscribe"):
        Client().do(Subscribe(("t",)))

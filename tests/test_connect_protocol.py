# SPDX-License-Identifier: Apache-2.0
"""Encodes and decodes Connect's messages in every version, and refuses malformed bytes.

`tests/live/test_connect_workers.py` compares with the bytes of real workers.
"""

from __future__ import annotations

import random
import struct
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.errors import WireError
from kafka_rebalance.wire.connect_protocol import (
    COMPATIBLE,
    CONFIG_MISMATCH,
    EAGER,
    SESSIONED,
    ConnectAssignment,
    ConnectMetadata,
    decode_connect_assignment,
    decode_connect_metadata,
    encode_connect_assignment,
    encode_connect_metadata,
)

INCREMENTAL = (COMPATIBLE, SESSIONED)
ALL = (EAGER, *INCREMENTAL)
ENTRY = b"\0\0\0\x01\0\x01c\0\0\0\x02\xff\xff\xff\xff\0\0\0\x07"  # c and c-7
NOTHING = b"\0\0\0\0"


def _body(offset: int = 9) -> bytes:
    """Encodes error, leader, the leader's URL and the configuration offset."""
    return b"\0\0\0\x01m\0\x08http://m" + struct.pack(">q", offset)


def _assignment(version: int) -> ConnectAssignment:
    revoked = {"revoked_connectors": ("d",), "revoked_tasks": (("c", 1), ("d", 0))}
    incremental = {} if version == EAGER else {**revoked, "delay_ms": 300_000}
    return ConnectAssignment(
        leader="m",
        leader_url="http://m",
        config_offset=9,
        connectors=("c", "é"),
        tasks=(("c", 0), ("c", 7), ("other", 2)),
        version=version,
        **incremental,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("version", ALL)
def test_metadata_by_hand(version: int) -> None:
    head = struct.pack(">h", version) + b"\0\x08http://m" + struct.pack(">q", 9)
    data = head + (b"" if version == EAGER else b"\xff\xff\xff\xff")
    metadata = ConnectMetadata(url="http://m", config_offset=9, version=version)
    assert encode_connect_metadata(metadata) == data
    assert decode_connect_metadata(data) == metadata


@pytest.mark.parametrize("version", INCREMENTAL)
def test_metadata_with_what_runs_by_hand(version: int) -> None:
    """A report contains an encoded assignment with its own version."""
    runs = struct.pack(">h", version) + _body() + ENTRY + NOTHING + b"\0\0\0\0"
    head = struct.pack(">h", version) + b"\0\x08http://m" + struct.pack(">q", 11)
    data = head + struct.pack(">i", len(runs)) + runs
    assignment = ConnectAssignment(
        leader="m",
        leader_url="http://m",
        config_offset=9,
        connectors=("c",),
        tasks=(("c", 7),),
        version=version,
    )
    metadata = ConnectMetadata(
        url="http://m", config_offset=11, assignment=assignment, version=version
    )
    assert decode_connect_metadata(data) == metadata
    assert encode_connect_metadata(metadata) == data


def test_an_eager_assignment_by_hand() -> None:
    data = b"\0\0" + _body(-1) + ENTRY
    assignment = ConnectAssignment(
        leader="m", leader_url="http://m", connectors=("c",), tasks=(("c", 7),), version=EAGER
    )
    assert decode_connect_assignment(data) == assignment
    assert encode_connect_assignment(assignment) == data


@pytest.mark.parametrize("version", INCREMENTAL)
def test_an_incremental_assignment_by_hand(version: int) -> None:
    data = struct.pack(">h", version) + _body() + NOTHING + ENTRY + struct.pack(">i", 1500)
    assignment = ConnectAssignment(
        leader="m",
        leader_url="http://m",
        config_offset=9,
        revoked_connectors=("c",),
        revoked_tasks=(("c", 7),),
        delay_ms=1500,
        version=version,
    )
    assert decode_connect_assignment(data) == assignment
    assert encode_connect_assignment(assignment) == data


def test_eager_messages_leave_out_what_their_version_does_not_have() -> None:
    assignment = ConnectAssignment(
        error=CONFIG_MISMATCH, revoked_connectors=("c",), delay_ms=7, version=EAGER
    )
    read = decode_connect_assignment(encode_connect_assignment(assignment))
    assert read == ConnectAssignment(error=CONFIG_MISMATCH, version=EAGER)
    metadata = ConnectMetadata(url="", config_offset=1, assignment=assignment, version=EAGER)
    assert decode_connect_metadata(encode_connect_metadata(metadata)).assignment is None


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    newer = b"\0\x03" + encode_connect_assignment(_assignment(SESSIONED))[2:] + b"more"
    read = decode_connect_assignment(newer)
    assert (read.version, read.tasks) == (3, _assignment(SESSIONED).tasks)
    report = b"\0\x07" + encode_connect_metadata(ConnectMetadata(url="u", config_offset=1))[2:]
    assert decode_connect_metadata(report + b"\0").version == 7


names = st.text(max_size=8)
connectors = st.lists(names, unique=True, max_size=4).map(tuple)
tasks = st.lists(
    st.tuples(names, st.integers(0, 2**31 - 1)), unique_by=lambda task: task[0], max_size=4
).map(tuple)


@given(st.sampled_from(INCREMENTAL), connectors, tasks, connectors, tasks, st.data())
def test_assignments_come_back(
    version: int,
    some: tuple[str, ...],
    some_tasks: tuple[tuple[str, int], ...],
    others: tuple[str, ...],
    other_tasks: tuple[tuple[str, int], ...],
    data: st.DataObject,
) -> None:
    assignment = ConnectAssignment(
        error=data.draw(st.integers(-(2**15), 2**15 - 1)),
        leader=data.draw(names),
        leader_url=data.draw(names),
        config_offset=data.draw(st.integers(-(2**63), 2**63 - 1)),
        connectors=some,
        tasks=_by_connector(some, some_tasks),
        revoked_connectors=others,
        revoked_tasks=_by_connector(others, other_tasks),
        delay_ms=data.draw(st.integers(-(2**31), 2**31 - 1)),
        version=version,
    )
    written = encode_connect_assignment(assignment)
    assert decode_connect_assignment(written) == assignment
    metadata = ConnectMetadata(
        url=data.draw(names), config_offset=0, assignment=assignment, version=version
    )
    assert decode_connect_metadata(encode_connect_metadata(metadata)) == metadata


def _by_connector(
    connectors: tuple[str, ...], tasks: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Returns tasks in the order of decoding: first those of the connectors, in their order."""
    first = [task for name in connectors for task in tasks if task[0] == name]
    return tuple(first + [task for task in tasks if task[0] not in connectors])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "assignment.version: needs 2 bytes, 0 are left"),
        ("ffff", "assignment.version: -1 is not known"),
        ("0000 0000 ffff", "assignment.leader: is null"),
        ("0000 0000 0001 ff", "assignment.leader: is not UTF-8"),
        ("0000 0000 7fff 00", "assignment.leader: needs 32767 bytes, 1 are left"),
        (
            "0000 0000 0000 0000 0000000000000000 7fffffff",
            "assignment.assignment: 2147483647 entries are not in the data",
        ),
        (
            "0000 0000 0000 0000 0000000000000000 ffffffff",
            "assignment.assignment: -1 entries are not in the data",
        ),
        (
            "0000 0000 0000 0000 0000000000000000 00000001 0000 00000009",
            "assignment.assignment[0].tasks: 9 entries are not in the data",
        ),
        ("0000 0000 0000 0000 0000000000000000 00000000 00", "assignment.end: 1 bytes too many"),
    ],
)
def test_errors_name_the_problem_and_the_field(data: str, problem: str) -> None:
    with pytest.raises(WireError) as refused:
        decode_connect_assignment(bytes.fromhex(data))
    assert str(refused.value) == problem


def test_a_report_with_a_bad_assignment_inside_is_refused() -> None:
    metadata = ConnectMetadata(url="u", config_offset=0, assignment=_assignment(SESSIONED))
    data = bytearray(encode_connect_metadata(metadata))
    data[17] = 0xFF  # the version of the assignment inside the report
    with pytest.raises(WireError, match=r"assignment\.version: -254 is not known"):
        decode_connect_metadata(bytes(data))


@pytest.mark.parametrize("version", ALL)
def test_truncated_at_every_byte(version: int) -> None:
    assignment = _assignment(version)
    metadata = ConnectMetadata(
        url="u", config_offset=0, assignment=assignment if version else None, version=version
    )
    for written, decode in (
        (encode_connect_assignment(assignment), decode_connect_assignment),
        (encode_connect_metadata(metadata), decode_connect_metadata),
    ):
        decode(written)
        for length in range(len(written)):
            with pytest.raises(WireError):
                decode(written[:length])


@given(st.binary(max_size=200), st.sampled_from(ALL))
def test_any_bytes_are_read_or_refused(data: bytes, version: int) -> None:
    for decode in (decode_connect_assignment, decode_connect_metadata):
        for each in (data, struct.pack(">h", version) + data):
            with suppress(WireError):
                decode(each)


def test_hostile_bytes_are_read_or_refused_within_memory() -> None:
    """Bytes of a message are changed at random, which often makes a length field enormous."""
    rng = random.Random(1)
    metadata = ConnectMetadata(url="u", config_offset=0, assignment=_assignment(SESSIONED))
    written = encode_connect_metadata(metadata)
    refused = 0
    tracemalloc.start()
    for _ in range(5_000):
        mutant = bytearray(written)
        for _ in range(rng.randint(1, 4)):
            mutant[rng.randrange(len(mutant))] = rng.choice(
                (0, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
        try:
            decode_connect_metadata(bytes(mutant))
        except WireError:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > 2_000
    assert peak < 1_000_000

# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Connect's two messages: a worker's metadata, and its assignment.

In the bytes, an entry of work lists the numbers of a connector's tasks, and -1 if the connector
itself runs on the worker. The caller orders the work. Versions are 0 eager, 1 compatible, 2
sessioned; bytes of a newer version are read up to the last known field.

Errors   WireError with the name of the field.
Source   ConnectProtocol, IncrementalCooperativeConnectProtocol, ExtendedAssignment (Connect 4.3.1);
         KIP-415 (v1), KIP-507 (v2).
Differs  null or missing lists and a missing delay are refused; Kafka reads them as empty lists
         and 0. Connect's workers do not write such messages.
"""

from typing import Annotated, NamedTuple, TypeVar

from kafka_rebalance.errors import WireError
from kafka_rebalance.frozen import Message

from .layout import VERSION_BYTES, Int16, Int32, Int64, Name, Since, layout_of, read_version
from .messages import common_fields

EAGER, COMPATIBLE, SESSIONED = 0, 1, 2
NO_ERROR, CONFIG_MISMATCH = 0, 1

_CONNECTOR = -1
_Message = TypeVar("_Message", "_Assignment", "_Metadata")

Connectors = tuple[str, ...]
Tasks = tuple[tuple[str, int], ...]


class ConnectAssignment(Message):
    """A worker's assignment; the worker must rejoin after `delay_ms`, unless that is 0."""

    error: int = NO_ERROR
    leader: str = ""
    leader_url: str = ""
    config_offset: int = -1
    connectors: Connectors = ()
    tasks: Tasks = ()
    revoked_connectors: Connectors = ()
    revoked_tasks: Tasks = ()
    delay_ms: int = 0
    version: int = SESSIONED


class ConnectMetadata(Message):
    """A worker's metadata in JoinGroup. `assignment` is None in version 0, or if there is none."""

    url: str
    config_offset: int
    assignment: ConnectAssignment | None = None
    version: int = SESSIONED


class _Work(NamedTuple):
    connector: str
    tasks: tuple[Int32, ...]


class _Assignment(NamedTuple):
    error: Int16
    leader: str
    leader_url: Annotated[str, Name("leader-url")]
    config_offset: Annotated[Int64, Name("config-offset")]
    assignment: tuple[_Work, ...]
    revoked: Annotated[tuple[_Work, ...], Since(COMPATIBLE)] = ()
    delay_ms: Annotated[Int32, Name("delay"), Since(COMPATIBLE)] = 0


class _Metadata(NamedTuple):
    url: str
    config_offset: Annotated[Int64, Name("config-offset")]
    allocation: Annotated[bytes | None, Since(COMPATIBLE)] = None


def decode_connect_metadata(data: bytes) -> ConnectMetadata:
    """Reads a worker's metadata. Errors: WireError."""
    version, (url, offset, allocation) = _read(_Metadata, data, "metadata")
    assignment = None if allocation is None else decode_connect_assignment(allocation)
    return ConnectMetadata(url=url, config_offset=offset, assignment=assignment, version=version)


def encode_connect_metadata(metadata: ConnectMetadata) -> bytes:
    assignment = metadata.assignment
    allocation = None if assignment is None else encode_connect_assignment(assignment)
    message = _Metadata(metadata.url, metadata.config_offset, allocation)
    return _written(message, metadata.version)


def decode_connect_assignment(data: bytes) -> ConnectAssignment:
    """Reads a worker's assignment. Errors: WireError."""
    version, read = _read(_Assignment, data, "assignment")
    connectors, tasks = _split(read.assignment)
    revoked_connectors, revoked_tasks = _split(read.revoked)
    return ConnectAssignment(
        **common_fields(read, ConnectAssignment),
        connectors=connectors,
        tasks=tasks,
        revoked_connectors=revoked_connectors,
        revoked_tasks=revoked_tasks,
        version=version,
    )


def encode_connect_assignment(assignment: ConnectAssignment) -> bytes:
    message = _Assignment(
        **common_fields(assignment, _Assignment),
        assignment=_work(assignment.connectors, assignment.tasks),
        revoked=_work(assignment.revoked_connectors, assignment.revoked_tasks),
    )
    return _written(message, assignment.version)


def _read(kind: type[_Message], data: bytes, what: str) -> tuple[int, _Message]:
    version = read_version(data, what)
    if version < EAGER:
        raise WireError(f"{what}.version: {version} is not known")
    layout = layout_of(kind, min(version, SESSIONED), flexible=False)
    return version, layout.read(data, what, VERSION_BYTES, may_go_on=version > SESSIONED)


def _written(message: _Assignment | _Metadata, version: int) -> bytes:
    layout = layout_of(type(message), version, flexible=False)
    return layout.written(message, version.to_bytes(VERSION_BYTES, signed=True))


def _split(work: tuple[_Work, ...]) -> tuple[Connectors, Tasks]:
    pairs = [(one.connector, number) for one in work for number in one.tasks]
    tasks = tuple(pair for pair in pairs if pair[1] != _CONNECTOR)
    return tuple(name for name, number in pairs if number == _CONNECTOR), tasks


def _work(connectors: Connectors, tasks: Tasks) -> tuple[_Work, ...]:
    numbers: dict[str, list[int]] = {name: [_CONNECTOR] for name in connectors}
    for name, number in tasks:
        numbers.setdefault(name, []).append(number)
    return tuple(_Work(name, tuple(own)) for name, own in numbers.items())

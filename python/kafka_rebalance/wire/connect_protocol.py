# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Connect's two messages: a worker sends metadata, and receives an assignment.

    version      0 eager, 1 compatible, 2 sessioned; 1 and 2 differ only in the number
    metadata     url string, config offset int64; from v1 on the worker's assignment in bytes
    assignment   error int16, leader string, leader's url string, config offset int64, work;
                 from v1 on the work to revoke, and the delay of the next rebalance int32 (ms)
    work         array of (connector string, task numbers as array of int32)

An entry of `work` has the numbers of a connector's tasks, and -1 if the connector itself runs on
the worker. The caller orders the work. Bytes of a newer version are read up to the last known
field.

Errors   WireError with the name of the field.
Source   ConnectProtocol, IncrementalCooperativeConnectProtocol, ExtendedAssignment (Connect 4.3.1);
         KIP-415 (v1), KIP-507 (v2).
Differs  null or missing lists and a missing delay are refused; Kafka reads them as empty lists
         and 0. Connect's workers do not write such messages.
"""

from dataclasses import dataclass

from kafka_rebalance.errors import WireError

from .primitives import Reader, Writer

EAGER, COMPATIBLE, SESSIONED = 0, 1, 2
NO_ERROR, CONFIG_MISMATCH = 0, 1

_CONNECTOR = -1

Connectors = tuple[str, ...]
Tasks = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectAssignment:
    """A worker's assignment; `delay_ms` is the time until it must rejoin, 0 if it need not."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectMetadata:
    """A worker's metadata; `assignment` is None in version 0, or if the worker has none."""

    url: str
    config_offset: int
    assignment: ConnectAssignment | None = None
    version: int = SESSIONED


def decode_connect_metadata(data: bytes) -> ConnectMetadata:
    """Reads a worker's metadata. Errors: WireError."""
    reader = Reader(data, "metadata")
    version = _read_version(reader, "metadata")
    url, offset = reader.string("url"), reader.int64("config-offset")
    allocation = reader.nullable_data("allocation") if version > EAGER else None
    if version <= SESSIONED:
        reader.end()
    assignment = None if allocation is None else decode_connect_assignment(allocation)
    return ConnectMetadata(url=url, config_offset=offset, assignment=assignment, version=version)


def encode_connect_metadata(metadata: ConnectMetadata) -> bytes:
    writer = Writer(flexible=False)
    writer.int16(metadata.version)
    writer.string(metadata.url)
    writer.int64(metadata.config_offset)
    if metadata.version > EAGER:
        assignment = metadata.assignment
        writer.data(None if assignment is None else encode_connect_assignment(assignment))
    return writer.written()


def decode_connect_assignment(data: bytes) -> ConnectAssignment:
    """Reads a worker's assignment. Errors: WireError."""
    reader = Reader(data, "assignment")
    version, error = _read_version(reader, "assignment"), reader.int16("error")
    leader, leader_url = reader.string("leader"), reader.string("leader-url")
    offset = reader.int64("config-offset")
    connectors, tasks = _read_work(reader, "assignment")
    revoked_connectors, revoked_tasks = (
        _read_work(reader, "revoked") if version > EAGER else ((), ())
    )
    delay = reader.int32("delay") if version > EAGER else 0
    if version <= SESSIONED:
        reader.end()
    return ConnectAssignment(
        error=error,
        leader=leader,
        leader_url=leader_url,
        config_offset=offset,
        connectors=connectors,
        tasks=tasks,
        revoked_connectors=revoked_connectors,
        revoked_tasks=revoked_tasks,
        delay_ms=delay,
        version=version,
    )


def encode_connect_assignment(assignment: ConnectAssignment) -> bytes:
    writer = Writer(flexible=False)
    writer.int16(assignment.version)
    writer.int16(assignment.error)
    writer.string(assignment.leader)
    writer.string(assignment.leader_url)
    writer.int64(assignment.config_offset)
    _write_work(writer, assignment.connectors, assignment.tasks)
    if assignment.version > EAGER:
        _write_work(writer, assignment.revoked_connectors, assignment.revoked_tasks)
        writer.int32(assignment.delay_ms)
    return writer.written()


def _read_version(reader: Reader, what: str) -> int:
    version = reader.int16("version")
    if version < EAGER:
        raise WireError(f"{what}.version: {version} is not known")
    return version


def _read_work(reader: Reader, field: str) -> tuple[Connectors, Tasks]:
    connectors: list[str] = []
    tasks: list[tuple[str, int]] = []
    for at in range(reader.count(field)):
        path = f"{field}[{at}]."
        name = reader.string(path + "connector")
        for _ in range(reader.count(path + "tasks")):
            number = reader.int32(path + "tasks")
            if number == _CONNECTOR:
                connectors.append(name)
            else:
                tasks.append((name, number))
    return tuple(connectors), tuple(tasks)


def _write_work(writer: Writer, connectors: Connectors, tasks: Tasks) -> None:
    numbers: dict[str, list[int]] = {name: [_CONNECTOR] for name in connectors}
    for name, number in tasks:
        numbers.setdefault(name, []).append(number)
    writer.count(len(numbers))
    for name, own in numbers.items():
        writer.string(name)
        writer.count(len(own))
        for number in own:
            writer.int32(number)

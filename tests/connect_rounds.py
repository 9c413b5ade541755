"""Every rebalance of a live Connect group, as the broker has written it down.

Each time that a leader has answered, the group coordinator appends the whole group to
`__consumer_offsets`: generation, leader, what each worker reported (its subscription) and what it
was told (its assignment), in Connect's own encoding. Nothing is missed, however fast rounds follow.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

OFFSETS_TOPIC = "__consumer_offsets"
_GROUP_METADATA_KEY = 2
_GROUP_METADATA_VALUE = 3
_CONNECTOR = -1
"""The number that stands for the connector itself, among its tasks."""

Pairs = list[list[Any]]
Work = tuple[list[str], Pairs]


@dataclass(frozen=True)
class Told:
    """One worker in one round; `running` is what it reported. Lists are in the wire's order."""

    member_id: str
    client_id: str
    running_connectors: list[str]
    running_tasks: Pairs
    assigned_connectors: list[str]
    assigned_tasks: Pairs
    revoked_connectors: list[str]
    revoked_tasks: Pairs
    delay_ms: int


@dataclass(frozen=True)
class LiveRound:
    """One rebalance; `time_ms` is when the leader was asked, `members` in the group's order."""

    generation_id: int
    time_ms: int
    leader: str
    members: list[Told]

    @property
    def delay_ms(self) -> int:
        return max(told.delay_ms for told in self.members)


def group_of(key: bytes) -> str | None:
    """The group whose state a record of the offsets topic is, or None for anything else."""
    reader = _Reader(key)
    return reader.string() if reader.int16() == _GROUP_METADATA_KEY else None


def live_round(value: bytes) -> LiveRound | None:
    """A rebalance from the group's record; None while there is no member or no answer."""
    reader = _Reader(value)
    version = reader.int16()
    assert version == _GROUP_METADATA_VALUE, f"GroupMetadataValue is of version {version}"
    reader.string()  # the protocol's type
    generation_id = reader.int32()
    reader.string()  # the protocol
    leader = reader.string() or ""
    time_ms = reader.int64()
    members = [_member(reader) for _ in range(reader.int32())]
    told = [one for one in members if one is not None]
    return LiveRound(generation_id, time_ms, leader, told) if told else None


def _member(reader: _Reader) -> Told | None:
    member_id = reader.string() or ""
    reader.string()  # the instance id
    client_id = reader.string() or ""
    reader.string()  # the host
    reader.int32()  # both timeouts
    reader.int32()
    metadata, answer = reader.data() or b"", reader.data() or b""
    if not answer:
        return None
    state = _Reader(metadata)
    state.int16()  # version, URL, configuration offset
    state.string()
    state.int64()
    running, (assigned, revoked, delay_ms) = _answer(state.data() or b"")[0], _answer(answer)
    return Told(member_id, client_id, *running, *assigned, *revoked, delay_ms)


def _answer(data: bytes) -> tuple[Work, Work, int]:
    """What is assigned, what is revoked, and the delay."""
    if not data:
        return ([], []), ([], []), 0
    reader = _Reader(data)
    version = reader.int16()
    error = reader.int16()
    assert (version in (1, 2), error) == (True, 0), f"assignment: version {version}, error {error}"
    reader.string()  # the leader and its URL, configuration offset
    reader.string()
    reader.int64()
    return reader.work(), reader.work(), reader.int32()


class _Reader:
    """Kafka's classic encoding: big endian, lengths before what they count, -1 is null."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def int64(self) -> int:
        return int(self._unpack(">q"))

    def string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def data(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def work(self) -> Work:
        """Connectors with their tasks."""
        connectors: list[str] = []
        tasks: Pairs = []
        for _ in range(self.int32()):
            name = self.string() or ""
            for number in [self.int32() for _ in range(self.int32())]:
                if number == _CONNECTOR:
                    connectors.append(name)
                else:
                    tasks.append([name, number])
        return connectors, tasks

    def _unpack(self, format: str) -> Any:
        return struct.unpack(format, self._take(struct.calcsize(format)))[0]

    def _take(self, length: int) -> bytes:
        self._at += length
        assert self._at <= len(self._data), "the record ends early"
        return self._data[self._at - length : self._at]

# SPDX-License-Identifier: Apache-2.0
"""The log of the groups on disk: one file of record batches in the format of a broker's segment.

The file only grows, and a record is durable after `sync`. If the process is killed, the last
batches may be torn (incomplete). `read` cuts the file at the first torn batch: no response has been
sent for records from there on.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from kafka_rebalance.coordinator.machine.events import Append, LogEntry
from kafka_rebalance.errors import GroupError

from .batches import (
    NO_PRODUCER,
    TRANSACTIONAL,
    Batch,
    StoredRecord,
    batches,
    is_commit,
    marker,
    new_batch,
)

FILE = f"{0:020}.log"

_PIECE_BYTES = 1024 * 1024
_CLOSED = -1


class RecordLog:
    """The log of one directory, which is created if it is absent.

    Errors: GroupError if another process has the log open, or on a system that is not POSIX.
    """

    def __init__(self, directory: Path) -> None:
        try:
            import fcntl  # imported here, so that `serve` without a log also runs without POSIX
        except ModuleNotFoundError:
            problem = "this system is not POSIX, and cannot lock the log; leave the option out"
            raise GroupError("--log-dir", problem) from None
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / FILE
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise GroupError("--log-dir", f"another process serves from {directory}") from None
        _sync_directory(directory)
        self._size = os.fstat(self._file).st_size
        self._end = 0
        self._failed = False

    def close(self) -> None:
        """Closes the file and releases the lock; a later append or sync fails."""
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def read(self) -> tuple[tuple[LogEntry, ...], int]:
        """Returns all entries, and how many bytes of an incomplete last batch were cut off."""
        entries: list[LogEntry] = []
        whole = 0
        # A system call reads 2 GiB at most; the buffered reader continues after such a short read.
        with open(self._file, "rb", _PIECE_BYTES, closefd=False) as file:
            file.seek(0)
            for batch in batches(file, self._size):
                entries += _entries(batch)
                whole += len(batch.data)
                self._end = batch.last_offset + 1
        torn = self._size - whole
        if torn:
            os.ftruncate(self._file, whole)
            self.sync()
        self._size = whole
        return tuple(entries), torn

    def append(self, append: Append, now_ms: int) -> int:
        """Writes one batch; returns the position of its first record. Errors: OSError."""
        if self._failed:
            raise OSError(f"{self.path}: an earlier sync failed")
        if not append.records and append.committed is None:
            return self._end
        data, count = _batch(append, self._end, now_ms)
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self._size + written)
        except OSError:
            with contextlib.suppress(OSError):  # the first error, raised below, has the cause
                os.ftruncate(self._file, self._size)
            raise
        position, self._end = self._end, self._end + count
        self._size += len(data)
        return position

    def sync(self) -> None:
        """Waits until all written bytes are on the disk. Errors: OSError.

        After an error, no append is accepted: the system may have dropped bytes that it could not
        write.
        """
        try:
            os.fsync(self._file)
        except OSError:
            self._failed = True
            raise


def _sync_directory(directory: Path) -> None:
    """Syncs a directory, which makes the name of a new file in it durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entries(batch: Batch) -> Iterator[LogEntry]:
    producer_id = batch.producer_id if batch.is_transactional else None
    for record in batch.records(0):
        if batch.is_control:
            commits = is_commit(batch)
            yield LogEntry(record.offset, producer_id=producer_id, committed=commits)
        else:
            yield LogEntry(record.offset, record.key or b"", record.value, producer_id)


def _batch(append: Append, position: int, now_ms: int) -> tuple[bytes, int]:
    producer_id = NO_PRODUCER if append.producer_id is None else append.producer_id
    epoch = NO_PRODUCER if append.producer_id is None else 0
    if append.committed is not None:
        batch = marker(producer_id, epoch, append.committed, now_ms)
    else:
        batch = new_batch(
            [StoredRecord(0, 0, now_ms, one.key, one.value) for one in append.records],
            attributes=0 if append.producer_id is None else TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
    return batch.at(position).data, batch.record_count

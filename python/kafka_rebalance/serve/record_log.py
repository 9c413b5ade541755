# SPDX-License-Identifier: Apache-2.0
"""The logs of the groups and of each partition on disk: batches as in a broker's segment.

    DIR/00000000000000000000.log             the groups
    DIR/orders-0/00000000000000000000.log    partition 0 of `orders`

Files only grow; a partition's file is deleted with its topic. If the process is killed, the last
batches may be torn (incomplete). `read` cuts a file at the first torn batch: no response has been
sent for records from there on.
"""

import contextlib
import os
import shutil
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
from .cluster import is_legal

FILE = f"{0:020}.log"

_PIECE_BYTES = 1024 * 1024
_CLOSED = -1


class RecordLog:
    """The log of the groups in one directory, which is made if it is absent.

    A record is durable after `sync`.

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


class RecordFiles:
    """The partitions' files in one directory, which a `RecordLog` locks.

    A batch is in its file before the producer gets an answer. As in Kafka, it is not synced: it is
    kept if the process is killed, not if the machine fails. After a restart, records before the
    start that DeleteRecords gave the partition are there again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.torn = 0
        """The number of bytes that `read` cut off the ends of files; no response confirmed them."""

    def read(self, topic: str, partition: int) -> Iterator[Batch]:
        """Yields a partition's batches; cuts its file at the first one that is not whole."""
        path, whole = self._path(topic, partition), 0
        if not path.exists():
            return
        with path.open("r+b") as file:
            for batch in batches(file, size := path.stat().st_size):
                whole += len(batch.data)
                yield batch
            if size > whole:
                self.torn += size - whole
                file.truncate(whole)

    def places(self) -> Iterator[tuple[str, int]]:
        """Yields the topic and number of each partition that has a file."""
        for path in sorted(self._directory.glob(f"*-*/{FILE}")):
            topic, _, number = path.parent.name.rpartition("-")
            if number.isdecimal() and is_legal(topic):
                yield topic, int(number)

    def append(self, topic: str, partition: int, data: bytes) -> None:
        """Writes a batch. Errors: OSError; the file is then as before."""
        path = self._path(topic, partition)
        path.parent.mkdir(exist_ok=True)
        with path.open("ab", buffering=0) as file:
            size, left = file.tell(), memoryview(data)
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(size)
                raise

    def drop(self, topic: str, partition: int) -> None:
        shutil.rmtree(self._path(topic, partition).parent, ignore_errors=True)

    def _path(self, topic: str, partition: int) -> Path:
        return self._directory / f"{topic}-{partition}" / FILE

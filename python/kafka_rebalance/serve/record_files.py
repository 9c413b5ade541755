# SPDX-License-Identifier: Apache-2.0
"""The records of partitions on disk: batches as in a broker's segment, one file per partition.

    DIR/orders-0/00000000000000000000.log

A batch is in its file before the producer gets an answer. As in Kafka, it is not synced: it
survives a killed process, but not a failure of the machine. A file only grows, until its topic is
deleted. After a restart, records that DeleteRecords had removed are there again.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from .batches import Batch, batches
from .cluster import is_legal
from .record_log import FILE


class RecordFiles:
    """The files of one directory, which a `RecordLog` locks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.torn = 0
        """The number of bytes that `read` cut off the ends of files; no answer confirmed them."""

    def read(self, topic: str, partition: int) -> Iterator[Batch]:
        """Yields a partition's batches; cuts its file at the first incomplete one."""
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
        """Writes a batch. Errors: OSError; the file is then unchanged."""
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
        """Removes the file of a deleted partition."""
        shutil.rmtree(self._path(topic, partition).parent, ignore_errors=True)

    def _path(self, topic: str, partition: int) -> Path:
        return self._directory / f"{topic}-{partition}" / FILE

# SPDX-License-Identifier: Apache-2.0
"""`serve --log-dir` writes a log in a broker's format, and a kill loses no answered commit."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("kio", reason="kio is not installed: pip install -e '.[serve]'")

from kafka_rebalance.errors import GroupError
from kafka_rebalance.serve.record_log import FILE
from kafka_rebalance.testing import RunningBroker
from kafka_rebalance.wire import group_records
from tests.parity.wire import Connection, WireError

PARTITIONS = 8


def commit(one: Connection, partition: int, offset: int) -> str:
    entry = {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
    answer = one.ask(
        "offset_commit",
        2,
        group_id="g",
        generation_id=-1,
        member_id="",
        retention_time=-1,
        topics=[{"name": "t", "partitions": [entry]}],
    )
    return str(answer.topics[0].partitions[0].error_code.name)


def committed(one: Connection) -> dict[int, int]:
    answer = one.ask("offset_fetch", 5, group_id="g", topics=None)
    return {p.partition_index: p.committed_offset for t in answer.topics for p in t.partitions}


def connection(broker: RunningBroker) -> Connection:
    host, _, port = broker.address.partition(":")
    return Connection(host, int(port), "c")


def written(directory: Path) -> Path:
    """Makes a log of 20 commits."""
    with RunningBroker({"t": PARTITIONS}, log_dir=directory) as broker, connection(broker) as one:
        assert {commit(one, n % PARTITIONS, n) for n in range(20)} == {"none"}
    return directory / FILE


def test_other_libraries_read_the_log(tmp_path: Path) -> None:
    """kafka-python's reader finds valid batches, with records as a broker writes them."""
    pytest.importorskip("kafka", reason="no kafka-python: pip install -e '.[kafka]'")
    from kafka.record import memory_records

    batches = memory_records.MemoryRecords(written(tmp_path).read_bytes())
    found = []
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(record.offset, record.key, record.value) for record in batch]
    assert [offset for offset, _, _ in found] == list(range(20))
    for offset, data, value in found:
        key = group_records.decode_key(data)
        assert key == group_records.OffsetCommitKey("g", "t", offset % PARTITIONS)
        decoded = group_records.decode_value(key, value)
        assert isinstance(decoded, group_records.OffsetCommitValue)
        assert decoded.offset == offset


def test_a_torn_tail_is_cut_off_at_every_byte(tmp_path: Path) -> None:
    file = written(tmp_path)
    whole = file.read_bytes()
    batch = len(whole) // 20
    for torn in [*range(1, batch, 7), batch - 1]:
        file.write_bytes(whole[: -batch + torn])
        with RunningBroker({"t": PARTITIONS}, log_dir=tmp_path) as broker:
            assert broker.recovered == (19, torn)
            with connection(broker) as one:
                assert committed(one) == {p: p + 8 if p > 2 else p + 16 for p in range(8)}
                assert commit(one, 3, 99) == "none"
        with (
            RunningBroker({"t": PARTITIONS}, log_dir=tmp_path) as broker,
            connection(broker) as one,
        ):
            assert broker.recovered == (20, 0)
            assert committed(one)[3] == 99


def test_a_log_that_arrives_in_pieces_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system call returns 2 GiB at most; once, the rest of a longer log was cut off as torn."""
    data = written(tmp_path).read_bytes()
    all_at_once = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: all_at_once(file, min(size, 100), at))
    with RunningBroker({"t": PARTITIONS}, log_dir=tmp_path) as broker:
        assert broker.recovered == (20, 0)
    assert (tmp_path / FILE).read_bytes() == data


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    file = written(tmp_path)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with RunningBroker({"t": PARTITIONS}, log_dir=tmp_path) as broker:
        assert broker.recovered == (19, len(data) // 20)


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with (
        RunningBroker({"t": 1}, log_dir=tmp_path),
        pytest.raises(GroupError, match="--log-dir: another process serves from"),
        RunningBroker({"t": 1}, log_dir=tmp_path),
    ):
        pass


def test_a_system_without_posix_has_all_but_the_log(tmp_path: Path) -> None:
    """The server runs in a process that cannot import `fcntl`, as on Windows."""
    program = f"""
import sys
sys.modules["fcntl"] = None
from kafka_rebalance.cli import main
from kafka_rebalance.testing import RunningBroker
with RunningBroker({{"t": 1}}) as broker:
    print(broker.connections)
sys.exit(main(["serve", "--topic", "t=1", "--port", "0", "--log-dir", {str(tmp_path / "log")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "0\n"
    assert done.returncode == 2
    problem = "--log-dir: this system is not POSIX, and cannot lock the log; leave the option out"
    assert done.stderr == f"kafka-rebalance: {problem}\n"
    assert not (tmp_path / "log").exists()


# SIGKILL ------------------------------------------------------------------------------------------


class Committing(threading.Thread):
    """Commits growing offsets of one partition until the server is gone."""

    def __init__(self, port: int, partition: int, first: int) -> None:
        super().__init__()
        self.partition, self.answered, self._first = partition, first - 1, first
        self._one = Connection("127.0.0.1", port, f"c{partition}")

    def run(self) -> None:
        try:
            with self._one as one:
                while commit(one, self.partition, self.answered + 1) == "none":
                    self.answered += 1
        except (OSError, WireError):
            return  # the server was killed


def serve(directory: Path) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "kafka_rebalance", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--topic", f"t={PARTITIONS}", "--log-dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = re.search(r":(\d+);", process.stdout.readline())
    assert found is not None
    return process, int(found[1])


def kills(directory: Path, times: int, least: int, rng: random.Random) -> int:
    """Kills a server repeatedly while it answers commits; returns the number of answers in all.

    Each kill comes after at least `least` answers.
    """
    answered = dict.fromkeys(range(PARTITIONS), -1)
    total = 0
    for _ in range(times):
        process, port = serve(directory)
        none_is_lost(port, answered)
        threads = [Committing(port, p, answered[p] + 1) for p in range(PARTITIONS)]
        for thread in threads:
            thread.start()
        while sum(one.answered - answered[one.partition] for one in threads) < least:
            assert any(one.is_alive() for one in threads), "the server answers no commit"
            time.sleep(0.001)
        time.sleep(rng.random() / 20)
        process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
            total += thread.answered - answered[thread.partition]
            answered[thread.partition] = thread.answered
        process.communicate()
    process, port = serve(directory)
    none_is_lost(port, answered)
    process.kill()
    process.communicate()
    return total


def none_is_lost(port: int, answered: dict[int, int]) -> None:
    with Connection("127.0.0.1", port, "after") as one:
        found = committed(one)
    lost = {p: (found.get(p, -1), at) for p, at in answered.items() if found.get(p, -1) < at}
    assert not lost


def test_a_kill_loses_no_answered_commit(tmp_path: Path) -> None:
    """`python -m tests.test_serve_log` kills 20 servers, each after at least 10,000 commits."""
    assert kills(tmp_path, times=3, least=200, rng=random.Random(20)) >= 600


def main(arguments: list[str]) -> None:
    import tempfile

    times, least = map(int, arguments or ["20", "10000"])
    with tempfile.TemporaryDirectory() as directory:
        total = kills(Path(directory), times, least, random.Random(20))
    print(f"{times} kills, {total} commits answered, none lost")


if __name__ == "__main__":
    main(sys.argv[1:])

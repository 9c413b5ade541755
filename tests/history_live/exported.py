# SPDX-License-Identifier: Apache-2.0
"""Runs `kafka-rebalance exporter` beside the groups, and compares its counts with the records."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client.openmetrics import parser

from kafka_rebalance.history import rebalance_history
from tests.support.processes import wait_or_kill
from tests.support.waiting import FAR_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kafka_rebalance.history.records import OffsetsRecord

parse: Any = parser.text_string_to_metric_families
POLL_S = 60
BROKERS = 3
REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "1",
}
Counts = dict[tuple[str, str], int]
"""Group and cause -> rebalances."""


@dataclass(frozen=True)
class Exported:
    """The counts of the exporter; `by_records` is whether it reads the log."""

    counts: Counts
    resident_mb: float
    unpredicted: int
    by_records: bool
    killed: str


@contextmanager
def exporter(server: str, every_s: float = 5) -> Iterator[str]:
    """Yields the address of the exporter's pages."""
    words = ("exporter", "--bootstrap-server", server, "--port", "0", "--every", str(every_s))
    process = subprocess.Popen(
        [sys.executable, "-m", "kafka_rebalance", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[2].removesuffix("/metrics;")
        deadline = time.monotonic() + FAR_S
        while not read(address, "").by_records:  # earlier rebalances would not count
            if time.monotonic() > deadline:
                raise TimeoutError("the exporter reads no records")
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        wait_or_kill(process, 10)


def read(address: str, killed: str) -> Exported:
    with urllib.request.urlopen(f"{address}/metrics", timeout=FAR_S) as answer:
        page = answer.read().decode()
    samples = [one for family in parse(page) for one in family.samples]
    counts = {
        (one.labels["group"], one.labels["cause"]): int(one.value)
        for one in samples
        if one.name == "kafka_rebalance_rebalances_total"
    }
    [resident] = [one.value for one in samples if one.name == "process_resident_memory_bytes"]
    wrong = sum(
        one.value for one in samples if one.name == "kafka_rebalance_unpredicted_rebalances_total"
    )
    source = [one for one in samples if one.name == "kafka_rebalance_source"]
    by_records = any(one.value and one.labels["source"] == "records" for one in source)
    return Exported(counts, resident / 1e6, int(wrong), by_records, killed)


def settled(address: str, records: Iterable[OffsetsRecord], killed: str) -> Exported:
    """Returns the counts when they are those of the records, or after 20 s."""
    deadline, expected = time.monotonic() + 20, recorded(records)
    while (found := read(address, killed)).counts != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def recorded(records: Iterable[OffsetsRecord]) -> Counts:
    rows = (row for row in rebalance_history(records) if row.is_rebalance)
    return dict(Counter((row.group_id, row.cause) for row in rows))


def told(records: Sequence[OffsetsRecord], exported: Exported) -> tuple[str, bool]:
    """Returns a sentence on the counts, and whether each rebalance was counted once."""
    expected = Counter(recorded(records))
    found = Counter(exported.counts)
    false, missed = (found - expected).total(), (expected - found).total()
    total = expected.total()
    seen = _seen_by_polls(records)
    text = (
        f"exporter: {total - missed} rebalances of {total} with their cause, {false} false, "
        f"{missed} missed; {exported.unpredicted} not as predicted; {exported.resident_mb:.0f} MB; "
        f"broker killed: {exported.killed or 'none'}\n"
        f"a poll every {POLL_S} s would have seen {seen}, and missed {total - seen}"
    )
    return text, not false and not missed


def _seen_by_polls(records: Iterable[OffsetsRecord]) -> int:
    """Returns how many changes of the generation show if each group is read every POLL_S."""
    times: dict[str, list[int]] = defaultdict(list)
    for row in rebalance_history(records):
        if row.is_rebalance:
            times[row.group_id].append(row.written_ms // 1000 // POLL_S)
    return sum(len(set(polls)) for polls in times.values())

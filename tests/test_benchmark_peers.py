# SPDX-License-Identifier: Apache-2.0
"""The benchmark records why another program (a peer) has no time: error, slow answer or crash."""

from __future__ import annotations

import sys

import pytest

from benches.grid import Case
from benches.measure import Peer

READS = "import sys, time\nfor line in sys.stdin:\n    "


def _peer(body: str, timeout: float = 60) -> Peer:
    return Peer("peer", [sys.executable, "-uc", READS + body], ("range",), timeout)


def _case(partitions: int) -> Case:
    return Case("range", partitions, 1, 1)


def test_a_peer_that_answers_is_asked_again() -> None:
    peer = _peer("print('{\"ms\": [3, 1, 2]}')")
    for partitions in (10, 20):
        answer = peer.ask(_case(partitions), b"{}")
        assert (answer["ms"], answer["best_ms"], answer["calls"]) == (2, 1, 3)
    peer.stop()


def test_an_error_is_reported_in_the_peers_words() -> None:
    peer = _peer('print(\'{"error": "KeyError: 7"}\')')
    assert peer.ask(_case(10), b"{}") == {"skipped": "KeyError: 7"}
    peer.stop()


def test_a_slow_peer_is_not_asked_larger_cases() -> None:
    peer = _peer("time.sleep(60)", timeout=0.1)
    assert peer.ask(_case(10), b"{}") == {"skipped": "no answer in 0.1 s"}
    assert peer.ask(_case(20), b"{}") == {"skipped": "no answer in 0.1 s on 10 partitions already"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise MemoryError('no room')", "crashed, exit code 1: MemoryError: no room"),
        ("sys.exit('line 1\\nline 2\\n')", "crashed, exit code 1: line 2"),
        ("print('half', end=''); sys.exit(3)", "crashed, exit code 3: half"),
        ("sys.exit(4)", "crashed, exit code 4: it wrote nothing"),
    ],
)
def test_a_crash_is_reported_with_its_last_line(body: str, problem: str) -> None:
    peer = _peer(body)
    for partitions in (10, 20):  # the peer starts again for the next case
        assert peer.ask(_case(partitions), b"{}") == {"skipped": problem}


def test_a_peer_that_never_reads_has_crashed() -> None:
    peer = Peer("peer", [sys.executable, "-c", "raise SystemExit(5)"], ("range",), 60)
    long_line = b"x" * 1_000_000  # more bytes than a pipe holds
    assert peer.ask(_case(10), long_line) == {"skipped": "crashed, exit code 5: it wrote nothing"}

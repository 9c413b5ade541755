# SPDX-License-Identifier: Apache-2.0
"""Offsets of micro-batches and ranges of tasks, tested without a broker or a Spark session."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -e '.[spark]'")

from kafka_rebalance.live import ClusterError
from kafka_rebalance.live.log_records import Bounds
from kafka_rebalance.spark.kafka_records import beginning, next_end, ranges

BOUNDS = {0: Bounds(0, 100, 100), 1: Bounds(40, 50, 60), 2: Bounds(7, 7, 7)}


def test_without_a_limit_a_batch_ends_at_the_last_stable_offsets() -> None:
    assert beginning(BOUNDS) == {"0": 0, "1": 40, "2": 7}
    assert next_end({"0": 30, "1": 40, "2": 7}, BOUNDS) == {"0": 100, "1": 50, "2": 7}


def test_a_limit_is_shared_in_proportion_to_what_is_left() -> None:
    assert next_end({}, BOUNDS, limit=55) == {"0": 50, "1": 45, "2": 7}
    assert next_end({}, BOUNDS, limit=1) == {"0": 1, "1": 41, "2": 7}  # one offset each of 0 and 1
    assert next_end({}, BOUNDS, limit=110) == {"0": 100, "1": 50, "2": 7}


def test_a_target_is_never_passed() -> None:
    target = {"0": 20, "1": 45}
    assert next_end({"0": 10, "1": 40, "2": 7}, BOUNDS, target=target) == {
        "0": 20,
        "1": 45,
        "2": 7,
    }
    assert next_end({"0": 30, "1": 45, "2": 7}, BOUNDS, target=target) == {
        "0": 30,
        "1": 45,
        "2": 7,
    }


def test_a_new_partition_begins_at_its_earliest_offset() -> None:
    assert next_end({"0": 100}, BOUNDS) == {"0": 100, "1": 50, "2": 7}
    assert next_end({"0": 100}, BOUNDS, limit=5)["1"] == 45


def test_no_end_is_below_its_start() -> None:
    """A new leader may not know yet that transactions have ended, so its bounds can be lower."""
    lagging = {0: Bounds(0, 80, 100)}
    assert next_end({"0": 90}, lagging) == {"0": 90}
    assert next_end({"0": 90, "1": 5}, lagging) == {"0": 90, "1": 5}  # 1 has no bounds


def test_a_topic_that_was_made_anew_is_an_error() -> None:
    with pytest.raises(ClusterError, match=r"partition 0: its log ends at 100, .* is at 101"):
        next_end({"0": 101}, BOUNDS)


def test_drawn_streams_read_everything_once() -> None:
    rng = random.Random(19)
    for _ in range(300):
        bounds = {}
        for partition in range(rng.randint(1, 6)):
            earliest = rng.randrange(50)
            stable = earliest + rng.choice((0, rng.randrange(200)))
            bounds[partition] = Bounds(earliest, stable, stable + rng.randrange(9))
        limit = rng.randint(1, 80)
        at, batches = beginning(bounds), 0
        while (end := next_end(at, bounds, limit=limit)) != at:
            read = {key: end[key] - at[key] for key in at}
            assert min(read.values()) >= 0
            assert sum(read.values()) <= limit + len(bounds)
            at, batches = end, batches + 1
        assert at == {str(partition): one.last_stable for partition, one in bounds.items()}
        left = sum(one.last_stable - one.earliest for one in bounds.values())
        assert batches <= -(-left // limit) + left  # this bound proves that the loop ends


@pytest.mark.parametrize(
    ("start", "end", "longest", "expected"),
    [
        (0, 0, 5, []),
        (7, 3, 5, []),
        (0, 5, 5, [(0, 5)]),
        (10, 21, 5, [(10, 13), (13, 17), (17, 21)]),
    ],
)
def test_ranges(start: int, end: int, longest: int, expected: list[tuple[int, int]]) -> None:
    assert ranges(start, end, longest) == expected

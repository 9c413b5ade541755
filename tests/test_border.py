# SPDX-License-Identifier: Apache-2.0
"""Calls into the core: a group is converted once, Ctrl-C ends a long call, forks are harmless."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec, Member, Topic
from kafka_rebalance.bulk import assign_batch

if TYPE_CHECKING:
    from collections.abc import Callable


def group(members: int = 3) -> GroupSpec:
    topics = (Topic("t", 4), Topic("u", 3))
    names = ("t", "u")
    return GroupSpec("g", topics, tuple(Member(f"m{n}", names) for n in range(members)), "sticky")


def test_a_group_is_numbered_once_and_keeps_nothing_else() -> None:
    one = group()
    assert one.interned() is one.interned()
    assert one == group()
    assert hash(one) == hash(group())
    assert "interned" not in repr(one)
    again = replace(one, assignor="range")
    assert again.interned() is not one.interned()


def pickled(one: GroupSpec) -> GroupSpec:
    again = pickle.loads(pickle.dumps(one))
    assert isinstance(again, GroupSpec)
    return again


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_copies_are_equal_and_answer_the_same(duplicate: Callable[[GroupSpec], GroupSpec]) -> None:
    one = group()
    answer = kr.assign(one)
    other = duplicate(one)
    assert other == one
    assert kr.assign(other) == answer


def test_a_group_that_was_let_in_above_the_limit_can_be_copied() -> None:
    large = GroupSpec("g", (Topic("t", 10_000_001),), (Member("m", ("t",)),), max_partitions=10**8)
    assert pickle.loads(pickle.dumps(large)) == large


def test_threads_may_ask_about_one_group_at_once() -> None:
    one, answers = group(50), []
    threads = [
        threading.Thread(target=lambda: answers.append(kr.assign(one).to_dict())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)


# A call that takes much longer than the test: m claims a partition that does not exist, so the core
# must make a slow check before every move (Kafka's own check can throw there).
LONG = """
import random, kafka_rebalance as kr
rng = random.Random(1)
names = [f"topic-{n}" for n in range(4000)]
members = [kr.Member(f"m{n}", tuple(rng.sample(names, 3))) for n in range(8000)]
ghost = (kr.TopicPartition(names[0], 100),)
members = (kr.Member("m", (names[0],), owned_partitions=ghost), *members)
group = kr.GroupSpec("g", tuple(kr.Topic(name, 100) for name in names), members, "sticky")
group.interned()
print("ready", flush=True)
try:
    kr.assign(group)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_long_call() -> None:
    running = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        # The test waits this long only if the call ignores Ctrl-C.
        said, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    assert said == "interrupted\n"
    assert running.returncode == 0


@pytest.mark.process
def test_a_fork_between_two_parallel_calls_is_harmless() -> None:
    """A child process does not use the threads of its parent, which do not exist there.

    Spark forks its Python workers.
    """
    rows = [{**group().to_dict(), "group_id": f"g{n}"} for n in range(64)]
    batch = pa.RecordBatch.from_pylist(rows)
    assert assign_batch(batch, threads=4)["error"].null_count == 64
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # kills a child that hangs
        answered = assign_batch(batch, threads=4)
        os._exit(0 if answered["error"].null_count == 64 else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert assign_batch(batch, threads=4)["error"].null_count == 64

# SPDX-License-Identifier: Apache-2.0
"""Calls the functions of the core at random: `python -m tools.random_calls --calls 2000000`.

Most arguments have the type that their parameter takes, with values at its ends and damaged bytes;
the other arguments are of any type. Objects that the core returns are arguments of later calls.
Each call returns or raises an Exception. A panic of Rust is not an Exception: it ends the run,
which has printed its seed.
"""

from __future__ import annotations

import argparse
import inspect
import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import kafka_rebalance as kr
import kafka_rebalance._core as core
from kafka_rebalance.data import captured_lines
from kafka_rebalance.plans.changes.made_up import PLANNED
from kafka_rebalance.wire import consumer_protocol as wire

_NAMES = sorted(kr.assignor_names())
_INTEGERS = (0, 1, 2, 5, -1, 1_000, 2**31 - 1, -(2**31), 2**63, 2**200, True)
_CHANGES = ("add-members=2", "remove-members=1", "bounce-members", "add-partitions=orders=9", "x=")
_MOST_RETURNED = 200


class _Lying:
    """A sequence whose length is not the number of its entries."""

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, at: int) -> object:
        if at > 3:
            raise IndexError
        return ("t", at)


class Calls:
    """Draws functions and arguments; `returned` are objects of the core."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.functions = {
            name: (function, list(inspect.signature(function).parameters))
            for name in dir(core)
            if callable(function := getattr(core, name))
        }
        lines = sorted((one for one in captured_lines() if '"error"' not in one), key=len)[:6]
        self.lines = [line.encode() for line in lines]
        self.groups = [kr.GroupSpec.from_json(line) for line in lines]
        self.interned = [core.intern(group) for group in self.groups]
        rows = [group.to_dict() for group in self.groups]
        self.batches = [pa.RecordBatch.from_pylist(rows[:n]) for n in (0, 1, 6)]
        sent = wire.Subscription(("t", "u"), b"\0\0\0\7", (kr.TopicPartition("t", 1),), 4, "a")
        self.data = [wire.encode_subscription(sent), b"", *self.lines]
        self.topics = core.TopicInventory(
            pa.RecordBatch.from_pylist([{"name": "t", "partitions": 6}])
        )
        self.returned: list[Any] = [self.topics]
        self.by_name: dict[str, Callable[[], Any]] = {
            "group": lambda: self.rng.choice((*self.interned, *self.groups)),
            "assignor": lambda: self.rng.choice((*_NAMES, "nope", None)),
            "lines": lambda: [self._damaged() for _ in range(self.rng.randrange(4))],
            "line": self._damaged,
            "data": self._damaged,
            "user_data": self._damaged,
            "batch": lambda: self.rng.choice(self.batches),
            "changes": lambda: self.rng.sample(_CHANGES, self.rng.randrange(3)),
            "topics": lambda: self.rng.choice((self.topics, ("t", "u"))),
            "sent": lambda: sent,
            "draw": lambda: PLANNED,
            "form": lambda: self.rng.choice(("columns", "lines", "x")),
            "write": lambda: lambda _: None,
            "partitions": lambda: self.rng.choice(([("t", 1)], [0, 1], [-1, 2**31])),
            "workers": lambda: ["a", "b"],
            "config": lambda: {"c": self.rng.choice((0, 3, -1))},
        }

    def call(self) -> str:
        """Makes one call; returns its outcome."""
        function, parameters = self.functions[self.rng.choice([*self.functions])]
        arguments = [self._argument(name) for name in parameters]
        try:
            answer = function(*arguments)
        except Exception as error:
            return type(error).__name__
        if len(self.returned) >= _MOST_RETURNED:
            self.returned.pop(self.rng.randrange(len(self.returned)))
        self.returned.append(answer)
        return "answered"

    def _argument(self, name: str) -> Any:
        kind = self.rng.random()
        if kind < 0.03:
            return self.rng.choice(self.returned)
        if kind < 0.1:
            return self._anything()
        made = self.by_name.get(name)
        return self.rng.choice(_INTEGERS) if made is None else made()

    def _damaged(self) -> bytes:
        data = bytearray(self.rng.choice(self.data))
        for _ in range(self.rng.randrange(3)):
            if data:
                data[self.rng.randrange(len(data))] = self.rng.randrange(256)
        return bytes(data)

    def _anything(self, depth: int = 0) -> Any:
        few = (None, 0.5, float("nan"), object(), int, "", "\ud800", "é" * 50, b"\0", _Lying())
        if depth > 2 or self.rng.random() < 0.6:
            return self.rng.choice((*few, *_INTEGERS, *_NAMES))
        some = [self._anything(depth + 1) for _ in range(self.rng.randrange(4))]
        return self.rng.choice((some, tuple(some), dict(enumerate(some))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    calls, met = Calls(args.seed), Counter[str]()
    for _ in range(args.calls):
        met[calls.call()] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{args.calls} calls, 0 panics, at most {peak} MiB: {dict(met.most_common())}")


if __name__ == "__main__":
    main()

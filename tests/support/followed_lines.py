# SPDX-License-Identifier: Apache-2.0
"""Lets `watch` follow descriptions and records of a test, with a clock that the test moves."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kafka_rebalance.cli import watch as watch_command
from kafka_rebalance.follow import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    import pytest

    import kafka_rebalance as kr
    from kafka_rebalance.follow.rebalances import FollowedRebalance
    from kafka_rebalance.watch.verdict import JudgedRebalance

EVERY_S = 0.5


class FakeTime:
    """A clock that moves only by calls of `sleep`."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class Nobody:
    """A listener that ignores everything."""

    def rebalanced(self, one: FollowedRebalance, *, is_old: bool) -> None: ...

    def described(self, group: kr.GroupSpec, source: str) -> None: ...

    def undescribed(self, group_id: str, why: str) -> None: ...

    def listed(self, group_ids: Set[str]) -> None: ...

    def failed(self, what: str, error: Exception | None) -> None: ...


@dataclass(slots=True)
class Looks:
    """What `watch` saw: the states of the group, the rebalances judged, and its notes."""

    settled: list[kr.GroupSpec] = field(default_factory=list)
    judged: list[JudgedRebalance | None] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)


def followed(
    monkeypatch: pytest.MonkeyPatch, passes: Sequence[Sequence[dict[str, Any]] | Exception]
) -> Looks:
    """Describes the group "g" once for each of `passes`; EVERY_S lie between two descriptions."""
    found, clock = Looks(), FakeTime()
    left = iter(passes)

    def snapshot(*_: object, **__: object) -> Iterator[dict[str, Any]]:
        lines = next(left)
        if isinstance(lines, Exception):
            raise lines
        yield from lines

    monkeypatch.setattr(cluster, "snapshot_lines", snapshot)
    monkeypatch.setattr(cluster, "time", clock)
    monkeypatch.setattr(watch_command, "time", clock)
    monkeypatch.setattr(
        watch_command,
        "print_note",
        lambda text: None if text.startswith("watching") else found.waits.append(text),
    )
    given = Namespace(
        changes=[], rebalances=None, for_s=None, json=False, engine="rust", bootstrap_server=""
    )
    watch = watch_command._Watch(given, ["g"])
    listener: Any = watch_command._Queued(watch.events)
    one = cluster.FollowedCluster("", listener, names=["g"])
    for _ in passes:
        one.look()
        clock.sleep(EVERY_S)
        while not watch.events.empty():
            what, more, named = watch.events.get()
            if what == "described" and not found.settled:
                found.settled.append(more[0])
            if what == "rebalanced":
                found.settled.append(more[0].after)
                found.judged.append(more[0].judged)
            getattr(watch, what)(*more, **named)
        watch._check_patience()
    return found

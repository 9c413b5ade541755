# SPDX-License-Identifier: Apache-2.0
"""Plays Kubernetes' controllers: when each pod of a deploy starts, becomes available, and ends.

    roll: (Workload, Assumed, random) -> Rolled

Deployment    1. New pods are created until there are replicas + maxSurge; pods that terminate do
                 not count.
              2. Old pods are deleted, in no fixed order, as long as replicas - maxUnavailable
                 pods stay available: ready for minReadySeconds.
              Recreate: all old pods have ended before the first new one is created.
StatefulSet   Pods are deleted from the highest ordinal down to `partition`, and created again when
              they have ended; at most maxUnavailable at a time. OrderedReady: in whole batches; the
              pods of a batch are created from the lowest ordinal up, one after another.
Both          preStop, SIGTERM, and SIGKILL at the end of the grace period, of which at least 2 s
              are left after preStop (0 if the period is 0).

Source   rolling.go, recreate.go, stateful_set_control.go, kuberuntime_container.go (Kubernetes).
"""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Message
from kafka_rebalance.group.declared_types import check_fields, check_times

from .manifests import RECREATE, Workload

CLOSES, DIES, IGNORES = ON_SIGTERM = "closes", "dies", "ignores"
VARIES = 0.1
_LEAST_GRACE_MS = 2_000


class Assumed(Message):
    """Facts that a manifest does not show; times in ms. Errors: GroupError with the field.

    Each pod has times of its own, shorter or longer by up to the fraction VARIES.

    pod_start_ms   from a pod's creation until its container runs
    start_up_ms    from then until its consumers subscribe and its readiness probes may succeed
    shut_down_ms   from SIGTERM until its consumers are closed
    on_sigterm     "closes" the consumers, "dies" at once, or "ignores" it until SIGKILL
    """

    pod_start_ms: int = 2_000
    start_up_ms: int = 8_000
    shut_down_ms: int = 1_000
    on_sigterm: str = CLOSES

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)
        if self.on_sigterm not in ON_SIGTERM:
            raise GroupError("on_sigterm", f"{self.on_sigterm!r} is not of {', '.join(ON_SIGTERM)}")

    def __str__(self) -> str:
        closes = f"closes its consumers in {self.shut_down_ms / 1000:g} s"
        ends = {CLOSES: closes, DIES: "dies at once", IGNORES: "reads on until SIGKILL"}
        return (
            f"a container runs {self.pod_start_ms / 1000:g} s after its pod is created, its "
            f"consumers subscribe {self.start_up_ms / 1000:g} s later, and on SIGTERM it "
            f"{ends[self.on_sigterm]} (these times: ±{VARIES:.0%})"
        )


class End(NamedTuple):
    """The end of a pod: its time, and whether the pod was killed before its consumers closed."""

    at_ms: int
    is_killed: bool


class NewPod(NamedTuple):
    """A new pod; in a StatefulSet, `replaces` is the number of the old pod with this name."""

    replaces: int | None
    joins_ms: int
    available_ms: int


@dataclass(slots=True)
class Rolled:
    """A deploy that begins at 0 ms: the ends of the old pods, by pod number, and the new pods in
    the order in which they are created.
    """

    workload: Workload
    assumed: Assumed
    random: Random
    ends: dict[int, End]
    pods: list[NewPod]

    @property
    def restart_ms(self) -> int:
        """Returns the longest time from the end of a StatefulSet's pod until the consumers of its
        new pod join.
        """
        there = ((pod, self.ends[pod.replaces]) for pod in self.pods if pod.replaces is not None)
        return max((pod.joins_ms - end.at_ms for pod, end in there), default=0)

    def recreate(self) -> None:
        ended = max(self._delete(pod, 0) for pod in range(self.workload.replicas))
        for _ in range(self.workload.replicas):
            self._create(ended)

    def replace_pods(self) -> None:
        """Plays the rolling update of a Deployment."""
        wanted, now_ms = self.workload.replicas, 0
        old = self.random.sample(range(wanted), wanted)
        while old:
            # 1.
            room = wanted + self.workload.max_surge - len(old) - len(self.pods)
            for _ in range(min(room, wanted - len(self.pods))):
                self._create(now_ms)
            # 2.
            available = len(old) + sum(one.available_ms <= now_ms for one in self.pods)
            spare = available - (wanted - self.workload.max_unavailable)
            for _ in range(min(spare, len(old))):
                self._delete(old.pop(), now_ms)
            if spare <= 0:
                now_ms = min(p.available_ms for p in self.pods if p.available_ms > now_ms)
        for _ in range(wanted - len(self.pods)):
            self._create(now_ms)

    def restart_pods(self) -> None:
        """Plays the rolling update of a StatefulSet."""
        most, now_ms = self.workload.max_unavailable, 0
        first = max(0, self.workload.partition - self.workload.first_ordinal)
        todo, away = list(range(first, self.workload.replicas)), list[int]()
        while todo and not self.workload.is_parallel:
            batch = [todo.pop() for _ in range(min(most, len(todo)))]
            ended = {pod: self._delete(pod, now_ms) for pod in batch}
            for pod in sorted(batch):
                now_ms = self._create(max(now_ms, ended[pod]), pod)
        while todo:
            if len(away) == most:
                now_ms = min(away)
                away.remove(now_ms)
            away.append(self._create(self._delete(todo[-1], now_ms), todo.pop()))

    def _delete(self, pod: int, now_ms: int) -> int:
        """Deletes an old pod. Returns the time at which it has ended."""
        grace_ms, on_sigterm = self.workload.grace_ms, self.assumed.on_sigterm
        slept = min(self.workload.pre_stop_ms, grace_ms)
        left = max(_LEAST_GRACE_MS, grace_ms - slept) if grace_ms else 0
        closes = self._varied(self.assumed.shut_down_ms)
        takes = {CLOSES: closes, DIES: 0, IGNORES: left}[on_sigterm]
        ended = now_ms + slept + min(left, takes)
        self.ends[pod] = End(ended, on_sigterm != CLOSES or takes > left)
        return ended

    def _create(self, now_ms: int, replaces: int | None = None) -> int:
        """Creates a pod. Returns the time in ms at which it becomes available.

        Probes begin at random times in their periods.
        """
        runs = ready = now_ms + self._varied(self.assumed.pod_start_ms)
        joins = runs + self._varied(self.assumed.start_up_ms)
        for probe in self.workload.probes:
            first = runs + self.random.randrange(probe.period_ms)
            late = -(-max(0, joins - first, runs + probe.delay_ms - first) // probe.period_ms)
            ready = max(ready, first + (late + probe.successes - 1) * probe.period_ms)
        self.pods.append(NewPod(replaces, joins, ready + self.workload.min_ready_ms))
        return self.pods[-1].available_ms

    def _varied(self, ms: int) -> int:
        return round(ms * self.random.uniform(1 - VARIES, 1 + VARIES))


def roll(workload: Workload, assumed: Assumed, random: Random) -> Rolled:
    """Plays a deploy; `random` varies times, and decides which pods of a Deployment go first."""
    rolled = Rolled(workload, assumed, random, {}, [])
    if workload.is_stateful:
        rolled.restart_pods()
    elif workload.strategy == RECREATE:
        rolled.recreate()
    else:
        rolled.replace_pods()
    return rolled

# SPDX-License-Identifier: Apache-2.0
"""Plays events of a Connect cluster, written as short strings, and the rebalances that they cause.

    worker w2 leaves | worker w2 returns | worker w4 joins
    leader w1 leaves                                            the next leader has no memory
    connector files tasks=3 | connector files deleted
    500ms | 60s | 5m                                            time passes

Workers join again after each event (but not when time only passes), immediately after a round that
revoked work, and when a delay that the leader scheduled is over. A new connector causes two rounds:
in the first, only the connector is assigned; its worker starts it and writes its tasks'
configurations, which causes the second. More tasks for a running connector cause one round.

Source   DistributedHerder.processConnectorConfigUpdates, reconfigureConnector;
         KafkaConfigBackingStore.processConnectorConfigRecord (Kafka 4.4.0).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.model import quoted

from .cluster import ClusterRound, ConnectCluster, RoundAnswer

AS_IT_IS = "as it is"
"""The cause that is given for the rounds before the first event, which show the present state."""
_WAIT = re.compile(r"([0-9]{1,9})\s*(ms|s|m|h)")
_WORKER = re.compile(r"(?:worker\s+(\S+)\s+(leaves|returns|joins)|leader\s+(\S+)\s+(leaves))")
_CONNECTOR = re.compile(r"connector\s+(\S+)\s+(?:(deleted)|tasks=([0-9]{1,7}))")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_MAX_FOLLOWING = 100  # rounds in a row; a real cluster settles after a few


class _Events(Mutable):
    """A cluster in virtual time; the leader's scheduled rebalance, if any, begins at `due_ms`."""

    cluster: ConnectCluster
    workers: list[str]
    config: dict[str, int]
    now_ms: int = 0
    due_ms: int | None = None
    new_leader: bool = False

    def rebalance(self, running: Mapping[str, Work | None]) -> Iterator[RoundAnswer]:
        """Plays one round, and the rounds that follow immediately because work was revoked."""
        for _ in range(_MAX_FOLLOWING):
            round_ = ClusterRound(
                self.now_ms, running, dict(self.config), new_leader=self.new_leader
            )
            self.new_leader = False
            answer = self.cluster.step(round_)
            yield answer
            delay_ms = answer.result.delay_ms
            self.due_ms = self.now_ms + delay_ms if delay_ms > 0 else None
            if not any(answer.result.revoked.values()):
                return
            running = dict.fromkeys(self.workers)
        raise GroupError("rounds", f"not settled after {_MAX_FOLLOWING} rounds")

    def wait(self, wait_ms: int) -> Iterator[RoundAnswer]:
        end_ms = self.now_ms + wait_ms
        while self.due_ms is not None and self.due_ms <= end_ms:
            self.now_ms = self.due_ms
            yield from self.rebalance(dict.fromkeys(self.workers))
        self.now_ms = end_ms

    def happen(self, event: str, at: str) -> Iterator[tuple[str, RoundAnswer]]:
        """Plays one event; yields cause and answer of each round. Errors: GroupError at `at`."""
        text = " ".join(event.split())
        if match := _WAIT.fullmatch(text):
            yield from ((event, one) for one in self.wait(int(match[1]) * _UNIT_MS[match[2]]))
            return
        tasks = 0
        if match := _WORKER.fullmatch(text):
            self._worker(match[1] or match[3], match[2] or match[4], at)
            self.new_leader = match[3] is not None
        elif match := _CONNECTOR.fullmatch(text):
            if match[3] is not None and match[1] not in self.config:
                tasks = int(match[3])
            self._connector(match[1], "0" if tasks else match[3], at)
        else:
            raise GroupError(
                at,
                f'{quoted(event)} is none of "worker W leaves|returns|joins", '
                '"leader W leaves", "connector C tasks=N|deleted", "60s"',
            )
        yield from ((event, one) for one in self.rebalance(dict.fromkeys(self.workers)))
        if match and tasks:
            self.config[match[1]] = tasks
            cause = f"tasks of {match[1]}"
            yield from ((cause, one) for one in self.rebalance(dict.fromkeys(self.workers)))

    def _worker(self, worker: str, what: str, at: str) -> None:
        if what == "leaves":
            if worker not in self.workers:
                here = ", ".join(self.workers)
                raise GroupError(at, f"{quoted(worker)} is not here; here are {here}")
            if len(self.workers) == 1:
                raise GroupError(at, f"{quoted(worker)} is the last worker")
            self.workers.remove(worker)
        elif worker in self.workers:
            raise GroupError(at, f"{quoted(worker)} is here already")
        else:
            self.workers.append(worker)

    def _connector(self, connector: str, tasks: str | None, at: str) -> None:
        if tasks is not None:
            self.config[connector] = int(tasks)
        elif connector in self.config:
            del self.config[connector]
        else:
            raise GroupError(at, f"there is no connector {quoted(connector)}")


def workers_that_leave(events: Iterable[str]) -> list[str]:
    """Returns the workers of `worker W leaves` events; `leader W leaves` does not count."""
    found = (_WORKER.fullmatch(" ".join(event.split())) for event in events)
    return list(dict.fromkeys(one[1] for one in found if one is not None and one[2] == "leaves"))


def play_events(
    running: Mapping[str, Work],
    config: Mapping[str, int],
    events: Iterable[str],
    *,
    max_delay_ms: int,
    engine: Engine = "rust",
) -> Iterator[tuple[str, RoundAnswer]]:
    """Plays a cluster through events; yields the cause and the answer of each round.

    `running` is the work at time 0. The first leader has no memory, as after a restart.

    Errors   GroupError at `then[i]` for an event that is not known or cannot happen.
    """
    cluster = ConnectCluster(eager=False, max_delay_ms=max_delay_ms, own_order=True, engine=engine)
    state = _Events(cluster, list(running), dict(config))
    for answer in state.rebalance(dict(running)):
        yield AS_IT_IS, answer
    for i, event in enumerate(events):
        yield from state.happen(event, f"then[{i}]")

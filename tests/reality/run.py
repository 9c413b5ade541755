# SPDX-License-Identifier: Apache-2.0
"""Plays the scenario on both sides, for several assignors at the same time."""

from __future__ import annotations

import concurrent.futures
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance.member.config import JAVA
from tests.support.broker import Broker

from . import consumer_compare, consumer_scenario, real, simulated
from .compare import Comparison, compare
from .scenario import INITIAL_DELAY_MS, scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_rebalance.simulator import Scenario

    from .consumer_compare import ConsumerComparison
    from .played import Played

BROKER = {"group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS)}


def comparisons(assignors: Sequence[str]) -> list[Comparison]:
    """Plays the scenario with each assignor on both sides, in about a minute, and compares.

    Errors: BrokerError, RealityError.
    """
    scenarios = [scenario(assignor) for assignor in assignors]
    ours = [simulated.play(one) for one in scenarios]
    with (
        tempfile.TemporaryDirectory(prefix="kafka-rebalance-reality-") as directory,
        Broker(properties=BROKER) as broker,
        concurrent.futures.ThreadPoolExecutor(len(scenarios)) as pool,
    ):
        real.prepare(broker.bootstrap_server, scenarios)
        judge = partial(_judge, server=broker.bootstrap_server, directory=Path(directory))
        return list(pool.map(judge, scenarios, ours))


def consumer_comparisons(clients: Sequence[str]) -> list[ConsumerComparison]:
    """Plays the consumer protocol's scenario on both sides, about a minute a client, and compares.

    One group after another, since they share few cores. The simulator gets the ids that the real
    members and topics had. Errors: as `comparisons`.
    """
    planned = consumer_scenario.scenario(JAVA)
    with (
        tempfile.TemporaryDirectory(prefix="kafka-rebalance-reality-") as directory,
        Broker(properties=consumer_scenario.BROKER) as broker,
    ):
        server = broker.bootstrap_server
        real.prepare(server, [planned])
        topic_ids = real.topic_ids(server, planned.topics)
        judge = partial(_judge_consumers, server, topic_ids, Path(directory))
        return [judge(client) for client in clients]


def _judge_consumers(
    server: str, topic_ids: Mapping[str, str], directory: Path, client: str
) -> ConsumerComparison:
    played = real.play(consumer_scenario.scenario(client), server, directory)
    ours = simulated.play(consumer_scenario.scenario(client, topic_ids, played.member_ids))
    return consumer_compare.compare(client, played, ours)


def _judge(played: Scenario, ours: Played, server: str, directory: Path) -> Comparison:
    return compare(played.title, real.play(played, server, directory), ours)

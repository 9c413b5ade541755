# SPDX-License-Identifier: Apache-2.0
"""Predictions for a Connect cluster come true on three real workers.

One worker is killed and returns within the delay; another one is killed and returns after it; then
the leader is killed. Before the first two kills, the next rounds are predicted from the state that
the REST interface shows. At the end, every round is computed again from the broker's records.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.connect.cluster_changes import play_events
from kafka_rebalance.connect.script import run_script
from kafka_rebalance.live import ClusterError
from kafka_rebalance.live.connect_rest import read_cluster
from kafka_rebalance.wire.connect_protocol import (
    SESSIONED,
    decode_connect_assignment,
    decode_connect_metadata,
    encode_connect_assignment,
    encode_connect_metadata,
)
from tests.support.broker import Broker, BrokerError, missing_tools
from tests.support.connect_cluster import ConnectCluster, missing_connect
from tests.support.connect_oracle import JAR, ConnectOracle
from tests.support.connect_rounds import LiveRound, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kafka_rebalance.assignors.registry import Engine
    from kafka_rebalance.connect.cluster import RoundAnswer

pytestmark = pytest.mark.live

# The delay is longer than a worker's restart on a busy machine.
MAX_DELAY_MS = 40_000
CONNECTORS = {"files": 5, "orders": 6}
# Our delay begins when the broker sends the JoinGroup response, the leader's when it assigns. The
# begins of the two delays differ by less than this.
CLOCKS_DIFFER_MS = 1000

Shown = dict[str, tuple[frozenset[str], frozenset[tuple[str, int]]]]


class Phase(NamedTuple):
    """The work of each live worker, as predicted and as the REST interface showed it."""

    predicted: Shown
    shown: Shown


class Story(NamedTuple):
    phases: dict[str, Phase]
    rounds: list[LiveRound]
    synced: set[tuple[int, str]]
    ghosts: list[bool]  # whether REST showed lost work on the dead worker, then on its return


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    missing = missing_tools() or missing_connect()
    if missing:
        pytest.skip(missing)
    with (
        Broker() as broker,
        ConnectCluster(broker.bootstrap_server, workers=3, max_delay_ms=MAX_DELAY_MS) as connect,
    ):
        with pytest.raises(ClusterError, match="nothing runs there"):
            read_cluster(connect.url)  # REST lists only workers that have work
        for name, tasks in CONNECTORS.items():
            connect.create(name, tasks=tasks)
        yield _play(connect)


def _play(connect: ConnectCluster) -> Story:
    phases: dict[str, Phase] = {}
    leader = connect.worker_of(connect.rounds()[-1].leader)
    first, second = (worker for worker in connect.workers if worker != leader)

    # A worker returns within the delay.
    future = _future(connect, [f"worker {first} leaves", "1s", f"worker {first} returns", "1h"])
    phases["at rest"] = _phase(connect, next(future))
    _kill(connect, first)
    ghosts = [first in _shown(connect)]
    phases["killed"] = _phase(connect, next(future), without=first)
    connect.start(first)
    _await_round(connect, lambda round_: len(round_.members) == 3)
    ghosts.append(first in _shown(connect))
    phases["back in time"] = _phase(connect, next(future), without=first)
    _await_round(connect, lambda round_: round_.delay_ms == 0)
    phases["has its work again"] = _phase(connect, next(future))

    # A worker returns after the delay.
    wait = [f"worker {second} leaves", f"{MAX_DELAY_MS}ms", f"worker {second} returns"]
    future = _future(connect, wait)
    next(future)
    _kill(connect, second)
    phases["killed again"] = _phase(connect, next(future), without=second)
    _await_round(connect, lambda round_: round_.delay_ms == 0)
    phases["given to others"] = _phase(connect, next(future))
    connect.start(second)
    # One round revokes, the next one assigns. The connectors and tasks that move depend on member
    # ids that are chosen at the next join, so only the workers' numbers of them are compared.
    *_, last = future
    phases["back too late"] = _phase(connect, last, same=_sizes)

    # A new leader starts without the memory of the dead one.
    leader = connect.worker_of(connect.rounds()[-1].leader)
    connect.kill(leader)
    _await_round(connect, lambda round_: len(round_.members) == 2)
    return Story(phases, connect.rounds(), connect.synced(), ghosts)


def _future(connect: ConnectCluster, events: list[str]) -> Iterator[Shown]:
    """Predicts each worker's work after each round, from what the REST interface shows now."""
    cluster = read_cluster(connect.url)
    running = {worker["id"]: Work.from_dict(worker) for worker in cluster["workers"]}
    rounds = play_events(running, cluster["config"], events, max_delay_ms=MAX_DELAY_MS)
    return (_running(answer) for _, answer in rounds)


def _running(answer: RoundAnswer) -> Shown:
    return _named({worker: (work.connectors, work.tasks) for worker, work in answer.after.items()})


def _shown(connect: ConnectCluster) -> Shown:
    """Returns the work of each worker, as the REST interface shows it."""
    workers = read_cluster(connect.url)["workers"]
    return _named({worker["id"]: (worker["connectors"], worker["tasks"]) for worker in workers})


def _named(running: Mapping[str, tuple[Any, Any]]) -> Shown:
    """Returns the work by worker, without idle workers, which the REST interface does not show."""
    return {
        worker: (frozenset(connectors), frozenset((name, number) for name, number in tasks))
        for worker, (connectors, tasks) in running.items()
        if connectors or tasks
    }


def _phase(
    connect: ConnectCluster,
    predicted: Shown,
    *,
    without: str = "",
    same: Callable[[Shown], object] = lambda shown: shown,
) -> Phase:
    """Waits until the cluster shows the prediction."""
    shown: Shown = {}

    def alike() -> bool:
        shown.clear()
        shown.update(_shown(connect))
        shown.pop(without, None)
        return same(shown) == same(predicted)

    with suppress(BrokerError):  # the test of this phase will show the difference
        connect.await_(alike, "as predicted", MAX_DELAY_MS / 1000)
    return Phase(predicted, shown)


def _sizes(shown: Shown) -> list[tuple[int, int]]:
    return sorted((len(connectors), len(tasks)) for connectors, tasks in shown.values())


def _kill(connect: ConnectCluster, worker: str) -> None:
    connect.kill(worker)
    _await_round(connect, lambda round_: len(round_.members) == 2)


def _await_round(connect: ConnectCluster, condition: Callable[[LiveRound], bool]) -> None:
    connect.await_(lambda: condition(connect.rounds()[-1]), "the next round")


@pytest.mark.parametrize(
    "name",
    ["at rest", "killed", "back in time", "has its work again", "killed again", "given to others"],
)
def test_as_predicted(story: Story, name: str) -> None:
    phase = story.phases[name]
    assert phase.shown == phase.predicted


def test_back_too_late_it_gets_its_share(story: Story) -> None:
    before = story.phases["given to others"].shown
    predicted, shown = story.phases["back too late"]
    assert _sizes(shown) == _sizes(predicted)
    for worker, (connectors, tasks) in before.items():  # these workers gained nothing
        assert shown[worker][0] <= connectors
        assert shown[worker][1] <= tasks


def test_lost_work_seems_to_run_until_it_is_given_to_somebody(story: Story) -> None:
    """REST shows lost work on the dead worker, even after its return, when it runs nothing."""
    assert story.ghosts == [True, True]


def test_every_round_as_the_leader_dealt_it(story: Story, engine: Engine) -> None:
    """Given the workers' reports, our model returns the work and the delay that the leader sent.

    Assigned work is compared with its order, revoked work without order.
    """
    answers = run_script(_script(story, reported=True), engine=engine)["rounds"]
    for live, answer in zip(story.rounds, answers, strict=True):
        for told in live.members:
            ours = answer["workers"][told.member_id]
            at = f"generation {live.generation_id}, {told.client_id}"
            assigned = Work.from_dict(
                {"connectors": ours["assigned_connectors"], "tasks": ours["assigned_tasks"]}
            ).after_wire()
            assert assigned.to_dict() == {
                "connectors": told.assigned_connectors,
                "tasks": told.assigned_tasks,
            }, at
            assert sorted(ours["revoked_connectors"]) == sorted(told.revoked_connectors), at
            assert sorted(ours["revoked_tasks"]) == sorted(told.revoked_tasks), at
        assert abs(answer["delay"] - live.delay_ms) < CLOCKS_DIFFER_MS


def test_every_round_from_the_first_one_on(story: Story, engine: Engine) -> None:
    """Without the workers' reports, our model computes them from earlier rounds' assignments."""
    answers = run_script(_script(story, reported=False), engine=engine)["rounds"]
    for live, answer in zip(story.rounds, answers, strict=True):
        for told in live.members:
            running = answer["workers"][told.member_id]["running"]
            assert sorted(running["connectors"]) == sorted(told.running_connectors)
            assert sorted(running["tasks"]) == sorted(told.running_tasks)


def test_a_worker_keeps_the_order_of_what_it_runs(story: Story) -> None:
    """The oracle's workers (Connect's own class) list their work in the order of live workers."""
    if not JAR.is_file():
        pytest.skip("the oracle's jar is missing: `make judges` builds it")
    with ConnectOracle() as oracle:
        answer = oracle.ask(_script(story, reported=False) | {"own_order": True})
    for live, round_ in zip(story.rounds, answer["rounds"], strict=True):
        for told in live.members:
            assert round_["workers"][told.member_id]["running"] == _reported(told)


def test_our_bytes_are_theirs(story: Story) -> None:
    """Workers' reports and leaders' assignments decode and encode to equal bytes."""
    for live in story.rounds:
        for told in live.members:
            report = decode_connect_metadata(told.report)
            assert encode_connect_metadata(report) == told.report
            assert encode_connect_assignment(decode_connect_assignment(told.answer)) == told.answer
            assert report.version == SESSIONED


def test_all_of_it_happened(story: Story) -> None:
    kinds = Counter(
        kind
        for before, live in zip(story.rounds, story.rounds[1:], strict=False)
        for kind, met in {
            "delayed": live.delay_ms > 0,
            "revoking": any(told.revoked_tasks for told in live.members),
            "new leader": live.leader != before.leader,
        }.items()
        if met
    )
    assert kinds["delayed"] >= 3
    assert kinds["revoking"] >= 1
    assert kinds["new leader"] == 1
    told = sum(len(live.members) for live in story.rounds)
    assert len(story.synced) > told / 2, "the workers' logs do not show which assignments came"
    generations = [live.generation_id for live in story.rounds]
    first = generations[0]  # 2 if a slow worker joined after the others' first round
    assert generations == list(range(first, first + len(generations)))


def _script(story: Story, *, reported: bool) -> dict[str, Any]:
    """Returns the rounds as a script for our model; with `reported`, also the workers' reports.

    A worker that did not receive its last assignment runs what it ran before, which only its
    report tells: it is always in the script.
    """
    config: dict[str, int] = {}
    script = []
    rounds = story.rounds
    leader, missed = rounds[0].leader, set[str]()
    for live in rounds:
        # A connector exists from its first assignment on; all its tasks are created together.
        for told in live.members:
            config |= {name: config.get(name, 0) for name in told.assigned_connectors}
            for name, number in told.assigned_tasks:
                config[name] = max(config[name], number + 1)
        round_ = {
            "time_ms": live.time_ms,
            "config": dict(config),
            "new_leader": live.leader != leader,
            "workers": [
                {"id": told.member_id}
                | (_reported(told) if reported or told.member_id in missed else {})
                for told in live.members
            ],
        }
        script.append(round_)
        leader = live.leader
        missed = {
            told.member_id
            for told in live.members
            if (live.generation_id, told.member_id) not in story.synced
        }
    return {
        "assignor": "connect/incremental",
        "max_delay_ms": MAX_DELAY_MS,
        "rounds": script,
    }


def _reported(told: Told) -> dict[str, Any]:
    return {"connectors": told.running_connectors, "tasks": told.running_tasks}

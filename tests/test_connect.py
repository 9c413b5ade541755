# SPDX-License-Identifier: Apache-2.0
"""Connect's assignors: stored answers of the real classes, worked examples, bad scripts."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.connect.cluster import RoundAnswer, backing_off, idle
from kafka_rebalance.connect.cluster_changes import play_events
from kafka_rebalance.connect.script import Script, play, run_script
from kafka_rebalance.connect.summary import summary
from kafka_rebalance.live.connect_draws import vary
from kafka_rebalance.report.plans.connect import print_round, print_variation

VECTORS = Path(__file__).parent / "vectors"
DELAY_MS = 300_000


@pytest.mark.parametrize(("name", "count"), [("eager", 80), ("incremental", 220)])
def test_every_field_of_every_round_is_kafkas(engine: Engine, name: str, count: int) -> None:
    with gzip.open(VECTORS / f"connect-{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        vectors = [json.loads(line) for line in lines]
    assert len(vectors) == count
    wrong = [
        v["case"]["id"] for v in vectors if run_script(v["case"], engine=engine) != v["expected"]
    ]
    assert wrong == []


def script(*rounds: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"assignor": "connect/incremental", "max_delay_ms": DELAY_MS, "rounds": rounds, **fields}


def workers(*ids: str) -> list[dict[str, Any]]:
    return [{"id": id_} for id_ in ids]


def test_eager_deals_everything_round_robin(engine: Engine) -> None:
    """Worked example F1: workers get connectors in turn; tasks begin at the next worker."""
    config = {"ct1": 2, "ct2": 1}
    rounds = [
        {"time_ms": 0, "workers": workers("w1", "w2"), "config": config},
        {"time_ms": 1, "workers": workers("w1", "w2", "w3"), "config": config},
    ]
    first, second = play(Script.from_dict(script(*rounds, assignor="connect/eager")), engine=engine)
    assert first.after == {
        "w1": Work(("ct1",), (Task("ct1", 0), Task("ct2", 0))),
        "w2": Work(("ct2",), (Task("ct1", 1),)),
    }
    assert second.after == {
        "w1": Work(("ct1",), (Task("ct1", 1),)),
        "w2": Work(("ct2",), (Task("ct2", 0),)),
        "w3": Work((), (Task("ct1", 0),)),
    }


def test_incremental_does_not_restart_work_that_stays(engine: Engine) -> None:
    """Worked example F2: w3 joins; one round only revokes, the next assigns the revoked work."""
    config = {"ct1": 2, "ct2": 1}
    start = [
        {"id": "w1", "connectors": ["ct1"], "tasks": [["ct1", 0], ["ct1", 1]]},
        {"id": "w2", "connectors": ["ct2"], "tasks": [["ct2", 0]]},
    ]
    rounds = [
        {"time_ms": 0, "workers": start, "config": config},
        {"time_ms": 1, "workers": workers("w1", "w2", "w3"), "config": config},
        {"time_ms": 2, "workers": workers("w1", "w2", "w3"), "config": config},
    ]
    settled, revoking, assigning = play(Script.from_dict(script(*rounds)), engine=engine)
    assert settled.after == settled.running
    assert not any(revoking.result.assigned.values())
    assert revoking.result.revoked == {
        "w1": Work((), (Task("ct1", 0),)),
        "w2": Work(),
        "w3": Work(),
    }
    assert assigning.result.assigned == {
        "w1": Work(),
        "w2": Work(),
        "w3": Work((), (Task("ct1", 0),)),
    }
    for worker, before in revoking.after.items():
        assert set(before.tasks) <= set(assigning.after[worker].tasks)


@pytest.mark.parametrize("returns", [True, False])
def test_lost_tasks_wait_for_their_worker(engine: Engine, returns: bool) -> None:
    """Worked example F3: lost tasks wait scheduled.rebalance.max.delay.ms for their worker.

    After that, the worker receives them if it has returned, else other workers do.
    """
    config = {"ct": 4}
    back = workers("w1", "w2") if returns else workers("w1")
    rounds = [
        {"time_ms": 1000, "workers": workers("w1", "w2"), "config": config},
        {"time_ms": 2000, "workers": workers("w1"), "config": config},
        {"time_ms": 60_000, "workers": back, "config": config},
        {"time_ms": 302_000, "workers": back, "config": config},
    ]
    full, lost, waiting, over = play(Script.from_dict(script(*rounds)), engine=engine)
    gone = full.after["w2"]
    for answer in (lost, waiting):
        (one,) = idle(answer)
        assert set(one.work.tasks) == set(gone.tasks)
        assert one.until_ms == 302_000
        assert "its worker is gone" in one.why
    assert waiting.result.delay_ms == 302_000 - 60_000
    assert idle(over) == []
    taker = "w2" if returns else "w1"
    assert set(gone.tasks) <= set(over.result.assigned[taker].tasks)


def test_the_memory_holds_the_time_of_the_next_round(engine: Engine) -> None:
    rounds = [
        {"time_ms": 1, "workers": workers("w1", "w2"), "config": {"c": 3}},
        {"time_ms": 2, "workers": workers("w1"), "config": {"c": 3}},
    ]
    answers = play(Script.from_dict(script(*rounds)), engine=engine)
    memory = answers[-1].memory
    assert memory is not None
    assert memory.scheduled_rebalance_ms == 2 + DELAY_MS


def test_a_second_revoking_round_in_a_row_backs_off(engine: Engine) -> None:
    names = [f"w{n}" for n in range(4)]
    rounds = [
        {"time_ms": n, "workers": workers(*names[: n + 1]), "config": {"c": 12}} for n in range(4)
    ]
    answers = play(Script.from_dict(script(*rounds)), engine=engine)
    told = [backing_off(answer) for answer in answers]
    assert told[:2] == [None, None]
    assert told[2] is not None
    assert "backs off for 40 ms" in told[2]


def test_events_play_from_what_runs_now(engine: Engine) -> None:
    running = {
        "w1": Work(("files",), (Task("files", 0), Task("files", 1))),
        "w2": Work((), (Task("files", 2), Task("files", 3))),
    }
    events = ["worker w2 leaves", "60s", "worker w2 returns", "4m", "connector files tasks=6"]
    rounds = list(play_events(running, {"files": 4}, events, max_delay_ms=DELAY_MS, engine=engine))
    assert [(cause, answer.round.time_ms) for cause, answer in rounds] == [
        ("as it is", 0),
        ("worker w2 leaves", 0),
        ("worker w2 returns", 60_000),
        ("4m", 300_000),
        ("connector files tasks=6", 300_000),
    ]
    assert set(rounds[3][1].after["w2"].tasks) == {Task("files", 2), Task("files", 3)}


def test_a_new_connector_is_assigned_before_its_tasks(engine: Engine) -> None:
    """The connector's worker writes the tasks' configurations when the connector has started."""
    events = ["connector files tasks=3", "connector none tasks=0", "connector files tasks=4"]
    running = {"w1": Work(), "w2": Work()}
    rounds = list(play_events(running, {}, events, max_delay_ms=DELAY_MS, engine=engine))
    assert [cause for cause, _ in rounds[1:]] == [
        "connector files tasks=3",
        "tasks of files",
        "connector none tasks=0",
        "connector files tasks=4",
    ]
    assigned = [answer.result.assigned.values() for _, answer in rounds[1:]]
    counts = [
        (sum(len(one.connectors) for one in each), sum(len(one.tasks) for one in each))
        for each in assigned
    ]
    assert counts == [(1, 0), (0, 3), (1, 0), (0, 1)]


@pytest.mark.parametrize("columns", [20, 40, 45, 100])
def test_rounds_and_what_varies_fit_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    one = Work(("files",), (Task("files", 0), Task("files", 1)))
    running = {"a-host-of-a-rather-long-name:8083": one, "b:8083": Work((), (Task("files", 2),))}
    before: RoundAnswer | None = None
    events = ["worker b:8083 leaves", "60s", "worker b:8083 returns"]
    rounds = play_events(running, {"files": 3}, events, max_delay_ms=DELAY_MS)
    for number, (cause, answer) in enumerate(rounds, 1):
        print_round(number, cause, answer, before, 0)
        before = answer
    print_variation(vary(running, {"files": 3}, events, max_delay_ms=DELAY_MS))
    shown = capsys.readouterr().out
    assert "1+2" in shown
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (["worker w9 leaves"], 'then[0]: "w9" is not here; here are w1'),
        (["worker w1 leaves"], 'then[0]: "w1" is the last worker'),
        (["1s", "worker w1 returns"], 'then[1]: "w1" is here already'),
        (["connector c deleted"], 'then[0]: there is no connector "c"'),
        (["dance"], 'then[0]: "dance" is none of'),
    ],
)
def test_events_that_cannot_happen(events: list[str], problem: str) -> None:
    with pytest.raises(kr.GroupError) as raised:
        list(play_events({"w1": Work()}, {}, events, max_delay_ms=0))
    assert str(raised.value).startswith(problem)


NO_ROUND: Any = 7
ROUND: dict[str, Any] = {"time_ms": 5, "workers": [{"id": "w"}], "config": {"c": 1}}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "line: a list is not an object"),
        ({"rounds": [ROUND]}, "assignor: missing"),
        (script(ROUND, assignor="range"), 'assignor: "range" is not known'),
        (script(ROUND, max_delay_ms=-1), "max_delay_ms: -1 is not a delay from 0 to 2147483647"),
        (script(), "rounds: empty"),
        (script(NO_ROUND), "rounds[0]: a number is not an object"),
        (script({**ROUND, "config": {"c": -2}}), "rounds[0].config.c: -2 is not a task count"),
        (script({**ROUND, "config": {"c": None}}), "rounds[0].config.c: null is not a task count"),
        (
            script({**ROUND, "config": {"c": 2**31 - 1}}),
            "rounds[0].config: 2147483647 tasks in all",
        ),
        (script({"time_ms": 1, "workers": [{"id": "w"}]}), "rounds[0].config: missing"),
        (script({**ROUND, "workers": []}), "rounds[0].workers: empty"),
        (
            script({**ROUND, "workers": workers("w", "w")}),
            'rounds[0].workers[1].id: "w" is in this',
        ),
        (script(ROUND, {**ROUND, "time_ms": 4}), "rounds[1].time_ms: 4 is before the round before"),
        (script({**ROUND, "apply": ["x"]}), 'rounds[0].apply[0]: "x" is not in this round'),
        (script({**ROUND, "apply": "some"}), 'rounds[0].apply: "some" is not "all"'),
        (script({**ROUND, "inconsistent": ["x"]}), 'rounds[0].inconsistent[0]: "x" is not in'),
        (
            script({**ROUND, "workers": [{"id": "w", "tasks": [["c"]]}]}),
            "rounds[0].workers[0].tasks[0]: a task is [connector, number]",
        ),
        (
            script({**ROUND, "workers": [{"id": "w", "connectors": ["x"]}]}),
            'rounds[0].workers[0]: runs "x", which is in no config',
        ),
    ],
)
def test_errors_in_scripts_name_the_field(value: Any, problem: str) -> None:
    with pytest.raises(kr.GroupError) as raised:
        run_script(value)
    assert str(raised.value).startswith(problem)


def test_a_leader_that_leaves_takes_its_memory_along(engine: Engine) -> None:
    """Lost work waits for its worker; but if the leader leaves, the new leader does not wait."""
    running = {f"w{n}": Work((), tuple(Task("c", 3 * k + n) for k in range(2))) for n in range(3)}
    delays = {}
    for who in ("worker", "leader"):
        events = [f"{who} w2 leaves"]
        rounds = list(play_events(running, {"c": 6}, events, max_delay_ms=DELAY_MS, engine=engine))
        delays[who] = rounds[-1][1].result.delay_ms
        assert rounds[-1][1].round.new_leader == (who == "leader")
    assert delays == {"worker": DELAY_MS, "leader": 0}


@pytest.mark.parametrize(
    ("times_ms", "assignor", "sentence"),
    [
        (
            (60_000,), "incremental",
            ("2 rebalances: 2 tasks of w2, which is gone, run nowhere for 300s more, kept for it, "
            "then on another worker."),
        ),
        (
            (60_000, 360_000), "incremental",
            ("3 rebalances: 2 tasks run nowhere for up to 300s, then on another worker; everything "
            "runs at the end."),
        ),
        (
            (60_000,), "eager",
            ("2 rebalances, in each of which every worker stops its work: 2 tasks run on another "
            "worker; everything runs at the end."),
        ),
    ],
)  # fmt: skip
def test_the_answer_in_words(times_ms: tuple[int, ...], assignor: str, sentence: str) -> None:
    """Two of four tasks are lost with their worker, and wait for it for five minutes."""
    config = {"jdbc": 4}
    rounds = [{"time_ms": 0, "workers": [{"id": "w1"}, {"id": "w2"}], "config": config}]
    rounds += [{"time_ms": ms, "workers": [{"id": "w1"}], "config": config} for ms in times_ms]
    script = Script.from_dict({"assignor": f"connect/{assignor}", "rounds": rounds})
    assert summary(play(script)) == sentence

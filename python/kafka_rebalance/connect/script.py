# SPDX-License-Identifier: Apache-2.0
"""Reads the rounds of a Connect cluster from a JSON script, and plays them with the assignor.

The fields are in docs/contract.md, Scripts of Connect. The generation is the number of the round.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kafka_rebalance.assignors.connect.work import Task, Work
from kafka_rebalance.assignors.registry import Engine
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import (
    array,
    each,
    flag,
    integer,
    object_,
    path,
    required,
    string,
    text,
)
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted

from .cluster import ClusterRound, ConnectCluster, RoundAnswer

EAGER = ("connect/eager", "connect-eager")
INCREMENTAL = ("connect/incremental", "connect-incremental")
DEFAULT_MAX_DELAY_MS = 300_000
"""Kafka's default for scheduled.rebalance.max.delay.ms."""

_MAX_TIME_MS = 2**62


class Script(Frozen):
    id: str | None
    eager: bool
    max_delay_ms: int
    own_order: bool
    rounds: tuple[ClusterRound, ...]

    @classmethod
    def from_dict(cls, value: Any) -> "Script":
        """Reads a script. Errors: GroupError with the path of the wrong field."""
        fields = object_(value, "line")
        id_ = None if fields.get("id") is None else string(fields, "id", "")
        assignor = string(fields, "assignor", "")
        if assignor not in EAGER + INCREMENTAL:
            known = ", ".join((EAGER[0], INCREMENTAL[0]))
            raise GroupError("assignor", f"{quoted(assignor)} is not known; known are {known}")
        max_delay_ms = fields.get("max_delay_ms", DEFAULT_MAX_DELAY_MS)
        script = cls(
            id_,
            assignor in EAGER,
            integer(max_delay_ms, "max_delay_ms", "delay"),
            flag(fields, "own_order", ""),
            each(fields, "rounds", "", _round),
        )
        _check_rounds(script.rounds)
        return script


def play(script: Script, *, engine: Engine = "rust") -> list[RoundAnswer]:
    cluster = ConnectCluster(
        eager=script.eager,
        max_delay_ms=script.max_delay_ms,
        own_order=script.own_order,
        engine=engine,
    )
    return [cluster.step(round_) for round_ in script.rounds]


def run_script(value: Any, *, engine: Engine = "rust") -> dict[str, Any]:
    """Plays a parsed script; returns JSON values `{"id", "rounds"}`. Errors: GroupError."""
    script = Script.from_dict(value)
    rounds = [to_dict(answer) for answer in play(script, engine=engine)]
    return {"id": script.id, "rounds": rounds} if script.id is not None else {"rounds": rounds}


def to_dict(answer: RoundAnswer) -> dict[str, Any]:
    result = answer.result
    if answer.memory is None:
        started = result.assigned.items()
        return {"workers": {w: {**_work("assigned", work), "error_code": 0} for w, work in started}}
    return {
        "delay": result.delay_ms,
        "scheduled_rebalance_ms": result.scheduled_rebalance_ms,
        "workers": {
            worker: {
                "running": running.to_dict(),
                **_work("assigned", result.assigned[worker]),
                **_work("revoked", result.revoked[worker]),
                "after": answer.after[worker].to_dict(),
            }
            for worker, running in answer.running.items()
        },
    }


def _work(what: str, work: Work) -> dict[str, Any]:
    return {f"{what}_{name}": value for name, value in work.to_dict().items()}


def _round(value: Any, at: str) -> ClusterRound:
    fields = object_(value, at)
    running: dict[str, Work | None] = {}
    retained = set()
    for i, (id_, work, is_retained) in enumerate(each(fields, "workers", at, _worker)):
        if id_ in running:
            raise GroupError(f"{at}.workers[{i}].id", f"{quoted(id_)} is in this round already")
        running[id_] = work
        if is_retained:
            retained.add(id_)
    if not running:
        raise GroupError(path(at, "workers"), "empty; a leader is always a worker itself")
    config = {
        name: integer(count, f"{at}.config.{name}", "task count")
        for name, count in object_(required(fields, "config", at), path(at, "config")).items()
    }
    total = sum(config.values())
    if total > MAX_PARTITIONS:
        raise GroupError(
            path(at, "config"), f"{total} tasks in all, more than the limit of {MAX_PARTITIONS}"
        )
    for i, name in enumerate(array(fields.get("inconsistent") or [], path(at, "inconsistent"))):
        config[_known(name, config, f"{at}.inconsistent[{i}]")] = 0
    return ClusterRound(
        integer(required(fields, "time_ms", at), path(at, "time_ms"), "time", most=_MAX_TIME_MS),
        running,
        config,
        retained,
        _apply(fields.get("apply", "all"), running, path(at, "apply")),
        flag(fields, "generation_mismatch", at),
        flag(fields, "new_leader", at),
    )


def _worker(value: Any, at: str) -> tuple[str, Work | None, bool]:
    fields = object_(value, at)
    id_ = string(fields, "id", at)
    retained = flag(fields, "retained", at)
    if fields.get("connectors") is None and fields.get("tasks") is None:
        return id_, None, retained
    connectors = array(fields.get("connectors") or [], path(at, "connectors"))
    tasks = array(fields.get("tasks") or [], path(at, "tasks"))
    work = Work.of(
        [text(name, f"{at}.connectors[{i}]") for i, name in enumerate(connectors)],
        [_task(task, f"{at}.tasks[{i}]") for i, task in enumerate(tasks)],
    )
    return id_, work, retained


def _task(value: Any, at: str) -> Task:
    pair = array(value, at)
    if len(pair) != 2:
        raise GroupError(at, 'a task is [connector, number], as ["files", 0]')
    return Task(text(pair[0], f"{at}[0]"), integer(pair[1], f"{at}[1]", "task"))


def _apply(value: Any, workers: Mapping[str, Any], at: str) -> Collection[str] | None:
    if value == "all":
        return None
    if value == "none":
        return ()
    if isinstance(value, str):
        raise GroupError(at, f'{quoted(value)} is not "all", "none" or a list of worker ids')
    return {_known(worker, workers, f"{at}[{i}]") for i, worker in enumerate(array(value, at))}


def _known(value: Any, among: Collection[str], at: str) -> str:
    name = text(value, at)
    if name not in among:
        raise GroupError(at, f"{quoted(name)} is not in this round")
    return name


def _check_rounds(rounds: tuple[ClusterRound, ...]) -> None:
    """Raises GroupError without rounds, if time decreases, or if reported work is in no config."""
    if not rounds:
        raise GroupError("rounds", "empty; a script has at least one")
    configured: set[str] = set()
    for i, round_ in enumerate(rounds):
        if i and round_.time_ms < rounds[i - 1].time_ms:
            raise GroupError(
                f"rounds[{i}].time_ms",
                f"{round_.time_ms} is before the round before it ({rounds[i - 1].time_ms})",
            )
        configured.update(round_.config)
        for w, work in enumerate(round_.running.values()):
            named = [*work.connectors, *(one.connector for one in work.tasks)] if work else ()
            for name in named:
                if name not in configured:
                    raise GroupError(
                        f"rounds[{i}].workers[{w}]",
                        f"runs {quoted(name)}, which is in no config up to here",
                    )

# SPDX-License-Identifier: Apache-2.0
"""Measures what users wait for: large groups, objects, past rebalances, the first table, growth.

Each function prints one table. `python -m benches.felt` calls them after its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import kafka_rebalance as kr
from benches import log
from kafka_rebalance.cli import main as command
from kafka_rebalance.data import captured_lines

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (10, 100, 1_000, 10_000)
TOPICS = 10


def group(members: int, partitions: int, *, own_order: bool = False) -> kr.GroupSpec:
    """Returns a settled group whose members read all topics, of `partitions` in all."""
    names = [f"topic-{t}" for t in range(TOPICS)]
    made = [
        kr.Member(f"member-{m:05}", (*names[m % TOPICS :], *names[: m % TOPICS]))
        if own_order
        else kr.Member(f"member-{m:05}", tuple(names))
        for m in range(members)
    ]
    topics = tuple(kr.Topic(name, partitions // TOPICS) for name in names)
    spec = kr.GroupSpec("bench", topics, tuple(made), "cooperative-sticky")
    return kr.plan(spec).final


def cpu_of(run: Callable[[], object]) -> float:
    """Returns the CPU time of a call in this process, in ms."""
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1000


def unequal(members: int, *, owned: bool) -> kr.GroupSpec:
    """Returns a group in which each member reads nine of ten topics; settled if `owned`."""
    names = [f"topic-{t}" for t in range(TOPICS)]
    made = tuple(
        kr.Member(f"member-{m:05}", tuple(one for one in names if one != names[m % TOPICS]))
        for m in range(members)
    )
    topics = tuple(kr.Topic(name, members) for name in names)
    spec = kr.GroupSpec("bench", topics, made, "cooperative-sticky")
    return kr.plan(spec).final if owned else spec


def large(cpu_ms: Callable[[list[str]], float], script: list[str]) -> None:
    """Prints the CPU time of `plan` and `explain` for large groups, of five new processes each."""
    print("\n| command, a group with ten partitions a member | CPU ms | slowest | aim |")
    print("| --- | ---: | ---: | ---: |")
    plan, explain = ("plan", "--add-members", "1"), ("explain", "topic-1-7")
    for words, title, spec, aim in (
        (plan, "1,000 members, equal lists", group(1_000, 10_000), "250"),
        (plan, "1,000, unequal lists", unequal(1_000, owned=True), ""),
        (plan, "3,000, unequal lists", unequal(3_000, owned=True), ""),
        (explain, "1,000, unequal lists", unequal(1_000, owned=True), "300"),
        (explain, "3,000, unequal lists", unequal(3_000, owned=True), "900"),
        (explain, "3,000, unequal lists, nobody owns any", unequal(3_000, owned=False), "900"),
    ):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "group.jsonl")
            file.write_text(spec.to_json() + "\n", encoding="utf-8")
            took = sorted(cpu_ms([*script, *words, str(file)]) for _ in range(5))
        print(f"| {words[0]}, {title} | {took[2]:.0f} | {took[-1]:.0f} | {aim} |")


def objects(rounds: int) -> None:
    """From the data of a group to every TopicPartition of the answer, in one process."""
    print("\n| Python objects, CPU ms | make the group | first answer, all read | asked again |")
    print("| --- | ---: | ---: | ---: |")
    for members, own_order in ((10, False), (100, False), (1_000, False), (1_000, True)):
        data = group(members, 10 * members, own_order=own_order).to_dict()
        taken = []
        for _ in range(rounds):
            making = cpu_of(partial(kr.GroupSpec.from_dict, data))
            ask = partial(read_all, kr.GroupSpec.from_dict(data))
            taken.append((making, cpu_of(ask), cpu_of(ask)))
        cells = " | ".join(f"{statistics.median(one):.2f}" for one in zip(*taken, strict=True))
        order = ", each with an order of its own" if own_order else ""
        print(f"| {members:,} members, {10 * members:,} partitions{order} | {cells} |")


def read_all(spec: kr.GroupSpec) -> int:
    return sum(len(list(owned)) for owned in kr.assign(spec).values())


def history(cpu_ms: Callable[[list[str]], float], script: list[str], records: int) -> None:
    """Past rebalances: a log of 98% commits, as JSON."""
    with tempfile.TemporaryDirectory() as directory:
        log.write(Path(directory, "log"), records, records // 250)
        table = pq.read_table(Path(directory, "log")).sort_by("offset")
        whole = table.append_column("timestamp", table["offset"].cast(pa.timestamp("ms")))
        file = Path(directory, "records.parquet")
        pq.write_table(whole, file)
        took = cpu_ms([*script, "history", str(file), "--json"])
    print("\n| past rebalances | CPU s | records a CPU second |\n| --- | ---: | ---: |")
    print(f"| {len(whole):,} records | {took / 1000:.1f} | {len(whole) / took * 1000:,.0f} |")


def first_table(script: list[str], groups: int) -> None:
    """The first table of a fleet: from the prompt to the files, in wall time."""
    import subprocess

    lines = [json.loads(line) for line in captured_lines()]
    print(f"\n| {groups:,} groups in a file, wall s | without Spark | on Spark |")
    print("| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "groups.jsonl")
        with source.open("w", encoding="utf-8") as file:
            for n in range(groups):
                line = lines[n % len(lines)]
                file.write(json.dumps({**line, "group_id": f"{line['group_id']}-{n}"}) + "\n")
        for word in ("assign", "summary"):
            walls = []
            for master in ([], ["--master", "local[*]"]):
                target = [str(source), f"{directory}/{word}{len(master)}"]
                start = time.perf_counter()
                given = [*script, "fleet", word, *target, *master]
                subprocess.run(given, capture_output=True, check=False)
                walls.append(f"{time.perf_counter() - start:.1f}")
            print(f"| fleet {word} | {' | '.join(walls)} |")


def growth() -> None:
    """CPU time over the number of members, with ten partitions a member, and its last exponent."""
    sizes = " | ".join(f"{size:,}" for size in SIZES)
    print(f"\n| CPU ms, members | {sizes} | exponent at the end |")
    print(f"| --- |{' ---: |' * (len(SIZES) + 1)}")
    taken: dict[str, list[float]] = {}
    for size in SIZES:
        for name, run in asked(group(size, 10 * size)).items():
            if not taken.get(name):
                run()  # imports what it needs
            taken.setdefault(name, []).append(cpu_of(run))
    for name, times in taken.items():
        exponent = math.log(times[-1] / times[-2]) / math.log(SIZES[-1] / SIZES[-2])
        print(f"| {name} | {' | '.join(f'{one:,.1f}' for one in times)} | {exponent:.2f} |")


def asked(spec: kr.GroupSpec) -> dict[str, Callable[[], object]]:
    """Returns, by name, the calls that are timed; in those about a change, one member joins."""
    from kafka_rebalance.plans.possible.optimum import best_possible

    add = [kr.AddMembers(1)]
    planned = kr.plan(spec, None, add)
    line = json.dumps(spec.to_dict())

    def described() -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(line + "\n")
            file.flush()
            with contextlib.redirect_stdout(io.StringIO()):
                command(["describe", file.name, "--group", spec.group_id])

    return {
        "assign": partial(kr.assign, spec),
        "the reference's range": partial(kr.assign, spec, "range", engine="reference"),
        "the reference's cooperative-sticky": partial(kr.assign, spec, engine="reference"),
        "plan": partial(kr.plan, spec, None, add),
        "best possible": partial(best_possible, spec),
        "compare": partial(kr.compare, spec, add),
        "explain one partition": lambda: planned.explain("topic-0-0"),
        "describe, as a command": described,
    }

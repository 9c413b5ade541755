# SPDX-License-Identifier: Apache-2.0
"""Measures groups a second, memory and CPU time of planning a fleet of groups on Spark.

    python -m benches.fleet --groups 200000

1. Draws 2,000 groups from a seed. Each has min(400, int(2 * pareto(1.25))) members, 1 to 4 topics
   and one of Kafka's four assignors; a third has racks. Each group of the fleet is a copy of one of
   them, with its own id, except the first: it has 5,000 members (the giant group).
2. In a separate process with local[2], plans three changes, each alone, for every group
   (`plan_each_change`), and writes Parquet. Memory is the largest resident set in /proc.
3. Estimates the CPU time of the core alone, from every eighth file, in one thread of this process.
   The rest of the job's CPU time is spent outside our code (Spark, Python, Arrow, Parquet).
4. Compares 2,000 rows, drawn from a seed, with `kafka_rebalance.plan` of their groups.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import kafka_rebalance as kr
from benches.spark_cpu import cpu_seconds
from kafka_rebalance import _core
from tools.fleet_memory import watch

CHANGES = ["add-members=1", "remove-members=1", "remove-rack=a"]
SEED = 19
TEMPLATES = 2_000
GIANT = 5_000
_FILE = 5_000
_SAMPLED = 2_000
_FIGURES = tuple(kr.Figures.__annotations__)


def drawn(rng: random.Random, n: int, members: int) -> dict[str, Any]:
    """Draws one group that has settled under its assignor."""
    assignor = rng.choice(["range", "roundrobin", "sticky", "cooperative-sticky"])
    has_racks = rng.random() < 1 / 3
    racks = ["a", "b", "c"]
    topics = []
    for t in range(rng.randint(1, 4)):
        partitions = rng.choice([1, 3, 6, 12, 24, 48])
        replicas = tuple((rng.choice(racks),) for _ in range(partitions)) if has_racks else None
        topics.append(kr.Topic(f"topic-{n}-{t}", partitions, replicas))
    names = tuple(topic.name for topic in topics)
    joined = tuple(
        kr.Member(
            f"app-{n}-{m}-{rng.getrandbits(64):016x}",
            names,
            client_id=f"app-{n}-{m}",
            rack_id=racks[m % 3] if has_racks else None,
        )
        for m in range(members)
    )
    group = kr.GroupSpec("group", tuple(topics), joined, assignor)
    return kr.plan(group).final.to_dict()


def write(directory: Path, groups: int) -> list[dict[str, Any]]:
    """Writes the fleet; returns the drawn groups."""
    rng = random.Random(SEED)
    sizes = [min(400, int(2 * rng.paretovariate(1.25))) for _ in range(TEMPLATES)]
    rows = [drawn(rng, n, size) for n, size in enumerate(sizes)]
    rows.append(drawn(rng, TEMPLATES, GIANT))
    table = pa.Table.from_pylist(rows).drop_columns("group_id")
    directory.mkdir()
    for first in range(0, groups, _FILE):
        ids = range(first, min(first + _FILE, groups))
        took = table.take([template(n) for n in ids])
        took = took.append_column("group_id", pa.array([f"g{n}" for n in ids]))
        pq.write_table(took, directory / f"{first:08}.parquet")
    return rows


def template(n: int) -> int:
    """Returns the number of the drawn group of which group `n` is a copy; group 0 is the giant."""
    return TEMPLATES if n == 0 else n % TEMPLATES


def job(source: str, target: str) -> dict[str, float]:
    """Plans the fleet; returns wall and CPU seconds."""
    from kafka_rebalance.spark import plan_each_change
    from kafka_rebalance.spark.session import session

    spark = session("bench", master="local[2]")
    groups = spark.read.parquet(source)
    warm = plan_each_change(groups.limit(200), CHANGES)
    warm.write.format("noop").mode("overwrite").save()
    before, start = cpu_seconds(), time.perf_counter()
    plan_each_change(groups, CHANGES).write.parquet(target)
    return {"wall": time.perf_counter() - start, "cpu": cpu_seconds() - before}


def core_seconds(source: Path, groups: int) -> float:
    """Estimates the core's CPU seconds for all groups, from every eighth file."""
    spent, seen = 0.0, 0
    for path in sorted(source.glob("*.parquet"))[1::8] or sorted(source.glob("*.parquet")):
        for batch in pq.read_table(path).to_batches(max_chunksize=1_000):
            start = time.process_time()
            for change in CHANGES:
                _core.plan_batch(batch, None, [change], 10**9, 1)
            spent += time.process_time() - start
            seen += len(batch)
    return spent / seen * groups


def check(target: Path, rows: list[dict[str, Any]], groups: int) -> int:
    """Returns how many of the sampled rows equal the figures of `kafka_rebalance.plan`."""
    rng = random.Random(SEED + 1)
    wanted = {f"g{n}" for n in rng.sample(range(groups), min(groups, _SAMPLED))}
    table = pq.read_table(target)
    answers = {
        (row["group_id"], row["change"]): row
        for row in table.filter(pc.is_in(table["group_id"], value_set=pa.array(sorted(wanted))))
        .to_pylist()
    }  # fmt: skip
    equal = 0
    for group_id in sorted(wanted):
        change = rng.choice(CHANGES)
        row = answers[group_id, change]
        case = rows[template(int(group_id[1:]))]
        group = kr.GroupSpec.from_dict({**case, "group_id": group_id})
        try:
            figures = kr.plan(group, None, [change]).figures().to_dict()
            equal += {name: row[name] for name in _FIGURES} == figures
        except kr.NotAffected:
            equal += row["not_affected"] is not None and row["moves"] is None
        except kr.GroupError as error:
            equal += row["error"] == str(error)
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=200_000)
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        print(json.dumps(job(*args.job)))
        return
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name, "groups"), Path(name, "plans")
        rows = write(source, args.groups)
        size = sum(path.stat().st_size for path in source.glob("*")) / 1e6
        members = sum(len(rows[template(n)]["members"]) for n in range(args.groups))
        print(f"{args.groups:,} groups, {members:,} members, {size:.0f} MB of Parquet")
        command = [sys.executable, "-m", "benches.fleet", "--job", str(source), str(target)]
        ran = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        driver, workers = watch(ran)
        assert ran.stdout is not None
        spent = json.loads(ran.stdout.read())
        plans = args.groups * len(CHANGES)
        print(
            f"{plans:,} plans in {spent['wall']:.1f} s: {args.groups / spent['wall']:,.0f} groups, "
            f"{plans / spent['wall']:,.0f} plans a second on two cores"
        )
        print(f"peak memory: JVM {driver:,} MB, Python workers {workers:,} MB")
        core = core_seconds(source, args.groups)
        each = spent["cpu"] / plans * 1e6
        print(
            f"CPU: {spent['cpu']:.0f} s, {each:.0f} us a plan; the core alone {core:.0f} s; "
            f"outside our code {1 - core / spent['cpu']:.0%}"
        )
        equal = check(target, rows, args.groups)
        sampled = min(args.groups, _SAMPLED)
        print(f"{equal:,} of {sampled:,} sampled rows are those of kafka_rebalance.plan")


if __name__ == "__main__":
    main()

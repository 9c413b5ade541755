# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measures our core, our interfaces and the peers on the same cases, in one run.

Prints a table of ratios and writes results/grid.{md,jsonl,png}, and the README's table. A ratio is
the peer's median time divided by the core's. `--quick` measures 14 cells and writes no files;
`--full` measures every cell of Kafka's grid (hours).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import kafka_rebalance as kr
from benches.grid import ASSIGNORS, Case, grid, overlapping, reported, shuffled
from benches.measure import Answer, Peer, timed, timed_anew
from benches.table import RESULTS, rendered, saved, write_pages
from kafka_rebalance.bulk import assign_batch
from kafka_rebalance.bulk.lines import assign_lines

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
STICKY = ("sticky", "cooperative-sticky")
PYTHON_CLIENTS_PARTITIONS = 2_000
"""The most partitions of the groups that kafka-python and aiokafka assign."""
_COLD = 8
"""The number of cases that run once before all: Java's first cases ran four times slower."""
PYTHON_BORDER_PARTITIONS = 100_000
# Longer lines are not converted to Python objects: a group of 10,000 members with 1,000 topics each
# has a line of 110 MB.
PYTHON_BORDER_BYTES = 50_000_000


def chosen(which: str) -> Iterator[Case]:
    if which == "quick":
        for assignor in ASSIGNORS:
            yield Case(assignor, 1000, 10, 100)
            yield Case(assignor, 100, 50, 100, "shuffled")
        for subscriptions, kind in (("same", "joins"), ("buckets", "full"), ("buckets", "joins")):
            for assignor in STICKY:
                yield Case(assignor, 500, 5, 10, subscriptions, kind)
        return
    sizes = (100, 1000, 10_000)
    for case in grid():
        growth = case.per_member == 10 and case.topics == 100 and case.members >= 1000
        usual = case.racks == "none" and case.members in sizes
        usual &= case.per_member in (5, 50) or growth
        racks = case.racks != "none" and (case.members, case.per_member) == (1000, 5)
        if which == "full" or usual or (racks and case.topics < 1000):
            yield case
    yield from shuffled()
    yield from overlapping()
    yield from reported()


def peers(seconds: float, timeout: float) -> list[Peer]:
    # The wheel contains mimalloc, too.
    core = ["cargo", "bench", "-q", "--no-default-features", "--features", "mimalloc"]
    core += ["--bench", "core_times", "--"]
    java = ["java", "-Xms2g", "-Xmx6g", "-cp", str(ROOT / "tools/oracle/target/oracle.jar")]
    python = [sys.executable, str(HERE / "peers/python_clients.py")]
    eager, most = ("range", "roundrobin", "sticky"), PYTHON_CLIENTS_PARTITIONS
    return [
        Peer("core", [*core, "--seconds", str(seconds)], ASSIGNORS, 600),
        Peer("Java", [*java, "oracle.Bench", str(seconds)], ASSIGNORS, timeout),
        Peer("franz-go", [str(HERE / "peers/franz/franz"), str(seconds)], STICKY, timeout),
        Peer("kafka-python", [*python, "kafka-python", str(seconds)], ASSIGNORS, timeout, most),
        Peer("aiokafka", [*python, "aiokafka", str(seconds)], eager, timeout, most),
    ]


def borders(line: bytes, seconds: float) -> dict[str, Any]:
    """Times one assignment through each of our interfaces, in one thread."""
    record = {**json.loads(line), "generation_id": None}
    batch = pa.RecordBatch.from_pylist([record])
    # Each name is a separate string, and the constructor does not number the names.
    asked = kr.GroupSpec.from_dict(record, max_partitions=10**8)

    def first_and_again(ask: Callable[[kr.GroupSpec], object]) -> Answer:
        first = timed_anew(asked.edited, ask, seconds)
        return {**first, "again_ms": timed(lambda: ask(asked), seconds)["ms"]}

    return {
        "members": first_and_again(lambda group: list(kr.assign(group))),
        "objects": first_and_again(
            lambda group: {member_id: list(owned) for member_id, owned in kr.assign(group).items()}
        ),
        "made": timed(
            lambda: {
                member_id: list(owned)
                for member_id, owned in kr.assign(
                    kr.GroupSpec.from_dict(record, max_partitions=10**8)
                ).items()
            },
            seconds,
        ),
        "lines": timed(lambda: assign_lines([line], threads=1, max_partitions=10**8), seconds),
        "arrow": timed(lambda: assign_batch(batch, threads=1, max_partitions=10**8), seconds),
    }


def plug_ins(seconds: float) -> list[dict[str, Any]]:
    """Times our assignors with the Python clients' types, and the clients' own assignors.

    The group has 1,000 members and 20 partitions for each of them.
    """
    rows = []
    for client, assignor in (("kafka-python", "cooperative-sticky"), ("aiokafka", "sticky")):
        for kind in ("full", "joins"):
            case = Case(assignor, 1000, 20, 100, "same", kind)
            line = case.group().to_json().encode()
            row: dict[str, Any] = {"case": str(case), "client": client}
            for whose, name in (("theirs", client), ("ours", f"{client}+ours")):
                command = [sys.executable, str(HERE / "peers/python_clients.py")]
                peer = Peer(name, [*command, name, str(seconds)], ASSIGNORS, 180.0)
                row[whose] = peer.ask(case, line)
                peer.stop()
            rows.append(row)
    return rows


def machine() -> dict[str, Any]:
    def said(*command: str) -> str:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        return (ran.stdout + ran.stderr).strip().splitlines()[0]

    import aiokafka
    import kafka

    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = [line for line in cpus if "model name" in line]
    modules = said("grep", "franz-go ", str(HERE / "peers/franz/go.mod"))
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{len(model)} x {model[0].partition(': ')[2]}",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "rust": said("rustc", "--version"),
        "java": said("java", "-version"),
        "go": said("go", "version"),
        "peers": f"kafka-clients 4.4.0, {modules.strip()}, kafka-python {kafka.__version__}, "
        f"aiokafka {aiokafka.__version__}",
        "load": Path("/proc/loadavg").read_text().split()[0],
    }


def wheel() -> dict[str, Any]:
    """Returns the compiled module's size, and how much our import adds to Python's start."""

    def start(code: str) -> float:
        times = []
        for _ in range(7):
            once = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - once)
        return min(times) * 1000

    module = next((ROOT / "python/kafka_rebalance").glob("_core*.so"))
    return {
        "module_bytes": module.stat().st_size,
        "import_ms": start("import kafka_rebalance") - start("pass"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_const", const="quick", dest="which")
    parser.add_argument("--full", action="store_const", const="full", dest="which")
    parser.add_argument("--members", type=int, help="only cells with this number of members")
    parser.add_argument("--subscriptions", help="only these, such as shuffled; writes no files")
    parser.add_argument(
        "--seconds", type=float, default=0.3, help="seconds of measurement for each case and peer"
    )
    parser.add_argument("--timeout", type=float, default=75.0)
    args = parser.parse_args()
    which = args.which or "usual"
    if shutil.which("go") is None:
        sys.exit("Go is needed for franz-go, which is measured too: 'apt-get install golang'.")
    subprocess.run(["go", "build", "-o", "franz", "."], cwd=HERE / "peers" / "franz", check=True)
    asked = peers(args.seconds, 10.0 if which == "quick" else args.timeout)
    rows = []
    cases = [
        case
        for case in chosen(which)
        if args.members in (None, case.members) and args.subscriptions in (None, case.subscriptions)
    ]
    writes = which != "quick" and args.subscriptions is None
    for case in cases[:_COLD]:
        for peer in asked:
            peer.ask(case, case.group().to_json().encode())
    for number, case in enumerate(cases, 1):
        print(f"\r{number} of {len(cases)}: {case}\033[K", end="", file=sys.stderr, flush=True)
        line = case.group().to_json().encode()
        row: dict[str, Any] = {"case": str(case), **vars(case), "partitions": case.partitions}
        row["peers"] = {peer.name: peer.ask(case, line) for peer in asked}
        if case.partitions <= PYTHON_BORDER_PARTITIONS and len(line) <= PYTHON_BORDER_BYTES:
            row["borders"] = borders(line, args.seconds / 3)
        rows.append(row)
        if writes and number % 20 == 0:
            keep(report(rows, [])[0])  # the results so far, in case a later case fails
    for peer in asked:
        peer.stop()
    print("\r\033[Kplug-ins", end="", file=sys.stderr, flush=True)
    plugged = plug_ins(args.seconds) if writes else []
    print("\r\033[K", end="", file=sys.stderr)
    print(write(rows, plugged) if writes else report(rows, plugged)[1])


def report(rows: list[dict[str, Any]], plugged: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    result = {"machine": machine(), "wheel": wheel(), "plug_ins": plugged, "rows": rows}
    return result, rendered(result)


def keep(result: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "grid.jsonl").write_text(saved(result), encoding="utf-8")


def write(rows: list[dict[str, Any]], plugged: list[dict[str, Any]]) -> str:
    """Writes grid.jsonl, the pages and the picture; returns the text of grid.md."""
    from benches.picture import draw

    result, text = report(rows, plugged)
    keep(result)
    write_pages(result)
    draw(rows, RESULTS / "grid.png")
    return text


if __name__ == "__main__":
    main()

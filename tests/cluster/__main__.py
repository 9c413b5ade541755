# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.cluster --wheel dist/kafka_rebalance-….whl`: a fleet job on a real cluster.

Starts a standalone master and two workers on loopback, from pyspark's jars. Packs the wheel into a
Python environment, and runs the job with spark-submit. The answers must equal those of a local
session, and both workers must run tasks. A job without the wheel must fail with one sentence. The
whole test takes about two minutes. The exit code is 0 if all of this holds, else 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from kafka_rebalance.data import captured_lines
from tests.cluster.standalone import Standalone, submit


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description="See above.")
    parser.add_argument("--wheel", type=Path, required=True, help="the wheel to be shipped")
    parser.add_argument("--environment", type=Path, help="a packed environment of an earlier run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-rebalance-cluster-") as name:
        place = Path(name)
        packed = args.environment or packed_environment(args.wheel, place)
        size = packed.stat().st_size / 1e6
        print(f"packed environment: {packed} ({size:.0f} MB)")
        source = place / "groups.jsonl"
        lines = [line for line in captured_lines() if '"error"' not in line]
        copies = [
            line.replace('"group_id":"', f'"group_id":"{n}-', 1).replace(
                '"group_id": "', f'"group_id": "{n}-', 1
            )
            for n in range(50)
            for line in lines
        ]
        source.write_text("\n".join(copies), encoding="utf-8")
        local = subprocess.run(
            [sys.executable, "-m", "kafka_rebalance", "fleet", "assign", source, place / "local"],
            check=True,
            capture_output=True,
            text=True,
        )
        print("local:", local.stdout.splitlines()[0])
        with Standalone(place) as cluster:
            shipped = ["--archives", f"{packed}#env"]
            shipped += ["--conf", "spark.pyspark.python=./env/bin/python"]
            words = ["assign", str(source), str(place / "remote"), "--shared-files"]
            start = time.monotonic()
            done = submit(cluster.url, shipped, [*words, "--tasks", "8"])
            print(f"cluster: {done.stdout.strip().splitlines()} ({time.monotonic() - start:.0f} s)")
            ok = done.returncode == 0
            if not ok:
                print(done.stderr[-3000:])
            used = cluster.workers_used()
            print(f"workers that ran executors: {used} of 2")
            same = ok and _rows(place / "local") == _rows(place / "remote")
            print(f"answers are those of the local session: {same}")
            bare = ["--conf", f"spark.pyspark.python={_bare_python()}"]
            words = ["assign", str(source), str(place / "none"), "--shared-files"]
            failed = submit(cluster.url, bare, words)
            lines = (failed.stdout + failed.stderr).splitlines()  # the error can be in either
            said = [one for one in lines if one.startswith("kafka-rebalance")]
            print(f"without the wheel: {said}")
            named = len(said) == 1 and "ship the environment" in said[0]
    return 0 if same and used == 2 and named and failed.returncode == 1 else 1


def _rows(path: Path) -> list[str]:
    return sorted(map(str, pq.read_table(path).to_pylist()))


def _bare_python() -> str:
    """Returns a Python of this version without any package that this project installs."""
    return str(Path(sys.base_prefix) / "bin" / "python3")


def packed_environment(wheel: Path, place: Path) -> Path:
    """Packs an environment with the wheel and pyarrow."""
    environment = place / "environment"
    subprocess.run([_bare_python(), "-m", "venv", environment], check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, str(wheel), "pyarrow"], check=True)
    packed = shutil.make_archive(str(place / "environment"), "gztar", environment)
    shutil.rmtree(environment)
    return Path(packed)


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    sys.exit(main())

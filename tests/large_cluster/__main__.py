# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.large_cluster [--groups 2000] [--topics 200] [--changes 20] [--exporter]`.

1. Start a broker; form groups without real clients (steps: tests/large_cluster/members.py).
2. `kafka-rebalance snapshot` reads all groups; its time and its peak memory are measured.
3. Each line of the snapshot must list the members and partitions of the formed group.
4. A second snapshot runs while some groups become empty and form again. The lines of all other
   groups must be right.
5. With `--exporter`: `kafka-rebalance exporter` must have metrics of all groups. Its page is read
   while groups join again, one after another; its memory and the longest scrape are printed.

The exit code is 0 if steps 3 to 5 find no difference, else 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.history_live.exported import exporter
from tests.support.broker import Broker
from tests.support.live_members import await_coordinators
from tests.support.peak_memory import measured, read_used

from .members import PROPERTIES, LightGroups, create_topics, topic_names

if TYPE_CHECKING:
    from collections.abc import Callable

Line = dict[str, Any]
EXPORTED_S = 400.0


class Snapshot(NamedTuple):
    lines: dict[str, Line]
    said: str
    seconds: float
    cpu_seconds: float
    peak_mib: int

    def __str__(self) -> str:
        return (
            f"{self.said}; {self.seconds:.1f} s, {self.cpu_seconds:.1f} s CPU, "
            f"{self.peak_mib} MiB at most"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.large_cluster")
    parser.add_argument("--groups", type=int, default=2000, help="(%(default)s)")
    parser.add_argument("--topics", type=int, default=200, help="(%(default)s)")
    parser.add_argument("--changes", type=int, default=20, help="groups that change (%(default)s)")
    parser.add_argument("--exporter", action="store_true", help="also run the exporter")
    arguments = parser.parse_args()
    topics = topic_names(arguments.topics)
    with Broker(properties=PROPERTIES) as broker:
        server = broker.bootstrap_server
        create_topics(server, topics)
        await_coordinators(server, [f"group-{number:05}" for number in range(100)])
        with LightGroups(server, topics) as groups:
            started = time.monotonic()
            for number in range(arguments.groups):
                groups.add(number)
            print(f"{arguments.groups} groups formed in {time.monotonic() - started:.0f} s")
            quiet = _snapshot(server, lambda: None)
            print("when all was quiet:", quiet)
            wrong = differences(groups, quiet.lines, set())
            changing = range(1, arguments.groups, max(1, arguments.groups // arguments.changes))
            busy, changed = _snapshot_while(server, groups, changing)
            print("while groups changed:", busy)
            wrong += differences(groups, busy.lines, changed)
            if arguments.exporter:
                wrong += _exported(server, groups)
    for problem in wrong:
        print("wrong:", problem)
    return 1 if wrong else 0


def _exported(server: str, groups: LightGroups) -> list[str]:
    """Returns a problem if the exporter does not have all groups in time; prints its figures."""

    def figures(page: str) -> dict[str, float]:
        lines = (one.rpartition(" ") for one in page.splitlines() if one[:1] != "#")
        return {name: float(value) for name, _, value in lines}

    def scrape() -> tuple[float, dict[str, float]]:
        began = time.perf_counter()
        with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
            page = answer.read().decode()
        return time.perf_counter() - began, figures(page)

    names = [one for one, owned in groups.owned.items() if len(owned) == 1]
    with exporter(server, every_s=30) as address:
        began, found = time.monotonic(), dict[str, float]()
        while found.get("kafka_rebalance_descriptions_age_seconds", -1) < 0:
            if time.monotonic() - began > EXPORTED_S:
                return [f"not all groups are described after {EXPORTED_S:.0f} s"]
            time.sleep(2)
            _, found = scrape()
        print(f"the exporter described all groups in {time.monotonic() - began:.0f} s")
        longest, ends = 0.0, time.monotonic() + 60
        while time.monotonic() < ends:
            for name in names[:100]:
                groups.join_again(name, sorted({tp.topic for tp in groups.of(name)}))
            seconds, found = scrape()
            longest = max(longest, seconds)
    resident, there = found["process_resident_memory_bytes"], found["kafka_rebalance_groups"]
    print(f"{there:.0f} groups, {resident / 1e6:.0f} MB, the longest scrape {longest:.2f} s")
    return [] if there == len(groups.owned) else [f"the exporter has {there:.0f} groups"]


def _snapshot_while(server: str, groups: LightGroups, changing: range) -> tuple[Snapshot, set[str]]:
    """Reads the cluster while groups change; returns the snapshot and the changed groups."""
    changed: set[str] = set()

    def change() -> None:
        for number in changing:
            group_id = f"group-{number:05}"
            changed.add(group_id)
            groups.leave(group_id)
            groups.add(number)

    return _snapshot(server, change), changed


def _snapshot(server: str, meanwhile: Callable[[], None]) -> Snapshot:
    """Runs the command; `meanwhile` is called again and again until the command ends."""
    command = [sys.executable, "-m", "kafka_rebalance", "snapshot", "--bootstrap-server", server]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
            started = time.monotonic()
            process = subprocess.Popen(measured(command, folder / "used"), stdout=out, stderr=err)
            while process.poll() is None:
                meanwhile()
                time.sleep(0.01)
            seconds = time.monotonic() - started
        texts = (folder / "out").read_text(encoding="utf-8").splitlines()
        lines = {line["group_id"]: line for line in map(json.loads, texts)}
        said = (folder / "err").read_text(encoding="utf-8").splitlines()
        used = read_used(folder / "used")
    return Snapshot(lines, said[-1], seconds, used.cpu_seconds, used.peak_bytes >> 20)


def differences(groups: LightGroups, lines: dict[str, Line], changed: set[str]) -> list[str]:
    """Returns which groups, except the changed ones, were not read as they were formed."""
    wrong = [f"{group_id}: not formed by us" for group_id in lines.keys() - groups.owned.keys()]
    for group_id, owned in groups.owned.items():
        line = lines.get(group_id)
        if group_id not in changed and (line is None or _owned(line) != owned):
            wrong.append(f"{group_id}: {line} in place of {owned}")
    return wrong


def _owned(line: Line) -> dict[str, tuple[tuple[str, int], ...]]:
    return {
        member["member_id"]: tuple(
            (one["topic"], number)
            for one in member["owned_partitions"]
            for number in one["partitions"]
        )
        for member in line.get("members", ())
    }


if __name__ == "__main__":
    sys.exit(main())

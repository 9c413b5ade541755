# SPDX-License-Identifier: Apache-2.0
"""Measures the leader of a classic Kafka Streams group against Kafka's own class.

    python -m benches.streams_leader [--times N]

Half of the processes have run before, so tasks move and warm up. Kafka's time is
`StreamsPartitionAssignor.assign` alone, in a warm JVM: it reads the threads' bytes and writes
theirs. Ours is `engines.assign`, from Python's objects to Python's objects; the bytes were read
before, and are not written. Both are the thread's time on a core, so a busy machine counts little.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

from benches.run import machine
from kafka_rebalance.applications.lines import read_application
from kafka_rebalance.assignors.streams import engines
from tests.support.generate_applications import _Application, _Process
from tests.support.oracle import STREAMS_JAR, Oracle

SIZES = ((10, 2, 200), (50, 4, 1_000), (100, 8, 2_000))
"""Processes, threads of each, and tasks; a quarter of the tasks is stateless."""


def application(processes: int, threads: int, tasks: int) -> _Application:
    """Returns an application with 4 subtopologies, of which 3 have a changelog."""
    made = _Application(random.Random(7))
    made.assignor, made.settings["num_standby_replicas"] = "high_availability", 1
    made.settings["rack_aware_assignment_strategy"] = "none"
    made.settings["rack_aware_assignment_tags"] = []
    made.topics, made.ends, made.committed, each = {}, {}, {}, tasks // 4
    made.subtopologies = []
    for number in range(4):
        logs = [made._topic(f"store-{number}-changelog", each)] if number else []
        made.ends |= {topic: [1_000_000] * each for topic in logs}
        made.subtopologies.append(
            {
                "subtopology_id": number,
                "source_topics": [made._topic(f"in-{number}", each)],
                "repartition_source_topics": [],
                "repartition_sink_topics": [],
                "changelog_topics": logs,
                "source_changelog_topics": [],
                "unlogged_stores": 0,
            }
        )
    made.processes = [_Process(made.rng, ("a",), (11,)) for _ in range(processes)]
    for process in made.processes:
        for _ in range(threads):
            made._thread(process)
    return made


def measured(size: tuple[int, int, int], oracle: Oracle, times: int) -> tuple[float, float]:
    """Returns the median times in ms: Kafka's and ours."""
    made = application(*size)
    everyone = made.processes
    made.processes = everyone[: len(everyone) // 2]
    made.apply(oracle.ask(made.case("before")))
    made.processes = everyone
    case: dict[str, Any] = made.case("after") | {"end_offsets": made.ends}
    theirs = [oracle.ask(case)["assign_ns"] / 1e6 for _ in range(2 * times)][times:]
    given, ours = read_application(case), []
    for _ in range(times):
        began = time.thread_time()
        engines.assign(given, with_lags=False)
        ours.append((time.thread_time() - began) * 1e3)
    return statistics.median(theirs), statistics.median(ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=20)
    times = parser.parse_args().times
    about = machine()
    print(f"{about['date']}, {about['machine']}, load {about['load']}, {about['java']}")
    print("processes x threads, tasks: Kafka's class, ours, ratio")
    with Oracle(STREAMS_JAR) as oracle:
        for size in SIZES:
            theirs, ours = measured(size, oracle, times)
            ratio = f"{theirs / ours:.1f}x"
            print(f"{size[0]} x {size[1]}, {size[2]}: {theirs:.1f} ms, {ours:.2f} ms, {ratio}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Measures what users wait for: the prompt, Python objects, past rebalances, the first table.

    python -m benches.felt                      # everything: ten minutes at most
    python -m benches.felt --rounds 5 plan compare    # these prompts alone

A prompt is a new process for one small group:

1. Runs each command once, so that Python's compiled files exist and are in memory.
2. Runs the commands in turns, with `python -c pass` among them, and takes user and system time of
   each process. Other programs slow all of them alike; the figure is the median of the turns.

`felt_more.py` has the other tables, and how each figure grows with the members.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benches import felt_more
from kafka_rebalance.data import captured_lines

GROUP = "payments"
ADD = ("--add-members", "1")
COMMANDS = {
    "--version": (["--version"], 0),
    "--help": (["--help"], 0),
    "assign": (["assign", "FILE"], 90),
    "describe": (["describe", "FILE"], 90),
    "explain": (["explain", "payments-3", "FILE", *ADD], 90),
    "plan": (["plan", "FILE", *ADD], 150),
    "compare": (["compare", "FILE", *ADD], 180),
    "simulate --help": (["simulate", "--help"], 90),
}
"""Each command with the milliseconds to reach; 0 stands for `START` times `python -c pass`."""
START = 2.5
SCRIPT = "import sys; from kafka_rebalance.cli import main; sys.exit(main())"
"""The script that an installation makes for the command."""


def cpu_ms(command: list[str]) -> float:
    """Returns the user and system time of a process that runs the command."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit code {child.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=f"of {', '.join(COMMANDS)}")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    if wrong := [name for name in args.commands if name not in COMMANDS]:
        parser.error(f"{wrong[0]!r} is not one of {', '.join(COMMANDS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "groups.jsonl")
        line = next(one for one in captured_lines() if f'"group_id":"{GROUP}"' in one)
        file.write_text(line + "\n", encoding="utf-8")
        run = {"python -c pass": [sys.executable, "-c", "pass"]}
        for name in args.commands or COMMANDS:
            given = [str(file) if one == "FILE" else one for one in COMMANDS[name][0]]
            run[name] = [sys.executable, "-c", SCRIPT, *given]
        for command in run.values():
            cpu_ms(command)
        rounds = [{name: cpu_ms(each) for name, each in run.items()} for _ in range(args.rounds)]
    least = statistics.median(one["python -c pass"] for one in rounds)
    print("| command | CPU ms | slowest | of `pass` | aim |\n| --- | ---: | ---: | ---: | ---: |")
    for name in run:
        took = sorted(one[name] for one in rounds)
        aim = COMMANDS.get(name, ([], 0))[1] or (START * least if name in COMMANDS else 0)
        middle = statistics.median(took)
        cells = f"{middle:.0f} | {took[-1]:.0f} | {middle / least:.1f} | {aim:.0f}"
        print(f"| {name} | {cells} |")
    if not args.commands:
        script = [sys.executable, "-c", SCRIPT]
        felt_more.large(cpu_ms, script)
        felt_more.objects(args.rounds)
        felt_more.history(cpu_ms, script, 100_000)
        felt_more.first_table(script, 1_000)
        felt_more.growth()
    print(f"\nload {os.getloadavg()[0]:.1f}, median of {args.rounds}")


if __name__ == "__main__":
    main()

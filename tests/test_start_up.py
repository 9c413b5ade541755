# SPDX-License-Identifier: Apache-2.0
"""Limits the modules that each command loads before it runs: a user waits for them at each prompt.

`python -m benches.felt` measures how long. A command that imports another room at the top of a file
fails here: import where it runs what only a branch needs, or change the table and give the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.cli.parser import COMMANDS
from kafka_rebalance.data import captured_lines
from tests.support.imports import loaded

if TYPE_CHECKING:
    from pathlib import Path

# The rooms of the group's model and of tables, which all commands on groups need.
GROUPS = "assignors group java report"
PLANS = f"{GROUPS} bulk notes plans"  # also the options for changes
SIMULATED = f"{PLANS} coordinator member playback simulator wire"

LOADS = {
    "demo": (40, f"{GROUPS} data"),  # Spark starts later
    "snapshot": (40, GROUPS),  # the client of the cluster is loaded when it connects
    "describe": (100, f"{PLANS} present"),  # plays the next rebalance; no client, no history
    "check": (240, f"{SIMULATED} checks live present settings"),  # the simulator plays settings
    "history": (120, f"{PLANS} history wire"),
    "explain": (100, PLANS),  # the reference that it explains is loaded when it is known
    "plan": (100, PLANS),  # no reference assignor, no simulator (--how-long loads it)
    "scale": (220, f"{SIMULATED} scaling"),
    "rollout": (240, f"{SIMULATED} live rollout"),
    "compare": (240, f"{SIMULATED} switching"),  # the simulator times each assignor
    "watch": (148, f"{PLANS} applications follow history live watch wire"),
    "exporter": (50, f"{GROUPS} coordinator wire"),
    "simulate": (80, f"{PLANS} simulator"),  # of the simulator, what its options need
    "connect": (90, f"{PLANS} connect live"),
    "assign": (50, f"{GROUPS} bulk"),  # the core assigns: no plans, no reference
    "fleet": (90, PLANS),  # Spark starts later, if at all
    "coordinator": (150, f"{GROUPS} coordinator member playback wire"),
    "serve": (50, f"{GROUPS} coordinator wire"),  # the server is loaded when it starts
    "probe": (50, f"{GROUPS} serve"),
    "mcp": (50, GROUPS),
    "completion": (10, "report"),
}
"""Command -> the most modules of this package that its own module loads, and their rooms."""

HEAVY = {
    "aiokafka", "confluent_kafka", "kafka", "mcp", "numpy", "pandas", "prometheus_client",
    "pyarrow", "pyspark", "yaml",  # optional
    "asyncio", "concurrent.futures", "decimal", "difflib", "importlib.metadata",
    "importlib.resources", "multiprocessing", "socket", "ssl", "subprocess", "uuid",
}  # fmt: skip
"""Modules that import for long, and that a prompt about one group needs in no branch."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_few_modules_and_no_other_rooms(command: str) -> None:
    most, rooms = LOADS[command]
    own, _ = loaded(f"cli.{command}")
    assert {name.split(".")[0] for name in own} <= {
        "__init__",
        "cli",
        "errors",
        "frozen",
        "lazy",
        *rooms.split(),
    }
    assert len(own) <= most


@pytest.mark.parametrize("command", ["assign", "describe", "explain", "plan", "simulate"])
def test_a_prompt_loads_nothing_heavy(command: str) -> None:
    assert loaded(f"cli.{command}")[1] & HEAVY == set()


def test_the_help_loads_the_list_of_commands_alone() -> None:
    own, others = loaded("cli")
    assert own == {
        "__init__", "cli", "errors", "lazy", "report", "report.text", "report.text.terminal",
    }  # fmt: skip
    assert others.isdisjoint({"dataclasses", "json", "pathlib", "typing"})


@pytest.mark.parametrize(
    ("command", "most", "absent"),
    [
        (["assign", "FILE"], 50, "plans simulator wire explain assignors.classic"),
        (["describe", "FILE"], 105, "live history wire simulator explain present.connect_workers"),
        (["explain", "payments-3", "FILE"], 130, "live simulator assignors.consumer"),
        (["plan", "FILE", "--add-members", "1"], 110, "live simulator explain assignors.balance"),
        (["compare", "FILE", "--add-members", "1"], 240, "live history assignors.balance"),
        (["simulate", "--help"], 80, "simulator.scenario coordinator member wire"),
    ],
)
def test_a_run_loads_what_it_runs(
    command: list[str], most: int, absent: str, tmp_path: Path
) -> None:
    file = tmp_path / "group.jsonl"
    lines = captured_lines()
    # `assign` of a single cooperative group also plays its plan, for the note on the next round.
    group_id = "orders" if command[0] == "assign" else "payments"
    file.write_text(next(one for one in lines if json.loads(one)["group_id"] == group_id))
    given = [str(file) if one == "FILE" else one for one in command]
    code = (
        "import atexit, sys\natexit.register(lambda: print('loaded:', *sys.modules))\n"
        f"from kafka_rebalance.cli import main\nsys.exit(main({given!r}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = ran.stdout.rpartition("loaded:")[2].split()
    own = {one.removeprefix("kafka_rebalance.") for one in modules if one.startswith("kafka_reb")}
    assert len(own) <= most
    assert own.isdisjoint(absent.split())
    assert HEAVY.isdisjoint(modules) or command[0] == "compare"

# SPDX-License-Identifier: Apache-2.0
"""The examples of docstrings and pages run, and generated pages are current."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from kafka_rebalance.cli import FINDINGS_FAIL
from kafka_rebalance.data import captured_lines
from kafka_rebalance.notes import FindingKind, PlanKind
from kafka_rebalance.settings.rules import RULES
from tests.support.contributing import check_steps, source_files
from tests.support.imports import MODULES
from tests.support.prompt import command
from tests.support.recorded_applications import recorded_line
from tests.support.waiting import FAR_S
from tools import api_page, balance_evidence, llms, rooms, settings_page

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "kafka_rebalance"

# Examples run -------------------------------------------------------------------------------------


def _documented() -> list[str]:
    names = [module.name for module in pkgutil.walk_packages([str(PACKAGE)], "kafka_rebalance.")]
    sources = {name: _source(name) for name in ["kafka_rebalance", *names]}
    return [
        name for name, source in sources.items() if re.search(r"^\s*>>> ", source, re.MULTILINE)
    ]


def _source(name: str) -> str:
    path = MODULES.get(name.removeprefix("kafka_rebalance."))
    return "" if path is None else path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", _documented())
def test_docstring_examples(name: str, engine: Engine) -> None:
    """The examples use the reference; with the other engine, they must print equal results."""
    tests = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    runner = doctest.DocTestRunner(optionflags=doctest.FAIL_FAST)
    said: list[str] = []
    for test in tests:
        for each in test.examples:
            each.source = each.source.replace('engine="reference"', f'engine="{engine}"')
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert runner.tries > 0


TARGETS = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_of_the_makefile_can_be_made(target: str) -> None:
    """`make -n` finds all prerequisites; nothing is built."""
    dry = ["make", "-n", "-C", str(ROOT), target]
    ran = subprocess.run(dry, capture_output=True, text=True, check=False, timeout=FAR_S)
    assert ran.returncode == 0, ran.stderr


PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")))
}
EXAMPLE = re.compile(r"<!-- example: (.+?) -->\n```\w*\n(.*?)```\n", re.DOTALL)
# tests/test_history_document.py runs the examples of docs/history.md, which need other files.
FOUND = [
    example
    for name, page in PAGES.items()
    if name != "docs/history.md"
    for example in EXAMPLE.findall(page)
]
EXAMPLES = dict(FOUND)
COMMANDS = [name for name in EXAMPLES if name.endswith("command")]
OF_PYTEST = [name for name in EXAMPLES if name.endswith(".py")]
FILES = [name for name in EXAMPLES if re.fullmatch(r"\w+\.(jsonl|txt|properties|yaml)", name)]
ELSEWHERE = ("spark", "dataframes")
SCRIPTS = [one for one in EXAMPLES if f"{one} output" in EXAMPLES and one not in ELSEWHERE]


def test_the_pages_have_the_examples_that_are_run_here() -> None:
    """Every example in FOUND is used: here, in tests/spark/test_examples.py or test_frames.py.

    No two examples share a name.
    """
    assert len(EXAMPLES) == len(FOUND)
    run = {*COMMANDS, *SCRIPTS, *(f"{name} output" for name in SCRIPTS)}
    on_spark = {"spark", "spark output", "by library", "inventory"}
    frames = {"dataframes", "dataframes output"}
    assert EXAMPLES.keys() - run == {*FILES, *OF_PYTEST, "mcp settings", *on_spark, *frames}
    assert len(COMMANDS) == 36
    assert len(SCRIPTS) == 10
    assert len(FILES) == 7


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_pages_python(name: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[name], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, encoding="utf-8", check=False
    )
    assert (ran.stdout, ran.stderr) == (EXAMPLES[f"{name} output"], "")


def test_the_pages_tests_pass(tmp_path: Path) -> None:
    for name in OF_PYTEST:
        (tmp_path / name).write_text(EXAMPLES[name], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FAR_S)
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr


SLOW = pytest.param("costs command", marks=pytest.mark.soak)


def test_the_pages_application_is_the_recorded_one() -> None:
    line = (ROOT / "docs" / "incident" / "shop.jsonl").read_text(encoding="utf-8")
    assert json.loads(line) == recorded_line(20)


@pytest.mark.parametrize("name", [SLOW if one == "costs command" else one for one in COMMANDS])
def test_the_pages_commands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command runs unchanged, and prints the output on the page; trailing blanks do not
    count.
    """
    for file in FILES:
        (tmp_path / file).write_text(EXAMPLES[file], encoding="utf-8")
    shutil.copy(ROOT / "docs" / "incident" / "records.jsonl.gz", tmp_path)
    shutil.copy(ROOT / "docs" / "incident" / "shop.jsonl", tmp_path)
    (tmp_path / "sample.jsonl").write_text("\n".join(captured_lines()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = []
    for line in EXAMPLES[name].splitlines():
        if line.startswith("$ kafka-rebalance "):
            words = line.removeprefix("$ kafka-rebalance ").split()
            target = words.index(">") if ">" in words else len(words)
            ran = command(*words[:target])
            fails = FINDINGS_FAIL if name == "settings command" else 0
            assert ran.returncode == fails, ran.stderr
            said.append(line)
            if target < len(words):
                (tmp_path / words[target + 1]).write_text(ran.stdout, encoding="utf-8")
            else:
                said += [one.rstrip() for one in ran.stdout.splitlines()]
    assert said == EXAMPLES[name].splitlines()


# Generated pages are current ----------------------------------------------------------------------


def test_the_page_of_settings_is_current() -> None:
    """If the page is not current, run `python -m tools settings-page`."""
    found = settings_page.PAGE.read_text(encoding="utf-8")
    assert found == settings_page.page(found)
    assert {rule.id for rule in RULES if rule.plays} == settings_page.EXAMPLES.keys()


def test_the_page_of_the_api_is_current() -> None:
    """If the page is not current, run `python -m tools api-page`."""
    found = api_page.PAGE.read_text(encoding="utf-8")
    assert found == api_page.page()
    shown = re.findall(r"^\| `(\w+)", found, re.MULTILINE)
    assert shown == [name for names in api_page.public_modules().values() for name in names]


def test_the_evidence_for_balanced_is_current() -> None:
    """If the table is not current, run `python -m tools balance-evidence`."""
    found = balance_evidence.PAGE.read_text(encoding="utf-8")
    assert found == balance_evidence.page(found)


def test_the_list_of_pages_for_agents_is_current() -> None:
    """If the list is not current, run `python -m tools llms`."""
    assert llms.PAGE.read_text(encoding="utf-8") == llms.page()


def test_the_design_counts_the_files_that_a_change_touches() -> None:
    found = rooms.PAGE.read_text(encoding="utf-8").partition("## What a change touches")[2]
    rows = re.findall(r"^\| ((?:Add|Move) .*) \| (\d+) \|$", found, re.MULTILINE)
    assert len(rows) == 6
    assert {what: int(files) for what, files in rows} == {
        what: source_files(what) for what, _ in rows
    }
    for heading in ("Add a kind of group", "Add a note", "Move to a new Kafka version"):
        check_steps(heading, steps=5, files=6)


def test_the_page_of_plans_describes_every_kind_of_note() -> None:
    """`describe` has the other kinds; a few are both."""
    under = (ROOT / "docs" / "plans.md").read_text("utf-8").partition("\n### Notes\n")[2]
    rows = re.findall(r"^\| `([\w -]+)` \|", under.partition("\n## ")[0], re.MULTILINE)
    of_plans = {*get_args(PlanKind)}
    assert rows == sorted(rows)
    assert of_plans <= {*rows} <= of_plans | {*get_args(FindingKind)}


def test_the_rooms_of_the_design_are_current() -> None:
    """If the page is not current, run `python -m tools rooms`."""
    found = rooms.PAGE.read_text(encoding="utf-8")
    assert found == rooms.page(found)
    assert "No circle" in rooms.block()
    described = re.findall(r"^\| `(\w+)` \|", found, re.MULTILINE)
    there = {name.split(".")[0] for name in MODULES} - {"__init__", "__main__"}
    assert sorted(described) == sorted(there)

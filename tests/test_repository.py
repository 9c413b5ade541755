# SPDX-License-Identifier: Apache-2.0
"""The repository: licences, the version, package metadata, and the benchmark's page."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import kafka_rebalance as kr
from benches import table
from benches.headlines import for_readme

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (".py", ".pyi", ".rs", ".java", ".go", ".sh", ".toml", ".yaml", ".yml")
BUILT = {".venv", ".git", "target", "build", "__pycache__", ".hypothesis", ".mypy_cache"}


def _sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.splitlines()]
    else:  # a source archive without git
        paths = [path for path in ROOT.rglob("*") if BUILT.isdisjoint(path.parts)]
    return [
        path
        for path in paths
        if path.is_file() and (path.suffix in SOURCES or path.name == "Makefile")
    ]


def test_every_source_file_names_its_licence() -> None:
    sources = _sources()
    assert len(sources) > 400
    without = [
        str(path.relative_to(ROOT))
        for path in sources
        if "SPDX-License-Identifier: Apache-2.0" not in path.read_text(encoding="utf-8")[:200]
    ]
    assert without == []


def test_the_version_stands_in_one_place() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert "version" not in project
    version = cargo["package"]["version"]
    assert kr.__version__ == version
    command = [sys.executable, "-m", "kafka_rebalance", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-1] == version


def test_packages_say_where_they_come_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(project["urls"])
    assert project["authors"]
    assert project["readme"] == "README.md"
    assert project["license"] == "Apache-2.0"
    assert "Typing :: Typed" in project["classifiers"]
    assert (ROOT / "python/kafka_rebalance/py.typed").is_file()


def test_the_benchmarks_tables_are_drawn_from_its_results() -> None:
    result = table.read((table.RESULTS / "grid.jsonl").read_text(encoding="utf-8"))
    page = (table.RESULTS / "grid.md").read_text(encoding="utf-8")
    assert table.rendered(result) == page
    readme = table.README.read_text(encoding="utf-8")
    assert "\n".join(for_readme(result["rows"])) in readme
    assert table.in_readme(readme, result) == readme
    assert table.read(table.saved(result)) == result

"""The shape of the code: three places for one path, imports one way, examples that run."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.data import captured_lines

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "kafka_rebalance"
RUST = ROOT / "src"

# One path, three places ---------------------------------------------------------------------------


def _stems(directory: Path, pattern: str) -> set[str]:
    return {path.stem for path in directory.glob(pattern)} - {"__init__"}


def test_the_classic_assignors_have_one_path_in_both_languages() -> None:
    rust = _stems(RUST / "assignors" / "classic", "*.rs")
    assert rust == _stems(PACKAGE / "assignors" / "classic", "*.py")
    assert rust >= {"range", "round_robin", "sticky", "cooperative_sticky"}


def test_every_assignor_has_vectors() -> None:
    vectors = {path.name.partition(".")[0] for path in (ROOT / "tests" / "vectors").glob("*.gz")}
    assert set(kr.assignor_names()) <= vectors


TWINS = ["hash_table", "order", "ownership", "contract", "lines", "wire"]


@pytest.mark.parametrize("stem", [*TWINS, "changes", "possible", "plans"])
def test_twins_outside_the_assignors(stem: str) -> None:
    assert (RUST / f"{stem}.rs").is_file()
    assert (PACKAGE / f"{stem}.py").is_file() or (PACKAGE / stem / "__init__.py").is_file()


def test_only_the_python_module_knows_pyo3() -> None:
    knowing = {
        path.relative_to(RUST).parts[0]
        for path in RUST.rglob("*.rs")
        if re.search(r"\bpyo3\b", path.read_text(encoding="utf-8"))
    }
    assert knowing == {"python", "python.rs"}


# Imports one way ----------------------------------------------------------------------------------

READING = ("errors", "fields", "field_types")
NOUNS = (*READING, "hash_table", "model", "order", "ownership", "contract")
# A module imports what stands in its own row or above it.
LAYERS: list[tuple[str, ...]] = [
    ("_core",),
    NOUNS,
    ("wire", "assignors", "traces"),
    ("batch", "lines", "changes", "possible", "coordinator"),
    ("plans", "member"),
    ("__init__",),
    ("sources", "spark", "simulator", "clients", "report", "data"),
    ("cli", "__main__"),
]
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}


def _modules() -> dict[str, Path]:
    """Dotted names below the package, `__init__` for the package itself."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
        found[".".join(name)] = path
    return found


def _imports(name: str, path: Path) -> set[str]:
    """The top names below the package that a module imports, wherever in the file."""
    found = set()
    package = ["kafka_rebalance", *name.split(".")]
    if path.name != "__init__.py" or name == "__init__":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "kafka_rebalance":
                below = target[1] if len(target) > 1 else "__init__"
                found.add(below if below in RANK else "__init__")
    return found


MODULES = _modules()


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_one_way(name: str) -> None:
    top = name.split(".")[0]
    assert top in RANK, f"{top} has no layer: add it to LAYERS where it belongs"
    upwards = {other for other in _imports(name, MODULES[name]) if RANK[other] > RANK[top]}
    assert upwards == set()


def test_the_import_check_sees_imports() -> None:
    assert _imports("assignors.objects", MODULES["assignors.objects"]) >= {"wire", "model"}
    assert "contract" in _imports("model", MODULES["model"])  # inside a function


OPTIONAL = ("matplotlib", "pyarrow", "pyspark", "pandas", "numpy", "kafka", "aiokafka", "rich")


@pytest.mark.parametrize("module", ["kafka_rebalance", "kafka_rebalance.cli"])
def test_no_optional_part_is_imported_by_the_core(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {OPTIONAL!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_public_names_are_there_and_listed() -> None:
    assert len(set(kr.__all__)) == len(kr.__all__)
    assert all(hasattr(kr, name) for name in kr.__all__)
    public = {name for name in dir(kr) if not name.startswith("_")}
    submodules = {name.split(".")[0] for name in MODULES}
    assert set(kr.__all__) == public - submodules - {"TYPE_CHECKING", "import_module"}


def test_assigning_does_not_import_what_only_plans_need() -> None:
    code = "import sys, kafka_rebalance; print([n for n in sys.modules if 'plans' in n])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


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
    """The examples name the reference; the compiled engine gives the same."""
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
    """As far as make itself can tell: nothing is run."""
    command = ["make", "-n", "-C", str(ROOT), target]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr


README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"<!-- example: (.+?) -->\n```\w*\n(.*?)```\n", re.DOTALL)
SIMULATOR = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
EXAMPLES = dict(EXAMPLE.findall(README) + EXAMPLE.findall(SIMULATOR))


def test_the_readme_has_the_examples_that_are_run_here() -> None:
    assert {"group.jsonl", "trace.txt", "python", "python output"} <= set(EXAMPLES)
    assert len(COMMANDS) == 9


def test_the_readmes_python(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES["python"], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, encoding="utf-8", check=False
    )
    assert (ran.stdout, ran.stderr) == (EXAMPLES["python output"], "")


COMMANDS = [name for name in EXAMPLES if name.endswith("command")]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readmes_commands(name: str, tmp_path: Path) -> None:
    """Each is run as it stands; ends of lines may have blanks that the README has not."""
    (tmp_path / "group.jsonl").write_text(EXAMPLES["group.jsonl"], encoding="utf-8")
    (tmp_path / "trace.txt").write_text(EXAMPLES["trace.txt"], encoding="utf-8")
    (tmp_path / "sample.jsonl").write_text("\n".join(captured_lines()), encoding="utf-8")
    said = []
    for line in EXAMPLES[name].splitlines():
        if line.startswith("$ kafka-rebalance "):
            words = line.removeprefix("$ kafka-rebalance ").split()
            target = words.index(">") if ">" in words else len(words)
            ran = subprocess.run(
                [sys.executable, "-m", "kafka_rebalance", *words[:target]],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                check=True,
            )
            said.append(line)
            if target < len(words):
                (tmp_path / words[target + 1]).write_text(ran.stdout, encoding="utf-8")
            else:
                said += [one.rstrip() for one in ran.stdout.splitlines()]
    assert said == EXAMPLES[name].splitlines()

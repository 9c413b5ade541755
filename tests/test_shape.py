# SPDX-License-Identifier: Apache-2.0
"""The shape of the tree: rooms, imports one way, twins, names that mean one thing."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

import kafka_rebalance as kr

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "kafka_rebalance"
RUST = ROOT / "src"

# A module imports from rooms of rows above its own, and from its own room.
ROWS = [
    ("_core", "errors"),
    ("java",),
    ("group",),
    ("wire",),
    ("assignors", "protocol"),
    ("plans", "coordinator"),
    ("member",),
    ("tracing",),
    ("simulator", "bulk", "live"),
    ("report", "spark", "clients", "data"),
    ("__init__",),
    ("cli",),
    ("__main__",),
]
RUST_ROWS = [
    ("error", "interrupt"),
    ("java",),
    ("group",),
    ("wire",),
    ("assignors",),
    ("plans",),
    ("bulk",),
    ("python",),
]
RANK = {room: rank for rank, row in enumerate(ROWS) for room in row}
RUST_RANK = {room: rank for rank, row in enumerate(RUST_ROWS) for room in row}

Imports = dict[str, set[str]]


def python_modules() -> dict[str, Path]:
    """Dotted names below the package; `__init__` is the package itself."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


MODULES = python_modules()


def python_imports(
    name: str, source: str, modules: dict[str, Path], *, at_run_time: bool = False
) -> set[str]:
    """The modules that a file imports, wherever in it; `at_run_time` leaves type-only ones out."""
    package = ["kafka_rebalance", *(name.split(".") if name != "__init__" else [])]
    if name not in modules or modules[name].name != "__init__.py":
        package = package[:-1]
    found = set()
    tree = _without_types_alone(ast.parse(source)) if at_run_time else ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [(alias.name.split("."), "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module or "").split(".")] if node.module else base
            targets = [(base, alias.name) for alias in node.names]
        else:
            continue
        for base, imported in targets:
            if base[:1] != ["kafka_rebalance"]:
                continue
            below = ".".join(base[1:])
            full = f"{below}.{imported}".strip(".")
            found.add(full if full in modules or full == "_core" else below or "__init__")
    return found


def _without_types_alone(tree: ast.Module) -> ast.Module:
    kept = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    return ast.Module(kept, tree.type_ignores)


def rust_modules() -> dict[str, Path]:
    """Paths below src with `::`, `lib` left out."""
    files = (path for path in sorted(RUST.rglob("*.rs")) if path.name != "lib.rs")
    return {"::".join(path.relative_to(RUST).with_suffix("").parts): path for path in files}


RUST_MODULES = rust_modules()


def rust_imports(name: str, source: str, modules: dict[str, Path]) -> set[str]:
    """The modules that a file names behind `crate::` and `super::`; its own tests are left out."""
    source = source.partition("#[cfg(test)]")[0]
    found = set()
    for path in re.findall(r"\b(?:crate|super)(?:::\w+|::\{[^}]*\})+", source):
        head, _, rest = path.partition("::")
        above = name.split("::")[:-1] if head == "super" else []
        ends = [rest]
        if (braces := re.search(r"\{(.*)\}", rest, re.DOTALL)) is not None:
            ends = [rest[: braces.start()] + one.strip() for one in braces.group(1).split(",")]
        for end in ends:
            parts = [*above, *end.split("::")]
            while parts and "::".join(parts) not in modules:
                parts.pop()
            if parts:
                found.add("::".join(parts))
    return found - {name}


PYTHON_GRAPH: Imports = {
    name: python_imports(name, path.read_text("utf-8"), MODULES) - {name}
    for name, path in MODULES.items()
}
RUN_TIME_GRAPH: Imports = {
    name: python_imports(name, path.read_text("utf-8"), MODULES, at_run_time=True) - {name}
    for name, path in MODULES.items()
}
RUST_GRAPH: Imports = {
    name: rust_imports(name, path.read_text("utf-8"), RUST_MODULES)
    for name, path in RUST_MODULES.items()
}


def upwards(name: str, imports: set[str], rank: dict[str, int], separator: str) -> set[str]:
    room = name.split(separator)[0]
    return {
        other
        for other in imports
        if (there := other.split(separator)[0]) != room and rank[there] >= rank[room]
    }


def circles(graph: Imports) -> list[list[str]]:
    """Every way along imports that comes back to where it began, each once."""
    found, done = [], set()

    def walk(name: str, way: list[str]) -> None:
        if name in way:
            found.append([*way[way.index(name) :], name])
        elif name not in done:
            for other in sorted(graph.get(name, ())):
                walk(other, [*way, name])
            done.add(name)

    for name in sorted(graph):
        walk(name, [])
    return found


@pytest.mark.parametrize("name", MODULES)
def test_python_imports_point_one_way(name: str) -> None:
    room = name.split(".")[0]
    assert room in RANK, f"{room} has no row: add it to ROWS where it belongs"
    assert upwards(name, PYTHON_GRAPH[name], RANK, ".") == set()


@pytest.mark.parametrize("name", RUST_MODULES)
def test_rust_imports_point_one_way(name: str) -> None:
    room = name.split("::")[0]
    assert room in RUST_RANK, f"{room} has no row: add it to RUST_ROWS where it belongs"
    assert upwards(name, RUST_GRAPH[name], RUST_RANK, "::") == set()


def test_no_circles() -> None:
    assert circles(RUN_TIME_GRAPH) == []
    assert circles(RUST_GRAPH) == []


@pytest.mark.parametrize("name", [n for n in MODULES if RANK[n.split(".")[0]] < RANK["__init__"]])
def test_no_module_imports_the_packages_own_init(name: str) -> None:
    """Else the first import of any part loads all parts, and a circle is one line away."""
    assert "__init__" not in PYTHON_GRAPH[name]


def test_the_import_checks_see_imports() -> None:
    assert PYTHON_GRAPH["assignors.objects"] >= {"group.model"}
    assert "group.spec" in PYTHON_GRAPH["group.contract"] - RUN_TIME_GRAPH["group.contract"]
    assert RUST_GRAPH["plans::rebalance_plan"] >= {"plans::figures", "assignors", "group::model"}
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c", "a"]]
    assert upwards("java.x", {"group.y", "java.z"}, RANK, ".") == {"group.y"}
    source = "use crate::{group::model::X, java};\nuse super::claims::Y;"
    assert rust_imports("assignors::classic::sticky", source, RUST_MODULES) == {
        "group::model",
        "java",
        "assignors::classic::claims",
    }


# Twins --------------------------------------------------------------------------------------------

# Rooms whose every Rust file has a Python file of the same path.
TWIN_ROOMS = ("group", "java", "assignors", "plans")
# Rust files without one: what Python needs no file for.
RUST_ONLY = {
    "group/lists": "lists of ids in one buffer",
    "java/text": "Python decodes as Java does by itself",
    "plans/changes/draft": "a group that is edited in place; Python makes new ones",
}


@pytest.mark.parametrize("room", TWIN_ROOMS)
def test_a_rust_file_has_its_twin_in_python(room: str) -> None:
    for path in sorted((RUST / room).rglob("*.rs")):
        stem = path.relative_to(RUST).with_suffix("").as_posix()
        inner = stem.startswith("assignors/classic/general/")  # parts of one Python file
        if stem in RUST_ONLY or inner:
            continue
        twin = PACKAGE / f"{stem}.py"
        assert twin.is_file() or (PACKAGE / stem / "__init__.py").is_file(), stem


def test_what_has_no_twin_is_still_there() -> None:
    for stem in RUST_ONLY:
        assert (RUST / f"{stem}.rs").is_file()
        assert not (PACKAGE / f"{stem}.py").exists()


def test_the_classic_assignors_have_one_path_in_both_languages() -> None:
    rust = {path.stem for path in (RUST / "assignors" / "classic").glob("*.rs")}
    python = {path.stem for path in (PACKAGE / "assignors" / "classic").glob("*.py")}
    assert rust == python - {"__init__"}
    assert rust >= {"range", "round_robin", "sticky", "cooperative_sticky"}


def test_every_assignor_has_vectors() -> None:
    vectors = {path.name.partition(".")[0] for path in (ROOT / "tests" / "vectors").glob("*.gz")}
    assert set(kr.assignor_names()) <= vectors


def test_only_the_python_room_knows_pyo3() -> None:
    knowing = {
        path.relative_to(RUST).parts[0]
        for path in RUST.rglob("*.rs")
        if re.search(r"\bpyo3\b", path.read_text(encoding="utf-8"))
    }
    assert knowing == {"python", "python.rs"}


# Names --------------------------------------------------------------------------------------------

# What consumers import has its client's name in front of it, and Kafka's name behind.
PLUG_INS = ("clients.kafka_python", "clients.aiokafka")


def test_no_public_class_name_is_used_twice() -> None:
    places = defaultdict(set)
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and name not in PLUG_INS:
                places[node.name].add(name)
    twice = {
        name: found for name, found in places.items() if len(found) > 1 and not name.startswith("_")
    }
    assert twice == {}


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_no_module_is_shadowed(name: str) -> None:
    """`import kafka_rebalance.a.b` gives the module, not a function of that name."""
    if name == "__init__":
        return
    try:
        importlib.import_module(f"kafka_rebalance.{name}")
    except ImportError as error:  # an optional part that is not installed
        pytest.skip(str(error))
    found: object = kr
    for part in name.split("."):
        found = getattr(found, part)
    assert isinstance(found, ModuleType)


VAGUE = {"events", "engine", "kinds", "fields", "best", "numbers"}


def test_file_names_say_what_is_inside() -> None:
    files = [*PACKAGE.rglob("*.py"), *RUST.rglob("*.rs")]
    assert [str(path) for path in files if path.stem in VAGUE] == []


# What is imported ---------------------------------------------------------------------------------

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
    rooms = {name.split(".")[0] for name in MODULES}
    assert set(kr.__all__) == public - rooms - {"TYPE_CHECKING", "import_module"}


def test_assigning_does_not_import_what_only_plans_need() -> None:
    code = "import sys, kafka_rebalance; print([n for n in sys.modules if 'plans' in n])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"

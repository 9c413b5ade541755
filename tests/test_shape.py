# SPDX-License-Identifier: Apache-2.0
"""Rules for the source files: the direction of imports, twins in Python and Rust, unique names."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from types import ModuleType

import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import PLUG_IN
from kafka_rebalance.errors import MissingExtra
from tests.support.imports import (
    MODULES,
    PACKAGE,
    RANK,
    ROOT,
    RUST,
    RUST_MODULES,
    RUST_RANK,
    circles,
    python_graph,
    python_imports,
    run_time_graph,
    rust_graph,
    rust_imports,
    upwards,
)


def test_imports_point_one_way() -> None:
    for rank, graph, separator in ((RANK, python_graph(), "."), (RUST_RANK, rust_graph(), "::")):
        rooms = {name.split(separator)[0] for name in graph}
        assert rooms <= rank.keys(), "a room has no row: add it to ROWS where it belongs"
        wrong = {name: upwards(name, found, rank, separator) for name, found in graph.items()}
        assert {name: above for name, above in wrong.items() if above} == {}


# A result has methods whose functions stand in other files, and name the result as a type.
BOUND_TYPES = {
    "clients.leader": {"clients.balance"},
    "plans.figures": {"plans.rebalance_plan"},
    "plans.samples": {"plans.rebalance_plan"},
    "plans.summary": {"plans.rebalance_plan"},
    "simulator.measure": {"simulator.run"},
}


def test_no_circles() -> None:
    assert circles(run_time_graph()) == []
    assert circles(rust_graph()) == []
    with_types = {
        name: found - BOUND_TYPES.get(name, set()) for name, found in python_graph().items()
    }
    assert circles(with_types) == []
    for name, types in BOUND_TYPES.items():
        assert types <= python_graph()[name] - run_time_graph()[name], "it is no longer needed"


SMALL = 40
"""A file of so few lines has more than one importer, or it is joined with its only one."""
REACHED_OTHERWISE = {
    "__main__": "python -m kafka_rebalance",
    "assignors.librdkafka.round_robin": "the registry imports an assignor's file when it is called",
    "cli.explain": "the parser imports a command's file when it is used",
    "cli.submit": "spark-submit runs it",
}


def test_a_small_file_has_more_than_one_importer() -> None:
    for graph, files in ((python_graph(), MODULES), (rust_graph(), RUST_MODULES)):
        importers = Counter(one for found in graph.values() for one in found)
        small = {
            name
            for name, path in files.items()
            if path.name != "__init__.py" and path.read_text("utf-8").count("\n") <= SMALL
            if name.replace("::", ".") not in MODULES or files is MODULES  # not a twin in Rust
        }
        assert {name for name in small if importers[name] < 2} - REACHED_OTHERWISE.keys() == set()


PACKAGES = {"__init__", *(name for name, path in MODULES.items() if path.name == "__init__.py")}
DEFINING = {"cli", "data", "spark"}
"""Packages whose `__init__` has more than a docstring and names for users."""


def test_names_are_imported_from_the_modules_that_define_them() -> None:
    """The top of a module imports no name from a package, but from the module that defines it.

    Such a name would be found by `lazy`, and the checks of imports would not see which module it
    is. Within a function, a command uses public names as a user does.
    """
    wrong = []
    for name, path in MODULES.items():
        body = ast.parse(path.read_text("utf-8")).body
        top = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        now, _ = python_imports(name, "\n".join(map(ast.unparse, top)))
        wrong += [(name, one) for one in (now & PACKAGES) - DEFINING if name not in PACKAGES]
    assert wrong == []
    spelled = [
        name
        for name in MODULES
        for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "kafka_rebalance" and not node.level
    ]
    assert spelled == []


def test_the_import_checks_see_imports() -> None:
    assert python_graph()["assignors.objects"] >= {"group.model"}
    for_types = python_graph()["plans.figures"] - run_time_graph()["plans.figures"]
    assert "plans.rebalance_plan" in for_types
    assert rust_graph()["plans::rebalance_plan"] >= {"plans::figures", "assignors", "group::model"}
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == [["a", "b", "c", "a"]]
    assert upwards("java.x", {"group.y", "java.z"}, RANK, ".") == {"group.y"}
    source = "use crate::{group::model::X, json};\nuse super::claims::Y;"
    assert rust_imports("assignors::classic::sticky", source, RUST_MODULES) == {
        "group::model",
        "json",
        "assignors::classic::claims",
    }
    source = (
        "mod output;\nuse output::Answer;  // source::X\nmod y {\n    use super::figures::Row;\n}"
    )
    below = {"bulk::batch::output", "bulk::batch::figures"}
    assert rust_imports("bulk::batch", source, RUST_MODULES) == below


# Twins --------------------------------------------------------------------------------------------

# In these rooms (top folders), every Rust file has a Python file at the same path.
TWIN_ROOMS = ("group", "java", "assignors", "plans", "switching")
# Exceptions: Rust files that Python does not need.
RUST_ONLY = {
    "assignors/consumer/changed": "what homogeneous.py does with a target, as sorted lists",
    "group/builder": "a group made field by field; Python's group/spec makes it at once",
    "group/lists": "lists of ids in one buffer",
    "java/red_black_tree": "the trees of java/hash_table, which Python keeps in one file",
    "java/slots": "orders found without a table; Python makes the tables",
    "java/text": "Python decodes as Java does by itself",
    "plans/changes/draft": "a group that is edited in place; Python makes new ones",
}


def test_a_rust_file_has_its_twin_in_python() -> None:
    for path in sorted(path for room in TWIN_ROOMS for path in (RUST / room).rglob("*.rs")):
        stem = path.relative_to(RUST).with_suffix("").as_posix()
        inner = stem.startswith("assignors/classic/general/")  # parts of one Python file
        if stem in RUST_ONLY or inner:
            continue
        twin = PACKAGE / f"{stem}.py"
        assert twin.is_file() or (PACKAGE / stem / "__init__.py").is_file(), stem


def test_files_listed_as_without_a_twin_still_exist() -> None:
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
    judged = {name for name in kr.assignor_names() if name != PLUG_IN}  # the jar judges PLUG_IN
    assert {name.replace("/", "-") for name in judged} <= vectors


def test_only_the_python_room_knows_pyo3() -> None:
    knowing = {
        path.relative_to(RUST).parts[0]
        for path in RUST.rglob("*.rs")
        if re.search(r"\bpyo3\b", path.read_text(encoding="utf-8"))
    }
    assert knowing == {"python", "python.rs"}


# Names --------------------------------------------------------------------------------------------

# Both plug-in modules use the names of Kafka's assignors for their classes.
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


def test_no_module_is_shadowed() -> None:
    """`kafka_rebalance.a.b` is the module, not a function of that name."""
    for name in MODULES:
        if name == "__init__" or name.endswith("__main__"):
            continue
        try:
            importlib.import_module(f"kafka_rebalance.{name}")
        except MissingExtra:  # an optional package is not installed
            continue
        found: object = kr
        for part in name.split("."):
            found = getattr(found, part)
        assert isinstance(found, ModuleType), name


KINDS = ("consumer_group", "share_group", "streams_group")


def test_no_kind_of_group_is_known_to_another_kind_or_to_a_base() -> None:
    """Only the coordinator itself, which holds the table of kinds, imports the kinds."""
    wrong = []
    for name, imports in python_graph().items():
        room, _, rest = name.partition(".")
        own = rest.split(".")[0]
        if room == "coordinator" and rest not in ("", "coordinator"):
            others = {f"coordinator.{kind}" for kind in KINDS if kind != own}
            wrong += [(name, one) for one in imports if ".".join(one.split(".")[:2]) in others]
    assert wrong == []


def test_few_places_ask_for_the_kind_of_a_group() -> None:
    """A kind is an object with methods; the places that ask `isinstance(x, …Group)` are counted."""
    requests = {"JoinGroup", "SyncGroup", "LeaveGroup", "BadGroup"}
    asked = []
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                types = re.findall(r"\b\w*Group\b", ast.unparse(node.args[1]))
                asked += [(name, node.lineno) for one in types[:1] if one not in requests]
    assert len(asked) <= MOST_ASKED, asked


MOST_ASKED = 10
ROOMS = {"coordinator": (60, 8_700), "report/plans": (12, 2_000), "cli/plan.py": (1, 230)}
"""Places that once grew beyond what a reader can hold: the most files, and their most lines."""


@pytest.mark.parametrize("place", ROOMS)
def test_what_grew_once_does_not_grow_again(place: str) -> None:
    names = {path.relative_to(PACKAGE).as_posix(): path for path in MODULES.values()}
    found = [path for name, path in names.items() if name.startswith(place)]
    most_files, most_lines = ROOMS[place]
    assert 0 < len(found) <= most_files
    assert sum(path.read_text("utf-8").count("\n") for path in found) <= most_lines


VAGUE = {"engine", "kinds", "fields", "best", "numbers"}


def test_file_names_say_what_is_inside() -> None:
    files = [*PACKAGE.rglob("*.py"), *RUST.rglob("*.rs")]
    assert [str(path) for path in files if path.stem in VAGUE] == []


MOST_LINES = 55
"""The most lines of a function of the package, with its docstring: one screen."""


def test_a_function_fits_on_a_screen() -> None:
    lengths = [
        (f"{name}.{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(lengths) > 2_000  # the walk finds functions
    assert [each for each in lengths if each[1] > MOST_LINES] == []


# Imports at run time ------------------------------------------------------------------------------

OPTIONAL = (
    "pyarrow",
    "pyspark",
    "pandas",
    "numpy",
    "kafka",
    "confluent_kafka",
    "aiokafka",
    "cryptography",
    "kio",
    "yaml",
)


@pytest.mark.parametrize("module", ["kafka_rebalance", "kafka_rebalance.cli"])
def test_no_optional_part_is_imported_by_the_core(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {OPTIONAL!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("import kafka_rebalance", ("assignors", "bulk", "plans", "simulator", "_core")),
        (
            "from kafka_rebalance.cli import main; main(['--version'])",
            ("assignors", "bulk", "plans", "simulator", "coordinator", "member"),
        ),
        (
            "from kafka_rebalance.cli import main; main(['--help'])",
            ("assignors", "bulk", "plans", "simulator", "coordinator", "member", "_core"),
        ),
        ("from kafka_rebalance import assign", ("plans", "simulator", "coordinator")),
    ],
)
def test_only_what_is_used_is_imported(command: str, absent: tuple[str, ...]) -> None:
    code = (
        f"import atexit, sys\natexit.register(lambda: print('imported:', *sys.modules))\n{command}"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(ran.stdout.rpartition("imported:")[2].split())
    assert "kafka_rebalance" in imported
    assert imported.isdisjoint(f"kafka_rebalance.{room}" for room in absent)


def test_each_job_on_spark_asks_for_the_drivers_python() -> None:
    """Without that, a local session runs `python3` from PATH, which may lack pyarrow."""
    starts = (".mapInArrow(", ".dataSource.register(", ".udtf.register(")
    before = []
    for path in (PACKAGE / "spark").glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for start in starts:
            found = [n for n, line in enumerate(lines) if start in line and "`" not in line]
            before += [(start, lines[n - 1].strip()) for n in found[:1]]
    assert sorted(start for start, _ in before) == sorted(starts)
    assert [line for _, line in before if not line.startswith("use_this_python(")] == []

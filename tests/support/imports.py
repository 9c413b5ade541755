# SPDX-License-Identifier: Apache-2.0
"""Finds the imports between files, in Python and Rust, and between rooms (top folders)."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "python" / "kafka_rebalance"
RUST = ROOT / "src"

# A module imports only from its own room and from rooms in earlier rows.
ROWS = [
    ("_core", "errors", "frozen", "lazy"),
    ("java",),
    ("group",),
    ("wire",),
    ("assignors",),
    ("explain",),
    ("plans", "coordinator", "connect"),
    ("switching", "applications"),
    ("notes",),
    ("present", "watch"),
    ("member",),
    ("playback",),
    ("simulator", "bulk", "live", "history", "serve"),
    ("scaling", "settings", "rollout"),
    ("checks",),
    ("report", "follow", "spark", "clients", "data", "testing"),
    ("__init__",),
    ("cli",),
    ("__main__",),
]
RUST_ROWS = [
    ("error",),
    ("interrupt",),
    ("java", "json"),
    ("group",),
    ("wire",),
    ("assignors",),
    ("plans",),
    ("switching",),
    ("bulk",),
    ("python",),
]
RANK = {room: rank for rank, row in enumerate(ROWS) for room in row}
RUST_RANK = {room: rank for rank, row in enumerate(RUST_ROWS) for room in row}

Imports = dict[str, set[str]]


def python_modules() -> dict[str, Path]:
    """Returns module name inside the package -> file; `__init__` is the package itself."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


MODULES = python_modules()


def python_imports(name: str, source: str) -> tuple[set[str], set[str]]:
    """Returns the modules that a file imports at run time, and those that it imports for types."""
    package = ["kafka_rebalance", *(name.split(".") if name != "__init__" else [])]
    if name not in MODULES or MODULES[name].name != "__init__.py":
        package = package[:-1]
    found: tuple[set[str], set[str]] = set(), set()
    for node, for_types in _statements(ast.parse(source).body):
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
            is_module = full in MODULES or full == "_core"
            found[for_types].add(full if is_module else below or "__init__")
    return found


def _statements(body: list[Any], *, for_types: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Yields each statement, and whether `if TYPE_CHECKING` at the file's top is around it."""
    for node in body:
        yield node, for_types
        is_check = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, [])
            yield from _statements(inner, for_types=for_types or is_check)


def rust_modules() -> dict[str, Path]:
    """Returns module path (such as `java::hash_table`) -> file, without `lib`."""
    files = (path for path in sorted(RUST.rglob("*.rs")) if path.name != "lib.rs")
    return {"::".join(path.relative_to(RUST).with_suffix("").parts): path for path in files}


RUST_MODULES = rust_modules()


def rust_imports(name: str, source: str, modules: dict[str, Path]) -> set[str]:
    """Returns the modules in the paths of a file that begin with `crate`, `super`, `self` or the
    name of a module below the file's own, as in `mod x; use x::Y;`. Tests do not count.
    """
    source = source.partition("#[cfg(test)]")[0]
    source = re.sub(r"//.*", "", source)
    # `super` in a module with braces is the file itself.
    source = re.sub(
        r"^(?:pub )?mod \w+ \{$.*?^\}$",
        lambda inner: inner[0].replace("super::", "self::"),
        source,
        flags=re.DOTALL | re.MULTILINE,
    )
    below = {
        one.removeprefix(f"{name}::").split("::")[0]
        for one in modules
        if one.startswith(f"{name}::")
    }
    heads = "|".join(["crate", "super", "self", *sorted(below)])
    found = set()
    for path in re.findall(rf"(?<![\w:])(?:{heads})(?:::\w+|::\{{[^}}]*\}})+", source):
        head, _, rest = path.partition("::")
        above = {"crate": [], "super": name.split("::")[:-1], "self": name.split("::")}.get(
            head, [*name.split("::"), head]
        )
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


@functools.cache
def _python_imports() -> dict[str, tuple[set[str], set[str]]]:
    return {name: python_imports(name, path.read_text("utf-8")) for name, path in MODULES.items()}


@functools.cache
def python_graph() -> Imports:
    """Returns the imports of each module of the package, with those for types."""
    return {name: (now | types) - {name} for name, (now, types) in _python_imports().items()}


@functools.cache
def run_time_graph() -> Imports:
    return {name: now - {name} for name, (now, _) in _python_imports().items()}


def loaded(module: str) -> tuple[set[str], set[str]]:
    """Returns the modules that are loaded with a module, and other packages' that these import.

    Only imports at the top of a file count: those in functions load when the function runs.
    """
    own, others, todo = set[str](), set[str](), [module]
    while todo:
        name = todo.pop()
        if name in own or name not in MODULES:
            continue
        own.add(name)
        body = ast.parse(MODULES[name].read_text("utf-8")).body
        top = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        now, _ = python_imports(name, "\n".join(map(ast.unparse, top)))
        packages = name.split(".")
        todo += [*now, *(".".join(packages[:n]) for n in range(1, len(packages)))]
        for node in top:
            if isinstance(node, ast.Import):
                others |= {alias.name for alias in node.names}
            elif not node.level:
                others.add(node.module or "")
    return own, {name for name in others if not name.startswith("kafka_rebalance")}


@functools.cache
def rust_graph() -> Imports:
    return {
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
    """Returns circular chains of imports: at least one if there is any."""
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


def rooms(graph: Imports, rank: dict[str, int], separator: str) -> Imports:
    """Returns the imports between rooms, lowest room first, without `__init__` and `__main__`."""
    found: Imports = {}
    for name in sorted(graph, key=lambda one: (rank[one.split(separator)[0]], one)):
        room = name.split(separator)[0]
        if not room.startswith("__"):
            below = {other.split(separator)[0] for other in graph[name]}
            found.setdefault(room, set()).update(below - {room, "__init__"})
    return found

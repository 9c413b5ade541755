# SPDX-License-Identifier: Apache-2.0
"""The root has few names, each once; every type of a public signature is a public name, too."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import pytest

import kafka_rebalance as kr
from kafka_rebalance.lazy import public
from tests.support.imports import MODULES, PACKAGE
from tools.api_page import names_of, public_modules

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONAL = ("testing", "spark", "clients.kafka_python", "clients.aiokafka")
PUBLIC = [*public_modules(), *(f"kafka_rebalance.{name}" for name in OPTIONAL)]
MACHINES = tuple(f"kafka_rebalance.{room}" for room in ("_core", "wire", "coordinator", "member"))
"""Rooms whose classes users import from the modules that define them (docs/coordinator.md)."""


def test_the_root_has_the_names_of_its_stub_and_no_others() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    names = {
        alias.asname: "." * node.level + (node.module or "")
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == alias.asname
    }
    assert names == public(kr.__file__)
    assert sorted(name for name, module in names.items() if module != ".") == kr.__all__
    assert all(hasattr(kr, name) for name in names)
    assert len(kr.__all__) <= 40
    assert set(dir(kr)) >= names.keys()
    shown = {name for name in dir(kr) if not name.startswith("_")}
    assert shown <= names.keys() | {name.split(".")[0] for name in MODULES}


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("assign_batch", "; see kafka_rebalance.bulk.assign_batch"),
        ("SchemaError", "; see kafka_rebalance.errors.SchemaError"),
        ("change_from_text", "; see kafka_rebalance.plans.changes.change_from_text"),
        ("asign", ""),
        ("_private", ""),
        ("cli", ""),
    ],
)
def test_an_error_names_the_public_module_of_a_name(name: str, where: str) -> None:
    with pytest.raises(AttributeError) as raised:
        kr.__getattr__(name)
    assert str(raised.value) == f"module 'kafka_rebalance' has no attribute '{name}'{where}"


def test_every_public_exception_is_a_public_name() -> None:
    raised = set()
    for path in MODULES.values():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = {ast.unparse(base) for base in node.bases}
                if bases & {"Exception", "KafkaRebalanceError", "GroupError", "AssignorThrows"}:
                    raised.add(node.name)
    within_a_room = {"IllegalTransition", "Refused"}  # caught where they are raised
    assert raised <= {*names_of("kafka_rebalance.errors"), *within_a_room}


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Returns the names that a file imports from this package, also those for types alone."""
    found = import_module(module)
    package = found.__name__ if hasattr(found, "__path__") else module.rpartition(".")[0]
    names = {}
    for node in ast.walk(ast.parse(inspect.getsource(found))):
        if isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            if base.startswith("kafka_rebalance"):
                names.update({one.asname or one.name: (base, one.name) for one in node.names})
    return names


def _value(module: str, name: str) -> Any:
    """Returns the value of a name in an annotation; None if it is not this package's."""
    if name in _imports(module):
        base, name = _imports(module)[name]
        found = import_module(base)
        return vars(found)[name] if name in vars(found) else import_module(f"{base}.{name}")
    return vars(import_module(module)).get(name)


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = node.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        yield from (one.annotation for one in every if one is not None and one.annotation)
        if node.returns is not None:
            yield node.returns
    elif isinstance(node, ast.AnnAssign):
        yield node.annotation
    elif isinstance(node, ast.ClassDef):
        for one in node.body:
            name = getattr(getattr(one, "target", one), "id", getattr(one, "name", ""))
            if name == "__init__" or not name.startswith("_"):
                yield from _annotations(one)


def _named(annotation: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields the names in an annotation; `core.Group` as ("core", "Group")."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _named(ast.parse(node.value, mode="eval"))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr
        elif isinstance(node, ast.Name):
            yield node.id, ""


def _types(value: Any) -> Iterator[Any]:
    """Yields this package's types in the signatures and attributes of a class or function."""
    if isinstance(value, type) and issubclass(value, Enum):
        return
    for defined in getattr(value, "__mro__", (value,)):
        defined = inspect.unwrap(defined)
        module = getattr(defined, "__module__", None) or ""
        if not module.startswith("kafka_rebalance"):
            continue
        body = ast.parse(inspect.getsource(import_module(module))).body
        nodes = [one for one in body if getattr(one, "name", None) == defined.__name__]
        for annotation in (one for node in nodes for one in _annotations(node)):
            for name, attribute in _named(annotation):
                found = _value(module, name)
                yield getattr(found, attribute, None) if attribute else found
    yield from get_args(value)


def _classes(found: Any) -> Iterator[type]:
    """Yields this package's own classes in a class, a union or a generic type."""
    module = found.__module__ if isinstance(found, type) else ""
    if module.startswith("kafka_rebalance") and not module.startswith(MACHINES):
        yield found
    for part in get_args(found):
        yield from _classes(part)


def test_every_type_of_a_public_signature_is_a_public_name() -> None:
    public = [getattr(import_module(room), name) for room in PUBLIC for name in names_of(room)]
    missing = defaultdict(set)
    for value in public:
        for found in (one for named in _types(value) for one in _classes(named)):
            if not any(found is one for one in public):
                missing[str(found)].add(getattr(value, "__qualname__", str(value)))
    assert len(public) > 150
    assert dict(missing) == {}


@pytest.mark.parametrize(
    ("signature", "found"),
    [
        ("def f(a: dict[str, Hidden]): ...", {"dict", "str", "Hidden"}),
        ("def f(*a: 'Hidden | None') -> m.Other: ...", {"Hidden", "m"}),
        ("class C:\n a: Hidden\n _b: Private\n def g(self) -> Result: ...", {"Hidden", "Result"}),
    ],
)  # fmt: skip
def test_types_are_found_in_parameters_results_and_attributes(
    signature: str, found: set[str]
) -> None:
    (node,) = ast.parse(signature).body
    assert {name for one in _annotations(node) for name, _ in _named(one)} == found

# SPDX-License-Identifier: Apache-2.0
"""Finds the quick tests: those whose code, helpers and fixtures cannot start a process.

A test in tests/live needs a broker, one in tests/spark a session. Any other test gets the mark
`process` if the code that it can reach in tests, tools and benches names `subprocess`; this module
follows the names in the compiled code, so that nobody has to mark 300 files by hand.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

NOT_QUICK = ("process", "oracle", "live", "spark", "soak")
STARTERS = ("subprocess", "multiprocessing")
OURS = tuple(str(Path(__file__).parents[2] / room) for room in ("tests", "tools", "benches"))


def marks(item: pytest.Item) -> Iterator[str]:
    """Yields the marks that follow from a test's directory, and from the code that it can reach."""
    if item.path.parent.name in ("live", "spark"):
        yield item.path.parent.name
    elif isinstance(function := getattr(item, "function", None), FunctionType):
        definitions = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
        fixtures = [found[-1].func for name, found in definitions.items() if name != "request"]
        if any(_reaches_a_process(one) for one in (function, *fixtures)):
            yield "process"


def is_quick_run(config: pytest.Config) -> bool:
    """Returns whether the command names neither tests, nor marks, nor --whole."""
    is_named = config.args_source is config.ArgsSource.ARGS
    return not (config.option.whole or config.option.markexpr or is_named)


def is_quick(item: pytest.Item) -> bool:
    """Returns whether a test starts nothing, and does not take long."""
    return not any(item.get_closest_marker(name) for name in NOT_QUICK)


def forbid_processes() -> None:
    """Forbids this process to start another one from now on: the test's mark would be missing."""
    sys.addaudithook(_refuse)


def _refuse(event: str, _: object) -> None:
    if (
        event in ("subprocess.Popen", "os.fork", "os.posix_spawn")
        and "PYTEST_CURRENT_TEST" in os.environ
    ):
        raise RuntimeError("a quick test starts a process: mark it with pytest.mark.process")


def _reaches_a_process(start: object) -> bool:
    """Returns whether a function, or one that it can call, names a module that starts processes."""
    waiting, seen = [start], set[int]()
    while waiting:
        found = inspect.unwrap(one) if callable(one := waiting.pop()) else one
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, ModuleType) and found.__name__ in STARTERS:
            return True
        if isinstance(found, functools.partial):
            waiting.append(found.func)
        elif isinstance(found, FunctionType) and _is_ours(found):
            waiting += _named(found.__code__, found.__globals__)
        elif isinstance(found, type) and _is_ours(found):
            waiting += [getattr(one, "__func__", one) for one in vars(found).values()]
            waiting += [one.fget for one in vars(found).values() if isinstance(one, property)]
            waiting += found.__bases__
    return False


def _is_ours(found: FunctionType | type) -> bool:
    return _is_in_ours(sys.modules.get(found.__module__ or ""))


def _is_in_ours(module: ModuleType | None) -> bool:
    # Tests in some directories are modules without a package: only their files show that they are
    # ours.
    return (getattr(module, "__file__", None) or "").startswith(OURS)


def _named(code: CodeType, globals: dict[str, Any]) -> Iterator[object]:
    """Yields the objects that code names: globals, and objects that it imports from our modules."""
    names = [globals[name] for name in code.co_names if name in globals]
    yield from names
    for one in names:
        if isinstance(one, ModuleType) and _is_in_ours(one):
            yield from (getattr(one, name, None) for name in code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named(constant, globals)

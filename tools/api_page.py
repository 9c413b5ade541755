# SPDX-License-Identifier: Apache-2.0
"""Writes docs/api.md: every public name with its signature and the summary of its docstring.

python -m tools.api_page
"""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import kafka_rebalance as kr
from kafka_rebalance.lazy import public

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
_HEAD = """\
# The names of `kafka_rebalance`

`import kafka_rebalance as kr`, then `kr.NAME`, or `kr.history.NAME` for a name of the module
`kafka_rebalance.history`. A module is imported when it is first used. Results have their attributes
here, and are not for construction. Spark's functions are in `kafka_rebalance.spark`, a broker for
tests in `kafka_rebalance.testing`, the clients' plug-ins in `kafka_rebalance.clients.kafka_python`
and `kafka_rebalance.clients.aiokafka`.

`python -m tools.api_page` writes this page.
"""
_WITH_METHODS = ("Assignment", "GroupSpec", "RebalancePlan")
_INPUTS = """
    GroupSpec Member Topic TopicPartition StreamsMember Subtopology TaskOffset Scenario TopicPlan
    MemberPlan Happening Network Costs Pace ConsumerConfig WorkerConfig CoordinatorConfig Range
    RoundRobin Sticky CooperativeSticky
""".split()  # noqa: SIM905 -- one name in quotes a line would be twenty lines
"""The classes that a caller constructs, beside the changes; all others are results."""


def page() -> str:
    """Returns the page: a table for each public module, sorted by name."""
    return _HEAD + "".join(
        f"\n## `{module}`\n\n| name | |\n| --- | --- |\n"
        + "".join(_row(name, getattr(import_module(module), name)) for name in names)
        for module, names in public_modules().items()
    )


def public_modules() -> dict[str, list[str]]:
    """Returns each public module, the root first, with its names; those of the root stand once."""
    stubs = [
        f"{kr.__name__}.{name}" for name, module in public(kr.__file__).items() if module == "."
    ]
    found: dict[str, list[str]] = {kr.__name__: kr.__all__}
    for module in (*stubs, "kafka_rebalance.plans.changes"):
        found[module] = [one for one in names_of(module) if one not in kr.__all__]
    return {module: names for module, names in found.items() if names}


def names_of(module: str) -> list[str]:
    """Returns `__all__`, or the public names that a module without `__all__` defines."""
    found = import_module(module)
    own = (one for one, value in vars(found).items() if getattr(value, "__module__", "") == module)
    return sorted(getattr(found, "__all__", ()) or (name for name in own if name[0] != "_"))


def _row(name: str, value: Any) -> str:
    described = inspect.isclass(value) or inspect.isfunction(value)
    line = _summary(value) if described else f"`{_text(value)}`"
    is_made = name in _INPUTS or (described and _is_change(value)) or not inspect.isclass(value)
    rows = [f"| `{name}{_signature(value) if is_made else ''}` | {line} |\n"]
    if not is_made and (attributes := ", ".join(f"`{one}`" for one in _attributes(value))):
        rows.append(f"| | {attributes} |\n")
    for method in list(vars(value)) if name in _WITH_METHODS else ():
        found = getattr(value, method)
        is_described = inspect.isroutine(found) or isinstance(found, property)
        if is_described and not method.startswith("_") and inspect.getdoc(found):
            rows.append(f"| `.{method}{_signature(found)}` | {_summary(found)} |\n")
    return "".join(rows)


def _is_change(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, kr.Change)


def _attributes(value: type) -> Iterator[str]:
    """Yields the fields of a result, and properties that have no row of their own."""
    if issubclass(value, (Enum, Exception)):
        return
    for base in reversed(value.__mro__):
        fields = vars(base).get("__annotations__", {})
        for name, found in {**fields, **vars(base)}.items():
            is_shown = isinstance(found, property) and value.__name__ not in _WITH_METHODS
            if name[0] != "_" and (is_shown or name in fields):
                yield name


def _summary(value: object) -> str:
    """Returns the first lines of the docstring, up to one that ends a sentence."""
    lines = (inspect.getdoc(value) or "").partition("\n\n")[0].splitlines()
    ends = next((n for n, line in enumerate(lines, 1) if line.endswith((".", ":"))), len(lines))
    return " ".join(lines[:ends]).replace("|", "\\|")


def _text(value: object) -> str:
    """Returns a constant or a type as a string, without the modules of its parts."""
    return re.sub(r"\b(?:[a-z_]+\.)+", "", str(value)).replace("|", "\\|")


def _signature(value: object) -> str:
    """Returns parameters with defaults; "" for exceptions, enums, interfaces and constants."""
    if isinstance(value, type):
        is_interface = inspect.isabstract(value) or getattr(value, "_is_protocol", False)
        if issubclass(value, (Enum, Exception)) or is_interface:
            return ""
    elif not inspect.isroutine(value):
        return ""
    parts, keyword_only = [], False
    for one in inspect.signature(value).parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        default = "" if one.default is one.empty else f"={_default(one.default)}"
        stars = "*" if one.kind is one.VAR_POSITIONAL else ""
        stars = "**" if one.kind is one.VAR_KEYWORD else stars
        parts.append(f"{stars}{one.name}{default}")
    return f"({', '.join(parts)})"


def _default(value: object) -> str:
    text = repr(value)
    return "…" if text.startswith("<") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

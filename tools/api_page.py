# SPDX-License-Identifier: Apache-2.0
"""Writes docs/api.md: every public name with its signature and the first line of its docstring.

python -m tools.api_page
"""

import inspect
import re
from enum import Enum
from pathlib import Path

import kafka_rebalance as kr

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
_HEAD = """\
# The names of `kafka_rebalance`

`import kafka_rebalance as kr`, then `kr.NAME`. A module is imported when one of its names is first
used. Spark's functions are in `kafka_rebalance.spark`, a broker for tests in
`kafka_rebalance.testing`, the clients' plug-ins in
`kafka_rebalance.clients.kafka_python` and `kafka_rebalance.clients.aiokafka`.

`python -m tools.api_page` writes this page.
"""
_TITLES = {
    "group": "Groups and assignments",
    "assignors": "Assigning",
    "bulk": "Assigning",
    "plans": "Plans",
    "notes": "Plans",
    "present": "Plans",
    "switching": "Plans",
    "plans.changes": "Changes",
    "simulator": "Simulation and live clusters",
    "live": "Simulation and live clusters",
    "history": "Histories",
}
_EXCEPTIONS = "Exceptions"
_WITH_METHODS = ("Assignment", "GroupSpec", "RebalancePlan")


def page() -> str:
    """Returns the page: a table for each group of names, sorted by name."""
    return _HEAD + "".join(
        f"\n## {title}\n\n| name | |\n| --- | --- |\n" + "".join(map(_row, names))
        for title, names in groups().items()
    )


def groups() -> dict[str, list[str]]:
    """Returns the public names under the title of their group."""
    found: dict[str, list[str]] = {title: [] for title in (*_TITLES.values(), _EXCEPTIONS)}
    for name in kr.__all__:
        found[_title(name)].append(name)
    return found


def _title(name: str) -> str:
    value, module = getattr(kr, name), kr._MODULE_OF[name]
    if isinstance(value, type) and issubclass(value, Exception):
        return _EXCEPTIONS
    return _TITLES.get(module) or _TITLES[module.partition(".")[0]]


def _row(name: str) -> str:
    value = getattr(kr, name)
    described = inspect.isclass(value) or inspect.isfunction(value)
    line = _first_line(value) if described else f"`{_text(value)}`"
    rows = [f"| `{name}{_signature(value)}` | {line} |\n"]
    for method in vars(value) if name in _WITH_METHODS else ():
        found = getattr(value, method)
        is_described = inspect.isroutine(found) or isinstance(found, property)
        if is_described and not method.startswith("_") and inspect.getdoc(found):
            rows.append(f"| `.{method}{_signature(found)}` | {_first_line(found)} |\n")
    return "".join(rows)


def _first_line(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|")


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

# SPDX-License-Identifier: Apache-2.0
"""Lets a package list its public names in a stub, and imports each when it is first used.

Type checkers read the stub `__init__.pyi`, too. Its lines `from X import N as N` are the list.
"""

from collections.abc import Callable
from importlib import import_module


def public(file: object) -> dict[str, str]:
    """Returns the names in a package's stub, each with its module ("." if the name is a module).

    `file` is the path of the package's `__init__.py`.
    """
    with open(f"{file}i", encoding="utf-8") as stub:  # noqa: PTH123 -- pathlib is slow to import
        lines = [line.split() for line in stub]
    return {words[3]: words[1] for words in lines if words[:1] == ["from"]}


def lazily(package: dict[str, object]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` for the package with these globals."""
    place, file = str(package["__name__"]), package["__file__"]

    def find(name: str) -> object:
        value: object
        if name == "__all__":
            value = sorted(one for one, module in public(file).items() if module != ".")
        elif (module := "" if name[0] == "_" else public(file).get(name, "")) == "":
            raise AttributeError(f"module {place!r} has no attribute {name!r}")
        elif module == ".":
            value = import_module(f".{name}", place)
        else:
            value = getattr(import_module(module, place), name)
        package[name] = value
        return value

    return find, lambda: sorted({*package, *public(file)} - {"lazily"})

# SPDX-License-Identifier: Apache-2.0
"""Predict, plan and run Kafka rebalances: Kafka's own answers, partition for partition.

group = GroupSpec.from_json(line)
result = assign(group, "cooperative-sticky")

`__init__.pyi` lists the public names and modules. `import kafka_rebalance` imports none of them:
each is imported when it is first used. docs/api.md describes every name.
"""

from importlib import import_module


def _public() -> dict[str, str]:
    """Returns public name -> its module, as the stub lists them; "." for a public module itself."""
    with open(f"{__file__}i", encoding="utf-8") as stub:  # noqa: PTH123 -- pathlib imports slowly
        lines = [line.split() for line in stub]
    return {words[3]: words[1] for words in lines if words[:1] == ["from"]}


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__":
        value = import_module("._core", __name__).VERSION
    elif name == "__all__":
        value = sorted(name for name, module in _public().items() if module != ".")
    elif (module := _public().get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_elsewhere(name)}")
    elif module == ".":
        value = import_module(f".{name}", __name__)
    else:
        value = getattr(import_module(module, __name__), name)
    globals()[name] = value
    return value


def _elsewhere(name: str) -> str:
    """Returns the end of an error for a name that is not here: the public modules that have it."""
    from importlib.util import find_spec

    # `from kafka_rebalance import wire` asks for the name before it imports the module.
    if name[0] == "_" or find_spec(f"{__name__}.{name}") is not None:
        return ""
    rooms = sorted({f".{one}" if at == "." else at for one, at in _public().items()})
    named = {one: vars(import_module(one, __name__)) for one in rooms}
    found = [one for one in rooms if name in named[one].get("__all__", named[one])]
    return "".join(f"; see {__name__}{room}.{name}" for room in found)


def __dir__() -> list[str]:
    """Returns the public names and the imported modules, without this file's own helpers."""
    return sorted({*globals(), *_public()} - {"import_module"})

# SPDX-License-Identifier: Apache-2.0
"""Predict, plan and run Kafka rebalances: Kafka's own answers, partition for partition.

group = GroupSpec.from_json(line)
result = assign(group, "cooperative-sticky")

`__init__.pyi` lists the public names and modules. `import kafka_rebalance` imports none of them:
each is imported when it is first used. docs/api.md describes every name.
"""

from .lazy import lazily

_find, __dir__ = lazily(globals())


def __getattr__(name: str) -> object:
    if name == "__version__":
        from ._core import VERSION

        return VERSION
    try:
        return _find(name)
    except AttributeError as error:
        raise AttributeError(f"{error}{_elsewhere(name)}") from None


def _elsewhere(name: str) -> str:
    """Returns the end of an error on a missing name: the public modules that contain the name."""
    from importlib import import_module
    from importlib.util import find_spec

    from .lazy import public

    # `from kafka_rebalance import wire` looks the name up before it imports the module.
    if name[0] == "_" or find_spec(f"{__name__}.{name}") is not None:
        return ""
    rooms = sorted({f".{one}" if at == "." else at for one, at in public(__file__).items()})
    named = {one: import_module(one, __name__) for one in rooms}
    found = [one for one in rooms if name in getattr(named[one], "__all__", vars(named[one]))]
    return "".join(f"; see {__name__}{room}.{name}" for room in found)

# SPDX-License-Identifier: Apache-2.0
"""Assignors by name: Kafka's own, and those that users register."""

from typing import TYPE_CHECKING, Literal, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec

from .classic import cooperative_sticky, range, round_robin, sticky

if TYPE_CHECKING:
    from collections.abc import Callable

    from .interface import Assignor

Engine = Literal["rust", "reference"]


def check_engine(engine: str) -> str:
    """Returns the engine's name; ValueError for an unknown one."""
    if engine not in ("rust", "reference"):
        raise ValueError(f'engine is "rust" or "reference", not {engine!r}')
    return engine


class BuiltIn(NamedTuple):
    """`withholds`: the assignor leaves out partitions that another member must first revoke."""

    assign: "Callable[[GroupSpec], dict[str, list[TopicPartition]]]"
    withholds: bool


BUILT_IN = {
    "range": BuiltIn(range.assign, withholds=False),
    "roundrobin": BuiltIn(round_robin.assign, withholds=False),
    "sticky": BuiltIn(sticky.assign, withholds=False),
    "cooperative-sticky": BuiltIn(cooperative_sticky.assign, withholds=True),
}

FOREIGN = {
    "stream": "Kafka Streams' own assignor, which no setting replaces",
    "RoundRobinAssigner": "KafkaJS's own assignor, which is not one of Kafka's",
    "rack-affinity": "kafka-go's own assignor, which is not one of Kafka's",
    "uniform": "an assignor of the new consumer protocol (KIP-848), whose broker assigns",
}
"""Assignors of live groups that are not Kafka's classic ones: name, and where it comes from."""

_PARTS = (
    "name",
    "version",
    "supported_protocols",
    "subscription_user_data",
    "assign",
    "on_assignment",
)
"""The members of `interface.Assignor`."""

_custom: "dict[str, Assignor]" = {}


def register(assignor: "Assignor") -> None:
    """Makes a custom assignor known by its `name`, everywhere in this process.

    Bulk functions (`assign_batch`, Spark) run in the core, which knows built-in assignors only.

    Errors   TypeError for an object that is not an `Assignor`; ValueError for a built-in name.
    """
    missing = [part for part in _PARTS if not hasattr(assignor, part)]
    if isinstance(assignor, type):
        raise _not_an_assignor("a class", "make an object of it")
    if missing:
        raise _not_an_assignor(f"a {type(assignor).__name__}", f"it has no {', '.join(missing)}")
    if assignor.name in BUILT_IN:
        raise ValueError(f"{quoted(assignor.name)} is the name of a built-in assignor")
    _custom[assignor.name] = assignor


def _not_an_assignor(what: str, why: str) -> TypeError:
    return TypeError(f"assignor: {what} is not an assignor: {why}; see kafka_rebalance.Assignor")


def unregister(name: str) -> None:
    """Forgets a custom assignor."""
    del _custom[name]


def assignor_names() -> list[str]:
    """All known names, Kafka's own first, then custom ones."""
    return [*BUILT_IN, *_custom]


def custom(name: str) -> "Assignor":
    """The custom assignor of a name; GroupError if there is none."""
    if name not in _custom:
        raise GroupError("assignor", unknown(name))
    return _custom[name]


def unknown(name: str) -> str:
    """The problem with a name that is not known, for an error."""
    known = f"known are {', '.join(assignor_names())}"
    if name in FOREIGN:
        return f"{quoted(name)} is {FOREIGN[name]}; {known}"
    return f"{quoted(name)} is not known; {known}"


def has_custom() -> bool:
    """Whether any custom assignor is registered; the compiled core knows none of these."""
    return bool(_custom)

# SPDX-License-Identifier: Apache-2.0
"""Finds assignors by name: Kafka's own, and those that users register."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import Member, TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire import encode_cooperative_user_data, encode_sticky_user_data

from .classic import cooperative_sticky, range, round_robin, sticky
from .classic.claims import Sent, sent_by_cooperative, sent_by_sticky
from .interface import Assignor

Engine = Literal["rust", "reference"]


def check_engine(engine: str) -> str:
    if engine not in ("rust", "reference"):
        raise ValueError(f'engine is "rust" or "reference", not {engine!r}')
    return engine


class BuiltIn(NamedTuple):
    """The row of one of Kafka's assignors, from which other modules read what is special in it.

    withholds   whether the assignor leaves out partitions that another member must first revoke
    sent        returns the claims of a member; None if the assignor uses no claims
    user_data   returns a consumer's user data, from its last assignment and its generation
    clients     the client libraries that can be configured with the assignor
    """

    assign: Callable[[GroupSpec], dict[str, list[TopicPartition]]]
    java_class: str
    withholds: bool = False
    ignores_racks: bool = False
    sent: Callable[[Member], Sent] | None = None
    user_data: Callable[[Sequence[TopicPartition] | None, int], bytes | None] = lambda *_: None
    clients: tuple[str, ...] = ("Java", "kafka-python", "aiokafka", "librdkafka")

    @property
    def remembers(self) -> bool:
        """Returns whether the assignor uses the partitions that members claim."""
        return self.sent is not None

    @property
    def plug_in(self) -> str:
        """The name of the plug-in class, in `kafka_rebalance` and in `kafka_rebalance.clients`."""
        return self.java_class.removesuffix("Assignor")


BUILT_IN = {
    "range": BuiltIn(range.assign, "RangeAssignor"),
    "roundrobin": BuiltIn(round_robin.assign, "RoundRobinAssignor", ignores_racks=True),
    "sticky": BuiltIn(
        sticky.assign,
        "StickyAssignor",
        sent=sent_by_sticky,
        # Before its first assignment, a sticky member sends no user data.
        user_data=lambda owned, generation_id: (
            None if owned is None else encode_sticky_user_data(owned, generation_id)
        ),
        clients=("Java", "kafka-python", "aiokafka"),
    ),
    "cooperative-sticky": BuiltIn(
        cooperative_sticky.assign,
        "CooperativeStickyAssignor",
        withholds=True,
        sent=sent_by_cooperative,
        user_data=lambda _owned, generation_id: encode_cooperative_user_data(generation_id),
        clients=("Java", "kafka-python", "librdkafka"),
    ),
}

FOREIGN = {
    "stream": "Kafka Streams' own assignor, which no setting replaces",
    "RoundRobinAssigner": "KafkaJS's own assignor, which is not one of Kafka's",
    "rack-affinity": "kafka-go's own assignor, which is not one of Kafka's",
    "uniform": "an assignor of the new consumer protocol (KIP-848), in which the broker assigns",
}
"""Other assignors that live groups use: name -> origin, as error messages state it."""

_PARTS = [part for part in vars(Assignor) if not part.startswith("_")]
"""The methods and properties of an assignor, as the interface declares them."""

_custom: dict[str, Assignor] = {}


def register(assignor: Assignor) -> None:
    """Makes a custom assignor known by its `name`, everywhere in this process.

    Bulk functions (`assign_batch`, Spark) run in the compiled core, which has no custom assignors.

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
    """Returns the names of Kafka's own assignors, then those of custom assignors."""
    return [*BUILT_IN, *_custom]


def custom(name: str) -> Assignor:
    """Returns the custom assignor of a name; raises a GroupError if there is none."""
    if name not in _custom:
        raise GroupError("assignor", unknown(name))
    return _custom[name]


def unknown(name: str) -> str:
    """Returns the text of an error about a name that is not known."""
    known = f"known are {', '.join(assignor_names())}"
    if name in FOREIGN:
        return f"{quoted(name)} is {FOREIGN[name]}; {known}"
    return f"{quoted(name)} is not known; {known}"


def has_custom() -> bool:
    """Returns whether any custom assignor is registered, which the compiled core cannot run."""
    return bool(_custom)

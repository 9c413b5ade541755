# SPDX-License-Identifier: Apache-2.0
"""The table of names: Kafka's own assignors, and those that users register."""

from typing import TYPE_CHECKING, Literal, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire import encode_cooperative_user_data, encode_sticky_user_data

from .classic import cooperative_sticky, range, round_robin, sticky
from .classic.claims import sent_by_cooperative, sent_by_sticky

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_rebalance.group.model import Member

    from .classic.claims import Sent
    from .interface import Assignor

Engine = Literal["rust", "reference"]


def check_engine(engine: str) -> str:
    """The engine's name; ValueError for one that is neither."""
    if engine not in ("rust", "reference"):
        raise ValueError(f'engine is "rust" or "reference", not {engine!r}')
    return engine


def _no_user_data(_owned: "Sequence[TopicPartition] | None", _generation_id: int) -> bytes | None:
    return None


def _sticky_user_data(owned: "Sequence[TopicPartition] | None", generation_id: int) -> bytes | None:
    """Sticky sends nothing before its first assignment."""
    return None if owned is None else encode_sticky_user_data(owned, generation_id)


def _cooperative_user_data(
    _owned: "Sequence[TopicPartition] | None", generation_id: int
) -> bytes | None:
    return encode_cooperative_user_data(generation_id)


class BuiltIn(NamedTuple):
    """One of Kafka's assignors: all that other modules know of it.

    `withholds`: it keeps back what another member must first give up, so it is cooperative.
    `sent`: the claims that it reads from a member; None where it remembers nothing.
    `user_data`: the bytes that a consumer sends of its last assignment and of its generation.
    `clients`: the libraries that can be configured with it.
    """

    assign: "Callable[[GroupSpec], dict[str, list[TopicPartition]]]"
    java_class: str
    withholds: bool = False
    ignores_racks: bool = False
    sent: "Callable[[Member], Sent] | None" = None
    user_data: "Callable[[Sequence[TopicPartition] | None, int], bytes | None]" = _no_user_data
    clients: tuple[str, ...] = ("Java", "kafka-python", "aiokafka", "librdkafka")

    @property
    def remembers(self) -> bool:
        """Whether members claim partitions that they had."""
        return self.sent is not None

    @property
    def plug_in(self) -> str:
        """The name of its class in `kafka_rebalance` and in `kafka_rebalance.clients`."""
        return self.java_class.removesuffix("Assignor")


BUILT_IN = {
    "range": BuiltIn(range.assign, "RangeAssignor"),
    "roundrobin": BuiltIn(round_robin.assign, "RoundRobinAssignor", ignores_racks=True),
    "sticky": BuiltIn(
        sticky.assign,
        "StickyAssignor",
        sent=sent_by_sticky,
        user_data=_sticky_user_data,
        clients=("Java", "kafka-python", "aiokafka"),
    ),
    "cooperative-sticky": BuiltIn(
        cooperative_sticky.assign,
        "CooperativeStickyAssignor",
        withholds=True,
        sent=sent_by_cooperative,
        user_data=_cooperative_user_data,
        clients=("Java", "kafka-python", "librdkafka"),
    ),
}

FOREIGN = {
    "stream": "Kafka Streams' own assignor, which no setting replaces",
    "RoundRobinAssigner": "KafkaJS's own assignor, which is not one of Kafka's",
    "rack-affinity": "kafka-go's own assignor, which is not one of Kafka's",
    "uniform": "an assignor of the new consumer protocol (KIP-848), whose broker assigns",
}
"""Names that live groups have, of assignors that are not Kafka's classic ones: whose they are."""
_PARTS = (
    "name",
    "version",
    "supported_protocols",
    "subscription_user_data",
    "assign",
    "on_assignment",
)
"""What `protocol.Assignor` has."""

_custom: "dict[str, Assignor]" = {}


def register(assignor: "Assignor") -> None:
    """Makes a custom assignor known by its `name`, everywhere in this process.

    Not in bulk (`assign_batch`, Spark): the core does not know it.

    Errors   TypeError for what has not all that an `Assignor` has; ValueError for a built-in name.
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
    """All known names, Kafka's own first."""
    return [*BUILT_IN, *_custom]


def custom(name: str) -> "Assignor":
    """The custom assignor of a name; GroupError when there is none."""
    if name not in _custom:
        raise GroupError("assignor", unknown(name))
    return _custom[name]


def unknown(name: str) -> str:
    """What is wrong with a name that nothing is known by."""
    known = f"known are {', '.join(assignor_names())}"
    if name in FOREIGN:
        return f"{quoted(name)} is {FOREIGN[name]}; {known}"
    return f"{quoted(name)} is not known; {known}"


def has_custom() -> bool:
    """Whether any custom assignor is registered: the compiled core does not know those."""
    return bool(_custom)

# SPDX-License-Identifier: Apache-2.0
"""Finds assignors by name: Kafka's, other libraries' and users' own.

A *server-side* assignor runs in the brokers: "consumer/uniform" is the assignor "uniform" of groups
of the consumer protocol (KIP-848). Members do not list it.

A *dialect* is another library's version of an assignor: "librdkafka/range" computes the answer for
a group that runs "range" and whose leader uses librdkafka.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kafka_rebalance.errors import GroupError, did_you_mean
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.model import (
    REBALANCE_PROTOCOLS,
    Member,
    RebalanceProtocolName,
    TopicPartition,
    quoted,
)
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec

from .interface import Assignor, RebalanceProtocol
from .python_libraries import PYTHON_LIBRARIES

if TYPE_CHECKING:
    from .classic.claims import Sent
    from .streams.sticky import Tasks

Engine = Literal["rust", "reference"]


def check_engine(engine: str) -> str:
    if engine not in ("rust", "reference"):
        raise ValueError(f'engine is "rust" or "reference", not {engine!r}')
    return engine


class BuiltIn(NamedTuple):
    """A built-in assignor, with all properties in which assignors differ.

    withholds   whether a partition that another member must first revoke stays unassigned; for
                this project's own assignors, the leader withholds it (`plans/rounds.py`)
    sent        returns the claims of a member; None if the assignor uses no claims
    user_data   returns a consumer's user data, from its last assignment and its generation
    clients     the client libraries that can be configured with the assignor
    java_class  "" if the assignor is not Kafka's
    """

    assign: Callable[[GroupSpec], dict[str, list[TopicPartition]]]
    java_class: str
    withholds: bool = False
    ignores_racks: bool = False
    sent: Callable[[Member], "Sent"] | None = None
    user_data: Callable[[Sequence[TopicPartition] | None, int], bytes | None] = lambda *_: None
    clients: tuple[str, ...] = ("Java", "kafka-python", "aiokafka", "librdkafka")

    @property
    def remembers(self) -> bool:
        return self.sent is not None

    @property
    def plug_in(self) -> str:
        """Returns the name of a Kafka assignor's class in `objects.py` and plug-ins; else ""."""
        return self.java_class.removesuffix("Assignor")


def _later(file: str, name: str = "assign") -> Callable[..., Any]:
    """Returns a function of a file in this folder; the file is imported at the first call."""
    found = cache(lambda: getattr(import_module(f".{file}", __package__), name))
    return lambda *given, **named: found()(*given, **named)


BALANCED, WEIGHTED = "balanced", "weighted"
OURS = (BALANCED, WEIGHTED)
"""The names of this project's own assignors."""
LISTED: dict[str, tuple[str, RebalanceProtocolName]] = {
    f"kafka-rebalance/{name}{'' if protocol == 'cooperative' else '-eager'}": (name, protocol)
    for protocol in REBALANCE_PROTOCOLS
    for name in OURS
}
"""Name of one of OURS in JoinGroup -> the assignor, and the protocol of its members. The names
differ by protocol, so that brokers refuse a mix of eager and cooperative members: a cooperative
leader would withhold partitions for which an eager member never joins again."""
PLUG_IN = f"consumer/{BALANCED}"
"""The name of `balanced` in brokers that load this project's jar."""

BUILT_IN = {
    "range": BuiltIn(_later("classic.range"), "RangeAssignor"),
    "roundrobin": BuiltIn(_later("classic.round_robin"), "RoundRobinAssignor", ignores_racks=True),
    "sticky": BuiltIn(
        _later("classic.sticky"),
        "StickyAssignor",
        sent=_later("classic.claims", "sent_by_sticky"),
        user_data=_later("classic.claims", "sticky_user_data"),
        clients=("Java", "kafka-python", "aiokafka"),
    ),
    "cooperative-sticky": BuiltIn(
        _later("classic.cooperative_sticky"),
        "CooperativeStickyAssignor",
        withholds=True,
        sent=_later("classic.claims", "sent_by_cooperative"),
        user_data=_later("classic.claims", "cooperative_user_data"),
        clients=("Java", "kafka-python", "librdkafka"),
    ),
    "librdkafka/range": BuiltIn(_later("librdkafka.range"), "", clients=("librdkafka",)),
    "librdkafka/roundrobin": BuiltIn(
        _later("librdkafka.round_robin"), "", ignores_racks=True, clients=("librdkafka",)
    ),
    "librdkafka/cooperative-sticky": BuiltIn(
        _later("librdkafka.cooperative_sticky"),
        "",
        withholds=True,
        sent=_later("librdkafka.claims", "sent"),
        clients=("librdkafka",),
    ),
    **{
        name: BuiltIn(
            _later(f"balance.{name}"),
            "",
            withholds=True,
            sent=_later("classic.claims", "sent_by_cooperative"),
            clients=("kafka-python", "aiokafka"),
        )
        for name in OURS
    },
}


class ServerSide(NamedTuple):
    """A server-side assignor. `shares`: whether several members can own the same partition."""

    assign: Callable[[GroupSpec], Assignment]
    shares: bool = False


class OfTasks(NamedTuple):
    """A server-side assignor of streams groups, which assigns tasks."""

    assign: Callable[[GroupSpec], "Tasks"]
    shares: bool = True


SERVER_SIDE: dict[str, ServerSide | OfTasks] = {
    "consumer/uniform": ServerSide(_later("consumer.uniform")),
    "consumer/range": ServerSide(_later("consumer.range")),
    PLUG_IN: ServerSide(_later("consumer.balanced")),
    "share/simple": ServerSide(_later("share.simple"), shares=True),
    "streams/sticky": OfTasks(_later("streams.sticky")),
}
"""The assignors of the brokers; `plan` and `compare` play their rounds."""

KAFKAS = tuple(name for name, row in BUILT_IN.items() if row.java_class)
"""The names of Kafka's own assignors that members can list."""

ONLY_PYTHON = b"runs in Python only, by the library's own class"
"""Part of the core's error for an assignor it lacks; `bulk/lines.py` then uses Python."""

ONE_AT_A_TIME = "one group at a time"
"""Part of the core's error for a plan it cannot play; `bulk/one_by_one.py` then uses Python."""

FOREIGN = {
    "stream": "Kafka Streams' own assignor, which no setting replaces",
    "RoundRobinAssigner": "KafkaJS's own assignor, which is not one of Kafka's",
    "rack-affinity": "kafka-go's own assignor, which is not one of Kafka's",
    "uniform": "the brokers' assignor of the consumer protocol (KIP-848): consumer/uniform",
}
"""Name of another assignor that live groups use -> its origin, as text for an error."""

STREAM = "stream"
"""The name of the assignor in classic groups of Kafka Streams."""

IN_PLACE_OF_STREAM = (
    "name no assignor: then its answer is computed from the field application of a line, which "
    "`snapshot` writes; bulk.plan_applications plans many lines"
)
"""The end of an error about STREAM; `bulk/lines.py` and `bulk/one_by_one.py` search for it."""

_PARTS = [part for part in vars(Assignor) if not part.startswith("_")]
"""The methods and properties of an assignor, as the interface declares them."""

_custom: dict[str, Assignor] = {}


def register(assignor: Assignor) -> None:
    """Registers a custom assignor under its `name`, for this process.

    `assign_batch` and Spark use the compiled core, which cannot run custom assignors.

    Errors   TypeError for an object that is not an `Assignor`; ValueError for a built-in name.
    """
    missing = [part for part in _PARTS if not hasattr(assignor, part)]
    if isinstance(assignor, type):
        raise _not_an_assignor("a class", "make an object of it")
    if missing:
        raise _not_an_assignor(a_type(assignor), f"it has no {', '.join(missing)}")
    if assignor.name in in_core():
        raise ValueError(f"{quoted(assignor.name)} is the name of a built-in assignor")
    _custom[assignor.name] = assignor


def _not_an_assignor(what: str, why: str) -> TypeError:
    return TypeError(
        f"assignor: {what} is not an assignor: {why}; see kafka_rebalance.assignors.Assignor"
    )


def unregister(name: str) -> None:
    """Removes a custom assignor from the registry. Errors: GroupError if it is not registered."""
    if name not in _custom:
        there = ", ".join(_custom) or "none"
        raise GroupError("name", f"{name!r} is not a registered assignor; registered: {there}")
    del _custom[name]


def bare(name: str) -> str:
    """Returns the name of an assignor without settings.

    >>> bare("weighted?budget=3")
    'weighted'
    """
    return name.partition("?")[0]


def library_of(name: str | None) -> str | None:
    """Returns the library of a dialect; None for other names.

    >>> library_of("librdkafka/range"), library_of("range")
    ('librdkafka', None)
    """
    library, slash, _ = (name or "").partition("/")
    return library if slash else None


def protocol_name(name: str) -> str:
    """Returns the name by which members list the assignor in JoinGroup.

    >>> protocol_name("librdkafka/range"), protocol_name("range")
    ('range', 'range')
    """
    return name.partition("/")[2] or name


def assignor_names() -> list[str]:
    """Returns the names of built-in assignors, then those of custom ones."""
    return [*in_core(), *_custom]


def in_core() -> tuple[str, ...]:
    return *BUILT_IN, *SERVER_SIDE


def row_of(name: str) -> BuiltIn | ServerSide | OfTasks | None:
    """Returns the row of a built-in assignor; None for other names.

    Names of this project's assignors may have settings. Errors: GroupError for wrong settings.
    """
    bare = name.partition("?")[0]
    if bare in OURS:
        from .balance import balanced, weighted

        is_weighted = bare == WEIGHTED
        run = (
            partial(weighted.assign, options=weighted.options_of(name))
            if is_weighted
            else partial(balanced.assign, objective=balanced.objective_of(name))
        )
        return BUILT_IN[bare]._replace(assign=run)
    return SERVER_SIDE.get(name) or BUILT_IN.get(name)


def planned_names() -> list[str]:
    """Returns the names of built-in and custom assignors that leaders run: plans play them."""
    return [name for name in assignor_names() if name not in SERVER_SIDE]


def is_known(name: str) -> bool:
    """Returns whether this process knows an assignor of this name."""
    return row_of(name) is not None or name in _custom or name in PYTHON_LIBRARIES


def custom(name: str) -> Assignor:
    """Returns the assignor of this name: a custom one or a Python library's. Errors: GroupError."""
    if not is_known(name):
        raise GroupError("assignor", unknown(name))
    if name in SERVER_SIDE:
        raise GroupError("assignor", in_brokers(name))
    return _custom[name] if name in _custom else PYTHON_LIBRARIES[name]


def protocol_of(assignor: str) -> RebalanceProtocol:
    """Returns the rebalance protocol of members that list only this assignor. Errors: GroupError.

    Members of a broker-assigned group keep what they own, as cooperative members do.
    """
    row = row_of(assignor)
    if assignor in SERVER_SIDE:
        cooperative = True
    elif isinstance(row, BuiltIn):
        cooperative = row.withholds
    else:
        cooperative = RebalanceProtocol.COOPERATIVE in custom(assignor).supported_protocols
    return RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER


def shares_partitions(name: str | None) -> bool:
    """Returns whether several members can have one partition or task under this assignor."""
    return name in SERVER_SIDE and SERVER_SIDE[name].shares


def assigns_tasks(name: str | None) -> bool:
    return isinstance(SERVER_SIDE.get(name or ""), OfTasks)


def in_brokers(name: str) -> str:
    """Returns the error text for a server-side assignor in a call that cannot play its rounds."""
    return (
        f"{quoted(name)} runs in the brokers, and `plan` and `compare` play its rounds, one "
        "group at a time; `assign` returns its assignment"
    )


def unknown(name: str) -> str:
    library = library_of(name)
    of_library = [
        one for one in PYTHON_LIBRARIES if library is not None and library_of(one) == library
    ]
    known = f"known are {', '.join(of_library or assignor_names())}"
    if name == STREAM:
        return f"{quoted(name)} is {FOREIGN[name]}; {IN_PLACE_OF_STREAM}"
    if name in FOREIGN:
        return f"{quoted(name)} is {FOREIGN[name]}; {known}"
    return f"{quoted(name)} is not known; {known}"


def misspelt(name: str) -> str:
    """Returns the error text for an unknown name, with "did you mean" if a known one is similar."""
    return unknown(name) + did_you_mean(name, [*assignor_names(), *PYTHON_LIBRARIES])


def runs_in_core(name: str | None) -> bool:
    """Returns whether the compiled core can answer the lines of a bulk call.

    `name` replaces the assignors of the lines; None means that each line has its own. (For a line
    with a Python library's dialect, the core returns the error `ONLY_PYTHON`.)
    """
    return not _custom if name is None else row_of(name) is not None

# SPDX-License-Identifier: Apache-2.0
"""Finds the client libraries of a group's members, and how members change to another assignor.

    client          assignors                                    eager and cooperative in one list
    Java            all four                                     allowed; members are then eager
    kafka-python    all four, as plug-ins of this package        allowed for plug-ins, as in Java
    aiokafka        the eager ones, as plug-ins of this package  no cooperative assignor exists
    librdkafka      range, roundrobin, cooperative-sticky        refused when a consumer starts

A client is recognised by its default client id, else by its bytes (`client_library`); a member with
neither may run any client. The Python libraries also have classes of their own
("kafka-python/range"): kafka-python refuses a list with its own cooperative class and an eager one.

Source   kafka-python 3.0.12 (ConsumerCoordinator._validate_rebalance_protocol), aiokafka 0.14.0,
         librdkafka 2.16 (rd_kafka_assignors_init), Kafka 4.4.0 (ConsumerConfig).
"""

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import (
    BUILT_IN,
    OURS,
    WEIGHTED,
    bare,
    library_of,
    protocol_name,
    protocol_of,
)
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member
from kafka_rebalance.group.spec import GroupSpec


class ClientLibrary(Frozen):
    """A client library. `assignors/registry.py` lists the libraries that have each assignor.

    `mixes` means that one list may contain eager and cooperative assignors. If `joins_once` is
    False, a member joins once for each listed assignor, so no rolling bounce changes it.
    """

    name: str
    mixes: bool = False
    joins_once: bool = True

    @property
    def assignors(self) -> frozenset[str]:
        """Returns the assignors that members can list: Kafka's, and the library's own classes."""
        kafkas = [name for name, row in BUILT_IN.items() if self.name in row.clients]
        own = [name for name in PYTHON_LIBRARIES if library_of(name) == self.name]
        return frozenset([*kafkas, *own])

    def setting(self, assignors: Sequence[str]) -> str:
        """Returns the configuration line that lists these assignors, ready to paste."""
        if self is JAVA:
            package = "org.apache.kafka.clients.consumer"
            return "partition.assignment.strategy=" + ",".join(
                f"{package}.{BUILT_IN[name].java_class}" for name in assignors
            )
        if self is LIBRDKAFKA:
            return f"partition.assignment.strategy={','.join(map(protocol_name, assignors))}"
        return f"partition_assignment_strategy=[{', '.join(map(self._written, assignors))}]"

    def needs(self, assignors: Sequence[str]) -> str | None:
        """Returns the lines of Python imports that the setting needs; None if it needs none."""
        if self in (JAVA, LIBRDKAFKA):
            return None
        names: dict[str, list[str]] = {}
        for module, name in sorted(map(self._class, assignors)):
            names.setdefault(module, []).append(name)
        if any(bare(one) == WEIGHTED for one in assignors):
            names["kafka_rebalance.clients.balance"] = ["Load"]
        return "\n".join(f"from {module} import {', '.join(of)}" for module, of in names.items())

    def _written(self, assignor: str) -> str:
        given = ['Load("HOST:9092")'] if bare(assignor) == WEIGHTED else []
        given += [f'"{settings}"' for settings in assignor.split("?")[1:]]
        return self._class(assignor)[1] + (f"({', '.join(given)})" if given else "")

    def _class(self, assignor: str) -> tuple[str, str]:
        """Returns the module and the name of an assignor's Python class: the library's own or our
        plug-in.
        """
        if assignor not in PYTHON_LIBRARIES:
            module = f"kafka_rebalance.clients.{self.name.replace('-', '_')}"
            name = bare(assignor)
            return module, BUILT_IN[name].plug_in or name.capitalize()
        module, _, name = PYTHON_LIBRARIES[assignor].class_path.rpartition(".")
        return module, name


JAVA = ClientLibrary("Java", mixes=True)
KAFKA_PYTHON = ClientLibrary("kafka-python", mixes=True)
AIOKAFKA = ClientLibrary("aiokafka", joins_once=False)
LIBRDKAFKA = ClientLibrary("librdkafka")
CLIENTS = (JAVA, KAFKA_PYTHON, AIOKAFKA, LIBRDKAFKA)


def clients_of(group: GroupSpec) -> tuple[ClientLibrary, ...]:
    """Returns the libraries that the members' default client ids reveal."""
    found = {client_of(member, group.group_id) for member in group.members}
    return tuple(client for client in CLIENTS if client in found)


def client_of(member: Member, group_id: str) -> ClientLibrary | None:
    """Returns the library that a member's default client id reveals; None if it has another id."""
    client_id = member.client_id or ""
    if python := re.match(r"(kafka-python|aiokafka)-[0-9]", client_id):
        return KAFKA_PYTHON if python[1] == KAFKA_PYTHON.name else AIOKAFKA
    if client_id == "rdkafka":
        return LIBRDKAFKA
    own = client_id.removeprefix(f"consumer-{group_id}-")
    if own in ("", client_id):
        return None
    is_number = own.isascii() and own.isdigit()
    return JAVA if is_number or own == member.group_instance_id else None


LACK_CONSUMER_PROTOCOL = {
    "kafka-python": "kafka-python lacks it (3.0.12)",
    "aiokafka": "aiokafka lacks it (0.14.0)",
    "python": "kafka-python (3.0.12) and aiokafka (0.14.0) lack it",
}
"""Libraries (as in `client_library`) that lack the consumer protocol (KIP-848) -> a sentence."""

HAVE_CONSUMER_PROTOCOL = (JAVA, LIBRDKAFKA)
"""The libraries that have the consumer protocol."""

_OLDEST_SUBSCRIPTION = 3


def lacks_consumer_protocol(member: Member, group_id: str) -> str | None:
    """Returns the reason if the member's library, or its version, certainly lacks KIP-848; else
    None.
    """
    library, _ = library_evidence(member, group_id) or ("", "")
    if library == "java" and member.version < _OLDEST_SUBSCRIPTION:
        # Kafka 3.4.0 is the first version that sends version 3 of ConsumerProtocolSubscription.
        return f"its subscription has version {member.version}: a client before Kafka 3.4 lacks it"
    return LACK_CONSUMER_PROTOCOL.get(library)


EITHER_PYTHON = (KAFKA_PYTHON, AIOKAFKA)
"""The libraries that a member may run if its bytes show only that it runs a Python library."""

_BY_BYTES = {
    "java": (JAVA, KAFKA_PYTHON, AIOKAFKA),  # this project's plug-ins send Java's bytes
    "python": EITHER_PYTHON,
    "kafka-python": (KAFKA_PYTHON,),
    "aiokafka": (AIOKAFKA,),
    "librdkafka": (LIBRDKAFKA,),
}


def clients_that_fit(group: GroupSpec) -> tuple[ClientLibrary, ...]:
    """Returns the libraries that fit some member's bytes; all if a member's library is unknown."""
    fit = [_that_fit_bytes(member) for member in group.members]
    return tuple(client for client in CLIENTS if not fit or any(client in one for one in fit))


def clients_for(member: Member, group_id: str) -> tuple[ClientLibrary, ...]:
    """Returns the libraries that a member may run: by its client id, or else by its bytes."""
    client = client_of(member, group_id)
    return _that_fit_bytes(member) if client is None else (client,)


def _that_fit_bytes(member: Member) -> tuple[ClientLibrary, ...]:
    return _BY_BYTES.get(member.client_library or "", CLIENTS)


def class_name(group: GroupSpec, assignor: str | None) -> str | None:
    """Returns an assignor's name for tables: "python/range" if either Python library may run it.

    Most groups run one library: if one member's library is known, the others count as running it.
    """
    library, _, name = (assignor or "").partition("/")
    both = all(f"{one.name}/{name}" in PYTHON_LIBRARIES for one in EITHER_PYTHON)
    may_run = _libraries(group) - {CLIENTS}
    if library in {one.name for one in EITHER_PYTHON} and both and may_run == {EITHER_PYTHON}:
        return f"python/{name}"
    return assignor


def run_several(group: GroupSpec) -> bool:
    """Returns whether members certainly run several libraries: some two members cannot run the same
    one.
    """
    may_run = [frozenset(one) for one in _libraries(group)]
    return any(one.isdisjoint(other) for one in may_run for other in may_run)


def sure_to_run(group: GroupSpec, names: Sequence[str]) -> list[str]:
    """Returns those of `names` that a member may run, if it certainly runs one of `names`."""
    may_run = [{client.name for client in one} for one in _libraries(group)]
    certain = {name for one in may_run if one.issubset(names) for name in one}
    return [name for name in names if name in certain]


def in_python(group: GroupSpec) -> bool:
    """Returns whether all members certainly run Python libraries, and no two certainly different
    ones.
    """
    may_run = _libraries(group)
    return all({*one} <= {*EITHER_PYTHON} for one in may_run) and not run_several(group)


def lists_eager_plug_in(group: GroupSpec, assignor: str) -> bool:
    """Returns whether the assignor is this project's own, and a member certainly runs aiokafka,
    whose plug-in is eager.
    """
    return bare(assignor) in OURS and (AIOKAFKA,) in _libraries(group)


def who_lists_ours(group: GroupSpec) -> tuple[bool, str]:
    """Returns whether members may list this project's own assignors, which only Python plug-ins
    provide, and the reason in words.
    """
    others = sure_to_run(group, [JAVA.name, LIBRDKAFKA.name])
    if others:
        names = " and ".join(others)
        return (
            False,
            f"{names} cannot list this project's plug-in: brokers would refuse the members",
        )
    if {*EITHER_PYTHON} <= {*clients_of(group)}:
        return False, (
            "kafka-python's plug-in is cooperative and aiokafka's eager: brokers refuse the mix"
        )
    return True, "only kafka-python and aiokafka can list this project's plug-in (docs/balance.md)"


def _libraries(group: GroupSpec) -> set[tuple[ClientLibrary, ...]]:
    return {clients_for(member, group.group_id) for member in group.members}


def unknown_libraries(group: GroupSpec) -> tuple[str, ...]:
    """Returns the unknown names of libraries (of the last leader and of members), each once."""
    named = (group.leader_library, *(member.client_library for member in group.members))
    return tuple(name for name in dict.fromkeys(named) if name and name not in _BY_BYTES)


def library_evidence(member: Member, group_id: str) -> tuple[str, str] | None:
    """Returns a member's library (`client_library`) and the evidence; None if there is none."""
    client = client_of(member, group_id)
    if client is not None:
        return client.name.lower(), f"client id {member.client_id}"
    if member.client_library is None:
        return None
    rack = ", an empty rack" if member.rack_id == "" else ""
    return member.client_library, f"bytes: subscription version {member.version}{rack}"


class Recipe(Frozen):
    """The steps by which members of one client library change to another assignor.

    `way`       "rolling": restart one after another, once for each of `settings`; "stop all": stop
                  all, then start all with the only setting; "none": the client lacks the assignor.
    `settings`  configuration lines, in order; `needs` is the Python import that they require.
    """

    client: str
    way: str
    settings: tuple[str, ...] = ()
    needs: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "settings": list(self.settings)}


def recipe(client: ClientLibrary, old: str, new: str) -> Recipe:
    """Returns the recipe for a change of assignor with this client.

    If only another library has `old`, the recipe begins with this client's assignor of that name.
    One rolling bounce is enough if `old` and `new` share a name in JoinGroup.
    """
    if bare(new) not in client.assignors:
        return Recipe(client.name, "none")
    old = old if bare(old) in client.assignors else protocol_name(old)
    one_name = protocol_name(old) == protocol_name(new)
    refused = not client.joins_once or bare(old) not in client.assignors
    refused = refused or refuses(client, old, new)
    if refused and not one_name:
        return Recipe(client.name, "stop all", (client.setting([new]),), client.needs([new]))
    steps = ([new],) if one_name else ([new, old], [new])
    return Recipe(client.name, "rolling", tuple(map(client.setting, steps)), client.needs(steps[0]))


def remote_recipe(client: ClientLibrary, new: str) -> Recipe:
    """Returns the recipe for a change of the brokers' assignor: one bounce, one setting."""
    return Recipe(client.name, "rolling", (f"group.remote.assignor={protocol_name(new)}",))


def refuses(client: ClientLibrary, *assignors: str) -> bool:
    """Returns whether the client refuses this list because eager and cooperative are mixed."""
    if len({protocol_of(name) for name in assignors}) == 1:
        return False
    own = any(
        name in PYTHON_LIBRARIES and protocol_of(name) is RebalanceProtocol.COOPERATIVE
        for name in assignors
    )
    return own or not client.mixes

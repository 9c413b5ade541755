# SPDX-License-Identifier: Apache-2.0
"""Finds the switches of a plan that need more than a new setting in one member after another."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import (
    BUILT_IN,
    OURS,
    SERVER_SIDE,
    bare,
    protocol_name,
    protocol_of,
)
from kafka_rebalance.errors import shown
from kafka_rebalance.group.model import shell_option
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.clients import (
    AIOKAFKA,
    CLIENTS,
    KAFKA_PYTHON,
    Recipe,
    clients_for,
    recipe,
    run_several,
    sure_to_run,
)
from kafka_rebalance.plans.rebalance_plan import RebalancePlan

from .findings import Note

TOGETHER = "The members run several clients: stop all of them together."


class Switched(NamedTuple):
    """A switch from the assignor `old` to `new`, with a recipe for each client that cannot make it
    by an ordinary rolling restart.
    """

    old: str
    new: str
    recipes: tuple[Recipe, ...]


def switch_notes(plan: RebalancePlan, *, is_own: bool) -> Iterator[Note]:
    """Yields notes on the clients that can make the plan's switches, and on how they make them.
    Lines with settings begin with 5 spaces.

    `is_own` is True if the group runs the plan's assignor: then `compare` shows these switches.
    """
    switch = next((one for one in plan.changes if isinstance(one, SwitchAssignor)), None)
    if switch is None:
        return
    group, made = plan.group, (plan.group, plan.changes, plan.assignor)
    every = (*by_plug_ins(*made), *not_rolling(*made))
    if not every:
        yield _whole_switch(switch, is_own=is_own)
    ways: set[str] = set()
    for old, new in dict.fromkeys((one.old, one.new) for one in every):
        named = (one for one in every if (one.old, one.new) == (old, new))
        recipes = {recipe.client: recipe for one in named for recipe in one.recipes}
        text = f"switch-assignor={new} is planned for members that list both {protocol_name(old)} "
        text += f"and {protocol_name(new)} while they restart one after another."
        lines = [text]
        lacking = [name for name, one in recipes.items() if one.way == "none"]
        if lacks := sure_to_run(group, lacking):
            lines += _refusing([recipes[name] for name in lacks], old, new)
            so = f"So this group cannot switch as long as it has members of {' or '.join(lacks)}."
            yield _switch_note("refused", [*lines, so], old, new, [recipes[name] for name in lacks])
            continue
        ways |= {recipe.way for recipe in recipes.values()}
        if can := [one for one in recipes.values() if one.way == "rolling"]:
            lines += _rolling(can, old, new)
            ask = _whole(new) if is_own and group.assignor == old else None
            if ask:
                lines.append("This has the rebalances and moves of both bounces:")
            yield _switch_note("rolling", lines, old, new, can, ask)
            lines = []
        if cannot := [one for one in recipes.values() if one.way != "rolling"]:
            lines += _refusing(cannot, old, new)
            yield _switch_note("refused", lines, old, new, cannot)
    if "stop all" in ways:
        yield Note("stop all", "\n".join(map(shown, _stop_all(group))))


def _switch_note(
    kind: Literal["rolling", "refused"],
    lines: Iterable[str],
    old: str,
    new: str,
    recipes: Iterable[Recipe],
    ask: str | None = None,
) -> Note:
    detail = {"from": old, "to": new, "recipes": [one.to_dict() for one in recipes]}
    return Note(kind, "\n".join(map(shown, lines)), ask=ask, detail=detail)


def _whole_switch(switch: SwitchAssignor, *, is_own: bool) -> Note:
    new = switch.assignor
    if new in SERVER_SIDE:
        text = f"{switch} is planned as the rebalance in which {new} takes over."
        parts = "the setting, restarts, group epochs and moves"
    else:
        text = f"{switch} is planned as a bounce: each member restarts once, and then lists {new}."
        parts = "settings, restarts, and the rebalances and moves of each bounce"
    if is_own:
        text += f" This command has the whole switch ({parts}):"
    return Note("whole switch", text, ask=_whole(new) if is_own else None)


def _whole(new: str) -> str:
    return f"compare {shell_option('--assignors', new)}"


def _rolling(recipes: Sequence[Recipe], old: str, new: str) -> Iterator[str]:
    yield "These clients can do that:"
    for one in recipes:
        yield way_text(one, old, new)
        for number, setting in enumerate(one.settings, 1):
            yield f"  {number}. restart one member after another with"
            yield from settings_lines(one.needs if number == 1 else None, setting)


def _refusing(recipes: Sequence[Recipe], old: str, new: str) -> Iterator[str]:
    yield "These clients cannot do that:"
    for one in recipes:
        yield from stop_lines(one, old, new)


def _stop_all(group: GroupSpec) -> Iterator[str]:
    if run_several(group):
        yield TOGETHER
    is_static = all(member.group_instance_id is not None for member in group.members)
    yield (
        "If all members stop and start together, the new assignor begins without owned "
        "partitions too"
        + ("." if is_static else ", but from members with new ids: ties may go otherwise.")
    )
    yield from way_back_lines(group.group_id)


def not_rolling(
    group: GroupSpec, changes: Iterable[Change], assignor: str | None = None
) -> tuple[Switched, ...]:
    """Returns the planned switches that some member certainly cannot make by a rolling bounce.

    A member cannot if no client that it may run can do so; the result holds recipes for these
    clients. `assignor` is the assignor when the plan begins; None means the group's.
    """
    may_run = {clients_for(member, group.group_id) for member in group.members}
    found = []
    for old, new in _switches(assignor or group.assignor, changes):
        recipes = {client: recipe(client, old, new) for client in CLIENTS}
        refuse = {client for client, one in recipes.items() if one.way != "rolling"}
        named = {client for clients in may_run if refuse.issuperset(clients) for client in clients}
        if named:
            hard = tuple(one for client, one in recipes.items() if client in named)
            found.append(Switched(old, new, hard))
    return tuple(found)


def by_plug_ins(
    group: GroupSpec, changes: Iterable[Change], assignor: str | None = None
) -> tuple[Switched, ...]:
    """Returns the switches that need this project's plug-ins in members of Python libraries."""
    python = {KAFKA_PYTHON, AIOKAFKA}
    may_run = {clients_for(member, group.group_id) for member in group.members}
    found = [one for one in may_run if KAFKA_PYTHON in one and python.issuperset(one)]
    clients = [client for client in CLIENTS if any(client in one for one in found)]
    return tuple(
        Switched(old, new, tuple(recipe(client, old, new) for client in clients))
        for old, new in _switches(assignor or group.assignor, changes)
        if clients
        and recipe(KAFKA_PYTHON, old, new).way == "rolling"
        and protocol_of(old) is not protocol_of(new)
    )


def _switches(assignor: str | None, changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    """Yields (old, new) for each switch; not for custom assignors, whose settings are unknown."""
    for change in changes:
        if isinstance(change, SwitchAssignor):
            if {assignor, change.assignor} <= {*BUILT_IN, *PYTHON_LIBRARIES}:
                yield assignor or "", change.assignor
            assignor = change.assignor


def way_back_lines(group_id: str) -> Iterator[str]:
    yield (
        "The group keeps its offsets. To keep the old group as a way back, start the members "
        "with a new group id, and copy the offsets while all members are stopped:"
    )
    yield from settings_lines(*copy_commands(group_id))


def copy_commands(group_id: str) -> tuple[str, str]:
    """Returns Kafka's two commands that copy a stopped group's offsets to the group GROUP-2."""
    command = "kafka-consumer-groups.sh --bootstrap-server HOST:9092 --reset-offsets"
    old, new = (shell_option("--group", one) for one in (group_id, f"{group_id}-2"))
    return (
        f"{command} {old} --all-topics --to-current --dry-run --export > offsets.csv",
        f"{command} {new} --from-file offsets.csv --execute",
    )


def way_text(one: Recipe, old: str, new: str) -> str:
    """Returns the heading of a recipe for a rolling bounce, with a warning if kafka-python's own
    class refuses its list.
    """
    bounces = "two rolling bounces" if len(one.settings) == 2 else "one rolling bounce"
    if not {bare(old), bare(new)}.isdisjoint(OURS):
        return f"{_named(one)}: {bounces}, with this project's plug-ins"
    if one.client != "kafka-python" or protocol_of(old) is protocol_of(new):
        return f"{_named(one)}: {bounces}"
    return (
        f"{_named(one)}: {bounces}, with this project's plug-ins: kafka-python's own "
        f"cooperative-sticky class refuses a list of both {protocol_name(old)} and "
        f"{protocol_name(new)} (KafkaConfigurationError)"
    )


def stop_lines(one: Recipe, old: str, new: str) -> Iterator[str]:
    """Yields the lines of a recipe for a client that cannot change by rolling bounces."""
    if one.way == "none":
        kafkas = protocol_name(new)
        (client,) = (client for client in CLIENTS if client.name == one.client)
        lacks = new if kafkas in client.assignors else kafkas
        yield (f"{_named(one)}: not possible, because it has no {lacks}")
        return
    why = f"a list must not contain both {protocol_name(old)} and {protocol_name(new)}"
    if one.client == "aiokafka":
        why = "a member joins once for each assignor in its list"
    yield (f"{_named(one)}: {why}; stop all members, then start all with")
    yield from settings_lines(one.needs, one.settings[0])


def _named(one: Recipe) -> str:
    return "librdkafka (confluent-kafka and others)" if one.client == "librdkafka" else one.client


def settings_lines(*lines: str | None) -> Iterator[str]:
    """Yields each line after 5 spaces: reports do not wrap such lines, so users can copy them."""
    for line in lines:
        for part in (line or "").splitlines():
            yield f"     {part}"

# SPDX-License-Identifier: Apache-2.0
"""Prints how members of each client library switch to another assignor, with settings to paste."""

from kafka_rebalance.assignors.interface import RebalanceProtocol
from kafka_rebalance.assignors.registry import protocol_name, protocol_of
from kafka_rebalance.notes.switches import (
    TOGETHER,
    settings_lines,
    stop_lines,
    way_back_lines,
    way_text,
)
from kafka_rebalance.plans.changes.assignor import is_cooperative
from kafka_rebalance.plans.clients import CLIENTS, Recipe
from kafka_rebalance.switching.migrations import Migration
from kafka_rebalance.switching.rounds import BROKERS_DEFAULT, Bounce

from ..text.sentences import counted, in_words, print_wrapped
from .notes import print_line

_BY_BYTES = "How to switch, for each client library that the members' bytes fit:"
_JAVAS = "they are Java's, which this project's plug-ins for kafka-python and aiokafka send too:"
_ANY = "The broker takes the assignor that most members name; members that name none do not count."
_TIE = (
    "While only two members name an assignor, and each another one, heartbeats make new targets in "
    "turns: do not stop there."
)


def _new_ids(migration: Migration) -> str:
    """Returns a sentence on dynamic members, which get new ids; "" if all members are static."""
    if not migration.dynamic_members:
        return ""
    every = migration.dynamic_members == migration.bounces[0].restarts
    who = "Restarted members" if every else "Restarted members without an instance id"
    return f" {who} get new ids, which break ties: the moves may differ."


def print_migration(migration: Migration, group_id: str) -> None:
    """Prints the cost and the steps for each client library, with settings to paste."""
    ways = {one.way for one in migration.recipes}
    if migration.moves is not None and (not ways or "rolling" in ways):
        what = "bounce" if migration.old == migration.new else "switch"
        print_wrapped(
            f"The {what} itself moves partitions: {counted(migration.moves, 'move')} in all, in "
            f"{counted(migration.rebalances, 'rebalance')}, if the members restart one after "
            f"another.{_new_ids(migration)}"
        )
    if migration.is_by_brokers:
        _print_remote_switch(migration, _cost(migration.bounces[0], migration))
        return
    if not migration.is_known and migration.recipes:
        print_wrapped(_how(migration))
    for one in migration.recipes:
        _print_recipe(one, migration)
    if not migration.recipes:
        for number, bounce in enumerate(migration.bounces, 1):
            print_wrapped(f"{number}. {_cost(bounce, migration)}", "  ", "   ")
    if migration.is_known and len(migration.recipes) > 1 and "stop all" in ways:
        print_wrapped(TOGETHER)
    if "stop all" in ways:
        for line in way_back_lines(group_id):
            print_line(line)


def _print_remote_switch(migration: Migration, cost: str) -> None:
    """Prints the single rolling bounce and its setting; `cost` is a text on its moves."""
    clients = in_words([one.client for one in migration.recipes])
    print_wrapped(f"{f'{clients}: ' if clients else ''}one rolling bounce")
    print_wrapped(f"1. {cost}", "  ", "   ")
    for setting in dict.fromkeys(line for one in migration.recipes for line in one.settings):
        print(f"     {setting}")
    old, new = protocol_name(migration.old), protocol_name(migration.new)
    played = f"that all name {old} now, as brokers by default run uniform if nobody names one."
    if migration.old == BROKERS_DEFAULT:
        played = f"of which none names one now. If all name {old}, {new} "
        played += "takes over when more than half of them name it."
    counted_for = f"Counted for members {played} {_TIE}"
    print_wrapped(f"{_ANY} Brokers do not show who names one. {counted_for}")


def _how(migration: Migration) -> str:
    clients = {one.client for one in migration.recipes}
    if len(clients) == len(CLIENTS):
        return "How to switch depends on the client library, and no client id shows it:"
    return f"{_BY_BYTES} {_JAVAS}" if "Java" in clients else _BY_BYTES


def print_completion(migration: Migration) -> None:
    (bounce,) = migration.bounces
    print_wrapped(
        f"First, one rolling bounce with {protocol_name(migration.new)} alone ends the eager "
        f"rounds: {_counts(bounce)}. The recommendation goes beyond that; its first step replaces "
        "the eager assignor that the members list now."
    )


def _print_recipe(one: Recipe, migration: Migration) -> None:
    if one.way != "rolling":
        for line in stop_lines(one, migration.old, migration.new):
            print_line(line)
        return
    print_wrapped(way_text(one, migration.old, migration.new))
    steps = zip(one.settings, migration.bounces, strict=True)
    for number, (setting, bounce) in enumerate(steps, 1):
        print_wrapped(f"{number}. {_cost(bounce, migration)}", "  ", "   ")
        for line in settings_lines(one.needs if number == 1 else None, setting):
            print_line(line)
    if one.client == "Java" and migration.from_default is not None:
        print_wrapped(
            "Members with Kafka's default list already have both assignors, range first: they need "
            f"only step 2, {_counts(migration.from_default)}.",
            "  ",
        )


def _counts(bounce: Bounce) -> str:
    least = "" if bounce.is_exact else "at least "
    text = f"{counted(bounce.restarts, 'restart')}, {least}"
    text += counted(bounce.rebalances, "rebalance")
    return text if bounce.moves is None else f"{text}, {counted(bounce.moves, 'move')}"


def _cost(bounce: Bounce, migration: Migration) -> str:
    text = _counts(bounce)
    old, new = protocol_name(migration.old), protocol_name(migration.new)
    if migration.is_by_brokers:
        until = f"; {old} assigns until {bounce.takes_over}, then {new} assigns"
        return text + (until if bounce.takes_over else "")
    if bounce.takes_over is not None:
        does = "leaves" if bounce.takes_over.endswith("leaves") else "has returned"
        text += f"; {old} assigns until the last member without {new} {does}, then {new} assigns"
    cooperative = "cooperative-sticky" in (new, old)
    if cooperative and len(bounce.assignors) > 1:
        text += "" if is_cooperative(bounce.assignors) else "; members that list both are eager"
    elif cooperative and new == "cooperative-sticky" and bounce.rebalances:
        text += "; a moving partition is revoked in one rebalance and gained in the next, and only "
        text += "moving partitions have no reader"
        if migration.old == migration.new or protocol_of(migration.old) is RebalanceProtocol.EAGER:
            text += "; members that have not restarted yet still stop all of theirs"
    return text

# SPDX-License-Identifier: Apache-2.0
"""Prints how a group that the broker assigns changes to another assignor of the broker."""

from kafka_rebalance.assignors.registry import protocol_name
from kafka_rebalance.report.text.names import in_words
from kafka_rebalance.switching.migrations import Migration
from kafka_rebalance.switching.remote import BROKERS_DEFAULT

from .plan import print_wrapped

_ANY = "The broker takes the assignor that most members name; members that name none do not count."
_TIE = (
    "While only two members name an assignor, and each another one, heartbeats make new targets in "
    "turns: do not stop there."
)


def print_remote_switch(migration: Migration, cost: str) -> None:
    """Prints the only bounce with its setting; `cost` is the text of its counts."""
    clients = in_words([one.client for one in migration.recipes])
    print_wrapped(f"{f'{clients}: ' if clients else ''}one rolling bounce")
    print_wrapped(f"1. {cost}", "  ", "   ")
    for setting in dict.fromkeys(line for one in migration.recipes for line in one.settings):
        print(f"     {setting}")
    old, new = protocol_name(migration.old), protocol_name(migration.new)
    if migration.old == BROKERS_DEFAULT:
        played = f"Counted for members of which none names one now. If all name {old}, {new} "
        played += f"takes over when more than half of them name it. {_TIE}"
    else:
        played = f"Counted for members that all name {old} now, as brokers by default run uniform"
        played += f" if nobody names one. {_TIE}"
    print_wrapped(f"{_ANY} Brokers do not show who names one. {played}")

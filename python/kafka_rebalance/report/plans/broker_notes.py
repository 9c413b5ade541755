# SPDX-License-Identifier: Apache-2.0
"""Prints the notes on a plan of a group that the broker assigns."""

from kafka_rebalance.notes.broker import broker_notes
from kafka_rebalance.plans import RebalancePlan
from kafka_rebalance.report.text.names import shortened
from kafka_rebalance.report.text.tables import print_table

from .plan import names_in_plan, print_wrapped

_MOST_ROWS = 20


def print_broker_notes(plan: RebalancePlan, *, everything: bool) -> None:
    """Prints each note, and the partitions that end at another member."""
    names = names_in_plan(plan)
    for note in broker_notes(plan):
        print_wrapped(f"{note.kind}: {shortened(note.text, names)}", "", "  ")
        shown = note.moved if everything else note.moved[:_MOST_ROWS]
        if shown:
            rows = [
                (str(tp), *(names.get(one or "", "nobody") for one in who)) for tp, *who in shown
            ]
            # Other ids, which break ties, may give other owners.
            afterwards = "afterwards (a guess)" if plan.made_up else "afterwards"
            print_table(("partition", "now", afterwards), rows, left=(1, 2))
        if len(note.moved) > len(shown):
            print(f"  … and {len(note.moved) - len(shown)} more (--all shows them)")

# SPDX-License-Identifier: Apache-2.0
"""Prints warnings of rebalances in which a librdkafka leader dies, or the group never settles."""

from collections.abc import Iterator, Sequence

from kafka_rebalance.notes.librdkafka_traps import Trap

from .plan import print_wrapped

_MOST = 5
_ENDS = {
    "dies": "the process of a leader with librdkafka dies (SIGSEGV or SIGABRT), and then that of "
    "the next one",
    "never settles": "a leader with librdkafka lets the group rebalance for ever",
}


def print_traps(traps: Sequence[Trap]) -> None:
    """Prints the warnings, or nothing if there is no trap."""
    for text in trap_sentences(traps):
        print_wrapped(text)


def trap_sentences(traps: Sequence[Trap]) -> Iterator[str]:
    for trap in traps:
        if trap.when != "following":
            when = "At the next rebalance" if trap.when == "next" else f"At {trap.change}"
            yield f"WARNING: {when}, {_ENDS[trap.end]} (docs/behaviour/librdkafka.md)."
    for end, text in _ENDS.items():
        changes = [
            trap.change or "" for trap in traps if (trap.end, trap.when) == (end, "following")
        ]
        if changes:
            more = f" and {len(changes) - _MOST} more" if len(changes) > _MOST else ""
            named = "; ".join(changes[:_MOST])
            yield f"WARNING: After {named}{more}, {text} (docs/behaviour/librdkafka.md)."

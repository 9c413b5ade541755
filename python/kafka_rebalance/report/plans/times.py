# SPDX-License-Identifier: Apache-2.0
"""Prints how long a plan takes, as the simulator plays it."""

from typing import TYPE_CHECKING

from kafka_rebalance.report.text.names import counted

from .plan import print_wrapped

if TYPE_CHECKING:
    from kafka_rebalance.simulator.seeds import Spread
    from kafka_rebalance.simulator.timing import Timed

_NO_BOUNDS = (
    "A range shows how the simulated runs differ under these assumptions: it is no bound on a real "
    "group."
)


def print_times(times: "Timed | None", assumed: str) -> None:
    """Prints the times and the assumptions; without times, `assumed` is the reason."""
    if times is None:
        print_wrapped(f"No figures in seconds: {assumed}.")
        return
    unread, settled = _range(times.unread, " partition-seconds"), _range(times.settled, " s")
    print_wrapped(f"Without a reader: {unread}. Longest time until it has settled: {settled}.")
    print_wrapped(f"Simulated, as `simulate --from` does it: {assumed}. {_NO_BOUNDS}")


def median_text(spread: "Spread") -> str:
    return "never" if spread.median is None else seconds_text(spread.median)


def seconds_text(ms: int) -> str:
    return f"{ms / 1000:,.1f}" if ms < 100_000 else f"{ms / 1000:,.0f}"


def _range(spread: "Spread", unit: str) -> str:
    """Returns the median, with the least and the most, and how many runs never settled."""
    if spread.least is None or spread.median is None or spread.most is None:
        return "never"
    least, most = seconds_text(spread.least), seconds_text(spread.most)
    text = seconds_text(spread.median) + unit + ("" if least == most else f" ({least} to {most})")
    return f"{text}, never in {counted(spread.never, 'run')}" if spread.never else text

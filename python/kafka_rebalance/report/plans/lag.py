# SPDX-License-Identifier: Apache-2.0
"""Shows lags; a lag is unknown (`-`) where no offset was committed or no leader answers."""

from kafka_rebalance.present.lag import Lags
from kafka_rebalance.report.text.names import counted

from .plan import its


def lag_cell(lag: int | None) -> str:
    """Returns the lag for a table, or `-` if it is unknown."""
    return "-" if lag is None else f"{lag:,}"


def lag_text(
    lags: Lags, without_committed_offset: int, more: str = "", *, leaderless: int = 0
) -> str:
    """Returns a sentence on the lag of a group; of some partitions, the lag is not known.

    `more` follows the number of partitions with a lag, such as ` of source topics`.
    """
    reasons = ((without_committed_offset, "a committed offset"), (leaderless, "a leader"))
    unknown = [
        f"{counted(count, 'partition')} without {what}: {its(count)} lag is unknown (-), and in no "
        "sum"
        for count, what in reasons
        if count
    ]
    known = f"{counted(sum(lags.values()), 'record')} in {counted(len(lags), 'partition')}{more}"
    return f"Lag: {'; '.join(unknown if unknown and not lags else [known, *unknown])}."

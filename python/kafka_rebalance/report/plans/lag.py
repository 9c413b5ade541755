# SPDX-License-Identifier: Apache-2.0
"""Shows lags; a lag is unknown (`-`) where no offset was committed."""

from kafka_rebalance.plans.lag import Lags
from kafka_rebalance.report.text.names import counted

from .plan import its


def lag_cell(lag: int | None) -> str:
    """Returns the lag for a table, or `-` if it is unknown."""
    return "-" if lag is None else f"{lag:,}"


def lag_text(lags: Lags, without_committed_offset: int, more: str = "") -> str:
    """Returns a sentence on the lag of a group; some of its partitions have no committed offset.

    `more` follows the number of partitions with an offset, such as ` of source topics`.
    """
    count = without_committed_offset
    unknown = f"{counted(count, 'partition')} without a committed offset: {its(count)} lag is "
    unknown += "unknown (-), and in no sum"
    if count and not lags:
        return f"Lag: {unknown}."
    known = f"{counted(sum(lags.values()), 'record')} in {counted(len(lags), 'partition')}{more}"
    return f"Lag: {known}; {unknown}." if count else f"Lag: {known}."

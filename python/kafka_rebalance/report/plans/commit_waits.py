# SPDX-License-Identifier: Apache-2.0
"""Reports that automatic commits delay the rebalance after a topic is deleted."""

from collections.abc import Mapping, Sequence

from kafka_rebalance.notes.commit_waits import CommitWaits
from kafka_rebalance.report.text.names import counted

_MOST_NAMED = 6
_TIMES = {1: "", 2: "up to two times "}


def commit_waits_note(waits: CommitWaits, names: Mapping[str, str]) -> str:
    """Returns the sentences for one group; `names` has the short name of each member."""
    text = f"WARNING: deleting {_listed(waits.topics)} can stop this group."
    if waits.java:
        text += (
            f" With automatic commits (enable.auto.commit, the default), a Java member that holds "
            f"partitions there commits them in vain until {_TIMES[waits.intervals]}"
            "max.poll.interval.ms (5 minutes by default) has passed, and only then joins: "
            f"{_listed([names.get(one, one) for one in waits.java])}. Under an eager assignor, "
            "members that wait read nothing. A member that waits longer than the others is removed "
            "and returns under a new id, in rebalances that are not planned here."
        )
    if waits.aiokafka:
        text += (
            " With automatic commits (enable_auto_commit, the default), aiokafka (0.14.0) commits "
            "there without end, until it restarts: "
            f"{_listed([names.get(one, one) for one in waits.aiokafka])}."
        )
    return f"{text} To avoid it, first let the members unsubscribe, then delete."


def commit_waits_in_groups_note(waits: Sequence[CommitWaits | None]) -> str | None:
    """Returns the sentence below a table of groups; None if no group waits."""
    waiting = [one for one in waits if one is not None]
    if not waiting:
        return None
    return (
        f"WARNING: {counted(len(waiting), 'group')} may not rebalance for minutes, because members "
        "of Java or aiokafka commit offsets of a deleted topic in vain (enable.auto.commit, the "
        "default); --group G prints more."
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

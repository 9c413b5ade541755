# SPDX-License-Identifier: Apache-2.0
"""Warns of groups whose leader may answer differently from Kafka's own assignor.

All figures of a report are those of Kafka's own assignor. But it is unknown which member leads
next, and other client libraries have their own assignors under the names of Kafka's.
"""

from collections import Counter
from collections.abc import Iterable

from kafka_rebalance.assignors.registry import library_of
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.names import counted

_OTHERS = {
    "librdkafka": "librdkafka (confluent-kafka and others)",
    "python": "kafka-python or aiokafka",
}
_DIALECTS = {
    "librdkafka": " The names that begin with librdkafka/ are its own assignors.",
    "python": " The names that begin with kafka-python/ or aiokafka/ are their own assignors.",
}


def leader_note(group: GroupSpec, assignor: str | None) -> str | None:
    """Returns a warning if a member with another library led the group last, else None."""
    library = group.leader_library
    if library in (None, "java") or library_of(assignor):
        return None
    whose = _OTHERS.get(library or "", library)
    return (
        f"The last leader used the assignor of {whose}, whose answers "
        "differ from those of Kafka's assignor with that name. The figures here are true if a Java "
        "member leads, or a member with this project's plug-in."
    ) + _DIALECTS.get(library or "", "")


def leaders_note(libraries: Iterable[str | None]) -> str | None:
    """Returns the warning for many groups: their number, and the libraries that led them last."""
    found = Counter(library for library in libraries if library not in (None, "java"))
    if not found:
        return None
    which = ", ".join(f"{library} {count}" for library, count in sorted(found.items(), key=str))
    return (
        f"{counted(found.total(), 'group')} ({which}) last had a leader with another library's "
        "assignor, whose answers differ from Kafka's. --group G prints details."
    )

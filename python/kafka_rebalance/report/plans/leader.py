# SPDX-License-Identifier: Apache-2.0
"""Whether the answer is that of the group's leader: a word of warning where it may not be.

Every figure is what Kafka's own assignor answers. A leader of another library has an assignor of
its own under the same name, and which member leads next is not known.
"""

from collections import Counter
from collections.abc import Iterable

from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.names import counted

_OTHERS = {
    "librdkafka": "librdkafka (confluent-kafka and its kin)",
    "python": "kafka-python or aiokafka",
}


def leader_note(group: GroupSpec) -> str | None:
    """A warning for a group that another library's assignor led last; None for any other group."""
    library = group.leader_library
    if library in (None, "java"):
        return None
    return (
        f"The last rebalance was led by the assignor of {_OTHERS.get(library or '', library)}, "
        "which answers otherwise than Kafka's of the same name. What is said here holds where "
        "a Java member leads, or one with this project's plug-in."
    )


def leaders_note(libraries: Iterable[str | None]) -> str | None:
    """The note for many groups, by who led them last: how many, and of which libraries."""
    found = Counter(library for library in libraries if library not in (None, "java"))
    if not found:
        return None
    which = ", ".join(f"{library} {count}" for library, count in sorted(found.items(), key=str))
    return (
        f"{counted(found.total(), 'group')} ({which}) were last led by another library's assignor, "
        "which answers otherwise than Kafka's: --group G says more."
    )

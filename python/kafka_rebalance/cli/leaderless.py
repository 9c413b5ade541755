# SPDX-License-Identifier: Apache-2.0
"""Reports partitions that had no leader when a snapshot read them; a plan assigns them anyway.

Only lines have this fact (`topics[].leaderless`): no assignor reads it, so no `GroupSpec` has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_rebalance.group.model import TopicPartition
from kafka_rebalance.report.text.names import counted, partitions_text
from kafka_rebalance.report.text.sentences import print_note

_CHARACTERS_IN_SENTENCE = 60


@dataclass(slots=True)
class Leaderless:
    """The partitions without a leader of each group that has some, by group id."""

    of_group: dict[str | None, list[TopicPartition]] = field(default_factory=dict)

    def note(self, group_id: str | None, line: Any) -> None:
        """Keeps those of a contract line, which need not be a valid one."""
        topics = line.get("topics") if isinstance(line, Mapping) else None
        found = [
            TopicPartition(topic["name"], number)
            for topic in (topics if isinstance(topics, list) else ())
            if isinstance(topic, Mapping) and isinstance(topic.get("name"), str)
            for number in _numbers(topic.get("leaderless"))
        ]
        if found:
            self.of_group[group_id] = found

    def show(self) -> None:
        """Prints a sentence on standard error, if there are such partitions."""
        every = sorted({tp for found in self.of_group.values() for tp in found})
        if not every:
            return
        groups, one = len(self.of_group), len(every) == 1
        who = f"{next(iter(self.of_group))} reads" if groups == 1 else f"{groups} groups read"
        names = partitions_text(every, _CHARACTERS_IN_SENTENCE)
        print_note(
            f"{who} {counted(len(every), 'partition')} without a leader: {names}. Kafka assigns "
            f"{'it' if one else 'them'}, but no member can read {'it' if one else 'them'} until a "
            "replica is back"
        )


def _numbers(value: Any) -> list[int]:
    numbers = value if isinstance(value, list) else []
    return [one for one in numbers if isinstance(one, int) and not isinstance(one, bool)]

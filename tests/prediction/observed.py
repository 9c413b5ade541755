# SPDX-License-Identifier: Apache-2.0
"""All observations of one change, or of a group's start, as JSON.

The judges (`given.py`, `told.py`) use no other data. So a change can be judged again without a
broker: `python -m tests.prediction --again build/prediction/changes.jsonl`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_rebalance import Topic

from . import log

if TYPE_CHECKING:
    from .log import Written

FORMATION = "formation"


@dataclass(frozen=True)
class Inventory:
    """The group's topics in the cluster, valid from `from_ms` until the next inventory."""

    from_ms: int
    topics: tuple[Topic, ...]


@dataclass(frozen=True)
class Observed:
    """The observations of one change.

    `before`      the group's line in the snapshot; None at the group's start or without a snapshot.
    `earlier`     the group's newest record when that line was read.
    `records`     the later records, up to the one in which the group settled.
    `inventories` the topics at several times, in order of time.
    `libraries`   member id -> library, for all members of these records.
    `problem`     why the group has not settled; None if it has.
    """

    group_id: str
    leader: str
    assignor: str
    is_mixed: bool
    event: str
    text: str
    before: dict[str, Any] | None
    earlier: Written | None
    records: tuple[Written, ...]
    inventories: tuple[Inventory, ...]
    libraries: dict[str, str]
    problem: str | None = None

    def to_json(self) -> str:
        fields = {
            "group_id": self.group_id,
            "leader": self.leader,
            "assignor": self.assignor,
            "is_mixed": self.is_mixed,
            "event": self.event,
            "text": self.text,
            "before": self.before,
            "earlier": None if self.earlier is None else log.to_json([self.earlier])[0],
            "records": log.to_json(self.records),
            "inventories": [
                {
                    "from_ms": one.from_ms,
                    "topics": [
                        {"name": topic.name, "partitions": topic.partitions, "racks": topic.racks}
                        for topic in one.topics
                    ],
                }
                for one in self.inventories
            ],
            "libraries": self.libraries,
            "problem": self.problem,
        }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Observed:
        fields = json.loads(text)
        earlier = fields["earlier"]
        fields["earlier"] = None if earlier is None else log.from_json([earlier])[0]
        fields["records"] = log.from_json(fields["records"])
        fields["inventories"] = tuple(
            Inventory(one["from_ms"], tuple(map(_topic, one["topics"])))
            for one in fields["inventories"]
        )
        return cls(**{name: fields[name] for name in cls.__dataclass_fields__})


def _topic(fields: dict[str, Any]) -> Topic:
    racks = fields["racks"]
    return Topic(
        fields["name"],
        fields["partitions"],
        None if racks is None else tuple(map(tuple, racks)),
    )

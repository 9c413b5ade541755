# SPDX-License-Identifier: Apache-2.0
"""Defines `Note`, an observation on a plan or a group, and the kinds of notes on plans.

docs/plans.md has the kinds of notes on a plan, `notes/findings.py` those of `describe`'s findings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import clipped, small_table
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.plans.figures import Reader

from .findings import FindingKind, Severity, see, severity_of

PlanKind = Literal[
    "blocks", "bugs", "commit waits", "delay", "dies", "first join", "foreign", "ignored",
    "interval", "jar", "leader", "lists", "lost rack", "lower bound", "missed", "never settles",
    "new topics", "no answer", "nowhere", "order", "own rows", "owners", "pause", "plug-ins",
    "policy", "poll hangs", "racks", "refused", "rolling", "same place", "steps", "stop all",
    "stops", "tasks", "threads", "tie", "unknown", "warm-up", "whole switch",
]  # fmt: skip


class Note(Frozen):
    """An observation on which a person who runs the group may want to act.

    `text` contains member ids, which reports shorten; the text of "hangs", and of notes with
    recipes, has several lines. `member_ids` and `partitions` are the members and partitions
    concerned. `ask` is the subcommand that shows more, such as "plan" or "compare --assignors
    range", or None. `detail` contains figures for programs, by the kind of the note.
    """

    kind: FindingKind | PlanKind
    text: str
    member_ids: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    ask: str | None = None
    detail: Mapping[str, Any] | None = None

    @property
    def severity(self) -> Severity | None:
        """Returns how bad a finding is; None for a note on a plan."""
        return severity_of(self.kind)

    def __repr__(self) -> str:
        return f"<Note {clipped(f'{self.kind}: {self.text}')}>"

    def _repr_html_(self) -> str:
        columns = ("kind", "members", "partitions", "see")
        see_ = see(self.kind) or ""
        row = (self.kind, ", ".join(self.member_ids), ", ".join(map(str, self.partitions)), see_)
        return small_table("", columns, [row], lambda one: one, self.text)

    def to_dict(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "kind": self.kind,
            "text": self.text,
            "member_ids": list(self.member_ids),
            "partitions": [str(tp) for tp in self.partitions],
            "ask": self.ask,
        }
        if self.severity is not None:
            answer |= {"severity": self.severity, "see": see(self.kind)}
        return answer if self.detail is None else answer | {"detail": dict(self.detail)}


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Returns a text of the first `most` names, and the number of other names."""
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def leaderless_finding(partitions: Iterable[TopicPartition]) -> Iterator[Note]:
    """Yields a finding if `partitions`, which have no leader that answers, is not empty."""
    if named := tuple(partitions):
        text = "no leader answers, so no member can read here, and the lag is unknown"
        yield Note("leaderless", text, partitions=named)


def far_finding(
    topics: Iterable[Topic], readers: Iterable[Reader], ask: str | None = None
) -> Iterator[Note]:
    """Yields a finding if no replica of a partition is in the (known) rack of its reader."""
    racks = {topic.name: topic.racks or () for topic in topics}
    far: list[tuple[str, TopicPartition]] = []
    for member_id, rack, partitions in readers:
        for tp in partitions if rack is not None else ():
            replicas = racks.get(tp.topic, ())[tp.partition : tp.partition + 1]
            known = {one for replica in replicas for one in replica if one is not None}
            if known and rack not in known:
                far.append((member_id, tp))
    if far:
        ids = tuple(dict.fromkeys(member_id for member_id, _ in far))
        text = "no replica is in the rack of the member that reads here"
        yield Note("across racks", text, ids, tuple(tp for _, tp in far), ask)

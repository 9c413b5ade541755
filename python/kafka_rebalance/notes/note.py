# SPDX-License-Identifier: Apache-2.0
"""Defines `Note`, an observation on a plan or a group, and the kinds of notes on plans.

docs/plans.md lists the kinds of notes on a plan, `notes/findings.py` the kinds of `describe`'s
findings.
"""

from collections.abc import Mapping
from typing import Any, Literal

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import clipped, small_table
from kafka_rebalance.group.model import TopicPartition

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

# SPDX-License-Identifier: Apache-2.0
"""A note on a group or a plan; the findings of `describe` are notes on groups of all kinds.

The kinds of the notes on a plan are in docs/plans.md. These are the kinds of findings. Every
finding is computed from the group alone. It is not always a fault: a member may be idle on purpose.

    leaderless    partitions have no leader that answers, so no member can read them
    unread        a member subscribes to the partition's topic, but no member owns the partition;
                  an active task that no member runs
    doubled       several members own the partition, or run the task or connector
    stale         a member owns a partition that does not exist, or does not subscribe to its topic
    idle          members own nothing
    uneven        a more even assignment is possible; with the cause, if it is known
                  (`present/why_uneven.py`)
    far           a member reads partitions of which no replica is in its rack
    missing       members subscribe to a topic that does not exist
    alone         only one member subscribes to a topic
    mixed         members send different versions of the subscription, or use different protocols
    moves         the next rebalance moves partitions, although nothing changes
    hangs         the leader's next rebalance, or one after a simple change, never ends
    eager         every rebalance stops all partitions, although the assignor is cooperative
    foreign       the assignor, or the last leader's version of it, is not one of Kafka's

Groups that the broker assigns also have

    not ready     the broker has not validated the topology
    assigning     the broker has not computed a target since the group changed
    reconciling   members do not have their target yet
    old topology  members run an older version of a Streams application
    no standby    stateful tasks have no standby task, while other stateful tasks have one
    behind        copies of state lack records that their changelogs already have

and groups of Kafka Connect

    waits         the work of a lost worker is held back
    mismatch      the leader had not read the newest configurations
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kafka_rebalance.group.html_tables import clipped
from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.plans.figures import Reader

FindingKind = Literal[
    "leaderless", "unread", "doubled", "stale", "idle", "uneven", "far", "missing", "alone",
    "mixed", "moves", "hangs", "eager", "foreign", "not ready", "assigning", "reconciling",
    "old topology", "no standby", "behind", "waits", "mismatch",
]  # fmt: skip
PlanKind = Literal[
    "blocks", "commit waits", "delay", "dies", "first join", "ignored", "interval", "leader",
    "lists", "lost rack", "lower bound", "missed", "never settles", "new topics", "no answer",
    "order", "own rows", "owners", "pause", "plug-ins", "policy", "poll hangs", "refused",
    "rolling", "same place", "stop all", "stops", "tasks", "threads", "tie", "unknown",
    "warm-up", "whole switch",
]  # fmt: skip
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


@dataclass(frozen=True, slots=True)
class Note:
    """An observation on which a person who runs the group may want to act.

    `text` has member ids, which reports shorten; that of "hangs", and of notes with recipes, has
    several lines. `member_ids` and `partitions` are the members and partitions concerned.
    `ask` is the subcommand that shows more, such as "plan" or "compare --assignors range", or
    None. `detail` has figures for programs, by the kind of the note.
    """

    kind: FindingKind | PlanKind
    text: str
    member_ids: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    ask: str | None = None
    detail: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Note {clipped(f'{self.kind}: {self.text}')}>"

    def to_dict(self) -> dict[str, Any]:
        answer = {
            "kind": self.kind,
            "text": self.text,
            "member_ids": list(self.member_ids),
            "partitions": [str(tp) for tp in self.partitions],
            "ask": self.ask,
        }
        return answer if self.detail is None else answer | {"detail": dict(self.detail)}


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Returns a text of the first `most` names, and the number of the others."""
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
        yield Note("far", text, ids, tuple(tp for _, tp in far), ask)

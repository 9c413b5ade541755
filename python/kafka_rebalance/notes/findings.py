# SPDX-License-Identifier: Apache-2.0
"""Notes on a plan or a group, and the kinds of findings of `describe`: their severity, their order
and their meaning.

`FINDINGS` is the only list: reports sort groups and findings by it, programs read `severity` and
`see` in JSON, and docs/findings.md has a heading for each kind; docs/plans.md lists the kinds of
notes on a plan. A finding is computed from what the group reports. It is not always a fault: a
member may be idle on purpose.

    error      records that nobody reads, or a member cannot do its work
    warning    the group works, but worse than it could, or may not work after the next change
    info       a temporary state, or a fact that has a cost

Notes on a plan have no severity; the text of the worst begins with WARNING.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.html_tables import clipped, small_table
from kafka_rebalance.group.model import TopicPartition

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, worst first."""

FindingKind = Literal[
    "leaderless", "stopped", "unread", "not ready", "hangs", "doubled", "storm", "flapping",
    "idle", "uneven", "overloaded", "stale", "missing", "mixed", "moves", "mismatch", "waits",
    "old topology", "never warm", "no standby", "end points", "rebalancing", "reconciling",
    "assigning", "behind", "eager", "across racks", "one subscriber",
]  # fmt: skip
PlanKind = Literal[
    "blocks", "bugs", "commit waits", "delay", "dies", "first join", "foreign", "ignored",
    "interval", "jar", "leader", "lists", "lost rack", "lower bound", "missed", "never settles",
    "new topics", "no answer", "nowhere", "order", "own rows", "owners", "pause", "plug-ins",
    "policy", "poll hangs", "racks", "refused", "rolling", "same place", "steps", "stop all",
    "stops", "tasks", "threads", "tie", "unknown", "warm-up", "whole switch",
]  # fmt: skip


class Finding(NamedTuple):
    """A kind of finding. `meaning` is one sentence without the final period.

    `groups` is the phrase that follows the number of groups with the finding: "3 uneven", "1 with
    idle members".
    """

    severity: Severity
    groups: str
    meaning: str


FINDINGS: dict[FindingKind, Finding] = {
    "leaderless": Finding("error", "with leaderless partitions",
        "partitions have no leader, so no member can read them"),
    "stopped": Finding("error", "stopped",
        "the group has no members, and a lag"),
    "unread": Finding("error", "with unread partitions",
        "partitions have no reader, though members subscribe to their topics, or because a planned "
        "change leaves no subscriber; or no member runs an active task"),
    "not ready": Finding("error", "not ready",
        "the broker has not validated the topology, so nothing runs"),
    "hangs": Finding("error", "that can hang",
        "the leader's next rebalance, or one after a simple change, never ends"),
    "doubled": Finding("error", "with doubled partitions",
        "several members own the partition, or run the task or connector"),
    "storm": Finding("warning", "in a storm of rebalances",
        "the group rebalances again and again"),
    "flapping": Finding("warning", "with flapping members",
        "a member goes and comes back again and again"),
    "idle": Finding("warning", "with idle members",
        "some members own nothing"),
    "uneven": Finding("warning", "uneven",
        "a more even assignment is possible"),
    "overloaded": Finding("warning", "with an overloaded member",
        "the fullest member carries more load than it must"),
    "stale": Finding("warning", "with stale partitions",
        "a member owns a partition that does not exist, or is not subscribed to"),
    "missing": Finding("warning", "with missing topics",
        "members subscribe to a topic that does not exist"),
    "mixed": Finding("warning", "with mixed members",
        "members send different versions of the subscription, or different protocols"),
    "moves": Finding("warning", "whose next rebalance moves partitions",
        "the next rebalance moves partitions, although nothing changes"),
    "mismatch": Finding("warning", "with a mismatch",
        "the leader had not read the newest configurations"),
    "waits": Finding("warning", "with work held back",
        "the work of a lost worker is held back"),
    "old topology": Finding("warning", "with an old topology",
        "members run an older version of the application"),
    "never warm": Finding("warning", "with stuck warm-ups",
        "warm-ups of a Kafka Streams application do not become caught up, and it probes for ever"),
    "no standby": Finding("warning", "without standby",
        "stateful tasks have no standby task, although one is asked for or others have one"),
    "end points": Finding("warning", "with wrong end points",
        "processes of a Kafka Streams application have no end point, or share one"),
    "rebalancing": Finding("info", "rebalancing",
        "the group is in the middle of a rebalance"),
    "reconciling": Finding("info", "reconciling",
        "members do not have their target yet"),
    "assigning": Finding("info", "assigning",
        "the broker has not computed a target since the group changed"),
    "behind": Finding("info", "with copies behind",
        "copies of state lack records that their changelogs already have"),
    "eager": Finding("info", "eager",
        "every rebalance leaves all partitions without a reader, "
        "though the assignor is cooperative"),
    "across racks": Finding("info", "reading across racks",
        "a member reads partitions of which no replica is in its rack"),
    "one subscriber": Finding("info", "with a topic of one subscriber",
        "only one member subscribes to a topic"),
}  # fmt: skip
"""Each kind's severity and meaning; worst first."""

_RANKS = {kind: rank for rank, kind in enumerate(FINDINGS)}
PAGE = "docs/findings.md"


def rank(kind: str) -> int:
    """Returns a kind's index in `FINDINGS`, 0 for the worst; for kinds of notes on plans, a number
    above all these.
    """
    return _RANKS.get(kind, len(_RANKS))  # type: ignore[call-overload, no-any-return]


def severity_of(kind: str) -> Severity | None:
    """Returns the severity of a kind of finding; None for a kind of note on a plan."""
    found = FINDINGS.get(kind)  # type: ignore[call-overload]
    return None if found is None else found.severity


def see(kind: str) -> str | None:
    """Returns the link into the docs for a kind of finding; None for a kind of note on a plan."""
    return f"{PAGE}#{kind.replace(' ', '-')}" if kind in FINDINGS else None


def summary(group_id: str, texts: Mapping[Any, str], *, empty: bool = False) -> str:
    """Returns a sentence: the meanings of the kinds in `texts`, worst first; for "idle", its text
    instead of the meaning.
    """
    told = [
        texts[kind] if kind == "idle" else one.meaning.partition(";")[0]
        for kind, one in FINDINGS.items()
        if kind in texts
    ]
    fine = "it has no members" if empty else "nothing is wrong"
    return f"{group_id}: {'; '.join(told) or fine}."


def with_worse(names: Collection[str]) -> Sequence[Severity]:
    """Returns the severities in `names`, and those that are worse."""
    worst = max((SEVERITIES.index(one) for one in SEVERITIES if one in names), default=-1)
    return SEVERITIES[: worst + 1]


class Note(Frozen):
    """An observation on which a person who runs the group may want to act.

    `text` contains member ids, which reports shorten; the text of "hangs", of "bugs" and of notes
    with recipes has several lines. `member_ids` and `partitions` are the members and partitions
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

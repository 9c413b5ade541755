# SPDX-License-Identifier: Apache-2.0
"""The findings of `describe`: their severity, their order and their meaning.

This is the only list. Reports sort groups and findings by it, programs read `severity` and `see`
in JSON, and docs/findings.md has a heading for each kind. A finding is computed from what the
group shows. It is not always a fault: a member may be idle on purpose.

    error      records wait and nobody reads them, or a member cannot do what it should
    warning    the group works, but less well than it could, or not for sure after the next change
    info       a state that passes, or a fact that costs something
"""

from typing import Literal, NamedTuple, get_args

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, worst first."""

FindingKind = Literal[
    "leaderless", "stopped", "unread", "not ready", "hangs", "doubled", "storm", "flapping",
    "idle", "uneven", "stale", "missing", "mixed", "moves", "mismatch", "waits", "old topology",
    "no standby", "rebalancing", "reconciling", "assigning", "behind", "eager", "far", "alone",
]  # fmt: skip


class Finding(NamedTuple):
    """A kind of finding. `meaning` is one sentence without a full stop."""

    severity: Severity
    meaning: str


FINDINGS: dict[FindingKind, Finding] = {
    "leaderless": Finding("error", "partitions have no leader, so no member can read them"),
    "stopped": Finding("error", "the group has no members, and records wait"),
    "unread": Finding(
        "error",
        "a member subscribes to the partition's topic, but no member owns the partition; or no "
        "member runs an active task",
    ),
    "not ready": Finding("error", "the broker has not validated the topology, so nothing runs"),
    "hangs": Finding(
        "error", "the leader's next rebalance, or one after a simple change, never ends"
    ),
    "doubled": Finding("error", "several members own the partition, or run the task or connector"),
    "storm": Finding("warning", "the group rebalances again and again"),
    "flapping": Finding("warning", "a member goes and comes back again and again"),
    "idle": Finding("warning", "members own nothing"),
    "uneven": Finding("warning", "a more even assignment is possible"),
    "stale": Finding(
        "warning", "a member owns a partition that does not exist, or is not subscribed to"
    ),
    "missing": Finding("warning", "members subscribe to a topic that does not exist"),
    "mixed": Finding(
        "warning", "members send different versions of the subscription, or different protocols"
    ),
    "moves": Finding("warning", "the next rebalance moves partitions, although nothing changes"),
    "mismatch": Finding("warning", "the leader had not read the newest configurations"),
    "waits": Finding("warning", "the work of a lost worker is held back"),
    "old topology": Finding("warning", "members run an older version of the application"),
    "no standby": Finding(
        "warning", "stateful tasks have no standby task, while other stateful tasks have one"
    ),
    "rebalancing": Finding("info", "the group is in the middle of a rebalance"),
    "reconciling": Finding("info", "members do not have their target yet"),
    "assigning": Finding("info", "the broker has not computed a target since the group changed"),
    "behind": Finding("info", "copies of state lack records that their changelogs already have"),
    "eager": Finding(
        "info", "every rebalance stops all partitions, although the assignor is cooperative"
    ),
    "far": Finding("info", "a member reads partitions of which no replica is in its rack"),
    "alone": Finding("info", "only one member subscribes to a topic"),
}
"""Kind -> severity and meaning; worst first."""

_RANKS = {kind: rank for rank, kind in enumerate(FINDINGS)}
PAGE = "docs/findings.md"


def rank(kind: str) -> int:
    """Returns the place of a kind in `FINDINGS`, from 0 for the worst; other kinds come last."""
    return _RANKS.get(kind, len(_RANKS))  # type: ignore[call-overload, no-any-return]


def severity_of(kind: str) -> Severity | None:
    """Returns the severity of a kind of finding; None for other notes."""
    found = FINDINGS.get(kind)  # type: ignore[call-overload]
    return None if found is None else found.severity


def see(kind: str) -> str | None:
    """Returns the place in the docs that explains a kind of finding; None for other notes."""
    return f"{PAGE}#{kind.replace(' ', '-')}" if kind in FINDINGS else None

# SPDX-License-Identifier: Apache-2.0
"""All groups of a cluster, in the order in which a person should look at them.

Order    the worst finding first (`notes/findings.py`), then the largest lag, then the name.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import counted
from kafka_rebalance.notes.findings import FINDINGS, FindingKind, Note, rank, with_worse
from kafka_rebalance.plans.group_kinds import CLASSIC, protocol_kind

from .broker_assigned import Lags, lag_in
from .description import Description, worst_first

if TYPE_CHECKING:
    from .connect_workers import ConnectGroup

Order = Literal["severity", "lag", "members", "name"]
EMPTY = ("Empty", "Dead")
_PATTERNS = ("storm", "flapping", "never warm")
_BY_STATE: dict[str, FindingKind] = {
    "NotReady": "not ready",
    "Reconciling": "reconciling",
    "Assigning": "assigning",
}
_STATE = re.compile(r"state: (\w+), it (?:has no members|is rebalancing)")


class TriagedGroup(Frozen):
    """A group of a cluster with its findings.

    `described` is None for a group without members, or in the middle of a rebalance; its `lag` is
    then the lag of all partitions with a committed offset. `group_type` is "classic", "consumer",
    "share", "streams" or "connect"; None if unknown. `rebalances`, if requested, are counted over
    the period that `counted_in` names: the log's last hour, or the time between two descriptions.
    """

    group_id: str
    group_type: str | None
    state: str
    findings: tuple[Note, ...]
    lag: int | None = None
    described: "Description | ConnectGroup | None" = None
    rebalances: int | None = None
    counted_in: str = ""

    @classmethod
    def of(cls, one: "Description | ConnectGroup", state: str = "Stable") -> "TriagedGroup":
        """Returns the row of a described group; `state` is its state in the coordinator's list of
        groups.
        """
        if not isinstance(one, Description):
            return cls(one.group_id, "connect", one.state, one.findings, None, one)
        kind = CLASSIC if one.group.assignor is None else protocol_kind(one.group.assignor)
        found = one.findings
        if state in _BY_STATE and kind != CLASSIC:
            finding = _BY_STATE[state]
            found = worst_first((*found, Note(finding, FINDINGS[finding].meaning)))
        return cls(one.group.group_id, kind, state, found, one.lag, one)

    @classmethod
    def undescribed(
        cls, group_id: str, group_type: str | None, state: str, lags: Lags | None = None
    ) -> "TriagedGroup":
        """Returns the row of a group without members or in a rebalance; its state and lag decide
        the findings.
        """
        lag, findings = lag_in(lags, lags or ()), list[Note]()
        if state not in EMPTY:
            findings.append(Note("rebalancing", f"{state}; look again when it is Stable"))
        elif lag:
            text = f"the group has no members, and a lag of {lag:,}"
            waiting = tuple(tp for tp, behind in (lags or {}).items() if behind)
            findings.append(Note("stopped", text, partitions=waiting))
        return cls(group_id, group_type, state, tuple(findings), lag)

    @property
    def members(self) -> int | None:
        """Returns the number of members; None during a rebalance."""
        if self.described is None:
            return 0 if self.state in EMPTY else None
        if isinstance(self.described, Description):
            return len(self.described.group.members)
        return len(self.described.workers)

    @property
    def worst(self) -> str | None:
        """Returns the kind of the worst finding; None without findings."""
        return min((one.kind for one in self.findings), key=rank, default=None)

    def to_dict(self) -> dict[str, Any]:
        known = {"group_id": self.group_id, "group_type": self.group_type, "state": self.state}
        described = {"lag": self.lag} if self.described is None else self.described.to_dict()
        return {**known, **described, "findings": [one.to_dict() for one in self.findings]}


def with_patterns(groups: Iterable[TriagedGroup], patterns: Iterable[Any]) -> list[TriagedGroup]:
    """Returns the groups; a pattern (from `history`) of a kind in `_PATTERNS` is added as a
    finding.
    """
    found: dict[str, list[Note]] = {}
    for one in patterns:
        if one.kind in _PATTERNS:
            text = f"{one.told}; {one.instead}" if one.instead else one.told
            found.setdefault(one.group_id, []).append(Note(one.kind, text, ask="history"))
    return [
        replace(one, findings=worst_first((*one.findings, *found.get(one.group_id, ()))))
        for one in groups
    ]


def state_in(error: str) -> str | None:
    """Returns the state that an error text names: no members, or a rebalance; else None."""
    found = _STATE.match(error)
    return None if found is None else found[1]


def in_order(groups: Iterable[TriagedGroup], order: Order = "severity") -> list[TriagedGroup]:
    """Returns the groups sorted: worst first, largest lag first, most members first, or by name."""

    def key(one: TriagedGroup) -> tuple[Any, ...]:
        lag, members = -(one.lag or 0), -(one.members or 0)
        worst = rank(one.worst or "")
        first = {"severity": worst, "lag": lag, "members": members, "name": 0}[order]
        more = (first, worst, lag, -len(one.findings), one.group_id)
        return (first, one.group_id) if order == "name" else more

    return sorted(groups, key=key)


def with_any(groups: Iterable[TriagedGroup], only: Collection[str]) -> list[TriagedGroup]:
    """Returns the groups that have a finding of a kind or severity in `only`, or a worse severity.

    With "empty" in `only`, the groups without members are among them.
    """
    meant = {kind for kind, one in FINDINGS.items() if one.severity in with_worse(only)}
    return [
        one
        for one in groups
        if not {*meant, *only}.isdisjoint(finding.kind for finding in one.findings)
        or ("empty" in only and one.state in EMPTY)
    ]


def summary(groups: Sequence[TriagedGroup]) -> str:
    """Returns a sentence such as `300 groups: 1 stopped (lag 5,000), 1 uneven, 298 well.`

    Each group counts once, for its worst finding; the sentence states this if a group has others.
    Groups without members and without a lag are counted separately.
    """
    counts = Counter(one.worst for one in groups if one.findings)
    parts = []
    for kind in sorted(counts, key=lambda kind: rank(kind or "")):
        told = f"{counts[kind]:,} {FINDINGS[kind].groups}"  # type: ignore[index]
        if kind == "stopped":
            told += f" (lag {sum(one.lag or 0 for one in groups if one.worst == kind):,})"
        parts.append(told)
    empty = sum(one.state in EMPTY and not one.findings for one in groups)
    well = len(groups) - sum(counts.values()) - empty
    parts += [f"{empty:,} without members"] if empty else []
    parts += [f"{well:,} well"] if well or not parts else []
    is_more = any(len({note.kind for note in one.findings}) > 1 for one in groups)
    by = ", each by its worst finding" if is_more and len(groups) > 1 else ""
    return f"{counted(len(groups), 'group')}{by}: {', '.join(parts)}."

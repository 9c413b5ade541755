# SPDX-License-Identifier: Apache-2.0
"""The problems of groups and of clients' settings, and which of them fail a check.

A problem is a finding of `describe` (`notes/findings.py`), a limit that a group or a planned change
exceeds, or a rule that settings break (`settings/rules.py`). A baseline lists problems that were
known before: they are shown, but do not fail. A problem is the same one again if its group (or its
file) and its kind are the same.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import counted
from kafka_rebalance.notes.findings import FINDINGS, SEVERITIES, Severity, rank, see
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.present.description import Description
from kafka_rebalance.present.triage import TriagedGroup
from kafka_rebalance.settings.rule import Breach
from kafka_rebalance.settings.rules import RULES

_PAGE = "docs/in-ci.md#limits"


class CheckLimits(NamedTuple):
    """The largest values that pass; None: no limit. The names are those of the options.

    lag     records that are not yet consumed, of a group
    spread  partitions by which the fullest member and the emptiest may differ, above the least
            possible difference
    moves   partitions that change their member because of the planned change
    stops   partitions that have no reader for a time because of the planned change
    """

    lag: int | None = None
    spread: int | None = None
    moves: int | None = None
    stops: int | None = None


LIMITS: dict[str, str] = {
    "lag": "records that a group has not consumed yet",
    "spread": "partitions between the fullest member and the emptiest, above what is unavoidable",
    "moves": "partitions that the planned change moves",
    "stops": "partitions that have no reader for a time because of the planned change",
}
"""Each limit, with its sentence in the help."""
OVER_LIMIT = {f"max-{name}": f"more {meaning} than the limit" for name, meaning in LIMITS.items()}
"""The kind of a problem above a limit, named as the option -> its meaning."""


class Problem(NamedTuple):
    """A finding, an exceeded limit, a rule that settings break, or input that cannot be read.

    The kind of the last one is `error`. For settings, `group_id` is the file (and the document in
    it); `file` and `line` are the place that is wrong.
    """

    group_id: str
    kind: str
    severity: Severity
    text: str
    see: str
    is_known: bool = False
    file: str | None = None
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


def of_settings(one: Breach) -> Problem:
    """Returns the problem of a client's settings, with what the simulator played."""
    rule, client = one.rule, one.client
    text = one.text if one.played is None else f"{one.text}; {one.played}"
    where = client.file, one.line
    return Problem(client.place, rule.id, rule.severity, text, rule.see, False, *where)


def of_group(group: TriagedGroup, limits: CheckLimits) -> Iterator[Problem]:
    """Yields the findings of a group and the limits that its present state exceeds."""
    group_id, one = group.group_id, group.described
    for note in group.findings:
        if note.severity is not None:
            yield Problem(group_id, note.kind, note.severity, note.text, see(note.kind) or "")
    yield from _above(group_id, "lag", group.lag, limits.lag, "record")
    if isinstance(one, Description):
        spread = (one.balance.max - one.balance.min) - (one.possible.max - one.possible.min)
        yield from _above(group_id, "spread", spread, limits.spread, "partition")


def of_plan(plan: RebalancePlan, limits: CheckLimits) -> Iterator[Problem]:
    """Yields what is wrong with a group after a planned change, and what the change costs."""
    figures, group_id = plan.figures(), plan.group.group_id
    if not figures.settled:
        text = "after the change, the group never settles: partitions move for ever"
        yield Problem(group_id, "hangs", FINDINGS["hangs"].severity, text, see("hangs") or "")
    if idle := plan.after.counts().count(0):
        gets = f"{idle} of {counted(len(plan.after.counts()))} would get nothing"
        yield Problem(group_id, "idle", FINDINGS["idle"].severity, gets, see("idle") or "")
    after, possible = figures.balance_after, figures.balance_possible
    if after.max - after.min > possible.max - possible.min:
        text = f"{after.least_to_most} partitions a member, {possible.least_to_most} is possible"
        yield Problem(group_id, "uneven", FINDINGS["uneven"].severity, text, see("uneven") or "")
    yield from _above(group_id, "moves", figures.moves, limits.moves, "partition")
    yield from _above(group_id, "stops", figures.unavailable, limits.stops, "partition")


def _above(
    group_id: str, kind: str, value: int | None, limit: int | None, noun: str
) -> Iterator[Problem]:
    if value is not None and limit is not None and value > limit:
        text = f"{counted(value, noun)}, above the limit of {limit}"
        yield Problem(group_id, f"max-{kind}", "error", text, _PAGE)


class Verdict(NamedTuple):
    """All problems, worst first, and the number of groups that were checked."""

    groups: int
    problems: tuple[Problem, ...]
    fail_on: frozenset[str]
    noun: str = "group"

    @classmethod
    def of(
        cls,
        groups: int,
        problems: Iterable[Problem],
        fail_on: Collection[str] = ("error",),
        known: Collection[tuple[str, str]] = (),
        noun: str = "group",
    ) -> "Verdict":
        """Sorts problems by severity, kind and group; `known` are (group_id, kind) of a baseline.

        `fail_on` names kinds and severities. "warning" includes errors, "info" includes both.

        Errors   GroupError at `fail-on` for a name that is neither.
        """
        named = set(fail_on)
        kinds = [*SEVERITIES, *FINDINGS, *(rule.id for rule in RULES)]
        for name in named - {*kinds}:
            near = "".join(f"; did you mean {one}?" for one in get_close_matches(name, kinds, 1))
            some = f"{', '.join(SEVERITIES)}, or a kind in docs/findings.md or docs/settings.md"
            raise GroupError("fail-on", f"{quoted(name)} is not {some}{near}")
        for severity in named & {*SEVERITIES}:
            named |= {*SEVERITIES[: SEVERITIES.index(severity) + 1]}
        marked = (one._replace(is_known=(one.group_id, one.kind) in known) for one in problems)
        order = sorted(marked, key=lambda one: (*_place(one), one.group_id))
        return cls(groups, tuple(order), frozenset(named), noun)

    def fails(self, one: Problem) -> bool:
        """Returns whether this problem fails the check: a limit or an unreadable group always."""
        is_meant = one.kind in {*OVER_LIMIT, "error"} or not self.fail_on.isdisjoint(
            {one.kind, one.severity}
        )
        return is_meant and not one.is_known

    @property
    def failures(self) -> list[Problem]:
        return [one for one in self.problems if self.fails(one)]

    @property
    def summary(self) -> str:
        """Returns the verdict in words."""
        if not self.groups:
            return f"Nothing was checked: there is no {self.noun}."
        groups, failures = counted(self.groups, self.noun), self.failures
        others = len(self.problems) - len(failures)
        noted = "other problem" if failures else "problem"
        more = f"; {counted(others, noted)} noted" if others else ""
        if not failures:
            return f"Passed: {groups} checked{more}."
        kinds = Counter(one.kind for one in failures)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        failing = counted(len({one.group_id for one in failures}), self.noun)
        return f"Failed: {failing} of {self.groups} ({counts}){more}."

    def to_dict(self) -> dict[str, Any]:
        problems: Sequence[Problem] = self.problems
        return {
            "summary": self.summary,
            f"{self.noun}s": self.groups,
            "failed": bool(self.failures),
            "problems": [{**one.to_dict(), "fails": self.fails(one)} for one in problems],
        }


def _place(one: Problem) -> tuple[int, int]:
    return SEVERITIES.index(one.severity), rank(one.kind)

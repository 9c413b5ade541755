# SPDX-License-Identifier: Apache-2.0
"""The problems of groups and of clients' settings, and whether these make a check fail.

A problem is a finding of `describe` (`notes/findings.py`), a limit that a group or a planned change
exceeds, a rule that settings break (`settings/rules.py`), a difference from a planned switch, or an
error. A baseline lists problems that were known before: they are shown, but do not make the check
fail. A problem is known if the baseline lists a problem of its kind for the same group (or file).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError, did_you_mean
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import counted, first_of
from kafka_rebalance.notes.findings import FINDINGS, SEVERITIES, Severity, rank, see, with_worse
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.summary import is_not_known, nobody_reads
from kafka_rebalance.present.description import Description
from kafka_rebalance.present.readers import overloaded
from kafka_rebalance.present.triage import TriagedGroup
from kafka_rebalance.settings.rule import Breach
from kafka_rebalance.settings.rules import RULES

LIMITS: dict[str, str] = {
    "lag": "records that a group has not consumed yet",
    "spread": "partitions between the fullest member and the emptiest, above what is unavoidable",
    "rebalances-per-hour": "rebalances of a group in the last hour",
    "moves": "moves that the planned change makes",
    "stops": "partitions that have no reader for a time because of the planned change",
}
"""Each limit (its option is --max-NAME) -> its meaning, for the help; the first word is the unit.
"""

SWITCHED = "switched"
"""The kind of the problem that a group differs from the end of its planned switch."""


class ProblemKind(NamedTuple):
    """The severity and the meaning of a kind of problem. `see` is the page that explains it."""

    severity: Severity
    meaning: str
    see: str


NOT_KNOWN = "not known"
"""The kind of the problem that a plan cannot show what a lost rack does: no member's rack is known.
"""
_LEFT_OUT = ("rebalancing", NOT_KNOWN)

ERROR = "error"
"""The kind of the problem that an input cannot be read, or that a group cannot be planned."""
OVER_LIMIT = {
    f"max-{name}": ProblemKind("error", f"more {meaning} than the limit", "docs/in-ci.md#limits")
    for name, meaning in LIMITS.items()
}
KINDS = {
    **{
        kind: ProblemKind(one.severity, one.meaning, see(kind) or "")
        for kind, one in FINDINGS.items()
    },
    **{one.id: ProblemKind(one.severity, one.meaning, one.see) for one in RULES},
    **OVER_LIMIT,
    SWITCHED: ProblemKind(
        "error",
        "the group is not what the plan of its switch has",
        "docs/to-the-consumer-protocol.md",
    ),
    NOT_KNOWN: ProblemKind("warning", "what the change does is not known", "docs/in-ci.md"),
    ERROR: ProblemKind("error", "the input cannot be read", "docs/contract.md"),
}


class Problem(NamedTuple):
    """A problem of a group or a client; a client's `group_id` names its file (and the document).

    `file` and `line` locate the problem.
    """

    group_id: str
    kind: str
    severity: Severity
    text: str
    see: str
    is_known: bool = False
    file: str | None = None
    line: int | None = None

    @classmethod
    def of(cls, group_id: str, kind: str, text: str, page: str = "") -> "Problem":
        known = KINDS[kind]
        return cls(group_id, kind, known.severity, text, page or known.see)

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


def of_settings(one: Breach) -> Problem:
    """Returns the problem of a client's settings, with the simulator's result, if any."""
    text = one.text if one.played is None else f"{one.text}; {one.played}"
    found = Problem.of(one.client.place, one.rule.id, text)
    return found._replace(file=one.client.file, line=one.line)


def of_group(group: TriagedGroup, limits: Mapping[str, int]) -> Iterator[Problem]:
    """Yields a group's findings with a severity, and the limits that its present state exceeds."""
    for note in group.findings:
        if note.severity is not None:
            helps = "; `compare` shows what helps" if note.kind in ("idle", "uneven") else ""
            yield Problem.of(group.group_id, note.kind, f"{note.text}{helps * bool(note.ask)}")
    figures = {"lag": group.lag, "rebalances-per-hour": group.rebalances}
    if isinstance(one := group.described, Description):
        spread = (one.balance.max - one.balance.min) - (one.possible.max - one.possible.min)
        figures["spread"] = spread
    for found in _above(group.group_id, figures, limits):
        is_rate = found.kind == "max-rebalances-per-hour"
        yield found._replace(text=f"{found.text} ({group.counted_in})") if is_rate else found


class SwitchPlan(NamedTuple):
    """A group's state at the end of its planned switch, and its members' ids before the switch."""

    assignor: str
    members: int
    fewest: int
    most: int
    before: frozenset[str]

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> "SwitchPlan | None":
        """Reads a line of `plan --json`; None for an error, or a reason, in place of a plan."""
        try:
            after, members = line["balance_after"], len(line["assignment"])
            before = frozenset(line["members"])
            return cls(line["assignor_after"], members, after["min"], after["max"], before)
        except (KeyError, TypeError):
            return None


def of_switch(group: TriagedGroup, planned: SwitchPlan) -> Iterator[Problem]:
    """Yields the differences between a group and the end of `planned`."""
    if not isinstance(one := group.described, Description):
        yield Problem.of(group.group_id, SWITCHED, f"its state is {group.state}")
        return
    ids = [member.member_id for member in one.group.members]
    for what, found, told in (
        ("assignor", one.group.assignor, planned.assignor),
        ("members", len(ids), planned.members),
        ("fewest partitions of a member", one.balance.min, planned.fewest),
        ("most partitions of a member", one.balance.max, planned.most),
    ):
        if found != told:
            yield Problem.of(group.group_id, SWITCHED, f"{what}: {found}; in the plan {told}")
    if left := [member_id for member_id in ids if member_id in planned.before]:
        text = f"{first_of(left, 3)}: not restarted since the plan"
        yield Problem.of(group.group_id, SWITCHED, text)


def of_plan(plan: RebalancePlan, limits: Mapping[str, int]) -> Iterator[Problem]:
    """Yields a group's problems after planned changes, and the limits that the changes exceed."""
    figures, group_id, counts = plan.figures(), plan.group.group_id, plan.after.counts()
    if is_not_known(plan):
        yield Problem.of(group_id, NOT_KNOWN, plan.summary.removeprefix("Not known: "))
    if text := nobody_reads(plan.unsubscribed):
        yield Problem.of(group_id, "unread", text)
    if not figures.settled:
        text = "after the change, the group is never stable: partitions move for ever"
        yield Problem.of(group_id, "hangs", text)
    if idle := counts.count(0):
        yield Problem.of(group_id, "idle", f"{idle} of {counted(len(counts))} would get nothing")
    after, possible = figures.balance_after, figures.balance_possible
    if after.max - after.min > possible.max - possible.min:
        text = f"{after.least_to_most} partitions per member, {possible.least_to_most} is possible"
        yield Problem.of(group_id, "uneven", text)
    for note in overloaded(plan.final, plan.after, plan.engine):
        yield Problem.of(group_id, note.kind, note.text)
    costs = {"moves": figures.moves, "stops": figures.unavailable}
    yield from _above(group_id, costs, limits)


def _above(
    group_id: str, figures: Mapping[str, int | None], limits: Mapping[str, int]
) -> Iterator[Problem]:
    for name, value in figures.items():
        if value is not None and value > limits.get(name, value):
            noun, limit = LIMITS[name].partition("s ")[0], f"above the limit of {limits[name]:,}"
            silent = " without a reader" * (name == "stops")
            text = f"{value:,} {noun}{'s' * (value != 1)}{silent}, {limit}"
            yield Problem.of(group_id, f"max-{name}", text)


class Verdict(NamedTuple):
    """All problems, worst first, and the number of groups (or other `noun`) in the input."""

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
        """Returns the verdict on problems, sorted by severity, kind and group; `known` are the
        (group_id, kind) of a baseline's problems.

        `fail_on` names kinds and severities. "warning" includes errors, "info" includes both.

        Errors   GroupError at `fail-on` for a name that is neither.
        """
        named, kinds = {*fail_on}, [*SEVERITIES, *KINDS]
        for name in named.difference(kinds):
            some = f"{', '.join(SEVERITIES)}, or a kind in docs/findings.md or docs/settings.md"
            problem = f"{quoted(name)} is not {some}{did_you_mean(name, kinds, 0.6)}"
            raise GroupError("fail-on", problem)
        marked = (one._replace(is_known=(one.group_id, one.kind) in known) for one in problems)
        order = sorted(
            marked,
            key=lambda one: (SEVERITIES.index(one.severity), rank(one.kind), one.group_id),
        )
        always = (*OVER_LIMIT, ERROR)
        return cls(groups, tuple(order), frozenset({*named, *with_worse(named), *always}), noun)

    def fails(self, one: Problem) -> bool:
        """Returns whether this problem fails the check: limits and errors do, unless known."""
        return not one.is_known and not self.fail_on.isdisjoint((one.kind, one.severity))

    @property
    def failures(self) -> list[Problem]:
        return [one for one in self.problems if self.fails(one)]

    @property
    def checked(self) -> int:
        """Returns the number of groups minus those that are rebalancing or "not known"."""
        return self.groups - sum(one.kind in _LEFT_OUT for one in self.problems)

    @property
    def summary(self) -> str:
        """Returns the verdict as a sentence."""
        if not self.groups:
            return f"Nothing was checked: there is no {self.noun}."
        failures, counts = self.failures, Counter(one.kind for one in self.problems)
        noted = Counter(one.severity for one in self.problems if not self.fails(one))
        others = [counted(noted[one], one) for one in SEVERITIES if noted[one]]
        if not failures:
            left = f"; {', '.join(others)}" if others else ""
            left += ", no errors" if others and not noted["error"] else ""
            groups = f"{counted(self.groups, self.noun)} checked"
            if self.checked < self.groups:
                left_out = [(kind, counts[kind]) for kind in _LEFT_OUT if counts[kind]]
                why = [f"{n} {'is' if n == 1 else 'are'} {kind}" for kind, n in left_out]
                if self.checked and counts[NOT_KNOWN]:
                    why += [f'which only --fail-on "{NOT_KNOWN}" fails']
                groups = f"{self.checked} of {groups} ({', '.join(why)})"
            passed = "Passed" if self.checked else "Nothing was checked (exit code 3)"
            return f"{passed}: {groups}{left}."
        more = f"; also {', '.join(others)}" if others else ""
        more += f"; {counts[NOT_KNOWN]} not known" if counts[NOT_KNOWN] else ""
        kinds = Counter(one.kind for one in failures)
        each = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        failing = counted(len({one.group_id for one in failures}), self.noun)
        return f"Failed: {failing} of {self.groups} ({each}){more}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "summary": self.summary,
            f"{self.noun}s": self.groups,
            "failed": bool(self.failures),
            "problems": [{**one.to_dict(), "fails": self.fails(one)} for one in self.problems],
        }

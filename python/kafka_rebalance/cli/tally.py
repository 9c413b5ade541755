# SPDX-License-Identifier: Apache-2.0
"""Counts a command's groups, for the lines below its report and for its exit code."""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from kafka_rebalance.assignors.registry import FOREIGN, STREAM
from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group import contract
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import first_of
from kafka_rebalance.notes.grown_sources import STOPS
from kafka_rebalance.plans.affected import is_already
from kafka_rebalance.plans.group_kinds import NOT_PLAYED
from kafka_rebalance.report.text.sentences import counted, print_note, print_wrapped

from . import SOME_ERRORS, of_errors
from .lines import Leaderless


class Unplayed(NamedTuple):
    """A group for which nothing is played; `why` is the value of `key` in its JSON line.

    `key` is "result" for a group that has no members after the changes, or cannot switch its
    protocol; "left_out" for a group of Kafka Streams. `kind` is the kind of its problem in `check`.
    """

    group_id: str
    key: Literal["result", "left_out"]
    why: str
    kind: str = "error"

    def show(self, *, as_json: bool) -> None:
        if as_json:
            print(contract.dumps({"group_id": self.group_id, self.key: self.why}), flush=True)
        elif self.key == "result":  # below the report, a sentence counts the others
            print_wrapped(f"{self.group_id}: {self.why}", "", "  ")


def unchanged(group_id: str, lines: Sequence[str]) -> str:
    """Returns the sentence on a group that no change affects; `lines` are `CHANGE: problem`."""
    problems = dict.fromkeys(line.partition(": ")[2] for line in lines)
    return f"{group_id}: {'; '.join(problems)}; nothing changes"


_FIELD = "`plan` needs the field application, as `snapshot` writes it"
OF_APPLICATION = f"its assignor is {FOREIGN[STREAM]}; {_FIELD}"
_WHY = {
    OF_APPLICATION: "of Kafka Streams, whose assignor is in the application (docs/faq.md): {}",
    NOT_PLAYED: f"of Kafka Streams under KIP-1071: {NOT_PLAYED}: {{}}",
    STOPS: f"of Kafka Streams that may stop: {{}}; {STOPS}",
}
"""The reason in a group's JSON line -> its text below a report, with {} for the groups' ids."""

_GROUPS_NAMED = 3


class Tally(Mutable):
    """Counts of groups, for the lines below a report and for the exit code.

    bad           groups with an error
    unreadable    bad groups that could not be read
    unaffected    groups that no change affects
    not_affected  change -> the number of groups that it does not affect, and the first reason
    switched      whether a switch was left out, because a group already uses the target
    led           groups with a member whose id, or shortened id, equals `--leader`
    streams       the reason (`Unplayed.why`) -> the ids of the groups that were left out for it
    leaderless    the partitions without a leader in the groups' topics
    libraries     an unknown client library -> the number of groups with members or a leader of it
    """

    groups: int = 0
    bad: int = 0
    unreadable: int = 0
    unaffected: int = 0
    not_affected: dict[str, tuple[int, str]] = field(default_factory=dict)
    switched: bool = False
    led: int = 0
    streams: dict[str, list[str]] = field(default_factory=dict)
    leaderless: Leaderless = field(default_factory=Leaderless)
    libraries: Counter[str] = field(default_factory=Counter)

    def leave_out(self, lines: Sequence[str], *, all_of_them: bool) -> None:
        """Counts a group for each change that does not affect it; `lines` are `CHANGE: problem`."""
        self.unaffected += all_of_them
        for line in lines:
            change = line.partition(": ")[0]
            count, first = self.not_affected.get(change, (0, line))
            self.not_affected[change] = (count + 1, first)
            self.switched |= is_already(line)

    def lines(self) -> list[str]:
        """Returns lines such as `Not affected by partitions orders=24: 19 groups.`"""
        lines = list[str]()
        for change, (count, first) in self.not_affected.items():
            by = first if self.groups == 1 else f"{change}: {counted(count, 'group')}"
            lines.append(f"Not affected by {by}.")
        for why, ids in self.streams.items():
            which = _WHY[why].format(first_of(ids, _GROUPS_NAMED))
            lines.append(f"Left out: {counted(len(ids), 'group')} {which}.")
        return lines

    def finish(self, args: argparse.Namespace) -> int:
        """Prints the counts (errors on standard error), and returns the exit code."""
        for library, groups in self.libraries.items():
            has = f"{counted(groups, 'group')} {'has' if groups == 1 else 'have'}"
            print_note(
                f"{has} members or a leader of {quoted(library)}, a client library that is not "
                "known here: if it leads, its answer may differ from that of Kafka's assignor, "
                "planned here"
            )
        is_said = self.groups == self.unaffected == 1
        for line in () if args.json or is_said else self.lines():
            print_wrapped(line)
        self.leaderless.show()
        if self.bad:
            print_note(f"{self.bad} of {counted(self.groups, 'group')} had errors")
        without = self.unaffected + sum(map(len, self.streams.values()))
        if without and without + self.unreadable == self.groups:
            problem = "; ".join(first for _, first in self.not_affected.values())
            # The lines below the report already give the other reasons.
            left = [why for why in self.streams if args.json or why not in _WHY[why]]
            none = ": ".join(("no group is left", *filter(None, ["; ".join(left)])))
            if self.switched:
                return of_errors(self.bad)
            print_note(f"no group is affected: {problem}" if problem else none)
            return SOME_ERRORS
        leader = vars(args).get("leader")
        if leader is not None and not self.led and self.unreadable < self.groups > 1:
            problem = f"no group has a member {quoted(leader)}; the answers are without --leader"
            print_note(problem)
            return SOME_ERRORS
        return of_errors(self.bad)

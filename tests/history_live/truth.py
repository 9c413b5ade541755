# SPDX-License-Identifier: Apache-2.0
"""Finds the true cause of each record, from the script's actions and the members' numbers.

The script, not the record, knows how a member ended, and which action was under way. A record
shows the members' numbers and ids. If a member comes or goes without an action of the script, the
cause is not known: a busy machine can end a session.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from .actions import CLOSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.prediction.log import Written

    from .actions import Step

CAUSES = (
    "started", "joined", "rejoined", "left", "timed out", "resubscription", "partitions added",
    "static restart", "second round",
)  # fmt: skip
"""A record's first cause in this order is the main one; "second round" is any other round."""


class Acted(NamedTuple):
    """A step of the script, and when it began."""

    at_ms: int
    step: Step


def causes(records: Sequence[Written], acted: Sequence[Acted]) -> list[str | None]:
    """Returns each record's main cause; "" for a new group without members, None if not known."""
    script = _Script(acted)
    found: list[str | None] = []
    before: Written | None = None
    for record in records:
        script.advance(record.timestamp_ms)
        is_created = before is None and not record.value.members
        found.append("" if is_created else _main(before, record, script))
        before = record
    return found


def _main(before: Written | None, now: Written, script: _Script) -> str | None:
    old, new = _members(before), _members(now)
    kinds: set[str | None] = set()
    for number, (member_id, topics) in new.items():
        was = old.get(number)
        if was is None or was[0] != member_id:
            kinds.add(script.arrived(number, is_there=was is not None))
        elif was[1] != topics:
            kinds.add("resubscription")
    kinds |= {script.went(number) for number in old.keys() - new.keys()}
    if not old:
        kinds = {"started"}
    if not kinds:
        kinds = {script.quiet_round()}
    script.rounds += 1
    return None if None in kinds else min((one or "" for one in kinds), key=CAUSES.index)


def _members(record: Written | None) -> dict[int, tuple[str, frozenset[str]]]:
    """Returns number -> member id and topics; a member's number is its session timeout in ms."""
    if record is None:
        return {}
    topics = record.subscribed()
    return {m.session_timeout_ms: (m.member_id, topics[m.member_id]) for m in record.value.members}


class _Script:
    """Follows the script's steps to the time of a record, and names the causes of changes."""

    def __init__(self, acted: Sequence[Acted]) -> None:
        self._left = list(acted)
        self._step: Step | None = None
        self._ended: dict[int, str] = {}
        self._starts: Counter[int] = Counter()
        self._arrivals: Counter[int] = Counter()
        self._static: set[int] = set()
        self.rounds = 0

    def advance(self, time_ms: int) -> None:
        while self._left and self._left[0].at_ms <= time_ms:
            self._step = self._left.pop(0).step
            self.rounds = 0
            for part, how in self._step.ends:
                leaves = how == CLOSED and not part.is_static
                self._ended[part.session_timeout_ms] = "left" if leaves else "timed out"
            for part in self._step.starts:
                self._starts[part.session_timeout_ms] += 1
                if part.is_static:
                    self._static.add(part.session_timeout_ms)

    def arrived(self, number: int, *, is_there: bool) -> str | None:
        """Returns the cause of a new id; `is_there` if the record before has the old id."""
        self._arrivals[number] += 1
        self._ended.pop(number, None)
        if self._arrivals[number] > self._starts[number]:
            return None
        if is_there and number in self._static:
            return "static restart"
        return "rejoined" if self._arrivals[number] > 1 else "joined"

    def went(self, number: int) -> str | None:
        return self._ended.pop(number, None)

    def quiet_round(self) -> str:
        """Returns the cause of a round whose members are those of the round before."""
        is_first = self.rounds == 0 and self._step is not None
        if is_first and self._step is not None and self._step.grows:
            return "partitions added"
        return "second round"

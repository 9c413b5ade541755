# SPDX-License-Identifier: Apache-2.0
"""Plays random actions in one group: acts, then waits until the group is quiet.

A group on quiet topics rests before each action, for up to six sessions: a member that disappears
within its session timeout after the last rebalance has certainly left, whatever it committed.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from .actions import KILLED, Step, after, deck, formation
from .cast import SESSION_MS
from .truth import Acted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.prediction.log import OffsetsLog

    from .cast import Cast
    from .members import Members

QUIET_S = 2.6
QUIET_WITH_HOLES_S = 6.0
TIMEOUT_S = 60.0
MOST_REST_S = 6 * SESSION_MS / 1000
LOOK_AGAIN_S = 0.2


class NotSettledError(Exception):
    """The group did not reach the expected state; the message states the difference."""


class Stage:
    """Plays one group until `stop`; `acted` lists the steps so far, `problem` is the reason for an
    early end.
    """

    def __init__(
        self,
        cast: Cast,
        members: Members,
        log: OffsetsLog,
        grow: Callable[[str, int], None],
        stop: threading.Event,
    ) -> None:
        self.cast = cast
        self.acted: list[Acted] = []
        self.problem = ""
        self._members, self._log, self._grow, self._stop = members, log, grow, stop

    def play(self) -> None:
        try:
            self._steps(formation(self.cast))
            for steps in deck(self.cast):
                if self._stop.is_set():
                    return
                self._steps(steps)
        except NotSettledError as error:
            self.problem = str(error)

    def _steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if self.cast.kind.is_quiet:
                self._stop.wait(self.cast.random.uniform(0, MOST_REST_S))
            before = self._ids()
            there = len(self._log.of(self.cast.group_id))
            self.acted.append(Acted(time.time_ns() // 1_000_000, step))
            self._act(step)
            self._settle(step, before, there)

    def _act(self, step: Step) -> None:
        for part, how in step.ends:
            (self._members.kill if how == KILLED else self._members.close)(part)
        after(self.cast, step)
        for part in step.starts:
            self._members.start(part)
        if step.subscribes:
            self._members.subscribe(step.subscribes)
        if step.grows:
            self._grow(*step.grows)

    def _settle(self, step: Step, before: dict[int, str], there: int) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        problem = ""
        while time.monotonic() < deadline:
            problem = self._problem(step, before, there)
            quiet_s = QUIET_WITH_HOLES_S if problem == "holes" else QUIET_S
            if problem in ("", "holes") and self._log.quiet_s(self.cast.group_id) >= quiet_s:
                return
            time.sleep(LOOK_AGAIN_S)
        raise NotSettledError(f"{step.name}: {problem or 'never quiet'}")

    def _problem(self, step: Step, before: dict[int, str], there: int) -> str:
        """Returns how the last record differs from the cast; "holes" if only its partitions do."""
        records = self._log.of(self.cast.group_id)
        if len(records) <= there:
            return "no newer record"
        topics = records[-1].subscribed()
        ids = self._ids()
        wanted = {part.session_timeout_ms: part for part in self.cast.parts.values()}
        if ids.keys() != wanted.keys():
            return f"members {sorted(ids)} in place of {sorted(wanted)} (session timeouts)"
        for number, part in wanted.items():
            if part in step.starts and before.get(number) == ids[number]:
                return f"{number} has its old id"
            if topics[ids[number]] != set(part.topics):
                return f"{number} has other topics"
        assigned = {tp for owned in records[-1].assigned().values() for tp in owned}
        counts = {name: self.cast.topics[name] for name in self.cast.subscribed()}
        whole = {(name, p) for name, count in counts.items() for p in range(count)}
        return "" if assigned == whole else "holes"

    def _ids(self) -> dict[int, str]:
        records = self._log.of(self.cast.group_id)
        members = records[-1].value.members if records else ()
        return {member.session_timeout_ms: member.member_id for member in members}

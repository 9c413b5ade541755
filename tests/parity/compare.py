# SPDX-License-Identifier: Apache-2.0
"""Plays a scenario, and finds the differences between two runs of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .cast import Cast
from .scenarios import ScenarioError, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .cast import Command, Observation
    from .scenarios import Accepted, Scenario

PATIENCE_S = 4.0
"""How long to wait for a broker's answer if our coordinator gave it at once."""

LOOK_AGAIN_S = 0.01
SETTLE_S = 0.025
"""A join or sync without an answer after this time counts as held back by the coordinator.

A broker handles a request in a few ms. The member's next request uses another
connection, so without this wait it could be handled first.
"""

QUIET_S = 0.06
"""The wait for late events at the end, and if no other run shows which events to expect."""

END = Step(0, "after the last step", "advance", "-", {})


class Player(Protocol):
    """Plays commands on a coordinator. A real broker is `live`: its answers may arrive later."""

    live: bool

    def begin(self) -> None: ...
    def tell(self, command: Command) -> dict[str, Any]: ...
    def more(self, timeout_s: float) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class Difference:
    """A difference in one field of one step; `accepted` is set if the scenario expects it."""

    step: Step
    path: str
    ours: Any
    broker: Any
    accepted: Accepted | None


def play(
    scenario: Scenario, player: Player, wanted: Sequence[Observation] | None = None
) -> list[Observation]:
    """Returns one observation for each step, and one for the events after the last step.

    `wanted` holds the observations of another player's run: at each step, a live player waits for
    an equal one. If that takes too long, the run ends with the last observation. The run also ends
    at a step that needs a member id which no answer contained.
    """
    player.begin()
    cast = Cast()
    seen: list[Observation] = []
    for step in scenario.steps:
        try:
            command = cast.command(step)
        except ScenarioError as error:  # the step needs an id that no answer contained
            return [*seen, {"answer": {"impossible": str(error)}, "answered": {}, "groups": {}}]
        try:
            answer = player.tell(command)
        except Exception as error:
            error.add_note(f"{scenario.name}, step {step.number}: {step.text}")
            raise
        cast.asked(answer["id"], step, command)
        want = wanted[len(seen)] if wanted else None
        shown = _look(player, cast, step, answer, want, seen[-1] if seen else None)
        seen.append(shown)
        if want and unexplained(differences(step, want, shown)):
            return seen
    if player.live:
        time.sleep(QUIET_S)
        seen.append(cast.observation(END, {}, player.more(0), {}))
    else:
        seen.append(cast.observation(END, {}, [], {}))
    return seen


def _look(
    player: Player,
    cast: Cast,
    step: Step,
    answer: dict[str, Any],
    want: Observation | None,
    before: Observation | None,
) -> Observation:
    """Observes a step; with a live player, until it equals `wanted`, or until time is up."""
    events = list(answer["events"])
    started = time.monotonic()
    while True:
        groups = {group: player.tell({"op": "describe", "g": group}) for group in cast.groups}
        events += [event for look in groups.values() for event in look["events"]]
        shown = cast.observation(step, answer, events, groups)
        if not player.live:
            return shown
        waited = time.monotonic() - started
        if want and not unexplained(differences(step, want, shown)):
            unchanged = before is not None and shown["groups"] == before["groups"]
            same = not shown["answered"] and unchanged
            if waited > SETTLE_S or not same or step.operation not in ("join", "sync"):
                return shown
        if waited > (PATIENCE_S if want else QUIET_S):
            return shown
        events += player.more(LOOK_AGAIN_S)


def differences(step: Step, ours: Observation, broker: Observation) -> list[Difference]:
    """Returns the differences between two observations of a step."""
    found = []
    for path, one, other in _walk("", ours, broker):
        accepted = next(
            (a for a in step.accepted if (a.path, a.ours, a.broker) == (path, one, other)), None
        )
        found.append(Difference(step, path, one, other, accepted))
    return found


def unexplained(found: Sequence[Difference]) -> list[Difference]:
    return [difference for difference in found if not difference.accepted]


def _walk(path: str, ours: Any, broker: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields (path, value, other value) for each value that differs; a missing value is None."""
    if isinstance(ours, dict) and isinstance(broker, dict):
        for key in dict.fromkeys((*ours, *broker)):
            yield from _walk(f"{path}.{key}" if path else key, ours.get(key), broker.get(key))
    elif isinstance(ours, list) and isinstance(broker, list) and len(ours) == len(broker):
        for at, (one, other) in enumerate(zip(ours, broker, strict=True)):
            yield from _walk(f"{path}[{at}]", one, other)
    elif ours != broker:
        yield path, ours, broker

# SPDX-License-Identifier: Apache-2.0
"""Which rebalances there are: why, from when to when, in how many rounds."""

from kafka_rebalance.coordinator import Transition
from kafka_rebalance.protocol import GroupState

from .run import Rebalance


class Rebalances:
    """Getters: seen. Inputs: learn (whose an id is), watch (each change of the group's state)."""

    def __init__(self) -> None:
        self.seen: list[Rebalance] = []
        self._names: dict[str, str] = {}

    def learn(self, member_id: str, name: str) -> None:
        """An id is this member's."""
        self._names[member_id] = name

    def watch(
        self, now_ms: int, transition: Transition, cause: str, gave_up_in: int | None
    ) -> None:
        """The group has changed its state; `gave_up_in` is of the member whose request did it.

        A member that joins only because it gave up what the last round took (KIP-429) starts a
        round, not a rebalance.
        """
        last = self.seen[-1] if self.seen else None
        running = last if last is not None and last.to_ms is None else None
        if transition.after is GroupState.PREPARING_REBALANCE:
            if running is None and last is not None and gave_up_in == last.generation_id:
                last.to_ms = None
            else:
                self._begin(running, now_ms, transition.generation_id, self._named(cause))
        elif running is not None and transition.after is GroupState.COMPLETING_REBALANCE:
            running.rounds += 1
            running.generation_id = transition.generation_id
        elif running is not None:
            running.to_ms = now_ms
            # Where the coordinator moves, the log knows nothing of a rebalance that runs.
            running.is_cut_off = transition.after is GroupState.DEAD
            running.generation_id = transition.generation_id

    def _begin(self, running: Rebalance | None, now_ms: int, generation_id: int, why: str) -> None:
        """A rebalance, or one more reason for the one that runs."""
        if running is None:
            running = Rebalance(len(self.seen) + 1, [], now_ms, generation_id)
            self.seen.append(running)
        if why not in running.causes:
            running.causes.append(why)

    def _named(self, cause: str) -> str:
        """A cause with names in place of ids."""
        for member_id, name in self._names.items():
            cause = cause.replace(member_id, name)
        return cause

# SPDX-License-Identifier: Apache-2.0
"""Records each rebalance of a run: its causes, its start and end, and its rounds."""

from kafka_rebalance.coordinator import Transition
from kafka_rebalance.protocol import GroupState

from .run import Rebalance


class Rebalances:
    """Collects the rebalances of a run in `seen`; members have their process names."""

    def __init__(self) -> None:
        self.seen: list[Rebalance] = []
        self._names: dict[str, str] = {}

    def learn(self, member_id: str, name: str) -> None:
        self._names[member_id] = name

    def watch(
        self, now_ms: int, transition: Transition, cause: str, gave_up_in: int | None
    ) -> None:
        """Records a change of the group's state; `cause` is its cause in words.

        `gave_up_in` is about the member whose request caused the change: the newest generation in
        which an assignment made this member revoke partitions; -1 if there is none, None if no
        member's request caused the change.

        In a cooperative group, a member whose partitions an assignment has revoked joins again
        (KIP-429). Such a join starts a new round of the last rebalance, not a new rebalance.
        """
        last = self.seen[-1] if self.seen else None
        running = last if last is not None and last.to_ms is None else None
        if transition.after is GroupState.PREPARING_REBALANCE:
            if running is None and last is not None and gave_up_in == last.generation_id:
                last.to_ms = None
            else:
                for member_id, name in self._names.items():
                    cause = cause.replace(member_id, name)
                self._begin(running, now_ms, transition.generation_id, cause)
        elif running is not None and transition.after is GroupState.COMPLETING_REBALANCE:
            running.rounds += 1
            running.generation_id = transition.generation_id
        elif running is not None:
            running.to_ms = now_ms
            # DEAD means that the coordinator has moved; the end of this rebalance is in no log.
            running.is_cut_off = transition.after is GroupState.DEAD
            running.generation_id = transition.generation_id

    def _begin(self, running: Rebalance | None, now_ms: int, generation_id: int, why: str) -> None:
        """Begins a rebalance, or adds a cause to the running one."""
        if running is None:
            running = Rebalance(len(self.seen) + 1, [], now_ms, generation_id)
            self.seen.append(running)
        if why not in running.causes:
            running.causes.append(why)

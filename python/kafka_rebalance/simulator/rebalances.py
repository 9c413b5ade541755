# SPDX-License-Identifier: Apache-2.0
"""Records each rebalance of a run: its causes, its start and end, and its rounds."""

from kafka_rebalance.coordinator import Transition
from kafka_rebalance.coordinator.broker_assigned.group import INITIAL_EPOCH
from kafka_rebalance.coordinator.consumer_group.group import ConsumerGroup
from kafka_rebalance.wire.messages import GroupState

from .run import Rebalance


class Rebalances:
    """Collects the rebalances of a run in `seen`; members are named after their processes."""

    def __init__(self) -> None:
        self.seen: list[Rebalance] = []
        self.joined_ms: dict[str, int] = {}
        self._names: dict[str, str] = {}
        # The epochs of a consumer group, and since when its target is older than its epoch.
        self._epoch = self._assignment_epoch = INITIAL_EPOCH
        self._untargeted_since: int | None = None

    def learn(self, member_id: str, name: str, now_ms: int) -> None:
        self._names[member_id] = name
        self.joined_ms.setdefault(name, now_ms)

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
                self._begin(running, now_ms, transition.generation_id, cause)
        elif running is not None and transition.after is GroupState.COMPLETING_REBALANCE:
            running.rounds += 1
            running.generation_id = transition.generation_id
        elif running is not None:
            running.to_ms = now_ms
            # DEAD means that the coordinator has moved; the end of this rebalance is in no log.
            running.is_cut_off = transition.after is GroupState.DEAD
            running.generation_id = transition.generation_id

    def watch_epochs(self, now_ms: int, group: ConsumerGroup, cause: str) -> bool:
        """Records a change of a consumer group's epochs; returns whether its epoch has grown.

        A rebalance goes from a new group epoch until all members have their targets. A round of it
        is a new target, which only a heartbeat computes.
        """
        is_new = group.epoch > self._epoch
        running = self.seen[-1] if self.seen and self.seen[-1].to_ms is None else None
        if is_new:
            self._begin(running, now_ms, group.epoch, cause)
            running = self.seen[-1]
        self._epoch = group.epoch
        if running is None:
            return is_new
        if self._untargeted_since is not None:
            running.untargeted_ms += now_ms - self._untargeted_since
        self._untargeted_since = now_ms if group.epoch > group.assignment_epoch else None
        running.generation_id = group.epoch
        if group.assignment_epoch > self._assignment_epoch:
            running.rounds += 1
            self._assignment_epoch = group.assignment_epoch
        if group.state in (GroupState.STABLE, GroupState.EMPTY):
            running.to_ms, self._untargeted_since = now_ms, None
        return is_new

    def _begin(self, running: Rebalance | None, now_ms: int, generation_id: int, why: str) -> None:
        """Begins a rebalance, or adds a cause to the running one; `why` contains members' ids."""
        for member_id, name in self._names.items():
            why = why.replace(member_id, name)
        if running is None:
            running = Rebalance(len(self.seen) + 1, [], now_ms, generation_id)
            self.seen.append(running)
        if why not in running.causes:
            running.causes.append(why)

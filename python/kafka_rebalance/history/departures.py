# SPDX-License-Identifier: Apache-2.0
"""Finds out why a member is missing: it left, its session expired, or the records do not show it.

The session timeout restarts when the join phase ends, and with each commit of the member
(heartbeats are in no record). While the group has members, only they can commit, and each commits
the partitions that it was given. So:

1. A member that was missing less than its session timeout after the last join phase has left.
2. A member that committed less than its session timeout before it was missing has left, too.
3. A longer silence shows something only if a living member would have committed: many clients
   commit nothing without new records. So the member must have committed in this generation, at
   usual intervals of less than half of the silence, and a member that stayed must have committed
   since.
4. Such a member lived at most one usual interval after its last commit. If its session
   expired, the silence is hardly longer than the session timeout plus this interval: after the
   expiry, the other members join within a heartbeat interval (at most a third of the timeout).
5. In the same way, a silence that is hardly longer than the rebalance timeout shows a dynamic
   member that was stuck between two polls, and left by itself. A static member does not leave.
6. Otherwise the records do not show why the member is missing.

In the consumer protocol (KIP-848), only heartbeats restart the session timeout; each record about
the member itself was caused by a heartbeat. A commit follows a heartbeat by at most a heartbeat
interval, a third of the timeout. No record contains the timeout, so no departure is exact.

Differs  in Kafka, a transactional commit does not restart the session timeout; here it does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_rebalance._core import CommitTimes as CommitTimes
from kafka_rebalance._core import commits_of
from kafka_rebalance.group.model import TopicPartition

from .group_log import RecordedGeneration, RecordedMember
from .recorded import Cause, Certainty

Commits = Mapping[TopicPartition, CommitTimes]

_ALIVE = 2 / 3
_EITHER = "left or timed out"


@dataclass(slots=True)
class CommitsSeen:
    """The commits of a group since its last record, and how often its members committed before.

    A commit shows that the partition's owner is alive. In a streams group, it shows that the owner
    of each task that reads the partition is alive: `of_tasks` maps tasks to those commits.
    """

    since: dict[TopicPartition, CommitTimes] = field(default_factory=dict)
    of_tasks: dict[TopicPartition, dict[TopicPartition, CommitTimes]] = field(default_factory=dict)
    committers: dict[str, float | None] = field(default_factory=dict)  # member id -> `usual_ms`

    def add(self, times: Commits, task: TopicPartition | None = None) -> None:
        of = self.since if task is None else self.of_tasks.setdefault(task, {})
        for tp, one in times.items():
            of[tp] = of[tp] + one if tp in of else one

    def end_generation(
        self, before: RecordedGeneration | None, kept: frozenset[TopicPartition] = frozenset()
    ) -> None:
        """Called at a new generation: stores `usual_ms` of the members that committed in `before`.

        It forgets the commits of all partitions, except the `kept` ones.
        """
        by_id = before.by_id if before is not None else {}
        members = before.members if before is not None and (self.since or self.of_tasks) else ()
        for member in members:
            last_ms, usual_ms = self._of_member(member)
            if usual_ms is not None:
                self.committers[member.member_id] = usual_ms
            elif last_ms is not None:
                self.committers.setdefault(member.member_id, None)
        self.committers = {name: ms for name, ms in self.committers.items() if name in by_id}
        self.since = {tp: times for tp, times in self.since.items() if tp in kept}
        self.of_tasks = {task: times for task, times in self.of_tasks.items() if task in kept}

    def last_ms(self, member: RecordedMember) -> int | None:
        return self._of_member(member)[0]

    def usual_ms(self, member: RecordedMember) -> float | None:
        """Returns the shortest mean time (ms) between the member's commits of one partition; None
        if unknown.
        """
        _, usual_ms = self._of_member(member)
        return self.committers.get(member.member_id) if usual_ms is None else usual_ms

    def _of_member(self, member: RecordedMember) -> tuple[int | None, float | None]:
        return commits_of(member.assigned, self.since, self.of_tasks)


def departure(
    member: RecordedMember,
    before: RecordedGeneration,
    after: RecordedGeneration,
    commits: CommitsSeen,
    armed_ms: int,
) -> Cause:
    """Returns why `after` lacks a member of `before`: a cause "left", "timed out" or "gone".

    `armed_ms` is when something other than a commit last started the session timeout.
    """
    who, session = (member.member_id,), member.session_timeout_ms
    lived = after.joined_ms - armed_ms
    is_classic = after.group_type == "classic"
    sure: Certainty = "exact" if is_classic else "likely"
    # 1.
    if lived < session:
        return Cause("left", sure, who, f"{_s(lived)} after it had joined, session {_s(session)}")
    last = commits.last_ms(member)
    # 2.
    silence = after.joined_ms - max(armed_ms, last or armed_ms)
    told = f"silent for {_s(silence)}, session {_s(session)}"
    if silence < (session if is_classic else session * _ALIVE):
        return Cause("left", sure, who, told)
    # 3.
    if why := _shows_nothing(member, before, after, commits, silence):
        return Cause("gone", "unknown", who, f"{_EITHER}: {why}")
    usual = commits.usual_ms(member) or 0
    more = usual + session / 3
    stuck = member.rebalance_timeout_ms
    is_later = session * 1.1 + usual < silence and session < stuck <= silence
    # 5.
    if is_later and silence <= stuck + more and member.group_instance_id is None:
        return Cause("left", "likely", who, f"stuck between two polls: {told}")
    # 4.
    if silence <= session + more:
        return Cause("timed out", "likely", who, told)
    # 6.
    return Cause("gone", "unknown", who, f"{_EITHER}: {told}; an expiry comes sooner")


def _shows_nothing(
    member: RecordedMember,
    before: RecordedGeneration,
    after: RecordedGeneration,
    commits: CommitsSeen,
    silence: float,
) -> str:
    """Returns why a member's silence does not prove that it timed out; "" if it does."""
    last, usual = commits.last_ms(member), commits.usual_ms(member)
    if not member.assigned:
        return "it had no partition, so it had nothing to commit"
    if last is None:
        since = " in this generation" if member.member_id in commits.committers else ""
        return f"it never committed{since}"
    if usual is None or silence <= 2 * usual:
        return f"silent for {_s(silence)}; it seldom commits"
    stayed = [one for one in before.members if one.member_id in after.by_id and one.assigned]
    if stayed and max(commits.last_ms(one) or 0 for one in stayed) <= last + usual:
        return f"silent for {_s(silence)}; nobody else committed since"
    return ""


def _s(ms: float) -> str:
    return f"{ms / 1000:.1f} s"

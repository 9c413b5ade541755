# SPDX-License-Identifier: Apache-2.0
"""Finds out how a member went: it left, its session expired, or the records do not show which.

The session timeout starts again when the join phase ends, and with each commit of the member
(heartbeats are in no record). While the group has members, only they can commit, and each commits
the partitions that it was given. So:

1. A member that was gone less than its session timeout after the last join phase has left.
2. A member that committed less than its session timeout before it was gone has left, too.
3. After a longer silence, the session has probably expired. If the member seldom committed, the
   detail of the cause says so.
4. A silence as long as the rebalance timeout is too long for a process that died: the member was
   probably stuck between two polls, and left by itself.
5. If a member never committed or had no partition, the records do not show how it went.

Differs  in Kafka, a transactional commit does not start the session again; here it counts as one
         that does.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafka_rebalance.group.model import TopicPartition

from .group_log import RecordedGeneration, RecordedMember
from .recorded import Cause


@dataclass(slots=True)
class CommitTimes:
    """The commits of one partition since the group's last record."""

    first_ms: int
    last_ms: int
    commits: int = 1

    @property
    def distance_ms(self) -> float | None:
        """The mean time between two commits; None if there are fewer than two."""
        if self.commits < 2:
            return None
        return (self.last_ms - self.first_ms) / (self.commits - 1)

    def add(self, other: "CommitTimes") -> None:
        self.first_ms = min(self.first_ms, other.first_ms)
        self.last_ms = max(self.last_ms, other.last_ms)
        self.commits += other.commits


@dataclass(slots=True)
class CommitsSeen:
    """The commits of a group since its last record, and how often its members committed before."""

    since: dict[TopicPartition, CommitTimes] = field(default_factory=dict)
    committers: dict[str, float | None] = field(default_factory=dict)  # member id -> distance

    def add(self, tp: TopicPartition, times: CommitTimes) -> None:
        known = self.since.get(tp)
        if known is None:
            self.since[tp] = times
        else:
            known.add(times)

    def end_generation(self, before: RecordedGeneration | None) -> None:
        """Remembers which members of the generation that ends have committed, and how often."""
        members = before.members if before is not None else ()
        for member in members:
            if times := self.of_member(member):
                distances = [d for one in times if (d := one.distance_ms) is not None]
                self.committers[member.member_id] = min(distances, default=None)
        ids = {member.member_id for member in members}
        self.committers = {name: d for name, d in self.committers.items() if name in ids}
        self.since = {}

    def last_ms(self, member: RecordedMember) -> int | None:
        """Returns the time of the member's last commit since the group's last record."""
        return max((one.last_ms for one in self.of_member(member)), default=None)

    def of_member(self, member: RecordedMember) -> list[CommitTimes]:
        return [self.since[tp] for tp in member.assigned if tp in self.since]


def departure(
    member: RecordedMember,
    after: RecordedGeneration,
    commits: CommitsSeen,
    armed_ms: int,
) -> Cause:
    """Returns the cause "left", "timed out" or "gone" for a member that `after` lacks.

    `armed_ms` is when the member's session timeout last started, other than by a commit.
    """
    who, session = (member.member_id,), member.session_timeout_ms
    lived = after.joined_ms - armed_ms
    # 1.
    if lived < session:
        return Cause(
            "left", "exact", who, f"{_s(lived)} after it had joined, session {_s(session)}"
        )
    times = commits.of_member(member)
    usual = _usual(member, times, commits)
    # 5.
    if not member.assigned:
        return Cause("gone", "unknown", who, "it had no partition, so it had nothing to commit")
    if not times and member.member_id not in commits.committers:
        return Cause("gone", "unknown", who, "it never committed")
    last = max([armed_ms, *(one.last_ms for one in times)])
    silence = after.joined_ms - last
    told = f"silent for {_s(silence)}, session {_s(session)}"
    # 2.
    if silence < session:
        return Cause("left", "exact", who, told)
    # 4.
    if silence >= member.rebalance_timeout_ms > 0 and silence > session * 1.1 + usual:
        return Cause("left", "likely", who, f"stuck between two polls: {told}")
    # 3.
    sure = silence > 2 * usual
    return Cause("timed out", "likely", who, told if sure else f"{told}; it seldom commits")


def _usual(member: RecordedMember, times: Iterable[CommitTimes], commits: CommitsSeen) -> float:
    """Returns the usual time in ms between two commits of a member, else of its group, else 0."""
    distances = [d for one in times if (d := one.distance_ms) is not None]
    if not distances and (known := commits.committers.get(member.member_id)) is not None:
        distances = [known]
    if not distances:
        others = (d for one in commits.since.values() if (d := one.distance_ms) is not None)
        distances = sorted([*others, *(d for d in commits.committers.values() if d is not None)])
        distances = distances[len(distances) // 2 :][:1]
    return min(distances, default=0.0)


def _s(ms: float) -> str:
    return f"{ms / 1000:.1f} s"

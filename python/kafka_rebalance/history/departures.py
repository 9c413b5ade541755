# SPDX-License-Identifier: Apache-2.0
"""How a member went: it left, its session expired, or the records do not show which.

Each session begins anew when the join phase ends, and with each commit of the member. Nobody
outside the group can commit while it has members, and a member commits what it was given. So:

1. A member that was gone less than its session timeout after the last join phase has left.
2. So has a member that committed less than its session timeout before it was gone.
3. A longer silence hints at an expired session; it is likely if the member used to commit more
   often than that.
4. A silence of the rebalance timeout, too long for a process that died, hints at a member that was
   stuck between two polls and left by itself.
5. Of a member that never committed or had no partition, nothing is known.

Differs  transactional commits do not begin a session anew; they count as others here.
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
        """The usual time between two commits."""
        if self.commits < 2:
            return None
        return (self.last_ms - self.first_ms) / (self.commits - 1)

    def add(self, other: "CommitTimes") -> None:
        self.first_ms = min(self.first_ms, other.first_ms)
        self.last_ms = max(self.last_ms, other.last_ms)
        self.commits += other.commits


@dataclass(slots=True)
class CommitsSeen:
    """The commits of a group: those since its last record, and what its members used to do."""

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
        """Returns the time of its last commit since the group's last record."""
        return max((one.last_ms for one in self.of_member(member)), default=None)

    def of_member(self, member: RecordedMember) -> list[CommitTimes]:
        return [self.since[tp] for tp in member.assigned if tp in self.since]


def departure(
    member: RecordedMember,
    after: RecordedGeneration,
    commits: CommitsSeen,
    armed_ms: int,
) -> Cause:
    """Returns the cause "left", "timed out" or "gone" of a member that `after` lacks.

    `armed_ms` is when its session last began anew for another reason than a commit.
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
    """Returns the usual time between two commits of a member, else of its group, else 0."""
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

# SPDX-License-Identifier: Apache-2.0
"""Reads the history of one group: how each record differs from the record before it, and why.

1. If a record has the generation of the record before it, a static member was replaced, or the
   record was written twice.
2. Members are compared by id. A newcomer counts as a member that is back under a new id if a member
   with its instance id, or with its client id and host, disappeared in this record or in the ten
   minutes before.
3. `departures.py` finds out why a member is missing.
4. A new assignor is a switch, a change to a member's topics is a resubscription. A partition number
   above all that were ever assigned or claimed shows that partitions were added.
5. A cooperative member that claimed partitions which the last record did not assign to it must join
   again. If it claimed them because it had missed the assignment before the last one, the leader's
   answers alone would not have caused this rebalance.
6. If nothing differs, a member asked for the rebalance. If a topic is assigned only now, the leader
   learned of it late, which is a follow-up. Any such rebalance within two seconds of the previous
   one is a follow-up, too. Its reason can be that a topic lost its last subscriber, that a new
   leader saw unequal subscriptions, that partitions were added, or that a client joined again at
   once, such as kafka-python on a busy machine. If a static member restarts with other topics, that
   is a resubscription. Kafka Streams' leader sends each thread the time at which to join again: if
   that is at once, the rebalance is a follow-up, else a probing rebalance.
7. If the record of the classic group is deleted and a record of a broker-assigned group is written
   at once, the group was converted. Members that left the classic group in a rebalance that did not
   complete are missing in the new group. A conversion back is a classic record with members after
   the records of a consumer group; all members join again then, which is a follow-up.
8. Epochs of a broker-assigned group are also compared by the topics' hash, by a streams group's
   settings, and by the partitions that a share group has initialised.

A rebalance can have many causes: a row lists them all, in the order of `recorded.CAUSES`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafka_rebalance.wire.broker_records import RecordKey
from kafka_rebalance.wire.group_records import OffsetsRecord

from .departures import CommitsSeen, departure
from .group_log import Members, RecordedGeneration, RecordedMember
from .recorded import (
    BackMember,
    Cause,
    Certainty,
    RecordedRebalance,
    by_rank,
    moves_between,
    resubscribed,
)

BACK_WITHIN_MS = 600_000
"""A new member id can be a former member that came back, if it left at most this long ago."""

AFTER_EFFECT_MS = 2_000
"""A rebalance without another cause is a follow-up if the last record is at most this old."""

CONVERTED_WITHIN_MS = 1_000
"""A deletion and a first record of the other protocol within this time are a conversion.

The coordinator writes both at once. After a longer time, the first record belongs to a new group.
"""

_NEVER_SYNCED = "never recorded: the leader had not answered when the next rebalance began"
_COMPACTED = "compacted: the log keeps the last record of a group"
_BEFORE = "before the first record that was read"


class _Gone(NamedTuple):
    member_id: str
    time_ms: int
    last_commit_ms: int | None

    def returned(self, member: RecordedMember, now_ms: int) -> BackMember:
        identity, is_static = member.group_instance_id, member.group_instance_id is not None
        absent_ms, committed_ms = now_ms - self.time_ms, self.last_commit_ms
        silent_ms = None if committed_ms is None else now_ms - committed_ms
        named = (self.member_id, member.member_id, identity or member.client_id)
        return BackMember(*named, is_static, absent_ms, silent_ms)


class _Diff(NamedTuple):
    """The differences between the members of two records: who came, disappeared or came back."""

    joined: list[RecordedMember]
    left: list[RecordedMember]
    back: list[BackMember]
    restarted: list[RecordedMember]  # static members under a new id, in both records
    resubscribed: tuple[str, ...]  # ids of members with other topics


class GroupHistory:
    """Reads a group's records and commits in the order of the log; each record becomes a row.

    `whole_from` is the offset after the last gap in the log's partition. A reader that follows the
    log sets it again after each gap.
    """

    def __init__(self, whole_from: int) -> None:
        self.whole_from = whole_from
        self._gone: dict[tuple[str, ...], list[_Gone]] = {}
        self._deleted_ms: int | None = None  # time of the last tombstone
        self._by_broker = False  # whether the last record is one of a broker-assigned group
        self._classic: RecordedGeneration | None = None  # a deleted classic group's last generation
        self.forget()

    def forget(self) -> None:
        """Drops the state of earlier records: the group is deleted, or its generations restart."""
        self._before: RecordedGeneration | Callable[[Members], RecordedGeneration] | None = None
        self.members = Members()
        self._before_ms = 0  # time of the last row
        self.commits = CommitsSeen()
        self._greatest: dict[str, int] = {}
        # Members that were replaced or sent a heartbeat -> when their session timeout started, ms.
        self._armed: dict[str, int] = {}
        self._known: dict[str, Cause] = {}  # member id -> why it is missing
        self._kinds: set[str] = set()  # the causes of the last record
        self._new_leader = False
        self._missed: dict[str, int] = {}  # member id -> the generation whose assignment it missed
        # How many more records each of two events may explain: a topic lost its last subscriber,
        # and a static member restarted with other topics.
        self._topic_lost = 0
        self._other_topics = 0

    @property
    def newest(self) -> RecordedGeneration | None:
        """Returns the last record's generation; None before the first, and after a deletion."""
        return self._before(self.members) if callable(self._before) else self._before

    @property
    def has_record(self) -> bool:
        return self._before is not None

    def rest(self, read: Callable[[Members], RecordedGeneration]) -> None:
        """Drops the last generation from memory; `read` decodes it again for the next record."""
        self._before, self.members = read, Members()

    def tombstone(self, time_ms: int) -> None:
        """Called when the group is deleted: generations restart at 1, but members may come back."""
        self._deleted_ms, self._classic = time_ms, self.newest
        self.forget()

    def broker_group(self, key: RecordKey, record: OffsetsRecord) -> RecordedRebalance | None:
        """Called for an epoch of a broker-assigned group; returns a conversion's row, if any."""
        deleted_ms, self._deleted_ms = self._deleted_ms, None
        self._by_broker = True
        near = deleted_ms is not None and record.timestamp_ms - deleted_ms <= CONVERTED_WITHIN_MS
        if record.value is None or not near:
            self._classic = None
            return None
        cause = Cause("converted", detail=f"to the {key.type.group_type} protocol")
        place = (record.partition, record.offset, record.timestamp_ms, record.timestamp_ms)
        return RecordedRebalance(key.group_id, *place, causes=(cause,))

    def converted(self, row: RecordedRebalance, first: RecordedGeneration) -> RecordedRebalance:
        """Adds to a conversion's row the members that its first generation (`first`) lacks."""
        diff = self._compare(self._classic, first, first.joined_ms)
        self._before, self._before_ms, self._classic = first, first.joined_ms, None
        self._kinds = {"converted"}
        left = _ids(diff.left)
        gone = Cause("gone", "unknown", left, "missing after the conversion")
        return replace(row, left=left, causes=(*row.causes, gone)) if left else row

    def heard(self, member_id: str, time_ms: int) -> None:
        """Called for a record that only this member's heartbeat can cause: its session restarts."""
        self._armed[member_id] = time_ms

    def timed_out(self, member_id: str, told: str) -> None:
        """Called before the record that lacks a member, if other records show that it timed out."""
        self._known[member_id] = Cause("timed out", "likely", (member_id,), told)

    def record(self, now: RecordedGeneration) -> RecordedRebalance:
        before = self.newest
        if before is not None and (
            now.generation_id < before.generation_id or now.group_type != before.group_type
        ):
            self.forget()
            before = None
        if before is not None and now.members is before.members and now.protocol == before.protocol:
            vars(now).update(vars(before) | vars(now))  # reuses cached values: they are equal
        again = before is not None and now.generation_id == before.generation_id
        now_ms = now.written_ms if again else now.joined_ms
        gap, gap_reason = self._gap(before, now)
        diff = self._compare(before, now, now_ms)
        is_known = gap_reason in ("", _NEVER_SYNCED)
        found = _written_again(diff) if again else self._causes(before, now, diff, is_known)
        causes = by_rank(found)
        seconds = (now_ms - self._before_ms) / 1000 if before is not None else None
        self._remember(before, now, causes, diff, again)
        self._before_ms = now_ms
        self._by_broker, self._deleted_ms = now.group_type != "classic", None
        place = (now.group_id, now.partition, now.offset, now_ms, now.written_ms)
        named = (now.generation_id, now.protocol_type, now.protocol, now.leader)
        return RecordedRebalance(
            *place,
            *named,
            now.leader_library,
            members=len(now.members),
            partitions=len(now.owners),
            idle=now.idle,
            joined=_ids(diff.joined),
            left=_ids(diff.left),
            back=tuple(diff.back),
            resubscribed=diff.resubscribed,
            **moves_between(before, now)._asdict(),
            seconds=seconds,
            emptied=before is not None and not before.members and before.generation_id > 0,
            gap=gap,
            gap_reason=gap_reason,
            again=again,
            causes=causes,
            group_type=now.group_type,
        )

    def _gap(self, before: RecordedGeneration | None, now: RecordedGeneration) -> tuple[int, str]:
        """Returns how many generations just before this one have no record, and why."""
        if before is None:
            if self._by_broker and now.group_type == "classic":
                return 0, ""
            missing = now.generation_id - _first(now)
            return (missing, _BEFORE) if missing > 0 and now.members else (0, "")
        missing = now.generation_id - before.generation_id - 1
        if missing <= 0:
            return 0, ""
        is_classic = now.group_type == "classic"
        is_whole = before.offset >= self.whole_from
        return missing, _NEVER_SYNCED if is_classic and is_whole else _COMPACTED

    def _compare(
        self, before: RecordedGeneration | None, now: RecordedGeneration, now_ms: int
    ) -> _Diff:
        if before is not None and before.members is now.members:
            return _Diff([], [], [], [], ())
        old = before.by_id if before is not None else {}
        instances = {m.group_instance_id for m in old.values() if m.group_instance_id}
        new = [member for member in now.members if member.member_id not in old]
        restarted = [member for member in new if member.group_instance_id in instances]
        stayed = {member.group_instance_id for member in restarted}
        went = [
            member
            for member in old.values()
            if member.member_id not in now.by_id
            and (member.group_instance_id is None or member.group_instance_id not in stayed)
        ]
        since_ms = now_ms - BACK_WITHIN_MS
        self._gone = {
            name: of for name, of in self._gone.items() if of and of[-1].time_ms >= since_ms
        }
        for member in went:
            gone = self._gone.setdefault(member.identity, [])
            gone.append(_Gone(member.member_id, now_ms, self.commits.last_ms(member)))
        joined, back = [], []
        for member in new:
            if member in restarted:
                continue
            if (found := self._taken(member, now_ms)) is None:
                joined.append(member)
            else:
                back.append(found.returned(member, now_ms))
        returned = {one.old for one in back}
        left = [member for member in went if member.member_id not in returned]
        changed = resubscribed(before, now) if before is not None else ()
        return _Diff(joined, left, back, restarted, changed)

    def _taken(self, member: RecordedMember, now_ms: int) -> _Gone | None:
        """Removes and returns the missing member that came back as `member`; None if it is new."""
        gone = self._gone.get(member.identity, [])
        while gone and now_ms - gone[0].time_ms > BACK_WITHIN_MS:
            del gone[0]
        return gone.pop() if gone else None

    def _causes(
        self,
        before: RecordedGeneration | None,
        now: RecordedGeneration,
        diff: _Diff,
        is_known: bool,
    ) -> Iterator[Cause]:
        if before is None and now.generation_id == 0 and not now.members:
            yield Cause("created")
        elif before is None and self._by_broker and now.members and now.group_type == "classic":
            yield Cause("converted", detail="from the consumer protocol")
        elif before is None and now.generation_id > _first(now):
            yield Cause("first record", "unknown")
        elif before is None or not before.members:
            yield Cause("started", members=tuple(now.by_id))
        else:
            found = [*self._of_members(before, now, diff, is_known)]
            found += self._of_topics(before, now, diff.resubscribed)
            if before.rejoin_ms:
                found += _asked(before, now, "likely" if found or diff.back else "exact")
            if not found and not diff.back:
                found = [self._of_nothing(before, now)]
            yield from found
        if diff.back:
            yield _back(diff.back, now)

    def _of_members(
        self, before: RecordedGeneration, now: RecordedGeneration, diff: _Diff, is_known: bool
    ) -> Iterator[Cause]:
        if diff.joined:
            yield Cause("joined", members=_ids(diff.joined))
        for member in diff.left:
            armed_ms = self._armed.get(member.member_id, before.joined_ms)
            cause = self._known.get(member.member_id) or departure(
                member, before, now, self.commits, armed_ms
            )
            if cause.certainty == "likely" and not is_known:
                cause = Cause("gone", "unknown", cause.members, "records before it are missing")
            yield cause
        if diff.restarted:
            yield Cause("static restart", members=_ids(diff.restarted))
        if before.must_revoke:
            missed = [one for one in before.must_revoke if one in self._missed]
            who = ", ".join(missed)
            told = f"{who} had missed generation {self._missed[missed[0]]}" if missed else ""
            yield Cause("second round", members=before.must_revoke, detail=told)

    def _of_topics(
        self, before: RecordedGeneration, now: RecordedGeneration, changed: tuple[str, ...]
    ) -> Iterator[Cause]:
        # A consumer group in which nobody names an assignor uses the brokers' default.
        default = None if now.group_type == "classic" else "the default"
        old, new = before.protocol or default, now.protocol or default
        if old and new and old != new and now.members:
            yield Cause("assignor switch", detail=f"{old} to {new}")
        if changed:
            yield Cause("resubscription", members=changed)
        if before.settings and now.settings != before.settings:
            yield Cause("settings changed", detail=_changed(before.settings, now.settings))
        if new_topics := {tp.topic for tp in now.ready - before.ready}:
            yield Cause("partitions ready", detail=", ".join(sorted(new_topics)))
        grown = {
            topic: count
            for topic, count in now.partition_counts.items()
            if count > self._greatest.get(topic, count)
        }
        # The record of a conversion lacks the partitions of members that left during it. In a share
        # group, `ready` shows which partitions were added.
        if grown and now.group_type != "share" and "converted" not in self._kinds:
            told = ", ".join(f"{topic}: at least {n}" for topic, n in sorted(grown.items()))
            yield Cause("partitions added", detail=told)

    def _of_nothing(self, before: RecordedGeneration, now: RecordedGeneration) -> Cause:
        """Returns the cause of a rebalance that the members of the two records do not explain."""
        if now.group_type != "classic":
            if now.metadata_hash != before.metadata_hash:
                detail = "more partitions, other racks, or a topic that came or went"
                return Cause("topics changed", detail=detail)
            if now.rewritten:
                return Cause("member changed", "likely", now.rewritten)
            if now.protocol and now.assignors[1:]:
                named = " and ".join(now.assignors)
                told = f"{named} are named by equally many members, so each heartbeat changes it"
                return Cause("assignor switch", "likely", detail=told)
            return Cause("requested", "unknown", detail="nothing differs in the records")
        if "converted" in self._kinds:
            return Cause("follow-up", detail="all join again after the conversion")
        if self._other_topics:
            return Cause("resubscription", "likely", detail="after a static restart")
        if now.given_topics & before.topics - before.given_topics:
            return Cause("follow-up", "likely", detail="the leader learned of a topic late")
        if now.joined_ms - before.written_ms > AFTER_EFFECT_MS:
            return Cause("requested", "likely", detail="the records do not show by which member")
        after_effects = {
            "a topic lost its last subscriber": self._topic_lost,
            "a new leader saw unequal subscriptions": self._new_leader
            and len({member.topics for member in before.members}) > 1,
            "partitions had been added": "partitions added" in self._kinds,
        }
        detail = next((words for words, holds in after_effects.items() if holds), "")
        return Cause("follow-up", "likely", detail=detail or "a client joined again at once")

    def _remember(
        self,
        before: RecordedGeneration | None,
        now: RecordedGeneration,
        causes: Iterable[Cause],
        diff: _Diff,
        again: bool,
    ) -> None:
        self._kinds = {cause.kind for cause in causes}
        self._new_leader = before is not None and before.leader != now.leader
        if not again:
            self._missed = {} if before is None else _missed(before, now)
        lost = before is not None and bool(before.topics - now.topics)
        changed = again and bool(diff.resubscribed)
        self._topic_lost = (1 + again) if lost else max(0, self._topic_lost - 1)
        self._other_topics = 2 if changed else max(0, self._other_topics - 1)
        for topic, count in now.partition_counts.items():
            self._greatest[topic] = max(count, self._greatest.get(topic, count))
        if again:
            self._armed |= {member.member_id: now.written_ms for member in diff.restarted}
        elif now.group_type == "classic":
            self._armed = {}
            self.commits.end_generation(before)
        else:
            self._armed = {name: ms for name, ms in self._armed.items() if name in now.by_id}
            self._known = {}
            old = before.owners if before is not None else {}
            kept = frozenset(tp for tp, owner in old.items() if now.owners.get(tp) == owner)
            self.commits.end_generation(before, kept)
        self._before = now


def _asked(
    before: RecordedGeneration, now: RecordedGeneration, certainty: Certainty
) -> Iterator[Cause]:
    """Yields causes for Kafka Streams threads whose time to rejoin, set by the leader, has come."""
    at_once = tuple(name for name, at in before.rejoin_ms.items() if at == 0)
    if at_once:
        yield Cause("follow-up", "exact", at_once, "they wait for tasks of other threads")
    late_ms = now.joined_ms + AFTER_EFFECT_MS  # the clocks of leader and broker differ
    due = tuple(name for name, at in before.rejoin_ms.items() if 0 < at <= late_ms)
    if due:
        yield Cause("probing", certainty, due)


def _first(now: RecordedGeneration) -> int:
    """Returns a group's first generation or, if broker-assigned, its first epoch with members."""
    return 1 if now.group_type == "classic" else 2


def _changed(before: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]) -> str:
    old = dict(before)
    new = [(name, value) for name, value in now if old.get(name) != value]
    return ", ".join(f"{name}: {old.get(name, 'not set')} to {value}" for name, value in new)


def _written_again(diff: _Diff) -> Iterator[Cause]:
    ids = _ids(diff.restarted)
    yield Cause("static restart", members=ids) if ids else Cause("written again")


def _ids(members: Iterable[RecordedMember]) -> tuple[str, ...]:
    return tuple(member.member_id for member in members)


def _back(back: Sequence[BackMember], now: RecordedGeneration) -> Cause:
    """Returns the cause "rejoined"; exact only if each identity belongs to one member."""
    identities = Counter(member.identity for member in now.members)
    is_sure = all(identities[now.by_id[one.new].identity] == 1 for one in back)
    absent = ", ".join(f"{one.identity} after {one.absent_ms / 1000:.1f} s" for one in back)
    return Cause("rejoined", "exact" if is_sure else "likely", tuple(b.new for b in back), absent)


def _missed(before: RecordedGeneration, now: RecordedGeneration) -> dict[str, int]:
    """Returns member id -> generation, for cooperative members that missed its assignment.

    A busy member sends SyncGroup only when another member has revoked and joined again. The broker
    then answers REBALANCE_IN_PROGRESS, and the busy member still claims the partitions that it
    should revoke.
    """
    return {
        member_id: before.generation_id
        for member_id in before.must_revoke
        if member_id in now.must_revoke
        and now.by_id[member_id].claims - before.by_id[member_id].assigned
    }

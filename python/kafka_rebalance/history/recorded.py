# SPDX-License-Identifier: Apache-2.0
"""One recorded rebalance as a row: its members' changes, its moved partitions, and its causes.

A partition is `moved` if it had another owner before, `gained` if it had no owner before, and
`revoked` if it has none now. A cooperative move is therefore first revoked and then gained. A
static member that restarts under a new member id is the same owner; any other member that restarts
is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from .group_log import RecordedGeneration, RecordedMember

Certainty = Literal["exact", "likely", "unknown", "log"]
"""How a cause is known: proved or made likely by records, not known, or from a broker's log."""

CAUSES = {
    "created": "the group was created, without members",
    "first record": "the records begin here, within the group's life",
    "converted": "the group changed between the classic and the consumer protocol (KIP-848)",
    "started": "an empty group started",
    "joined": "a member joined",
    "rejoined": "a member joined again under a new id",
    "left": "a member left or was removed",
    "timed out": "a member's session expired",
    "gone": "a member left or timed out: not known which",
    "assignor switch": "the group changed its assignor",
    "resubscription": "a member changed its topics",
    "partitions added": "a topic has more partitions",
    "partitions ready": "a share group can read partitions that it could not read before",
    "topics changed": "the subscribed topics changed: not known how",
    "settings changed": "the group's settings or its topology changed",
    "member changed": "a member changed its process, rack, tags or address",
    "second round": "a member revoked partitions and joined again",
    "static restart": "a static member restarted within its session",
    "probing": "a thread asked whether copies of state are caught up (Kafka Streams)",
    "follow-up": "a member saw the last rebalance's result, and joined again",
    "requested": "a member asked for a rebalance",
    "written again": "one generation's record was written twice",
    "coordinator": "the coordinator's own writes were late",
}
"""Each cause in words, the most important first."""

_Key = TypeVar("_Key")
_NONE = ("created", "converted")
_RANK = {kind: rank for rank, kind in enumerate(CAUSES)}


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a rebalance. `members` are the ids of those known to have caused it."""

    kind: str
    certainty: Certainty = "exact"
    members: tuple[str, ...] = ()
    detail: str = ""

    def __post_init__(self) -> None:
        if self.kind not in CAUSES:
            raise ValueError(f"{self.kind}: not a cause")


def by_rank(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    return tuple(sorted(causes, key=lambda one: _RANK[one.kind]))


class BackMember(NamedTuple):
    """A member that came back under a new id.

    `absent_ms`  from the record that lacks it to the record that contains it again; 0 if both are
                 the same record.
    `silent_ms`  from its last commit to its return, so not shorter than its absence; None if no
                 commit of it is known.
    """

    old: str
    new: str
    identity: str
    is_static: bool
    absent_ms: int
    silent_ms: int | None


class Revocation(NamedTuple):
    """A member that the broker asked to revoke partitions or tasks (KIP-848, KIP-1071).

    `took_ms`  from the record of the request to the record of the member's answer; None if the
               member was gone before it answered.
    """

    member_id: str
    partitions: int
    took_ms: int | None


class NamedMember(NamedTuple):
    """A member whose id, a UUID that it chose, does not begin with its client id."""

    member_id: str
    client_id: str


@dataclass(frozen=True, slots=True)
class RecordedRebalance:
    """A row of the history: one record of one group.

    `time_ms`         when all members had joined; if a record is written `again`, when it was
                      written.
    `written_ms`      when the leader had answered, or when the record was written again.
    `joined`, `left`  member ids, without those that are `back` under a new id in this record.
    `seconds`         the time since the group's previous record; None for the first one.
    `gap`             how many generations before this one have no record; `gap_reason` is why.
    `causes`          the first one is the main cause.
    `partitions`      how many partitions have an owner; `idle` are the members without partitions.
    `again`           True if the record before has the same generation; such a row is not a
                      rebalance.
    `error`           why the record cannot be read; then only its group, place and times are known.

    A conversion from the classic protocol has a row, too, without generation and members.

    Rows of a broker-assigned group have the `group_type` "consumer", "share" or "streams", and
    the group epoch as `generation_id`; their moves are moves between targets. In a share group,
    where several members own a partition, each owner counts as a move. A streams group's partitions
    are its active tasks. Only these rows have these fields:

    `revocations`    the members that were asked to revoke partitions, and had answered or left
                     before the next epoch.
    `between_ms`     the longest time that a partition was between two owners; None if none was.
    `reconciled_ms`  from the epoch to the time when all members had their targets; None if the next
                     epoch came first.
    `clients`        the members in `causes` and `revocations`, with their client ids.
    """

    group_id: str
    partition: int
    offset: int
    time_ms: int
    written_ms: int
    generation_id: int = -1
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    leader_library: str | None = None
    members: int = 0
    partitions: int = 0
    idle: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    back: tuple[BackMember, ...] = ()
    resubscribed: tuple[str, ...] = ()
    moved: int = 0
    gained: int = 0
    revoked: int = 0
    seconds: float | None = None
    emptied: bool = False
    gap: int = 0
    gap_reason: str = ""
    again: bool = False
    causes: tuple[Cause, ...] = ()
    error: str | None = None
    group_type: str = "classic"
    revocations: tuple[Revocation, ...] = ()
    between_ms: int | None = None
    reconciled_ms: int | None = None
    clients: tuple[NamedMember, ...] = ()

    @property
    def cause(self) -> str:
        return self.causes[0].kind if self.causes else ""

    @property
    def is_rebalance(self) -> bool:
        """Returns False if the record is a creation or conversion, a repeat, or unreadable."""
        return self.error is None and self.cause not in _NONE and not self.again

    def to_dict(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in self.__slots__}
        row["causes"] = tuple(
            {name: getattr(one, name) for name in one.__slots__} for one in self.causes
        )
        for name in ("back", "revocations", "clients"):
            row[name] = [one._asdict() for one in row[name]]
        row["cause"] = self.cause
        return row


class Moves(NamedTuple):
    """The numbers of partitions that changed their owner, that got one, and that lost theirs."""

    moved: int
    gained: int
    revoked: int


def moves_between(before: RecordedGeneration | None, after: RecordedGeneration) -> Moves:
    if after.group_type == "share":
        had = before.owned if before is not None else frozenset()
        return Moves(0, len(after.owned - had), len(had - after.owned))
    return moves_of(before.owners if before is not None else {}, after.owners)


def moves_of(old: Mapping[_Key, object], new: Mapping[_Key, object]) -> Moves:
    """Returns the differences between two mappings from a partition to its owner."""
    if old is new or old == new:
        return Moves(0, 0, 0)
    moved = sum(old[tp] != owner for tp, owner in new.items() if tp in old)
    return Moves(moved, len(new.keys() - old.keys()), len(old.keys() - new.keys()))


def resubscribed(before: RecordedGeneration, after: RecordedGeneration) -> tuple[str, ...]:
    """Returns the ids of members whose topics changed; static ones are matched by instance id."""
    by_instance = {m.group_instance_id: m for m in before.members if m.group_instance_id}

    def is_changed(member: RecordedMember) -> bool:
        found = before.by_id.get(member.member_id)
        if found is None and member.group_instance_id is not None:
            found = by_instance.get(member.group_instance_id)
        if found is None or None in (found.subscription, member.subscription):
            return False
        return found.topics != member.topics

    old = before.by_id
    return tuple(
        member.member_id
        for member in after.members
        if old.get(member.member_id) is not member and is_changed(member)
    )


def total_moves(rows: Sequence[RecordedRebalance]) -> int:
    """Returns how many partitions got a new owner in all rows: those moved and those gained."""
    return sum(row.moved + row.gained for row in rows)

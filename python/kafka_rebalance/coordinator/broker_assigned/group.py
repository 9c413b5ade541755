# SPDX-License-Identifier: Apache-2.0
"""A broker-assigned group as the broker stores it, without the fields of its kind.

    epoch             grows with each change that needs a new target
    assignment_epoch  the epoch of the targets; smaller than `epoch` until new targets are computed
    targets           member id -> the partitions or tasks that the member will have
    static_members    instance id -> member id; share groups have none
    refresh_at        (ms, epoch): the metadata is read again at this time, or if the group's
                      epoch is smaller than this epoch

Source   ModernGroup.java, TargetAssignmentMetadata.java, ConsumerGroup.updateStaticMember, and
         their twins in StreamsGroup.java (Kafka 4.4.0); KIP-848, KIP-345.
"""

from collections.abc import Mapping
from dataclasses import field, fields, replace
from enum import IntEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

from kafka_rebalance.frozen import Frozen, Mutable
from kafka_rebalance.java.timeline_hash_map import TimelineHashMap
from kafka_rebalance.wire.messages import GroupState


class IllegalRecord(ValueError):
    """A record that contradicts the state of the groups; Kafka, too, fails to apply it."""


class OwnedTwice(IllegalRecord):
    """Two members would own the same partition; Kafka refuses the records, and thus the request."""


Names = Mapping[str, None]
"""Subscribed names, in the order of a `HashSet`."""


class StateNumber(IntEnum):
    """The state of a member's reconciliation, with its number in records."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        """Returns UNKNOWN for a number that only other versions of Kafka know."""
        return cls["UNKNOWN"]


class ReconciliationState(StateNumber):
    """Whether a member is STABLE, or waits for its own revocations or those of other members."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


INITIAL_EPOCH = 1
DELETED_EPOCH = -1
NOT_ASSIGNED_MS = 0
_REFRESH_INTERVAL_MS = 2**31 - 1


class AssignedMember(Frozen):
    """A member of a broker-assigned group; an update makes a new object."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: IntEnum = ReconciliationState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""

    @property
    def is_revoking(self) -> bool:
        return False

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state.name == "STABLE" and self.member_epoch == epoch


_Member = TypeVar("_Member", bound=AssignedMember)
_Target = TypeVar("_Target")


class AssigningGroup(Mutable, Generic[_Member, _Target]):
    """A broker-assigned group. `group_type` is Kafka's name for the kind of group."""

    group_type: ClassVar[str]
    has_offsets: ClassVar[bool] = True
    delays_first_targets: ClassVar[bool] = False
    nested: ClassVar[tuple[str, ...]] = ()
    """The fields that are dicts of dicts or of sets; `copy` also copies the inner ones."""

    group_id: str
    epoch: int = INITIAL_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = INITIAL_EPOCH
    assignment_timestamp_ms: int = NOT_ASSIGNED_MS
    members: TimelineHashMap[str, _Member] = field(default_factory=TimelineHashMap)
    targets: dict[str, _Target] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    refresh_at: tuple[int, int] = (0, 0)

    @property
    def tables(self) -> tuple[TimelineHashMap[str, Any], ...]:
        """Returns the hash maps whose order depends on history; a failed append reverts them."""
        return (self.members,)

    @property
    def is_ready(self) -> bool:
        """Returns whether targets can be computed."""
        return True

    @property
    def state(self) -> GroupState:
        if self.is_empty:
            return GroupState.EMPTY
        if not self.is_ready:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(one.is_reconciled_to(self.assignment_epoch) for one in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not len(self.members)

    def has_recent_targets(self, interval_ms: int, now_ms: int) -> bool:
        """Returns whether the last targets were computed less than `interval_ms` ago."""
        assigned_ms = self.assignment_timestamp_ms
        if interval_ms == 0 or assigned_ms == NOT_ASSIGNED_MS:
            return False
        return now_ms < assigned_ms + interval_ms

    def copy(self) -> Self:
        """Returns a copy that can be changed; both share the immutable members and targets."""
        copies: dict[str, Any] = {}
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            if name in self.nested:
                copies[name] = {key: type(inner)(inner) for key, inner in value.items()}
            elif isinstance(value, dict | TimelineHashMap):
                copies[name] = value.copy()
        return replace(self, **copies)

    def update(self, new: _Member) -> None:
        """Adds or replaces a member. Errors: OwnedTwice; the group must then be dropped."""
        old = self.members.get(new.member_id)
        self.members.put(new.member_id, new)
        self._replaced(old, new)
        self._hold_instance(old, new)

    def remove(self, member_id: str) -> None:
        old = self.members.remove(member_id)
        if old is not None:
            self._replaced(old, None)
            self._hold_instance(old, None)

    def _replaced(self, old: _Member | None, new: _Member | None) -> None:
        """Updates the fields of this kind of group after `new` replaced `old` (None: no member)."""
        raise NotImplementedError

    def forget_unlogged(self, append_id: int) -> None:
        """Called after a failed append: undoes changes to fields that no record contains."""

    def keep_unlogged(self, before: Any) -> None:
        """Called on a restored group: copies unlogged fields from `before`, the replaced group."""

    def must_refresh(self, now_ms: int) -> bool:
        """Returns whether the metadata of the topics must be read again; see `refresh_at`."""
        deadline_ms, epoch = self.refresh_at
        return now_ms >= deadline_ms or self.epoch < epoch

    def refreshed(self, now_ms: int, epoch: int) -> None:
        """Records that the metadata was read in `epoch`, and when it must be read next."""
        self.refresh_at = (now_ms + _REFRESH_INTERVAL_MS, epoch)

    def reads(self, topic: str) -> bool:
        """Returns whether a change to the topic can change the group's epoch."""
        return self.is_subscribed(topic)

    def is_subscribed(self, topic: str) -> bool:
        raise NotImplementedError

    def static_member(self, instance_id: str | None) -> _Member | None:
        known = None if instance_id is None else self.static_members.get(instance_id)
        return None if known is None else self.members.get(known)

    def target_of(self, member: _Member) -> _Target | None:
        """Returns a member's target, looked up by the member's instance id if it has one."""
        instance_id = member.instance_id
        known = member.member_id if instance_id is None else self.static_members.get(instance_id)
        return None if known is None else self.targets.get(known)

    def members_with(self, new: _Member) -> dict[str, _Member]:
        """Returns id -> member, as if `new` had replaced the member with its id, or instance id."""
        replaced = self.replaced_id(new)
        members = {one: self.members[one] for one in self.members if one != replaced}
        return {**members, new.member_id: new}

    def replaced_id(self, new: _Member) -> str | None:
        """Returns the id of another member with the instance id of `new`, or None."""
        known = None if new.instance_id is None else self.static_members.get(new.instance_id)
        return None if known == new.member_id else known

    def _hold_instance(self, old: _Member | None, new: _Member | None) -> None:
        """Frees the instance id of `old`, then maps the instance id of `new` to its member id."""
        if old is not None and old.instance_id is not None:
            self.static_members.pop(old.instance_id, None)
        if new is not None and new.instance_id is not None:
            self.static_members[new.instance_id] = new.member_id

# SPDX-License-Identifier: Apache-2.0
"""A member of a streams group, as the broker keeps it; an update makes a new member.

    STABLE             the member has what its epoch's target contains
    UNREVOKED_TASKS    it must give up the pending tasks first; its epoch stays
    UNRELEASED_TASKS   it waits for tasks that other members still have
    UNKNOWN            the record has a state that this version does not know

Source   StreamsGroupMember.java, MemberState.java (Kafka 4.4.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kafka_rebalance.wire.streams_topology import UserEndpoint

from .tasks import NOTHING_ASSIGNED, MemberTasks

NO_TOPOLOGY_EPOCH = -1


class TasksState(IntEnum):
    """The state of a member's reconciliation, with its number in records."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> "TasksState":
        """Returns the state of a number that only other versions know."""
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class StreamsGroupMember:
    """A member; all members of one process have its `process_id`."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: TasksState = TasksState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: MemberTasks = NOTHING_ASSIGNED
    pending_revocation: MemberTasks = NOTHING_ASSIGNED

    @property
    def is_revoking(self) -> bool:
        return self.state is TasksState.UNREVOKED_TASKS

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is TasksState.STABLE and self.member_epoch == epoch

    def is_assigned_alike(self, other: "StreamsGroupMember") -> bool:
        """Returns whether no field has changed on which the assignment of tasks may depend."""
        return (self.topology_epoch, self.rack_id, self.client_tags, self.process_id) == (
            other.topology_epoch,
            other.rack_id,
            other.client_tags,
            other.process_id,
        )

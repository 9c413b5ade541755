# SPDX-License-Identifier: Apache-2.0
"""Changes of a group.

    apply: (change, group) -> GroupSpec

A change is one or more events in a row (`events`): a bounce has two for each member, it leaves and
comes back; most changes have one. After each event a live group rebalances until it has settled
(`plans/rounds.py`). Changes of members are in `members.py`, of topics in `topics.py`, texts
(`add-members=2`) in `text.py`. Mirror: `src/plans/changes/change.rs`.

A change that does not fit the group is a GroupError at `change`: fewer partitions than now, or no
member left. A change that refers to a topic, member, client or rack which the group lacks is
NotAffected, so that one change can be applied to many groups.
"""

from dataclasses import dataclass, replace

from kafka_rebalance.assignors.registry import assignor_names, unknown
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec

from .edits import Edited, GroupEvent, error
from .made_up import MadeUp
from .members import AddMembers, BounceMembers, RemoveMembers
from .topics import AddPartitions, AddTopics, RemoveTopics, Resubscribe


@dataclass(frozen=True, slots=True)
class SwitchAssignor:
    """The group's first rebalance by another assignor.

    The members have been restarted with both assignors in their configuration. So they are eager,
    revoke all partitions before they join, and claim none: the new assignor starts from nothing
    (KIP-429; ConsumerCoordinator).
    """

    assignor: str

    def __str__(self) -> str:
        return f"switch-assignor={self.assignor}"

    def events(self, group: GroupSpec) -> list[GroupEvent]:
        if self.assignor not in assignor_names():
            raise error(unknown(self.assignor))
        if group.assignor == self.assignor:
            raise error(f"{quoted(self.assignor)} is the group's assignor already")

        def edit(group: GroupSpec, _: MadeUp) -> Edited:
            return Edited(group.edited(assignor=self.assignor), starts_over=True)

        return [GroupEvent(str(self), edit)]


Change = (
    AddMembers
    | RemoveMembers
    | AddPartitions
    | AddTopics
    | RemoveTopics
    | Resubscribe
    | SwitchAssignor
    | BounceMembers
)


def apply(change: Change, group: GroupSpec) -> GroupSpec:
    """Returns the group after a change, before any rebalance: members own the same as before."""
    ids = MadeUp(group.group_id)
    for event in change.events(group):
        group = event.edit(group, ids).group
    return group


def renamed(change: Change, ids: MadeUp) -> Change:
    """Returns the change with the names that the made-up members have in this draw of ids."""
    aliases, clients = ids.aliases, ids.client_aliases
    if isinstance(change, AddMembers) and change.like is not None:
        return replace(change, like=aliases.get(change.like, change.like))
    if (
        isinstance(change, RemoveMembers | Resubscribe | BounceMembers)
        and change.member is not None
    ):
        return replace(change, member=aliases.get(change.member, change.member))
    if isinstance(change, RemoveMembers) and change.client_id is not None:
        return replace(change, client_id=clients.get(change.client_id, change.client_id))
    return change

"""Ids of members that do not exist yet.

Nobody knows what a broker will call a new member, but everybody knows the pattern: the client id
(or the instance id of a static member), a dash, a random UUID. Here the UUID is drawn from the
group's id, a number of the draw and a counter, so that the same plan names the same ids, and
another draw others. Mirror: `src/changes/made_up.rs`.

Source   GroupMetadataManager's member ids: `clientId + "-" + UUID` (KIP-394, KIP-345).
"""

import re
import uuid
from collections.abc import Collection, Sequence

_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_NUMBER = re.compile(r"[0-9]{0,9}\Z")


class MadeUp:
    """Makes ids up, never one twice; `draw` 0 is the plan's own, others are for sampling.

    `made` are the ids so far, in order. `instead_of` are those of another draw of the same plan, so
    that `aliases` tells what a member with one of those is called in this draw.
    """

    def __init__(self, group_id: str, draw: int = 0, instead_of: Sequence[str] = ()) -> None:
        self._group_id = group_id
        self._draw = draw
        self._count = 0
        self._instead_of = iter(instead_of)
        self.made: list[str] = []
        self.aliases: dict[str, str] = {}

    def member_id(self, prefix: str, taken: Collection[str]) -> str:
        """`prefix` and a UUID; none of `taken`."""
        while True:
            name = f"{self._group_id}/{self._draw}/{self._count}"
            self._count += 1
            random = uuid.uuid5(uuid.NAMESPACE_OID, name)
            member_id = f"{prefix}-{uuid.UUID(bytes=random.bytes, version=4)}"
            if member_id not in taken:
                self.made.append(member_id)
                self.aliases[next(self._instead_of, member_id)] = member_id
                return member_id


def prefix_of(client_id: str | None, member_id: str) -> str:
    """What stands before the UUID: the client id, or the member id without its UUID."""
    return client_id or _UUID.sub("", member_id) or "consumer"


def next_instance_id(group_instance_id: str, taken: Collection[str]) -> str:
    """The next free instance id in its own count: payments-3 gives payments-4; else name-2."""
    number = _NUMBER.search(group_instance_id)
    digits = number[0] if number else ""
    stem = group_instance_id.removesuffix(digits) if digits else f"{group_instance_id}-"
    n = int(digits or 1) + 1
    while f"{stem}{n}" in taken:
        n += 1
    return f"{stem}{n}"

# SPDX-License-Identifier: Apache-2.0
"""A member of a group, as stored by the group's coordinator."""

from dataclasses import dataclass

from kafka_rebalance.wire.classic_groups import JoinGroupProtocol


@dataclass(slots=True)
class ClassicGroupMember:
    """A member. Times are in ms; `parked_join` and `parked_sync` are ids of unanswered requests.

    `is_new` is True until the member's first join phase ends: a new member can be removed even
    while its JoinGroup is parked.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    parked_join: int | None = None
    parked_sync: int | None = None

    @property
    def is_static(self) -> bool:
        """Returns whether the member has a `group.instance.id` (KIP-345)."""
        return self.group_instance_id is not None

    def names(self) -> tuple[str, ...]:
        return tuple([name for name, _ in self.protocols])

    def metadata(self, protocol_name: str | None) -> bytes:
        """Returns the member's metadata for a protocol. Errors: KeyError if it is not listed."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(protocol_name)

    def is_excused(self) -> bool:
        """Returns whether the member waits for a response, so that its session cannot expire.

        A new member is never excused.
        """
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)


def without_repeats(protocols: tuple[JoinGroupProtocol, ...]) -> tuple[JoinGroupProtocol, ...]:
    """Drops repeated names. Kafka counts them twice, and may then find no protocol to select."""
    first: dict[str, JoinGroupProtocol] = {}
    for protocol in protocols:
        first.setdefault(protocol.name, protocol)
    return tuple(first.values())

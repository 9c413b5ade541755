# SPDX-License-Identifier: Apache-2.0
"""A member of a group, as its coordinator knows it."""

from dataclasses import dataclass

from kafka_rebalance.protocol.messages import JoinGroupProtocol


@dataclass(slots=True)
class ClassicGroupMember:
    """Times in ms; `parked_join` and `parked_sync` are the ids of requests that wait.

    `is_new` from its creation until its first completed join phase: only then may it be removed
    while its JoinGroup waits.
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
        """Whether it has a `group.instance.id` (KIP-345)."""
        return self.group_instance_id is not None

    def names(self) -> tuple[str, ...]:
        """The protocols it lists, in its order of preference."""
        return tuple(protocol.name for protocol in self.protocols)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for one protocol. Errors: KeyError where it does not list it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(protocol_name)

    def is_excused(self) -> bool:
        """Whether a session that ends now is passed over, as it waits for us and not we for it."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)


def without_repeats(protocols: tuple[JoinGroupProtocol, ...]) -> tuple[JoinGroupProtocol, ...]:
    """The first of each name. Kafka counts a name twice and then hangs; we do not copy that."""
    first: dict[str, JoinGroupProtocol] = {}
    for protocol in protocols:
        first.setdefault(protocol.name, protocol)
    return tuple(first.values())

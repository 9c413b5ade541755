# SPDX-License-Identifier: Apache-2.0
"""Defines the messages of administrators: groups are deleted, described and listed.

Source   the request and response schemas of Kafka 4.4.0 (DescribeGroupsRequest.json, …).
"""

from dataclasses import dataclass
from typing import NamedTuple

from .error_codes import ErrorCode
from .group_state import ConsumerGroupState, GroupState, StreamsGroupState


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroups:
    """An administrator deletes empty groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroups:
    """An administrator asks for the state and the members of groups."""

    group_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroups:
    """An administrator lists all groups, or the groups of the given states and types.

    States and types are compared by name, in any case of letters.
    """

    states: tuple[GroupState | ConsumerGroupState | StreamsGroupState | str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse:
    """(group_id, error code) pairs, in the request's order."""

    groups: tuple[tuple[str, ErrorCode], ...] = ()


class DescribedMember(NamedTuple):
    """A member in DescribeGroups; as in Kafka, it has `metadata` only if the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group in DescribeGroups: Dead if it is absent; `state` is None after a refusal."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    state: GroupState | None = GroupState.DEAD
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponse:
    """Descriptions of groups, in the request's order."""

    groups: tuple[DescribedGroup, ...] = ()


class ListedGroup(NamedTuple):
    """One group; its type is "classic", "consumer", "share" or "streams"."""

    group_id: str
    protocol_type: str
    state: GroupState | ConsumerGroupState | StreamsGroupState
    group_type: str = "classic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    """The coordinator's groups, or those in the requested states."""

    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()

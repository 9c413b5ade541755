# SPDX-License-Identifier: Apache-2.0
"""The requests that are answered, with the versions that clients may send.

Newer versions of OffsetFetch and OffsetCommit name topics by id only, for groups of the new
protocol, which do not exist here.
"""

API_VERSIONS = "api_versions"

APIS: dict[str, tuple[int, int]] = {
    "fetch": (4, 17),
    "list_offsets": (1, 10),
    "metadata": (0, 13),
    "offset_commit": (2, 9),
    "offset_fetch": (1, 9),
    "find_coordinator": (0, 6),
    "join_group": (0, 9),
    "heartbeat": (0, 4),
    "leave_group": (0, 5),
    "sync_group": (0, 5),
    "describe_groups": (0, 5),
    "list_groups": (0, 4),
    API_VERSIONS: (0, 4),
    "describe_cluster": (0, 2),
}
"""Name -> the oldest and the newest version."""

KEYS = {
    "fetch": 1,
    "list_offsets": 2,
    "metadata": 3,
    "offset_commit": 8,
    "offset_fetch": 9,
    "find_coordinator": 10,
    "join_group": 11,
    "heartbeat": 12,
    "leave_group": 13,
    "sync_group": 14,
    "describe_groups": 15,
    "list_groups": 16,
    API_VERSIONS: 18,
    "describe_cluster": 60,
}
NAMES = {key: name for name, key in KEYS.items()}

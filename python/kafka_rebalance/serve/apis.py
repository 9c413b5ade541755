# SPDX-License-Identifier: Apache-2.0
"""The requests that are answered, with the versions that clients may send.

The newest versions of OffsetFetch and OffsetCommit are not answered. They name topics only by id;
groups of the new protocol need them, and this server has no such groups.
"""

from typing import NamedTuple


class Api(NamedTuple):
    """A request's number in the protocol, and the range of its versions."""

    key: int
    least: int
    most: int


API_VERSIONS = "api_versions"

APIS: dict[str, Api] = {
    "fetch": Api(1, 4, 17),
    "list_offsets": Api(2, 1, 10),
    "metadata": Api(3, 0, 13),
    "offset_commit": Api(8, 2, 9),
    "offset_fetch": Api(9, 1, 9),
    "find_coordinator": Api(10, 0, 6),
    "join_group": Api(11, 0, 9),
    "heartbeat": Api(12, 0, 4),
    "leave_group": Api(13, 0, 5),
    "sync_group": Api(14, 0, 5),
    "describe_groups": Api(15, 0, 6),
    "list_groups": Api(16, 0, 5),
    API_VERSIONS: Api(18, 0, 4),
    "create_topics": Api(19, 2, 7),
    "delete_topics": Api(20, 1, 6),
    "init_producer_id": Api(22, 0, 4),
    "add_offsets_to_txn": Api(25, 0, 3),
    "end_txn": Api(26, 0, 3),
    "txn_offset_commit": Api(28, 0, 3),
    "create_partitions": Api(37, 0, 3),
    "delete_groups": Api(42, 0, 2),
    "offset_delete": Api(47, 0, 0),
    "describe_cluster": Api(60, 0, 2),
    "describe_transactions": Api(65, 0, 0),
}
"""Name -> number and versions, in the order of the numbers."""

NAMES = {api.key: name for name, api in APIS.items()}

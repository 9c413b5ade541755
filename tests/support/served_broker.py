# SPDX-License-Identifier: Apache-2.0
"""Connections to a broker of `serve` in this process, for its tests."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

from kafka_rebalance.testing import RunningBroker
from tests.parity.wire import Connection
from tests.support.waiting import FAR_S

TOPICS = {"orders": 6, "pay": 4}
ALL_TOPICS = {"topics": None, "allow_auto_topic_creation": False}

_TRANSACTION = {"transactional_id": "p", "producer_id": 1, "producer_epoch": 0, "group_id": "g"}
_MEMBER = {"group_id": "g", "member_id": "m", "generation_id": 1, "group_instance_id": None}
_OFFSET = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
_OFFSETS = [
    {"name": "orders", "topic_id": None, "partitions": [{**_OFFSET, "committed_metadata": ""}]}
]
_FETCH = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
_NEW_TOPIC = {"name": "new", "num_partitions": 2, "replication_factor": 1}

_JOINS = {
    "group_id": "h",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout": 60_000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}
_STREAMS_JOINS = {
    **_JOINS,
    "group_id": "k",
    "endpoint_information_epoch": -1,
    "topology": {
        "epoch": 0,
        "subtopologies": [
            {
                "subtopology_id": "0",
                "source_topics": ["orders"],
                "source_topic_regex": [],
                "state_changelog_topics": [
                    {"name": "log", "partitions": 0, "replication_factor": 1, "topic_configs": []}
                ],
                "repartition_sink_topics": [],
                "repartition_source_topics": [],
                "copartition_groups": [],
            }
        ],
    },
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "process_id": "p",
    "user_endpoint": {"host": "h", "port": 65_535},
    "client_tags": [{"key": "zone", "value": "a"}],
    "task_offsets": [{"subtopology_id": "0", "partition": 0, "offset": 1}],
    "task_end_offsets": [],
    "shutdown_application": False,
}
_SHARED = {"group_id": "s", "member_id": "m", "share_session_epoch": 0, "topics": []}
_DESCRIBED = {"group_ids": ["g"], "include_authorized_operations": False}

# A request of each API that is answered, with all its fields.
REQUESTS: dict[str, dict[str, Any]] = {
    "produce": {
        "transactional_id": None,
        "acks": -1,
        "timeout": 1,
        "topic_data": [
            {
                "name": "orders",
                "topic_id": None,
                "partition_data": [{"index": 0, "records": b"none"}],
            }
        ],
    },
    "fetch": {
        "max_wait": 1,
        "min_bytes": 1,
        "topics": [{"topic": "orders", "topic_id": None, "partitions": [_FETCH]}],
        "forgotten_topics_data": [],
    },
    "list_offsets": {
        "timeout": 1,
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [
            {
                "name": "orders",
                "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}],
            }
        ],
    },
    "metadata": {
        "topics": [{"name": "orders", "topic_id": None}, {"name": "no", "topic_id": None}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    },
    "offset_commit": {
        **_MEMBER,
        "generation_id_or_member_epoch": 1,
        "retention_time": -1,
        "topics": _OFFSETS,
    },
    "offset_fetch": {
        "group_id": "g",
        "topics": [{"name": "orders", "partition_indexes": [0]}],
        "groups": [{"group_id": "g", "topics": None}, {"group_id": "h", "topics": None}],
    },
    "consumer_group_heartbeat": _JOINS,
    "share_group_heartbeat": _JOINS,
    "streams_group_heartbeat": _STREAMS_JOINS,
    "streams_group_describe": _DESCRIBED,
    "consumer_group_describe": _DESCRIBED,
    "share_group_describe": _DESCRIBED,
    "find_coordinator": {"key": "g", "key_type": 0, "coordinator_keys": ["g"]},
    "join_group": {
        "group_id": "g",
        "session_timeout": 1,  # refused at once
        "rebalance_timeout": 1,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    },
    "heartbeat": _MEMBER,
    "leave_group": {**_MEMBER, "members": [{"member_id": "m", "group_instance_id": None}]},
    "sync_group": {**_MEMBER, "assignments": [], "protocol_type": "c", "protocol_name": "r"},
    "describe_groups": {"groups": ["g"], "include_authorized_operations": False},
    "list_groups": {"states_filter": ["Stable"], "types_filter": ["classic"]},
    "api_versions": {"client_software_name": "test", "client_software_version": "1"},
    "create_topics": {
        "topics": [{**_NEW_TOPIC, "assignments": [], "configs": []}],
        "timeout": 1,
        "validate_only": True,
    },
    "delete_topics": {
        "topic_names": ["no"],
        "topics": [{"name": "no", "topic_id": None}],
        "timeout": 1,
    },
    "init_producer_id": {
        "transactional_id": "p",
        "transaction_timeout": 1000,
        "producer_id": -1,
        "producer_epoch": -1,
    },
    "delete_records": {
        "timeout": 1,
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "offset": -1}]}],
    },
    "add_partitions_to_txn": {
        **{f"v3_and_below_{name}": value for name, value in _TRANSACTION.items()},
        "v3_and_below_topics": [{"name": "orders", "partitions": [0]}],
    },
    "add_offsets_to_txn": _TRANSACTION,
    "end_txn": {**_TRANSACTION, "committed": True},
    "txn_offset_commit": {**_MEMBER, **_TRANSACTION, "topics": _OFFSETS},
    "describe_configs": {
        "resources": [{"resource_type": 2, "resource_name": "orders", "configuration_keys": None}],
        "include_synonyms": False,
        "include_documentation": False,
    },
    "alter_configs": {
        "resources": [{"resource_type": 2, "resource_name": "orders", "configs": []}],
        "validate_only": False,
    },
    "create_partitions": {
        "topics": [{"name": "orders", "count": 9, "assignments": None}],
        "timeout": 1,
        "validate_only": True,
    },
    "incremental_alter_configs": {
        "resources": [
            {
                "resource_type": 32,
                "resource_name": "g",
                "configs": [
                    {
                        "name": "share.auto.offset.reset",
                        "config_operation": 0,
                        "value": "earliest",
                    }
                ],
            }
        ],
        "validate_only": False,
    },
    "list_config_resources": {"resource_types": []},
    "share_fetch": {
        **_SHARED,
        "max_wait": 1,
        "min_bytes": 1,
        "max_bytes": 9999,
        "max_records": 10,
        "batch_size": 10,
        "forgotten_topics_data": [],
    },
    "share_acknowledge": _SHARED,
    "describe_share_group_offsets": {
        "groups": [{"group_id": "s", "topics": [{"topic_name": "orders", "partitions": [0]}]}]
    },
    "alter_share_group_offsets": {
        "group_id": "s",
        "topics": [
            {
                "topic_name": "orders",
                "partitions": [{"partition_index": 0, "start_offset": 1}],
            }
        ],
    },
    "delete_share_group_offsets": {"group_id": "s", "topics": [{"topic_name": "orders"}]},
    "delete_groups": {"groups_names": ["g", "g"]},
    "offset_delete": {
        "group_id": "g",
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}],
    },
    "describe_cluster": {
        "include_cluster_authorized_operations": False,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    },
    "describe_transactions": {"transactional_ids": ["p"]},
}


def address(broker: RunningBroker) -> tuple[str, int]:
    host, _, port = broker.address.partition(":")
    return host, int(port)


def connection(broker: RunningBroker, client_id: str = "c") -> Connection:
    return Connection(*address(broker), client_id=client_id)


def by_hand(broker: RunningBroker) -> socket.socket:
    return socket.create_connection(address(broker), FAR_S)


def join(one: Connection, group_id: str = "g", version: int = 3) -> Any:
    """Sends a JoinGroup of a new dynamic member and returns its answer.

    Its session is so long that no test outlasts it without heartbeats.
    """
    return one.ask(
        "join_group",
        version,
        group_id=group_id,
        session_timeout=1_800_000,
        rebalance_timeout=10_000,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )


class running:  # noqa: N801
    """`kafka-rebalance serve` as a process, on a free port; it may open `files` files."""

    def __init__(self, *arguments: str, files: int = 1024) -> None:
        command = [sys.executable, "-m", "kafka_rebalance", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> tuple[subprocess.Popen[str], str, int]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        host, _, port = line.split()[2].rstrip(";").partition(":")
        return self.process, host, int(port)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

# SPDX-License-Identifier: Apache-2.0
"""Sends the JSON commands of a scenario to a real broker as requests; a wait takes real time.

`tell` returns an answer in JSON. A join or sync that the broker holds back blocks its connection,
because Kafka answers a connection's requests in order; then the next request uses another
connection. `more` returns the answers that were held back. `lag_ms` is the largest delay of a step
behind the scenario's clock.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from . import cluster
from .cast import sync_version
from .cluster import described, must, until_ready
from .scenarios import SWEEP_MS
from .wire import Connection, WireError, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kio.schema.errors import ErrorCode

    from .cast import Command

Event = dict[str, Any]

MOST_CONNECTIONS = 24
"""The largest number of connections of one scenario."""


def bytes_of(text: str) -> bytes:
    """Decodes bytes in the form of JSON commands: `hex:…`, or text."""
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


def text_of(data: bytes) -> str:
    printable = all(32 <= byte <= 126 for byte in data)
    return data.decode() if printable else "hex:" + data.hex()


def error_name(code: ErrorCode) -> str:
    return code.name.upper()


class WirePlayer:
    """Plays one scenario; `prefix` makes its groups, transactions and deleted topics unique."""

    live = True

    def __init__(self, host: str, port: int, prefix: str, doomed: Sequence[str] = ()) -> None:
        self.lag_ms = 0.0
        self._home = self._coordinator = self._next = (host, port)
        self._prefix = prefix
        self._doomed = set(doomed)
        self._connections: list[Connection] = []
        self._parked: dict[Connection, tuple[int, str]] = {}
        self._count = 0
        self._producers: dict[int, tuple[int, int]] = {}
        self._in_transaction: set[tuple[int, str]] = set()
        self._due = 0.0

    def begin(self) -> None:
        if self._doomed:
            cluster.create_topics(
                self._free("parity"), [self._topic(name) for name in self._doomed]
            )
        self._due = time.monotonic()

    def tell(self, command: Command) -> dict[str, Any]:
        """Sends a command and returns the answer, with its "id" and "events"."""
        self._count += 1
        if command["op"] != "describe":
            self.lag_ms = max(self.lag_ms, (time.monotonic() - self._due) * 1000)
        answer = getattr(self, "_" + command["op"])(command) or {}
        return {**answer, "id": self._count, "events": self.more(0)}

    def more(self, timeout_s: float) -> list[Event]:
        """Waits up to `timeout_s` for answers that the broker has held back, and returns them."""
        events: list[Event] = []
        for connection in readable(list(self._parked), timeout_s) if self._parked else []:
            response = connection.receive()
            if response is not None:
                number, kind = self._parked.pop(connection)
                events.append({"ev": kind, "id": number, **_EVENTS[kind](response)})
        return events

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Operations; each is named after its JSON command's `op`.

    def _advance(self, command: Command) -> None:
        # The sleep ends at a time of the scenario's clock, so that delays of steps do not add up.
        self._due += command["ms"] / 1000
        time.sleep(max(0.0, self._due - time.monotonic()))

    def _sweep(self, command: Command) -> None:
        self._advance(command)
        time.sleep(1.5 * SWEEP_MS / 1000)
        self._due = time.monotonic()

    def _unload(self, _: Command) -> None:
        old = self._free("parity")
        nodes = cluster.addresses(old)
        (there,) = cluster.leaders(old)
        (other,) = nodes.keys() - {there}
        cluster.move(old, other)
        # Requests still go to the old broker; wait until it knows that the groups have moved.
        cluster.wait(
            lambda: described(old, "g").error_code.name == "not_coordinator",
            "the old coordinator kept its groups",
        )
        self._next = nodes[other]
        self._due = time.monotonic()

    def _reload(self, _: Command) -> None:
        self._coordinator = self._next
        cluster.load_groups(self._free("parity"))
        self._due = time.monotonic()

    def _join(self, command: Command) -> None:
        self._park(
            command, "join_group", command["v"], command.get("client", "c"),
            session_timeout=command.get("st", 10_000),
            rebalance_timeout=command.get("rt", 300_000),
            member_id=command["m"],
            group_instance_id=command.get("inst"),
            protocol_type=command.get("pt", "consumer"),
            protocols=[
                {"name": name, "metadata": bytes_of(metadata)}
                for name, metadata in command["protos"]
            ],
        )  # fmt: skip

    def _sync(self, command: Command) -> None:
        self._park(
            command, "sync_group", sync_version(command), "c",
            generation_id=command["gen"],
            member_id=command["m"],
            group_instance_id=command.get("inst"),
            protocol_type=command.get("pt"),
            protocol_name=command.get("pn"),
            assignments=[
                {"member_id": member, "assignment": bytes_of(text)}
                for member, text in command.get("asg", {}).items()
            ],
        )  # fmt: skip

    def _hb(self, command: Command) -> dict[str, Any]:
        answer = self._ask(
            "heartbeat", 4,
            group_id=self._group(command),
            generation_id=command["gen"],
            member_id=command["m"],
            group_instance_id=command.get("inst"),
        )  # fmt: skip
        return {"err": error_name(answer.error_code)}

    def _leave(self, command: Command) -> dict[str, Any]:
        answer = self._ask(
            "leave_group", 5,
            group_id=self._group(command),
            members=[
                {"member_id": one["m"], "group_instance_id": one["inst"]}
                for one in command["members"]
            ],
        )  # fmt: skip
        return {
            "err": error_name(answer.error_code),
            "members": [
                {
                    "m": one.member_id,
                    "inst": one.group_instance_id,
                    "err": error_name(one.error_code),
                }
                for one in answer.members
            ],
        }

    def _commit(self, command: Command) -> dict[str, Any]:
        retention = command.get("retention")
        answer = self._ask(
            # Versions 2 to 4 have a retention time, later versions have none.
            "offset_commit", command.get("v", 9 if retention is None else 4),
            group_id=self._group(command),
            generation_id_or_member_epoch=command["gen"],
            generation_id=command["gen"],
            member_id=command["m"],
            group_instance_id=command.get("inst"),
            retention_time=-1 if retention is None else retention,
            topics=[self._committed(command)],
        )  # fmt: skip
        return {"err": error_name(answer.topics[0].partitions[0].error_code)}

    def _txncommit(self, command: Command) -> dict[str, Any]:
        number, group = command["pid"], self._group(command)
        transaction: dict[str, Any] = {"transactional_id": f"{self._prefix}-{number}"}
        if number not in self._producers:
            answer = until_ready(
                partial(self._ask_home, "init_producer_id", 4, **transaction,
                        transaction_timeout=60_000)
            )  # fmt: skip
            self._producers[number] = (answer.producer_id, answer.producer_epoch)
        producer_id, epoch = self._producers[number]
        transaction |= {"producer_id": producer_id, "producer_epoch": epoch, "group_id": group}
        if (number, group) not in self._in_transaction:
            # Version 3 of these requests uses the older transaction protocol.
            until_ready(partial(self._ask_home, "add_offsets_to_txn", 3, **transaction))
            self._in_transaction.add((number, group))
        answer = self._ask(
            "txn_offset_commit", 3, **transaction,
            generation_id=command["gen"],
            member_id=command["m"],
            group_instance_id=command.get("inst"),
            topics=[self._committed(command)],
        )  # fmt: skip
        return {"err": error_name(answer.topics[0].partitions[0].error_code)}

    def _endtxn(self, command: Command) -> None:
        number = command["pid"]
        name = f"{self._prefix}-{number}"
        producer_id, epoch = self._producers[number]
        until_ready(
            partial(
                self._ask_home, "end_txn", 3,
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=command["commit"],
            )
        )  # fmt: skip
        self._in_transaction = {key for key in self._in_transaction if key[0] != number}
        # The broker answers first, then writes the markers, which complete the transaction.
        cluster.wait(
            lambda: self._transaction(name).transaction_state.startswith("Complete"),
            f"the transaction {name} was not completed",
        )

    def _transaction(self, name: str) -> Any:
        answer = self._ask_home("describe_transactions", 0, transactional_ids=[name])
        return answer.transaction_states[0]

    def _fetch(self, command: Command) -> dict[str, Any]:
        topic = {
            "name": self._topic(command.get("topic", "t")),
            "partition_indexes": [command.get("p", 0)],
        }
        group = self._ask(
            "offset_fetch", 9,
            groups=[{"group_id": self._group(command), "topics": [topic]}],
            require_stable=command.get("stable", False),
        ).groups[0]  # fmt: skip
        answer = {"gerr": error_name(group.error_code)}
        if group.topics:
            one = group.topics[0].partitions[0]
            answer |= {
                "err": error_name(one.error_code), "off": one.committed_offset, "md": one.metadata
            }  # fmt: skip
        return answer

    def _delete_offsets(self, command: Command) -> dict[str, Any]:
        answer = self._ask(
            "offset_delete", 0,
            group_id=self._group(command),
            topics=[{
                "name": self._topic(command.get("topic", "t")),
                "partitions": [{"partition_index": command.get("p", 0)}],
            }],
        )  # fmt: skip
        # The response contains an error of the group, or one of a partition.
        errors = [answer, *(one for topic in answer.topics for one in topic.partitions)]
        return {"err": next((error_name(e.error_code) for e in errors if e.error_code), "NONE")}

    def _delete_group(self, command: Command) -> dict[str, Any]:
        answer = self._ask("delete_groups", 2, groups_names=[self._group(command)])
        return {"err": error_name(answer.results[0].error_code)}

    def _topic_deleted(self, command: Command) -> None:
        name = self._topic(command["topic"])
        answer = self._ask("delete_topics", 5, topic_names=[name], timeout=10_000)
        must(answer.responses[0].error_code, name)
        connection = self._free("parity")
        cluster.wait(
            lambda: (
                cluster.topic_of(connection, name).error_code.name == "unknown_topic_or_partition"
            ),
            f"topic {name} is still there",
        )
        self._due = time.monotonic()

    def _describe(self, command: Command) -> dict[str, Any]:
        group = described(self._free("c"), self._group(command))
        return {
            "err": error_name(group.error_code),
            "state": group.group_state,
            "proto": group.protocol_data,
            "ptype": group.protocol_type,
            "members": [
                {
                    "id": one.member_id,
                    "meta": text_of(one.member_metadata),
                    "asg": text_of(one.member_assignment),
                }
                for one in group.members
            ],
        }

    # Names and sockets.

    def _group(self, command: Command) -> str:
        group: str = command["g"]
        return group and f"{self._prefix}-{group}"

    def _topic(self, name: str) -> str:
        return f"{self._prefix}-{name}" if name in self._doomed else name

    def _committed(self, command: Command) -> dict[str, Any]:
        return {
            "name": self._topic(command.get("topic", "t")),
            "partitions": [
                {
                    "partition_index": command.get("p", 0),
                    "committed_offset": command["off"],
                    "committed_leader_epoch": command.get("le", -1),
                    "committed_metadata": command.get("md", ""),
                }
            ],
        }

    def _ask(self, api: str, version: int, **fields: Any) -> Any:
        return self._free("c").ask(api, version, **fields)

    def _ask_home(self, api: str, version: int, **fields: Any) -> Any:
        """Asks the first broker: it stays the coordinator of transactions when groups move."""
        return self._free("c", self._home).ask(api, version, **fields)

    def _park(
        self, command: Command, api: str, version: int, client_id: str, **fields: Any
    ) -> None:
        connection = self._free(client_id)
        connection.send(api, version, group_id=self._group(command), **fields)
        self._parked[connection] = (self._count, command["op"])

    def _free(self, client_id: str, address: tuple[str, int] | None = None) -> Connection:
        """Returns a connection with this client id and no request in flight, perhaps a new one."""
        address = address or self._coordinator
        for connection in self._connections:
            whose = (connection.client_id, connection.address)
            if whose == (client_id, address) and not connection.waiting:
                return connection
        if len(self._connections) == MOST_CONNECTIONS:
            raise WireError(f"more than {MOST_CONNECTIONS} connections")
        connection = Connection(*address, client_id)
        self._connections.append(connection)
        return connection


def _joined(response: Any) -> Event:
    return {
        "err": error_name(response.error_code),
        "gen": response.generation_id,
        "ptype": getattr(response, "protocol_type", None),
        "proto": response.protocol_name,
        "leader": response.leader,
        "member": response.member_id,
        "skip": getattr(response, "skip_assignment", False),
        "members": [
            {
                "id": one.member_id,
                "inst": getattr(one, "group_instance_id", None),
                "meta": text_of(one.metadata),
            }
            for one in response.members
        ],
    }


def _synced(response: Any) -> Event:
    return {
        "err": error_name(response.error_code),
        "ptype": getattr(response, "protocol_type", None),
        "proto": getattr(response, "protocol_name", None),
        "asg": text_of(response.assignment),
    }


_EVENTS = {"join": _joined, "sync": _synced}

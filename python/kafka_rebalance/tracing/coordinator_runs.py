# SPDX-License-Identifier: Apache-2.0
"""Runs a coordinator by hand: a trace has commands, and the effects are added to it as text.

Members have short names, like `c0`, in place of the ids that the coordinator gives them. A name
joins with the id that it already has; `join c0 new` joins without an id.

    config initial_delay=3s max_size=4 min_session=6s metadata=4096 retention=7d
    join c0 instance=i0 session=10s rebalance=60s protocols=range,sticky metadata=x version=9
    sync leader c0=a c1=b          heartbeat c1             leave c0 c1
    commit c0 t-0=5 metadata=x     commit nobody t-0=5      txn-commit nobody t-0=5 producer=7
    end-txn commit producer=7      fetch t-0 stable=yes     delete-offsets t-0
    describe                       groups                   delete-group
    advance 3s (tick 3000)         expire                   delete-topic t
    hold / release / fail-next NOT_ENOUGH_REPLICAS / reload max_size=2 / unload

Every command has `group=` (default: g). Commands of members also have `id=`, `generation=` and
`instance=`, which override the member's own values.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.interface import (
    Append,
    AppendFailed,
    Drop,
    Effect,
    Expired,
    Respond,
    Transition,
    Unreadable,
)
from kafka_rebalance.protocol.error_codes import ErrorCode
from kafka_rebalance.protocol.messages import (
    DeleteGroups,
    DescribeGroups,
    EndTransaction,
    Heartbeat,
    JoinGroup,
    JoinGroupProtocol,
    LeaveGroup,
    ListGroups,
    MemberIdentity,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetToCommit,
    Request,
    SyncGroup,
    TxnOffsetCommit,
)
from kafka_rebalance.protocol.messages import JoinGroupResponse as Joined

from .coordinator_answers import IdNames, response_line
from .text import Command, at, duration_ms, whole
from .virtual_broker import VirtualBroker

_NOBODY = "nobody"


@dataclass(slots=True)
class _Client:
    """A member of the trace: its own id, generation and assignment."""

    name: str
    member_id: str = ""
    generation_id: int = -1
    group_instance_id: str | None = None


@dataclass(slots=True)
class _Asked:
    """A request that was sent, and the name of its sender."""

    client: str
    request: Request


@dataclass(slots=True)
class Tracer:
    """Plays the commands of a trace; `step` plays one and returns the lines of its effects."""

    broker: VirtualBroker = field(default_factory=VirtualBroker)
    _clients: dict[str, _Client] = field(default_factory=dict)
    _asked: dict[int, _Asked] = field(default_factory=dict)
    _names: IdNames = field(default_factory=IdNames)

    def step(self, command: Command) -> list[str]:
        """Plays one command. Errors: GroupError with the line; the command then has no effect."""
        play = _COMMANDS.get(command.words[0])
        if play is None:
            known = ", ".join(_COMMANDS)
            raise command.error(f"no command {command.words[0]!r}; known: {known}")
        play(self, command)
        happened = self.broker.take()
        # First all names, because the leader's list has members whose own response comes later.
        for _, effect in happened:
            self._learn(effect)
        return [f"{at(now_ms)} {self._line(effect)}" for now_ms, effect in happened]

    def send(
        self, command: Command, client: str, request: Request, version: int | None = None
    ) -> None:
        """Sends a request in a client's name."""
        if "version" in command.options:
            version = command.number("version", 0)
        # This is recorded before the request is sent, because the response may come at once.
        number = len(self._asked) + 1
        self._asked[number] = _Asked(client, request)
        self.broker.send(request, api_version=version, client_id=client, request_id=number)

    def client(self, command: Command, name: str) -> _Client:
        """Returns the client of a name, with the values that the command overrides."""
        known = self._clients.setdefault(name, _Client(name))
        instance = command.options.get("instance", known.group_instance_id)
        return _Client(
            name,
            self._names.id_of(command.option("id", known.member_id)),
            command.number("generation", known.generation_id),
            instance or None,
        )

    def join(self, command: Command) -> None:
        """Plays `join c0 [new]`."""
        names = command.words[1:]
        if not names or names[1:] not in ((), ("new",)):
            raise command.error("join NAME [new]")
        known = self._clients.setdefault(names[0], _Client(names[0]))
        if "new" in names[1:]:
            known.member_id, known.generation_id = "", -1
        known.group_instance_id = command.options.get("instance", known.group_instance_id)
        client = self.client(command, names[0])
        metadata = command.option("metadata").encode()
        protocols = command.option("protocols", "range").split(",")
        request = JoinGroup(
            group_id=_group(command),
            member_id=client.member_id,
            group_instance_id=client.group_instance_id,
            session_timeout_ms=command.ms("session", 10_000),
            rebalance_timeout_ms=command.ms("rebalance", 60_000),
            protocol_type=command.option("type", "consumer"),
            protocols=tuple(JoinGroupProtocol(name, metadata) for name in protocols if name),
        )
        self.send(command, client.name, request)

    def sync(self, command: Command) -> None:
        """Plays `sync c1` and `sync leader c0=a c1=b`."""
        name = _one_word(command, "NAME")
        if name == "leader":
            group = self.broker.coordinator.groups().get(_group(command))
            if group is None or group.leader_id is None:
                raise command.error("the group has no leader")
            name = self._names.name_of(group.leader_id)
        client = self.client(command, name)
        given = {
            option: data
            for option, data in command.options.items()
            if option in self._clients and option != "group"
        }
        request = SyncGroup(
            group_id=_group(command),
            member_id=client.member_id,
            generation_id=client.generation_id,
            group_instance_id=client.group_instance_id,
            protocol_type=command.options.get("type", "consumer"),
            protocol_name=command.options.get("protocol", self._protocol(command)),
            assignments=tuple(
                (self._clients[one].member_id, data.encode()) for one, data in given.items()
            ),
        )
        self.send(command, name, request)

    def _protocol(self, command: Command) -> str:
        group = self.broker.coordinator.groups().get(_group(command))
        return (group and group.protocol_name) or "range"

    def heartbeat(self, command: Command) -> None:
        """Plays `heartbeat c1`."""
        client = self.client(command, _one_word(command, "NAME"))
        request = Heartbeat(
            group_id=_group(command),
            member_id=client.member_id,
            generation_id=client.generation_id,
            group_instance_id=client.group_instance_id,
        )
        self.send(command, client.name, request)

    def leave(self, command: Command) -> None:
        """Plays `leave c0 c1` and, for an administrator, `leave instance=i0`."""
        names = command.words[1:]
        entries = []
        for name in names:
            client = self.client(command, name)
            entries.append(MemberIdentity(client.member_id, client.group_instance_id))
        if not names:
            entries = [MemberIdentity("", command.option("instance"))]
        request = LeaveGroup(group_id=_group(command), members=tuple(entries))
        self.send(command, names[0] if names else "admin", request)

    def commit(self, command: Command) -> None:
        """Plays `commit c0 t-0=5`, `commit nobody t-0=5`, and `txn-commit` in these two forms."""
        name = _one_word(command, "NAME or nobody")
        client = _Client(_NOBODY) if name == _NOBODY else self.client(command, name)
        offsets = tuple(
            OffsetToCommit(*_partition(command, option), whole(command, value), metadata)
            for option, value in command.options.items()
            if "-" in option
            for metadata in [command.option("metadata")]
        )
        request: Request
        if command.words[0] == "commit":
            request = OffsetCommit(
                group_id=_group(command),
                offsets=offsets,
                member_id=client.member_id,
                generation_id=client.generation_id,
                group_instance_id=client.group_instance_id,
                retention_ms=command.ms("retention", 0) or None,
            )
        else:
            request = TxnOffsetCommit(
                group_id=_group(command),
                producer_id=command.number("producer", 1),
                offsets=offsets,
                member_id=client.member_id,
                generation_id=client.generation_id,
                group_instance_id=client.group_instance_id,
            )
        self.send(command, client.name, request)

    def end_transaction(self, command: Command) -> None:
        """Plays `end-txn commit producer=7` and `end-txn abort`."""
        how = _one_word(command, "commit or abort")
        if how not in ("commit", "abort"):
            raise command.error("end-txn commit, or end-txn abort")
        producer = command.number("producer", 1)
        request = EndTransaction(producer_id=producer, committed=how == "commit")
        self.send(command, f"producer {producer}", request)

    def fetch(self, command: Command) -> None:
        """Plays `fetch t-0 t-1 stable=yes`; without names it fetches all offsets."""
        named = tuple(_partition(command, name) for name in command.words[1:])
        request = OffsetFetch(
            group_id=_group(command),
            partitions=named or None,
            require_stable=command.option("stable") == "yes",
        )
        self.send(command, "fetch", request)

    def delete_offsets(self, command: Command) -> None:
        """Plays `delete-offsets t-0`."""
        named = tuple(_partition(command, name) for name in command.words[1:])
        self.send(command, "admin", OffsetDelete(group_id=_group(command), partitions=named))

    def describe(self, command: Command) -> None:
        """Plays `describe`."""
        self.send(command, "admin", DescribeGroups(group_ids=(_group(command),)))

    def list(self, command: Command) -> None:
        """Plays `groups`."""
        self.send(command, "admin", ListGroups())

    def delete_group(self, command: Command) -> None:
        """Plays `delete-group`."""
        self.send(command, "admin", DeleteGroups(group_ids=(_group(command),)))

    def config(self, command: Command) -> None:
        """Plays `config …`: a new coordinator with these settings replaces the old one."""
        command.only("initial_delay", "max_size", "min_session", "metadata", "retention")
        config = CoordinatorConfig(
            group_initial_rebalance_delay_ms=command.ms("initial_delay", 3_000),
            group_max_size=command.number("max_size", 2**31 - 1),
            group_min_session_timeout_ms=command.ms("min_session", 6_000),
            offset_metadata_max_bytes=command.number("metadata", 4_096),
            offsets_retention_minutes=command.ms("retention", 604_800_000) // 60_000,
        )
        self.broker = VirtualBroker(config)

    def advance(self, command: Command) -> None:
        """Plays `advance 3s`."""
        self.broker.advance(duration_ms(command, _one_word(command, "DURATION")))

    def _line(self, effect: Effect | AppendFailed) -> str:
        match effect:
            case Respond(number, response):
                client = self._asked[number].client
                return f"-> {client}: {response_line(response, self._names)}"
            case Transition(group_id, before, after, generation):
                return f"{group_id} {before} -> {after} generation={generation}"
            case Expired(key):
                whose = self._names.name_of(key.member_id) if key.member_id else key.group_id
                return f"{key.kind} of {whose} is due"
            case Append(_, records, _, None):
                return f"append {self._names.records(records)}"
            case Append(_, _, producer, committed):
                return f"append {'COMMIT' if committed else 'ABORT'} of producer {producer}"
            case AppendFailed(_, error):
                return f"append fails: {error}"
            case Drop(number):
                return f"{self._asked[number].client}'s older request gets no answer"
            case Unreadable(position, problem):
                return f"record {position} is passed over: {problem}"

    def _learn(self, effect: Effect | AppendFailed) -> None:
        if not isinstance(effect, Respond) or not isinstance(effect.response, Joined):
            return
        response = effect.response
        client = self._clients[self._asked[effect.request_id].client]
        if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            client.member_id = response.member_id
            self._names.call(response.member_id, client.name)
        if response.error_code is ErrorCode.NONE:
            client.generation_id = response.generation_id


def _group(command: Command) -> str:
    return command.option("group", "g")


def _one_word(command: Command, what: str) -> str:
    if len(command.words) != 2:
        raise command.error(f"{command.words[0]} {what}")
    return command.words[1]


def _partition(command: Command, name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    if not topic:
        raise command.error(f"{name!r} is no partition; t-0 is")
    return topic, whole(command, number)


def _fail_next(tracer: Tracer, command: Command) -> None:
    name = _one_word(command, "ERROR")
    if name not in ErrorCode.__members__:
        raise command.error(f"no error code {name!r}")
    tracer.broker.fail_next(ErrorCode[name])


def _reload(tracer: Tracer, command: Command) -> None:
    size = command.number("max_size", tracer.broker.coordinator.config.group_max_size)
    tracer.broker.reload(group_max_size=size)


def _delete_topic(tracer: Tracer, command: Command) -> None:
    topic = _one_word(command, "TOPIC")
    count = command.number("partitions", 1)
    tracer.broker.delete_partitions(*((topic, number) for number in range(count)))


_COMMANDS: dict[str, Callable[[Tracer, Command], None]] = {
    "config": Tracer.config,
    "join": Tracer.join,
    "sync": Tracer.sync,
    "heartbeat": Tracer.heartbeat,
    "leave": Tracer.leave,
    "commit": Tracer.commit,
    "txn-commit": Tracer.commit,
    "end-txn": Tracer.end_transaction,
    "fetch": Tracer.fetch,
    "delete-offsets": Tracer.delete_offsets,
    "describe": Tracer.describe,
    "groups": Tracer.list,
    "delete-group": Tracer.delete_group,
    "advance": Tracer.advance,
    "tick": Tracer.advance,
    "expire": lambda tracer, _: tracer.broker.sweep(),
    "delete-topic": _delete_topic,
    "hold": lambda tracer, _: tracer.broker.hold(),
    "release": lambda tracer, _: tracer.broker.release(),
    "fail-next": _fail_next,
    "reload": _reload,
    "unload": lambda tracer, _: tracer.broker.unload(),
}

# SPDX-License-Identifier: Apache-2.0
"""Plays the commands of a trace on a coordinator, and returns the effects as lines of the trace.

Members have short names such as `c0` instead of the ids that the coordinator chooses for them.
`join c0` sends the id that c0 already has, if any; `join c0 new` sends no id.

    config initial_delay=3s max_size=4 min_session=6s metadata=4096 retention=7d
    join c0 instance=i0 session=10s rebalance=60s protocols=range,sticky
    join c0 metadata=x version=9
    sync leader c0=a c1=b          heartbeat c1             leave c0 c1
    commit c0 t-0=5 metadata=x     commit nobody t-0=5
    txn-commit nobody t-0=5 producer=7
    end-txn commit producer=7      fetch t-0 stable=yes     delete-offsets t-0
    describe                       groups                   delete-group
    advance 3s (tick 3000)         expire                   delete-topic t
    hold / release / fail-next NOT_ENOUGH_REPLICAS / reload max_size=2 / unload

Every command except `config` takes `group=` (default: g). Commands of members also take `id=`,
`generation=` and `instance=`, which override the member's own values.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_rebalance.coordinator.machine import events as interface
from kafka_rebalance.wire.classic_groups import JoinGroupResponse
from kafka_rebalance.wire.error_codes import ErrorCode

from .driver_commands import Json, config_of, read
from .lines import IdNames, response_line
from .text import Command, at, duration_ms, partition, whole
from .virtual_broker import VirtualBroker

_NOBODY = "nobody"


@dataclass(slots=True)
class _Client:
    """A member in the trace: its present member id, generation and instance id."""

    member_id: str = ""
    generation_id: int = -1
    group_instance_id: str | None = None


@dataclass(slots=True)
class Tracer:
    """Plays a trace. `step` plays one command and returns the lines of its effects."""

    broker: VirtualBroker = field(default_factory=VirtualBroker)
    _clients: dict[str, _Client] = field(default_factory=dict)
    _senders: dict[int, str] = field(default_factory=dict)  # request id -> name of the sender
    names: IdNames = field(default_factory=IdNames)

    def step(self, command: Command) -> list[str]:
        """Plays one command. Errors: GroupError with the line if the command cannot be read."""
        parse = _COMMANDS.get(command.words[0])
        if parse is None:
            known = ", ".join(_COMMANDS)
            raise command.error(f"no command {command.words[0]!r}; known: {known}")
        played: Json = {"g": _group(command), "v": None, "client": ""} | parse(self, command)
        if "version" in command.options:
            played["v"] = command.number("version", 0)
        # Record the sender before the request is sent, because the response may come at once.
        number = len(self._senders) + 1
        self._senders[number] = played["client"]
        if played["op"] == "init":
            self.broker = VirtualBroker(config_of(played))
        else:
            read(self.broker, played, number)()
        happened = self.broker.take()
        # Learn all names first: the leader's response lists members that get their responses later.
        for _, effect in happened:
            self._learn(effect)
        return [f"{at(now_ms)} {self._line(effect)}" for now_ms, effect in happened]

    # Commands of members --------------------------------------------------------------------------

    def member(self, command: Command, name: str) -> Json:
        """Returns the keys of a member's request; options override the member's values."""
        known = self._clients.setdefault(name, _Client())
        return {
            "client": name,
            "m": self.names.id_of(command.option("id", known.member_id)),
            "gen": command.number("generation", known.generation_id),
            "inst": command.options.get("instance", known.group_instance_id) or None,
        }

    def join(self, command: Command) -> Json:
        names = command.words[1:]
        if not names or names[1:] not in ((), ("new",)):
            raise command.error("join NAME [new]")
        known = self._clients.setdefault(names[0], _Client())
        if "new" in names[1:]:
            known.member_id, known.generation_id = "", -1
        known.group_instance_id = command.options.get("instance", known.group_instance_id)
        protocols = command.option("protocols", "range").split(",")
        metadata = command.option("metadata")
        return {
            "op": "join",
            **self.member(command, names[0]),
            "st": command.ms("session", 10_000),
            "rt": command.ms("rebalance", 60_000),
            "pt": command.option("type", "consumer"),
            "protos": [(name, metadata) for name in protocols if name],
        }

    def sync(self, command: Command) -> Json:
        """Reads `sync c1` and `sync leader c0=a c1=b`."""
        name = _one_word(command, "NAME")
        group = self.broker.coordinator.classic_group(_group(command))
        if name == "leader":
            if group is None or group.leader_id is None:
                raise command.error("the group has no leader")
            name = self.names.name_of(group.leader_id)
        given = {
            self._clients[option].member_id: data
            for option, data in command.options.items()
            if option in self._clients and option != "group"
        }
        protocol = (group and group.protocol_name) or "range"
        return {
            "op": "sync",
            **self.member(command, name),
            "pt": command.option("type", "consumer"),
            "pn": command.option("protocol", protocol),
            "asg": given,
        }

    def heartbeat(self, command: Command) -> Json:
        return {"op": "hb", **self.member(command, _one_word(command, "NAME"))}

    def leave(self, command: Command) -> Json:
        """Reads `leave c0 c1` and, for an administrator, `leave instance=i0`."""
        members = [self.member(command, name) for name in command.words[1:]]
        if not members:
            members = [{"client": "admin", "inst": command.option("instance")}]
        return {"op": "leave", "client": members[0]["client"], "members": members}

    def commit(self, command: Command) -> Json:
        """Reads `commit c0 t-0=5` and `commit nobody t-0=5`; also with `txn-commit`."""
        name = _one_word(command, "NAME or nobody")
        return {
            "op": "commit" if command.words[0] == "commit" else "txncommit",
            **({"client": name} if name == _NOBODY else self.member(command, name)),
            "offsets": [
                (*partition(command, option), whole(command, value))
                for option, value in command.options.items()
                if "-" in option
            ],
            "md": command.option("metadata"),
            "retention": command.ms("retention", 0) or None,
            "pid": command.number("producer", 1),
        }

    # Effects --------------------------------------------------------------------------------------

    def _line(self, effect: interface.Effect | interface.AppendFailed) -> str:
        match effect:
            case interface.Respond(number, response):
                return f"-> {self._senders[number]}: {response_line(response, self.names)}"
            case interface.Transition(group_id, before, after, generation):
                return f"{group_id} {before} -> {after} generation={generation}"
            case interface.Expired(key):
                whose = self.names.name_of(key.member_id) if key.member_id else key.group_id
                return f"{key.kind} of {whose} is due"
            case interface.Append(_, records, _, None):
                return f"append {self.names.records(records)}"
            case interface.Append(_, _, producer, committed):
                return f"append {'COMMIT' if committed else 'ABORT'} of producer {producer}"
            case interface.AppendFailed(_, error):
                return f"append fails: {error}"
            case interface.PatternsDue(group_id, _):
                return f"patterns of {group_id} are due"
            case interface.ShareStateDue(group_id, _):
                return f"share state of {group_id} is due"
            case interface.Drop(number):
                return f"{self._senders[number]}'s older request gets no answer"
            case interface.Unreadable(position, problem):
                return f"the load fails at record {position}: {problem}"

    def _learn(self, effect: interface.Effect | interface.AppendFailed) -> None:
        """Stores the member id and generation that a JoinGroup response assigns to its sender."""
        if not isinstance(effect, interface.Respond):
            return
        response, name = effect.response, self._senders[effect.request_id]
        if not isinstance(response, JoinGroupResponse):
            return
        if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._clients[name].member_id = response.member_id
            self.names.call(response.member_id, name)
        if response.error_code is ErrorCode.NONE:
            self._clients[name].generation_id = response.generation_id


# Other commands -----------------------------------------------------------------------------------


def _end_transaction(_: Tracer, command: Command) -> Json:
    how = _one_word(command, "commit or abort")
    if how not in ("commit", "abort"):
        raise command.error("end-txn commit, or end-txn abort")
    producer = command.number("producer", 1)
    client = f"producer {producer}"
    return {"op": "endtxn", "client": client, "pid": producer, "commit": how == "commit"}


def _fetch(_: Tracer, command: Command) -> Json:
    """Reads `fetch t-0 t-1 stable=yes`; without partitions, it fetches all offsets."""
    stable = command.option("stable") == "yes"
    named = _partitions(command) or None
    return {"op": "fetch", "client": "fetch", "partitions": named, "stable": stable}


def _config(_: Tracer, command: Command) -> Json:
    command.only("initial_delay", "max_size", "min_session", "metadata", "retention")
    return {
        "op": "init",
        "init_delay": command.ms("initial_delay", 3_000),
        "max_size": command.number("max_size", 2**31 - 1),
        "min_st": command.ms("min_session", 6_000),
        "meta_max": command.number("metadata", 4_096),
        "ret_min": command.ms("retention", 604_800_000) // 60_000,
    }


def _advance(_: Tracer, command: Command) -> Json:
    return {"op": "advance", "ms": duration_ms(command, _one_word(command, "DURATION"))}


def _delete_topic(_: Tracer, command: Command) -> Json:
    topic = _one_word(command, "TOPIC")
    numbers = range(command.number("partitions", 1))
    return {"op": "topic_deleted", "partitions": [(topic, number) for number in numbers]}


def _fail_next(_: Tracer, command: Command) -> Json:
    name = _one_word(command, "ERROR")
    if name not in ErrorCode.__members__:
        raise command.error(f"no error code {name!r}")
    return {"op": "fail_next", "err": name}


def _fixed(op: str, client: str = "") -> Callable[[Tracer, Command], Json]:
    """Returns a function that reads a command without words or options of its own."""
    return lambda *_: {"op": op, "client": client}


# Maps a trace command to the function that turns it into a JSON command.
_COMMANDS: dict[str, Callable[[Tracer, Command], Json]] = {
    "config": _config,
    "join": Tracer.join,
    "sync": Tracer.sync,
    "heartbeat": Tracer.heartbeat,
    "leave": Tracer.leave,
    "commit": Tracer.commit,
    "txn-commit": Tracer.commit,
    "end-txn": _end_transaction,
    "fetch": _fetch,
    "delete-offsets": lambda _, command: {
        "op": "delete_offsets",
        "client": "admin",
        "partitions": _partitions(command),
    },
    "describe": _fixed("describe", "admin"),
    "groups": _fixed("list", "admin"),
    "delete-group": _fixed("delete_group", "admin"),
    "advance": _advance,
    "tick": _advance,
    "expire": _fixed("cleanup"),
    "delete-topic": _delete_topic,
    "hold": _fixed("hold"),
    "release": _fixed("release"),
    "fail-next": _fail_next,
    "reload": lambda tracer, command: {
        "op": "reload",
        "max_size": command.number("max_size", tracer.broker.coordinator.config.group_max_size),
    },
    "unload": _fixed("unload"),
}


def _group(command: Command) -> str:
    return command.option("group", "g")


def _one_word(command: Command, what: str) -> str:
    if len(command.words) != 2:
        raise command.error(f"{command.words[0]} {what}")
    return command.words[1]


def _partitions(command: Command) -> list[tuple[str, int]]:
    return [partition(command, name) for name in command.words[1:]]

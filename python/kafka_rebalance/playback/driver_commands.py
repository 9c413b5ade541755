# SPDX-License-Identifier: Apache-2.0
"""Plays commands on a virtual broker, for the JSON driver and for the traces of a coordinator.

A command is an object with an `op` and short keys: `{"op": "hb", "g": "g", "m": "c-1", "gen": 3}`.
An op either sends a request (`REQUESTS`) or acts on the broker (`ACTIONS`).

A command is first read, then played: a wrong command fails when it is read, and changes nothing.
An error while a command is played is an error of the coordinator.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from itertools import repeat
from types import UnionType
from typing import Any, get_args, get_origin

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.coordinator.machine.events import ClusterTopic
from kafka_rebalance.group.declared_types import check_fields, field_hints, fits
from kafka_rebalance.java.hash_map import Uuid
from kafka_rebalance.wire import broker_groups as broker_assigned
from kafka_rebalance.wire import classic_groups as classic
from kafka_rebalance.wire import offsets, streams_groups
from kafka_rebalance.wire.broker_groups import TopicPartitions
from kafka_rebalance.wire.classic_groups import JoinGroupProtocol
from kafka_rebalance.wire.error_codes import ErrorCode
from kafka_rebalance.wire.messages import Request, field_names
from kafka_rebalance.wire.offsets import OffsetToCommit
from kafka_rebalance.wire.streams_groups import (
    InternalTopic,
    StreamsSubtopology,
    SubtopologyTasks,
)

from .virtual_broker import VirtualBroker

Json = dict[str, Any]
Step = Callable[[], object]
"""A function that plays a command; the command has already been read."""

# Maps an op to its request, and to the request's version if the command has no `v`.
REQUESTS: dict[str, tuple[type[Request], int | None]] = {
    "join": (classic.JoinGroup, 9),
    "sync": (classic.SyncGroup, 4),  # from version 5 on, protocol type and name are mandatory
    "hb": (classic.Heartbeat, None),
    "leave": (classic.LeaveGroup, None),
    "commit": (offsets.OffsetCommit, 9),
    "txncommit": (offsets.TxnOffsetCommit, 3),  # version 6: an absent group has its own error
    "endtxn": (offsets.EndTransaction, None),
    "fetch": (offsets.OffsetFetch, None),
    "delete_offsets": (offsets.OffsetDelete, None),
    "delete_group": (classic.DeleteGroups, None),
    "describe": (classic.DescribeGroups, 5),  # from version 6 on, an absent group is an error
    "list": (classic.ListGroups, None),
    "chb": (broker_assigned.ConsumerGroupHeartbeat, 1),
    "cdescribe": (broker_assigned.ConsumerGroupDescribe, None),
    "shb": (broker_assigned.ShareGroupHeartbeat, 1),
    "sdescribe": (broker_assigned.ShareGroupDescribe, None),
    "sthb": (streams_groups.StreamsGroupHeartbeat, 1),
    "stdescribe": (streams_groups.StreamsGroupDescribe, None),
}


def _pairs(text: str) -> Json:
    return dict(pair.split("=") for pair in text.split())


# Maps a field of a request, or of an entry in it, to its key in a command, if the two differ.
_KEYS = _pairs(
    "member_id=m group_instance_id=inst instance_id=inst generation_id=gen member_epoch=epoch "
    "session_timeout_ms=st rebalance_timeout_ms=rt protocol_type=pt protocol_name=pn "
    "retention_ms=retention require_stable=stable producer_id=pid committed=commit rack_id=rack "
    "subscribed_topic_regex=regex server_assignor=assignor process_id=process client_tags=tags "
    "shutdown_application=shutdown protocols=protos subscribed_topic_names=topics "
    "active_tasks=active standby_tasks=standby warmup_tasks=warmup source_topics=sources "
    "source_topic_regex=regexes state_changelog_topics=changelogs "
    "repartition_sink_topics=repartition_sinks repartition_source_topics=repartition_sources"
)

# Maps a key of an `init` command to the end of a setting's name, which begins with `group_`.
_SETTINGS = _pairs(
    "init_delay=initial_rebalance_delay_ms max_size=max_size min_st=min_session_timeout_ms "
    "max_st=max_session_timeout_ms cst=consumer_session_timeout_ms "
    "chi=consumer_heartbeat_interval_ms cmax=consumer_max_size "
    "cai=consumer_assignment_interval_ms assignors=consumer_assignors "
    "policy=consumer_migration_policy rri=consumer_regex_refresh_interval_ms "
    "sst=share_session_timeout_ms shi=share_heartbeat_interval_ms smax=share_max_size "
    "sai=share_assignment_interval_ms tst=streams_session_timeout_ms "
    "thi=streams_heartbeat_interval_ms tmax=streams_max_size "
    "tai=streams_assignment_interval_ms tird=streams_initial_rebalance_delay_ms "
    "tsr=streams_num_standby_replicas twu=streams_num_warmup_replicas "
    "tags=streams_rack_aware_assignment_tags"
)

_ASSIGNMENTS = field_hints(classic.SyncGroup)["assignments"]
_NAMED = (tuple[str, bytes], StreamsSubtopology, SubtopologyTasks)

# Maps a command's key to its default, where the request's field has none or a different one.
_DEFAULTS: Json = {"m": "", "gen": -1, "st": 10_000}


def read(broker: VirtualBroker, command: Json, number: int) -> Step:
    """Reads a command; its request will have the id `number`.

    Errors: AttributeError, KeyError, TypeError or ValueError (such as GroupError) if the command is
    wrong.
    """
    op = command["op"]
    if op in ACTIONS:
        return ACTIONS[op](broker, command)
    kind, version = REQUESTS[op]
    request = _request(broker, kind, command)
    check_fields(request)
    return partial(
        broker.send,
        request,
        api_version=_given(command, "v", int | None, version),
        client_id=_given(command, "client", str, "c"),
        request_id=number,
    )


def start(command: Json, new_id: Callable[[], str] | None) -> VirtualBroker:
    """Returns a new broker for an `init` command. Errors: those of `read`."""
    return VirtualBroker(config_of(command), new_id, _given(command, "at", int, 0))


def config_of(command: Json) -> CoordinatorConfig:
    """Returns the settings of an `init` command. Errors: those of `read`."""
    values = {f"group_{name}": command[key] for key, name in _SETTINGS.items() if key in command}
    values = {name: tuple(one) if isinstance(one, list) else one for name, one in values.items()}
    others = {"offset_metadata_max_bytes": "meta_max", "offsets_retention_minutes": "ret_min"}
    values |= {name: command[key] for name, key in others.items() if key in command}
    return CoordinatorConfig(**values)


def group_id_of(command: Json) -> str:
    return str(command.get("g", "g"))


# Requests -----------------------------------------------------------------------------------------


def _request(broker: VirtualBroker, kind: Any, command: Json) -> Any:
    values: Json = {}
    hints = field_hints(kind)
    for one in fields(kind):
        key = _KEYS.get(one.name, one.name)
        if one.name in _BUILT:
            values[one.name] = _BUILT[one.name](command)
        elif one.name == "topic_partitions":
            values[one.name] = _owned(broker, command)
        elif key in command:
            values[one.name] = _value(hints[one.name], command[key])
        elif one.default is MISSING or (key in _DEFAULTS and one.default is not None):
            values[one.name] = _DEFAULTS[key]
    return kind(**values)


def _value(hint: Any, given: Any) -> Any:
    """Returns the value of a field of this type, converted from JSON.

    Bytes are a string; after `hex:`, it holds hex digits. Entries are a list; those in `_NAMED` are
    an object, whose keys are their first fields. A message is an object; a protocol is a list, and
    an internal topic may be only a name.
    """
    inner = get_args(hint)
    if isinstance(hint, UnionType):
        return None if given is None else _value(inner[0], given)
    if hint is bytes:
        return _bytes(given)
    if get_origin(hint) is tuple:
        each = given.items() if inner[0] in _NAMED else given
        return tuple(map(_value, repeat(inner[0]) if inner[-1] is ... else inner, each))
    if not field_names(hint):
        return given
    hints = field_hints(hint)
    if hint is InternalTopic and isinstance(given, str):
        return InternalTopic(given)
    *first, last = given if hint in (JoinGroupProtocol, *_NAMED) else (given,)
    if first and not isinstance(last, dict):
        return hint(*map(_value, hints.values(), (*first, last)))
    keys = {_KEYS.get(name, name): name for name in hints}
    found = {keys[key]: one for key, one in last.items() if key in keys}
    return hint(*first, **{name: _value(hints[name], one) for name, one in found.items()})


def _offsets(command: Json) -> tuple[OffsetToCommit, ...]:
    """Returns the offsets that a trace's command lists, or the one offset in a JSON command."""
    listed = command.get("offsets", ())
    if "off" in command:
        listed = [(*_partition(command), command["off"])]
    metadata, epoch = command.get("md", ""), command.get("le", -1)
    return tuple(
        OffsetToCommit(topic, number, offset, metadata, epoch) for topic, number, offset in listed
    )


def _partitions(command: Json) -> tuple[tuple[str, int], ...] | None:
    """Returns a trace's `partitions` (None means all), or the one partition in a JSON command."""
    listed = command.get("partitions", (_partition(command),))
    return None if listed is None else tuple(listed)


def _owned(broker: VirtualBroker, command: Json) -> tuple[TopicPartitions, ...] | None:
    """Returns owned partitions by topic id; an unknown topic's id is made from its name."""
    owned = command.get("owned")
    if owned is None:
        return None
    topics = {name: broker.topic(name) for name in owned}
    ids = {name: topic.topic_id if topic else topic_id(name) for name, topic in topics.items()}
    return tuple(TopicPartitions(ids[name], tuple(owned[name])) for name in owned)


# Maps a request's field to the function that builds its value from a command.
_BUILT: dict[str, Callable[[Json], Any]] = {
    "group_id": group_id_of,
    "group_ids": lambda command: (group_id_of(command),),
    "assignments": lambda command: _value(_ASSIGNMENTS, command.get("asg") or {}),
    "offsets": _offsets,
    "partitions": _partitions,
}


def _partition(command: Json) -> tuple[str, int]:
    return command.get("topic", "t"), command.get("p", 0)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()


# Actions ------------------------------------------------------------------------------------------


def _advance(broker: VirtualBroker, command: Json) -> Step:
    ms = _given(command, "ms", int)
    if ms < 0:
        raise ValueError(f"ms: {ms} is less than 0")
    return partial(broker.advance, ms)


def _write(broker: VirtualBroker, command: Json) -> Step:
    value = command.get("v")
    data = None if value is None else bytes.fromhex(value)
    pid = _given(command, "pid", int | None, None)
    return partial(broker.write, bytes.fromhex(command["k"]), data, pid)


def _change_topics(broker: VirtualBroker, command: Json) -> Step:
    topics = [_topic(name, one) for name, one in command["topics"].items()]
    if not all(fits(one, ClusterTopic) for one in topics):
        raise TypeError(f"topics: {command['topics']!r}")
    return partial(broker.change_topics, *topics)


def _delete_partitions(broker: VirtualBroker, command: Json) -> Step:
    deleted = _partitions(command) or ()
    if not fits(deleted, tuple[tuple[str, int], ...]):
        raise TypeError(f"partitions: {deleted!r}")
    return partial(broker.delete_partitions, *deleted)


def _given(command: Json, key: str, hint: Any, *default: Any) -> Any:
    """Returns the value of a command's key. Errors: KeyError without a default; TypeError."""
    value = command.get(key, *default) if default else command[key]
    if not fits(value, hint):
        raise TypeError(f"{key}: {value!r}")
    return value


def _topic(name: str, given: Json | int) -> ClusterTopic:
    """Returns a topic from its number of partitions, or from an object with `partitions`."""
    topic: Json = {"partitions": given} if isinstance(given, int) else given
    racks = tuple(tuple(one) for one in topic.get("racks", ()))
    return ClusterTopic(name, topic_id(topic.get("id", name)), topic["partitions"], racks)


def topic_id(text: str) -> Uuid:
    """Returns an id made of a string's UTF-8 bytes, padded with zeros or cut to 16 bytes."""
    most, least = struct.unpack(">qq", text.encode().ljust(16, b"\0")[:16])
    return most, least


# Op -> the function that makes a command into an action on the broker.
ACTIONS: dict[str, Callable[[VirtualBroker, Json], Step]] = {
    "advance": _advance,
    "topics": _change_topics,
    "topic_deleted": _delete_partitions,
    "cleanup": lambda broker, _: broker.sweep,
    "hold": lambda broker, _: broker.hold,
    "release": lambda broker, _: broker.release,
    "release_last": lambda broker, _: broker.release_last,
    "fail_next": lambda broker, command: partial(broker.fail_next, ErrorCode[command["err"]]),
    "reload": lambda broker, command: partial(
        broker.reload, group_max_size=_given(command, "max_size", int | None, None)
    ),
    "unload": lambda broker, _: broker.unload,
    "raw": _write,
    "rawend": lambda broker, command: partial(
        broker.mark, _given(command, "pid", int), _given(command, "commit", bool)
    ),
}

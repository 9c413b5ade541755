# SPDX-License-Identifier: Apache-2.0
"""Reads groups of a live cluster as contract lines: the groups whose members own partitions.

Every broker lists the groups that it coordinates, and describes them: classic groups in
`classic_groups.py`, others in `broker_groups.py`. Metadata contains the partitions of the
subscribed topics, and the racks of their replicas. Reading changes nothing: it joins no group,
commits no offset and creates no topic. Groups are described at slightly different times.

Order    groups as `group_ids` lists them, else by name; members as the coordinator lists them,
         which is the order in which the leader receives them; partitions as the leader assigned
         them.
Errors   a group that cannot be read is a line with `error`. Each reason why the brokers do not list
         all groups (`offsets_log.py`) is such a line, too, with `group_id` null. ClusterError if
         the cluster cannot be read.
Source   Kafka's DescribeGroups, ListGroups, Metadata and ConsumerProtocol messages.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafka_rebalance.assignors.registry import STREAM
from kafka_rebalance.errors import ClusterError, GroupError
from kafka_rebalance.group.model import quoted
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.wire.streams_groups import DescribedStreamsGroup

from .broker_groups import (
    DESCRIBE_APIS,
    Described,
    StreamsSettings,
    broker_line,
    described_groups,
    has_pattern,
    source_topics,
    streams_line,
    streams_settings,
)
from .classic_groups import application_field, changelog_topics, described_line, subscribed_topics
from .cluster import admin_client
from .described_topics import DescribedTopics, require_described, require_stable, topics_of
from .offsets_log import TOPIC, problems
from .raw_requests import asked, leave_undecoded, may_pass

BATCH = 200
"""The number of groups that are described at a time; this bounds the memory."""

_DESCRIBE = "DESCRIBE"
_UNLISTED = (
    "groups that this user may not Describe, if there are any; it needs Describe on Cluster "
    "kafka-cluster, or on each Group"
)
_OTHER_PROTOCOLS = {
    "connect": "Kafka Connect's workers, which own connectors and tasks; kafka-rebalance connect "
    "--url reads them",
    "sr": "a Schema Registry's nodes, which own no partitions",
}

EMPTY = "state: Empty"
"""The beginning of the error for a group in the state Empty."""
_NO_SUCH_GROUP = "no such group"
NO_SUCH_GROUP = f"group_id: {_NO_SUCH_GROUP}"
"""The beginning of the error for a group that the cluster does not list."""
_NOT_LISTED = f"{_NO_SUCH_GROUP}, or no permission Describe on it"

_Line = dict[str, Any]
_A = TypeVar("_A")
_T = TypeVar("_T")


class _NotAssignedError(GroupError):
    """A group that is absent, is empty or has an unknown assignor; left out unless it was named."""


class Listed(NamedTuple):
    """A group as its coordinator lists it. `state` is "" from a broker before 2.6."""

    coordinator: int
    group_type: str
    protocol_type: str
    state: str

    @property
    def is_assigned_by_broker(self) -> bool:
        return self.group_type.lower() in DESCRIBE_APIS


class Progress(NamedTuple):
    """`done` of `total` groups are read; `changed` classic ones have left the listed state."""

    done: int
    total: int
    changed: int


def snapshot(
    bootstrap_server: str,
    group_ids: Sequence[str] | None = None,
    *,
    configs: Mapping[str, Any] | None = None,
    on_left_out: Callable[[str, str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Iterator[GroupSpec]:
    """Yields the groups of a live cluster whose members own partitions.

    For the parameters, the order and the other errors, see `snapshot_lines`, whose lines also
    contain fields that a GroupSpec lacks, for example a topic's `leaderless`. A group that cannot
    be read, for example because it is rebalancing, raises a GroupError. With `on_left_out`, it is
    reported there instead, and the other groups follow; "*" then also stands for all groups whose
    coordinator is down.
    """
    lines = snapshot_lines(
        bootstrap_server,
        group_ids,
        configs=configs,
        on_left_out=on_left_out,
        on_progress=on_progress,
    )
    for line in lines:
        try:
            group = GroupSpec.from_dict(line)
        except GroupError as error:
            if on_left_out is None:
                error.add_note(f"group_id: {quoted(line['group_id'])}")
                raise
            on_left_out(line["group_id"] or "*", str(error))
        else:
            yield group


def snapshot_lines(
    bootstrap_server: str,
    group_ids: Sequence[str] | None = None,
    *,
    configs: Mapping[str, Any] | None = None,
    on_left_out: Callable[[str, str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_listed: Callable[[Mapping[str, Listed]], None] | None = None,
    applications: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yields one contract line for each live group whose members own partitions.

    Without `group_ids`, these are all such groups that have members; each other group is reported
    to `on_left_out(group_id, why)`; "*" stands for groups that the cluster does not list because
    the user lacks a permission. A group named by the caller always yields a line, if necessary
    `{"group_id": ..., "error": "state: Empty, ..."}`. A group in the middle of a rebalance yields
    an error line in both cases, because its members' subscriptions and assignments are unavailable
    then. If brokers are down, no broker lists the groups that they coordinate. This is reported by
    a line `{"group_id": null, "error": "brokers: ..."}`, or by the line of a group that the caller
    named. `on_progress` is called at the start, after every 200 groups, and at the end. `on_listed`
    is called first, with all groups of the cluster.

    `bootstrap_server` is "host:port", or several separated by commas. `configs` are settings of
    kafka-python's KafkaAdminClient; `client_configs` makes them from Kafka's own settings.

    DescribeGroups does not report the generation. A member that rejoins sends its last generation,
    in the subscription or in the user data. `generation_id` is one more than the newest of these;
    the group's own may be larger, because failed rebalances add to it. If no member sent a
    generation, as in a group that has just formed, it is null.

    The line of a member whose client is not Kafka's newest contains `subscription_version` and
    `user_data`. They describe the form of the member's last subscription; its next one will have
    this form, too.

    The line of a classic Kafka Streams group contains `application` (docs/streams-classic.md),
    which costs three more requests, unless `applications` is False.

    A topic's `leaderless` lists the numbers of its partitions that have no leader, if any.

    The line of a cooperative group contains `rebalance_protocol` if its members' last subscriptions
    show whether they are eager (`live/classic_groups.py`).

    Raises MissingExtra without kafka-python 3, when the first line is requested; ClusterError if
    the cluster cannot be read.
    """
    if isinstance(group_ids, str):
        raise TypeError("group_ids: a sequence of names, not one string")
    with admin_client(bootstrap_server, configs) as admin:
        reader = _Reader(admin, on_progress or (lambda _: None), applications)
        yield from reader.lines(group_ids, on_left_out, on_listed or (lambda _: None))


def topic_lines(
    bootstrap_server: str, names: Iterable[str], *, configs: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Returns name -> topic, as in a contract line, for topics that exist and may be described."""
    with admin_client(bootstrap_server, configs) as admin:
        return _Reader(admin).topics(names)


def why_unlisted(error: str) -> str:
    """Returns the causes, such as brokers that are down, in an unlisted group's error; else ""."""
    beginning = f"group_id: {_NOT_LISTED}; "
    return error.removeprefix(beginning) if error.startswith(beginning) else ""


class _Reader:
    """Reads one cluster once, and each of its topics once."""

    def __init__(
        self,
        admin: Any,
        on_progress: Callable[[Progress], None] = lambda _: None,
        applications: bool = False,
    ) -> None:
        leave_undecoded(admin)
        self._admin = admin
        self._errors: Any = importlib.import_module("kafka.errors")
        self._on_progress = on_progress
        self._applications = applications
        self._changed = 0
        self._silent: dict[int, str] = {}
        self._topics = DescribedTopics(admin)
        self._streams_settings: dict[str, StreamsSettings] = {}

    def lines(
        self,
        group_ids: Sequence[str] | None,
        on_left_out: Callable[[str, str], None] | None,
        on_listed: Callable[[Mapping[str, Listed]], None],
    ) -> Iterator[_Line]:
        cluster = self._learn_racks()
        listed = dict(self._list(self._topics.racks))
        on_listed(listed)
        [offsets] = asked(self._admin.describe_topics, [TOPIC])
        missing = list(problems(self._silent, offsets))
        authorized = cluster.get("authorized_operations")  # None from a broker before 2.8
        hidden = authorized is not None and _DESCRIBE not in authorized
        if group_ids is None and on_left_out and hidden:
            on_left_out("*", _UNLISTED)
        if group_ids is None:
            yield from ({"group_id": None, "error": f"brokers: {one}"} for one in missing)
        wanted = sorted(listed) if group_ids is None else list(dict.fromkeys(group_ids))
        self._on_progress(Progress(0, len(wanted), 0))
        for start in range(0, len(wanted), BATCH):
            for group_id, result in self._batch(wanted[start : start + BATCH], listed):
                if not isinstance(result, GroupError):
                    yield result
                elif group_ids is not None or not isinstance(result, _NotAssignedError):
                    causes = missing if group_id not in listed else []
                    yield {"group_id": group_id, "error": "; ".join([str(result), *causes])}
                elif on_left_out:
                    on_left_out(group_id, str(result))
            done = min(start + BATCH, len(wanted))
            self._on_progress(Progress(done, len(wanted), self._changed))

    def topics(self, names: Iterable[str]) -> dict[str, _Line]:
        self._learn_racks()
        self._topics.learn(names)
        found = {name: self._topics.known(name) for name in names}
        return {name: topic for name, topic in found.items() if isinstance(topic, dict)}

    def _learn_racks(self) -> Mapping[str, Any]:
        """Reads the brokers' racks, and returns the description of the cluster."""
        cluster: Mapping[str, Any] = asked(self._admin.describe_cluster)
        # Fenced brokers are skipped: they are down, and clients do not see their racks.
        self._topics.racks = {
            broker["broker_id"]: broker["rack"]
            for broker in cluster["brokers"]
            if not broker.get("is_fenced")
        }
        return cluster

    def _batch(
        self, group_ids: Sequence[str], listed: Mapping[str, Listed]
    ) -> Iterator[tuple[str, _Line | GroupError]]:
        fit = {group_id: _caught(_fit, listed.get(group_id)) for group_id in group_ids}
        there = {group_id: one for group_id, one in fit.items() if isinstance(one, Listed)}
        described = self._describe(
            {id_: one.coordinator for id_, one in there.items() if not one.is_assigned_by_broker}
        )
        for id_, group in described.items():
            self._changed += listed[id_].state not in ("", group.group_state)
        lines = {id_: _caught(self._without_topics, group) for id_, group in described.items()}
        lines |= self._assigned_by_broker(there)
        self._topics.learn(
            topic for line in lines.values() if isinstance(line, dict) for topic in topics_of(line)
        )
        for group_id, one in fit.items():
            line = one if isinstance(one, GroupError) else lines[group_id]
            yield group_id, line if isinstance(line, GroupError) else self._topics.complete(line)

    def _list(self, brokers: Iterable[int]) -> Iterator[tuple[str, Listed]]:
        for broker in brokers:
            for group in self._listed_by(broker):
                # A broker before 3.8 sends no type, a broker before 2.6 no state.
                kind, state = group.get("group_type") or "classic", group.get("group_state") or ""
                yield group["group_id"], Listed(broker, kind, group["protocol_type"], state)

    def _listed_by(self, broker: int) -> Iterable[Mapping[str, Any]]:
        """Returns the groups that a broker lists; if it does not answer, records its error."""
        try:
            found: Iterable[Mapping[str, Any]] = asked(self._admin.list_groups, broker_ids=[broker])
        except self._errors.KafkaError as error:
            if not may_pass(error):
                raise
            self._silent[broker] = type(error).__name__
            if len(self._silent) == len(self._topics.racks):
                raise
            return ()
        return found

    def _describe(self, coordinators: Mapping[str, int]) -> dict[str, Any]:
        """Returns group id -> the group in the DescribeGroups response."""
        described: dict[str, Any] = {}
        for coordinator in sorted(set(coordinators.values())):
            ids = [group_id for group_id, node in coordinators.items() if node == coordinator]
            answer = asked(self._admin.describe_groups, ids, group_coordinator_id=coordinator)
            if any(isinstance(group, dict) for group in answer.values()):
                raise ClusterError("this version of kafka-python does not return members' bytes")
            described.update(answer)
        return described

    def _assigned_by_broker(self, groups: Mapping[str, Listed]) -> dict[str, _Line | GroupError]:
        """Returns group id -> line or error, for broker-assigned groups."""
        alike: dict[tuple[int, str], list[str]] = {}
        for group_id, one in groups.items():
            if one.is_assigned_by_broker:
                alike.setdefault((one.coordinator, one.group_type.lower()), []).append(group_id)
        if streams := [id_ for (_, kind), ids in alike.items() if kind == "streams" for id_ in ids]:
            self._streams_settings |= asked(streams_settings, self._admin, streams)
        found: dict[str, _Line | GroupError] = {}
        for (coordinator, kind), ids in alike.items():
            described = asked(described_groups, self._admin, coordinator, kind, ids)
            found |= {id_: _caught(self._broker_line, group) for id_, group in described.items()}
        return found

    def _broker_line(self, group: Described | GroupError) -> _Line:
        if isinstance(group, GroupError):
            raise group
        require_described(group)
        _occupied(group.group_state)
        if isinstance(group, DescribedStreamsGroup):
            self._topics.learn(source_topics(group))
            settings = self._streams_settings.get(group.group_id)
            return streams_line(group, self._topics.partitions, settings)
        return broker_line(group, self._topics.every_name() if has_pattern(group) else ())

    def _without_topics(self, group: Any) -> _Line:
        require_described(group)
        _occupied(group.group_state)
        require_stable(group)
        line = described_line(group)
        if group.protocol_data == STREAM and self._applications:
            line["application"] = self._application(group)
        return line

    def _application(self, group: Any) -> _Line:
        """Returns the field of a classic Kafka Streams group; {"error": …} if it cannot be read."""
        try:
            logs = changelog_topics(group.group_id, self._topics.every_name())
            self._topics.learn([*subscribed_topics(group), *logs])
            return asked(application_field, self._admin, group, self._topics, logs)
        except (GroupError, self._errors.KafkaError) as error:
            return {"error": str(error) or type(error).__name__}


def _fit(listed: Listed | None) -> Listed:
    """Returns the listed group. Errors: _NotAssignedError, also if the group is absent or empty."""
    if listed is None:
        raise _NotAssignedError("group_id", _NOT_LISTED)
    kind, name = listed.group_type, listed.protocol_type
    if kind.lower() not in ("classic", *DESCRIBE_APIS):
        why = "no plan plays it: the broker assigns it, by an unknown assignor"
        raise _NotAssignedError("group_type", f"{kind}, {why}")
    if kind.lower() == "classic" and name not in ("consumer", ""):
        why = _OTHER_PROTOCOLS.get(name, "its members own no partitions")
        raise _NotAssignedError("protocol_type", f"{name}, not consumer: {why}")
    _occupied(listed.state)
    return listed


def _occupied(state: str) -> None:
    if state in ("Empty", "Dead"):
        raise _NotAssignedError("state", f"{state}, it has no members")


def _caught(function: Callable[[_A], _T], argument: _A) -> _T | GroupError:
    try:
        return function(argument)
    except GroupError as error:
        return error

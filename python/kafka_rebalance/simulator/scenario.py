# SPDX-License-Identifier: Apache-2.0
"""The classes of a scenario (topics, members, network, events), and variants of scenarios.

A scenario is written in Python with these classes, or in TOML (`scenario_files.py`). Times are in
ms from the scenario's start, and intervals are half-open. All random choices depend on one seed.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from enum import Enum

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Message
from kafka_rebalance.group.contract import check_topic_id
from kafka_rebalance.group.declared_types import check_fields, check_times
from kafka_rebalance.group.field_paths import a_type, objects
from kafka_rebalance.member.config import CLASSIC, CONSUMER, ConsumerConfig, WorkerConfig

from .agenda import Network

_MOST_PARTITIONS = 1_000_000


class TopicPlan(Message):
    """A topic; each of its partitions receives `records_per_second` records.

    Entry `p % len(racks)` of `racks` lists the racks of partition p's replicas. `racks` is None if
    racks are unknown. `topic_id` is in Kafka's form of 22 characters; None means an id made from
    the seed. Errors: GroupError with the field.
    """

    partitions: int
    records_per_second: float = 0.0
    racks: tuple[tuple[str | None, ...], ...] | None = None
    topic_id: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.topic_id is not None:
            check_topic_id(self.topic_id, "topic_id")
        if self.racks == ():
            raise GroupError("racks", "is empty; leave it out where replicas are not known")
        if not 1 <= self.partitions <= _MOST_PARTITIONS:
            problem = f"{self.partitions} is not within 1 to {_MOST_PARTITIONS}"
            raise GroupError("partitions", problem)


class Costs(Message):
    """The time that a member's work takes. Errors: GroupError with the field.

    process_ms      between two calls of poll(), while the member owns partitions
    start_cost_ms   to start a partition (restores state, opens connections)
    stop_cost_ms    to stop a partition (flushes offsets)
    parallel        how many partitions the member starts or stops at the same time
    cold_ms         the extra time of a new process for its first JoinGroup response; a JVM that
                    loads its classes takes tens to hundreds of ms
    """

    process_ms: int = 0
    start_cost_ms: int = 0
    stop_cost_ms: int = 0
    parallel: int = 1
    cold_ms: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)
        if self.parallel < 1:
            raise GroupError("parallel", f"{self.parallel} is less than 1")

    def cost_ms(self, each_ms: int, count: int) -> int:
        """Returns the time in ms that `count` starts (or stops) take, if each takes `each_ms`."""
        return -(-count // self.parallel) * each_ms


MemberConfig = ConsumerConfig | WorkerConfig


class MemberPlan(Message):
    """A member that starts at `start_ms`: a consumer, or a Connect worker.

    A consumer subscribes to `topics`, or to all topics whose whole name matches `pattern`. A client
    of the consumer protocol chooses a random member id, unless `member_ids` contains an id for
    this start. Errors: GroupError with the field.
    """

    name: str
    config: MemberConfig
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    start_ms: int = 0
    work: Costs = field(default_factory=Costs)
    member_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)
        if self.pattern is None:
            return
        if self.topics:
            raise GroupError("pattern", "cannot be combined with topics; give one of the two")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise GroupError("pattern", f"{self.pattern!r} is not a pattern: {error}") from None

    def wants(self, topic: str) -> bool:
        """Returns whether the member subscribes to a topic, which need not exist yet."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics


class Kind(Enum):
    """The kinds of events that happen to members, topics, connectors and the broker."""

    STOP = "stop"  # the member closes: a dynamic member leaves the group
    KILL = "kill"  # the process exits without LeaveGroup
    START = "start"  # the member starts again, as a new process
    PAUSE = "pause"  # the member does not poll for `for_ms`, but sends heartbeats
    FREEZE = "freeze"  # the process does nothing for `for_ms`
    CREATE_TOPIC = "create-topic"  # `topic` is created
    DELETE_TOPIC = "delete-topic"  # `topic` is deleted
    GROW = "grow"  # the number of partitions of `topic` becomes `partitions`
    AWAY = "away"  # a broker is down for `for_ms`
    MOVE = "move"  # no coordinator for `for_ms`, then another broker becomes the coordinator
    CREATE = "create"  # a client creates `connectors`, one after another
    DELETE = "delete"  # a client deletes `connectors`, one after another


class Happening(Message):
    """An event of the scenario, at `at_ms`. Errors: GroupError with the field.

    A broker that is AWAY leaves partitions of `topics` (of all topics if empty) without a leader;
    with `rack`, only partitions with all replicas in that rack. If `coordinates`, the broker is
    also the group's coordinator. For `unseen_ms` after its return, the metadata lack `topics` (all
    topics if empty).
    """

    at_ms: int
    kind: Kind
    member: str = ""
    for_ms: int = 0
    topic: str = ""
    partitions: int = 0
    connectors: tuple[str, ...] = ()
    config: MemberConfig | None = None  # the settings with which a member starts again
    topics: tuple[str, ...] = ()
    rack: str = ""
    coordinates: bool = True
    unseen_ms: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)
        if self.kind in (Kind.CREATE, Kind.DELETE) and not self.connectors:
            raise GroupError("connectors", f"is empty; name those to {self.kind.value}")

    @property
    def is_whole_cluster(self) -> bool:
        """Returns whether all brokers of the cluster are away during the event."""
        return self.kind is Kind.AWAY and not (self.topics or self.rack)

    def __str__(self) -> str:
        """Returns a short description: `stop c0`, `orders grows to 9`, `create 90 connectors`."""
        kind, connectors = self.kind.value, f"{len(self.connectors)} connectors"
        texts = {
            Kind.GROW: f"{self.topic} grows to {self.partitions}",
            Kind.CREATE_TOPIC: f"create {self.topic}",
            Kind.DELETE_TOPIC: f"delete {self.topic}",
            Kind.AWAY: f"rack {self.rack} is away" if self.rack else "a broker is away",
            Kind.MOVE: "the coordinator moves",
            Kind.CREATE: f"{kind} {connectors}",
            Kind.DELETE: f"{kind} {connectors}",
        }
        return texts.get(self.kind, f"{kind} {self.member}")


class Scenario(Message):
    """A scenario for one group. `group_id` overrides the members' group ids. Errors: GroupError.

    `connectors` maps connectors to their numbers of tasks, including those created later.
    """

    title: str
    members: tuple[MemberPlan, ...]
    topics: Mapping[str, TopicPlan] = field(default_factory=dict)
    connectors: Mapping[str, int] = field(default_factory=dict)
    happenings: tuple[Happening, ...] = ()
    seed: int = 1
    until_ms: int = 600_000
    group_id: str = "g"
    broker: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    network: Network = field(default_factory=Network)

    def __post_init__(self) -> None:
        self._check_types()
        if self.until_ms < 1:
            raise GroupError("until_ms", f"is {self.until_ms}; nothing can happen")
        if not self.group_id:
            raise GroupError("group_id", "is empty; Kafka refuses that with INVALID_GROUP_ID")
        self._check_names()
        self._check_happenings()
        self._check_growth()
        self._check_members()

    def _check_names(self) -> None:
        names = [member.name for member in self.members]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise GroupError("members", f"{twice!r} is used twice; rename one of the members")
        tasks = {
            f"{name}-{n}": name for name, count in self.connectors.items() for n in range(count)
        }
        for name in self.connectors:
            if name in tasks:
                problem = f"is also the name of a task of {tasks[name]!r}"
                raise GroupError(f"connectors.{name}", problem)

    def _check_happenings(self) -> None:
        known: dict[str, Iterable[str | None]] = {
            "member": {member.name for member in self.members},
            "topic": self.topics,
            "topics": self.topics,
            "connectors": self.connectors,
            "rack": {r for one in self.topics.values() for racks in one.racks or () for r in racks},
        }
        for place, one in enumerate(self.happenings):
            path = f"happenings[{place}]"
            for kind, subjects in _subjects(one):
                for subject in subjects:
                    if subject not in known[kind]:
                        what = _NOUNS.get(kind, kind.removesuffix("s"))
                        raise GroupError(f"{path}.{kind}", f"no {what} {subject!r}")
            if not 0 <= one.at_ms <= self.until_ms:
                raise GroupError(f"{path}.at_ms", f"{one.at_ms} ms is not within the run")

    def _check_members(self) -> None:
        are_workers = {isinstance(plan.config, WorkerConfig) for plan in self.members}
        if len(are_workers) > 1:
            raise GroupError("members", "a group has consumers or Connect workers, not both")
        if True in are_workers and not self.connectors:
            raise GroupError("connectors", "there are none for the workers")
        if False in are_workers and self.connectors:
            raise GroupError("connectors", "there are no workers for them")
        for plan in self.members:
            if plan.start_ms > self.until_ms:
                problem = f"{plan.name} starts at {plan.start_ms} ms, after the end"
                raise GroupError("members", problem)

    def _check_types(self) -> None:
        if not objects(self.members, "members", MemberPlan, "MemberPlan(name=…, config=…)"):
            raise GroupError("members", "empty; a group without members has no rebalances")
        objects(self.happenings, "happenings", Happening, "Happening(at_ms=…, kind=…)")
        forms = {"topics": '{"t": TopicPlan(partitions=2)}', "connectors": '{"connector": tasks}'}
        for name, example in forms.items():
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise GroupError(name, f"{a_type(given)} is not a mapping; give {example}")
        objects([*self.topics.values()], "topics", TopicPlan, "TopicPlan(partitions=…)")
        others = ("title", "connectors", "seed", "until_ms", "group_id", "broker", "network")
        check_fields(self, *others)

    def _check_growth(self) -> None:
        """Checks the changes to topics, in chronological order."""
        partitions = {name: topic.partitions for name, topic in self.topics.items()}
        in_order = sorted(enumerate(self.happenings), key=lambda each: each[1].at_ms)
        created = {one.topic for one in self.happenings if one.kind is Kind.CREATE_TOPIC}
        deleted: set[str] = set()
        for place, one in in_order:
            path = f"happenings[{place}]"
            if one.kind is Kind.CREATE_TOPIC:
                if one.topic not in created:
                    raise GroupError(f"{path}.topic", f"{one.topic!r} is created twice")
                created.discard(one.topic)
            elif one.kind in (Kind.GROW, Kind.DELETE_TOPIC):
                if one.topic in created:
                    raise GroupError(f"{path}.topic", f"{one.topic!r} is not created yet")
                if one.topic in deleted:
                    raise GroupError(f"{path}.topic", f"{one.topic!r} is deleted already")
                if one.kind is Kind.DELETE_TOPIC:
                    deleted.add(one.topic)
                    continue
                if one.partitions <= partitions[one.topic]:
                    problem = f"{one.partitions} are no more than there are; topics only grow"
                    raise GroupError(f"{path}.partitions", problem)
                partitions[one.topic] = one.partitions

    def assumed(self) -> str:
        """Returns the first member's assumed costs as text, and whether others' costs differ."""
        work, kinds = self.members[0].work, {one.work for one in self.members}
        parts = {
            f"starting a {self.held} {work.start_cost_ms} ms": True,
            f"stopping one {work.stop_cost_ms} ms": True,
            f"{work.parallel} at a time": work.parallel > 1,
            f"{work.process_ms} ms between polls": work.process_ms,
            "others differ": len(kinds) > 1,
        }
        return "assumed: " + ", ".join(part for part, holds in parts.items() if holds)

    @property
    def held(self) -> str:
        return "task" if self.connectors else "partition"

    @property
    def moves_coordinator(self) -> bool:
        return any(one.kind in (Kind.MOVE, Kind.AWAY) for one in self.happenings)

    @property
    def has_consumer_protocol(self) -> bool:
        """Returns whether any member has `group.protocol=consumer`, at first or after a restart."""
        configs = [one.config for one in self.members]
        configs += [one.config for one in self.happenings if one.config is not None]
        return any(isinstance(one, ConsumerConfig) and not one.is_classic for one in configs)

    @property
    def heartbeat_interval_ms(self) -> int:
        """Returns the longest heartbeat interval of the members' first settings."""
        return max(map(self._heartbeat_interval_ms, (one.config for one in self.members)))

    def _heartbeat_interval_ms(self, config: MemberConfig) -> int:
        is_classic = isinstance(config, WorkerConfig) or config.is_classic
        broker_ms = self.broker.group_consumer_heartbeat_interval_ms
        return config.heartbeat_interval_ms if is_classic else broker_ms

    def with_protocol(self, eager: bool) -> "Scenario":
        """Returns the scenario with eager members (range; Connect: eager) or cooperative ones."""
        names = ("range",) if eager else ("cooperative-sticky",)
        connect = "eager" if eager else "sessioned"

        def change(one: MemberConfig, _: str) -> MemberConfig:
            if isinstance(one, WorkerConfig):
                return replace(one, connect_protocol=connect)
            classic = one.with_group_protocol(CLASSIC)
            return replace(classic, partition_assignment_strategy=names)

        return self.with_members(change)

    def with_consumer_protocol(self) -> "Scenario":
        """Returns the scenario with members of the consumer protocol. Errors: GroupError."""
        refusal = "Connect has only the classic protocol"
        return self._with_consumers(lambda one, _: one.with_group_protocol(CONSUMER), refusal)

    def with_costs(self, start_ms: int, stop_ms: int) -> "Scenario":
        """Returns the scenario with these costs of starting and stopping a partition or task."""
        members = tuple(
            replace(one, work=replace(one.work, start_cost_ms=start_ms, stop_cost_ms=stop_ms))
            for one in self.members
        )
        return replace(self, members=members)

    def with_static_members(self) -> "Scenario":
        """Returns the scenario with static members: each name is the `group.instance.id`."""
        refusal = "Connect has no static membership"
        return self._with_consumers(lambda one, name: replace(one, group_instance_id=name), refusal)

    def _with_consumers(
        self, change: Callable[[ConsumerConfig, str], ConsumerConfig], refusal: str
    ) -> "Scenario":
        def changed(one: MemberConfig, name: str) -> MemberConfig:
            if isinstance(one, WorkerConfig):
                raise GroupError(f"members.{name}", refusal)
            return change(one, name)

        return self.with_members(changed)

    def with_dynamic_members(self) -> "Scenario":
        """Returns the scenario with dynamic members; Connect's workers are always dynamic."""

        def change(one: MemberConfig, _: str) -> MemberConfig:
            return one if isinstance(one, WorkerConfig) else replace(one, group_instance_id=None)

        return self.with_members(change)

    def with_members(self, change: Callable[[MemberConfig, str], MemberConfig]) -> "Scenario":
        """Returns the scenario with the settings that `change(settings, member name)` returns."""
        members = tuple(replace(one, config=change(one.config, one.name)) for one in self.members)
        happenings = tuple(
            replace(one, config=change(one.config, one.member)) if one.config else one
            for one in self.happenings
        )
        return replace(self, members=members, happenings=happenings)


_NOUNS = {"rack": "replica is in rack"}


def _subjects(one: Happening) -> list[tuple[str, tuple[str, ...]]]:
    """Returns (field, names) for the fields that name members, topics, connectors or racks."""
    match one.kind:
        case Kind.GROW | Kind.CREATE_TOPIC | Kind.DELETE_TOPIC:
            return [("topic", (one.topic,))]
        case Kind.CREATE | Kind.DELETE:
            return [("connectors", one.connectors)]
        case Kind.AWAY:
            return [("topics", one.topics), ("rack", (one.rack,) if one.rack else ())]
        case Kind.MOVE:
            return []
    return [("member", (one.member,))]


def start_condition(assumed: str, option: str) -> str:
    """Returns text such as "if a partition starts in 50 ms": a run's advice depends on this time.

    `assumed` is the text of `Scenario.assumed`. Below 200 ms, the result also advises the `option`
    that sets 200 ms, the time of a consumer that restores state or opens connections.
    """
    found = re.search(r"starting a (\w+) (\d+) ms", assumed)
    assert found is not None
    held, ms = found.groups()
    try_more = f" (try {option} too)" * (int(ms) < 200)
    return f"if a {held} starts in {'no time' if ms == '0' else f'{ms} ms'}{try_more}"

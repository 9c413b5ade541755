"""What is simulated: topics, members, a network, and what happens to them, as plain values.

A scenario is written in Python with these classes, or in TOML (`toml.py`). Times in ms from its
start, half-open intervals, one seed for everything that is drawn.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from kafka_rebalance.coordinator import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.member import ConsumerConfig

from .network import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic, and how many records a second come to each of its partitions."""

    partitions: int
    records_per_second: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What it costs a member to do its work.

    process_ms      between two calls of poll(), while it has partitions
    start_ms        before it can work on a partition (state to restore, connections to open)
    stop_ms         before it has given one up (offsets to flush)
    parallel        how many of them it starts or stops at a time
    """

    process_ms: int = 0
    start_ms: int = 0
    stop_ms: int = 0
    parallel: int = 1

    def cost_ms(self, each_ms: int, count: int) -> int:
        """How long `count` of them take."""
        return -(-count // self.parallel) * each_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """A member: a consumer that subscribes to `topics`, started at `start_ms`."""

    name: str
    consumer: ConsumerConfig
    topics: tuple[str, ...]
    start_ms: int = 0
    work: Work = field(default_factory=Work)


class Kind(Enum):
    """What may happen to members, topics and the broker."""

    STOP = "stop"  # closes: a dynamic member leaves the group
    KILL = "kill"  # is gone without a word
    START = "start"  # starts again, as a new process
    PAUSE = "pause"  # does not poll for `for_ms`, but its heartbeats go on
    FREEZE = "freeze"  # does nothing at all for `for_ms`
    GROW = "grow"  # `topic` gets `partitions` partitions in all
    MOVE = "move"  # another broker coordinates, after `for_ms` of nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something happens at `at_ms`."""

    at_ms: int
    kind: Kind
    member: str = ""
    for_ms: int = 0
    topic: str = ""
    partitions: int = 0
    consumer: ConsumerConfig | None = None  # with which a member starts again


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Errors: GroupError with the field."""

    title: str
    topics: Mapping[str, TopicPlan]
    members: tuple[MemberPlan, ...]
    happenings: tuple[Happening, ...] = ()
    seed: int = 1
    until_ms: int = 600_000
    group_id: str = "g"
    broker: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    network: Network = field(default_factory=Network)

    def __post_init__(self) -> None:
        names = [member.name for member in self.members]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise GroupError("members", f"{twice!r} is there twice")
        for place, one in enumerate(self.happenings):
            path = f"happenings[{place}]"
            if one.kind in (Kind.GROW, Kind.MOVE):
                if one.kind is Kind.GROW and one.topic not in self.topics:
                    raise GroupError(f"{path}.topic", f"no topic {one.topic!r}")
            elif one.member not in names:
                raise GroupError(f"{path}.member", f"no member {one.member!r}")
            if not 0 <= one.at_ms <= self.until_ms:
                raise GroupError(f"{path}.at", f"{one.at_ms} ms is not within the scenario")

    def with_assignors(self, *names: str) -> "Scenario":
        """The same, with other assignors."""
        return self._with_consumers(lambda one: replace(one, partition_assignment_strategy=names))

    def with_static_members(self) -> "Scenario":
        """The same, with every member's name as its `group.instance.id`."""
        members = tuple(
            replace(one, consumer=replace(one.consumer, group_instance_id=one.name))
            for one in self.members
        )
        return replace(self, members=members)

    def _with_consumers(self, change: Callable[[ConsumerConfig], ConsumerConfig]) -> "Scenario":
        members = tuple(replace(one, consumer=change(one.consumer)) for one in self.members)
        happenings = tuple(
            replace(one, consumer=change(one.consumer)) if one.consumer else one
            for one in self.happenings
        )
        return replace(self, members=members, happenings=happenings)

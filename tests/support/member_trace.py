# SPDX-License-Identifier: Apache-2.0
"""Plays the commands of a trace on one member, and returns the member's actions as lines.

    config assignors=range,sticky auto_commit=no instance=i session_timeout=45s
           heartbeat_interval=3s max_poll_interval=5m       (on one line)
    topics t=4 u=1               subscribe t u       subscribe-pattern t.*
    poll t-0=7                   unsubscribe         close
    answer FindCoordinator node=3
    answer JoinGroup MEMBER_ID_REQUIRED member=m
    answer JoinGroup generation=1 member=m leader=x protocol=sticky
    answer JoinGroup generation=1 member=m leader=m members=m,x[t,u] skip_assignment=yes
    answer SyncGroup t-0 t-1     answer Heartbeat REBALANCE_IN_PROGRESS
    fail JoinGroup               advance 3s          show
    mark / again
    nodes 1=ready:2 2=connecting 3=away:9s 4=backing-off 5=full offset=1

    config worker protocol=sessioned max_delay=5m session_timeout=10s heartbeat_interval=3s
           rebalance_timeout=1m                             (on one line)
    configuration 3 c=2 d=1
    answer JoinGroup generation=1 member=m leader=m members=m,x@3[c,c-0] protocol=compatible
    answer SyncGroup c c-0 offset=3 leader=m revoked=d,d-0 delay=5m error=1
    answer SyncGroup as-sent

Connect's work is named as in Kafka: `c` is a connector, `c-0` a task. `x@3[c,c-0]` is another
worker's report: its configuration offset 3 and its work. `as-sent` is the assignment that the
worker, as the leader, has sent for itself.

The trace stands for the application (`poll t-0=7`: it has consumed t-0 up to offset 7), the cluster
(`topics`) and the network (`answer` and `fail` end the last request of that kind). `advance` runs
the heartbeat thread at its deadlines. `config` makes a new member, and `again` returns to `mark`.
`nodes` shows which node receives a FindCoordinator. Back-offs have no random part here.
"""

import random
from collections.abc import Callable

from kafka_rebalance.group.model import Topic, TopicPartition
from kafka_rebalance.member.config import ConsumerConfig, WorkerConfig
from kafka_rebalance.member.consumer import Consumer
from kafka_rebalance.member.interface import (
    Answered,
    Close,
    ConfigurationUpdated,
    Failed,
    MemberEvent,
    MetadataUpdated,
    Poll,
    Send,
    Subscribe,
    SubscribePattern,
    Unsubscribe,
)
from kafka_rebalance.member.worker import Worker
from kafka_rebalance.playback.lines import effect_line, listed, membership, work_line
from kafka_rebalance.playback.text import Command, at, duration_ms, partition, whole
from kafka_rebalance.wire.messages import Request, Tick
from tests.support.broker_lookup import Node, least_loaded_node

from .member_answers import answer_to


class _NoSpread(random.Random):
    """A random source that always returns the middle of the range."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


class Tracer:
    """Plays a trace; `step` plays one command and returns the lines of its result."""

    def __init__(self) -> None:
        self._marked: tuple[Command, ...] = ()
        self._begin(ConsumerConfig())

    def _begin(self, config: ConsumerConfig | WorkerConfig) -> None:
        self._member: Consumer | Worker
        if isinstance(config, WorkerConfig):
            self._member = Worker(config, url="http://w/", rng=_NoSpread())
        else:
            self._member = Consumer(config, rng=_NoSpread())
        self._now_ms = 0
        self._positions: dict[TopicPartition, int] = {}
        self._sent: dict[int, Request] = {}
        self._played: list[Command] = []
        self._lines: list[str] = []

    def step(self, command: Command) -> list[str]:
        """Plays one command. Errors: GroupError with the line; the command has no effect then."""
        name = command.words[0]
        if name not in _COMMANDS:
            known = ", ".join(_COMMANDS)
            raise command.error(f"no command {name!r}; known: {known}")
        if name in _ONLY and not isinstance(self._member, _ONLY[name]):
            raise command.error(f"a {_ONLY[name].__name__.lower()}'s command")
        self._lines = []
        _COMMANDS[name](self, command)
        if name not in ("mark", "again"):
            self._played.append(command)
        return self._lines

    def _say(self, line: str) -> None:
        self._lines.append(f"{at(self._now_ms)} {line}")

    def _handle(self, event: MemberEvent) -> None:
        before = self._member.coordinator_node
        effects = self._member.handle(event, self._now_ms)
        after = self._member.coordinator_node
        if after != before:
            self._say("coordinator unknown" if after is None else f"coordinator is node {after}")
        for effect in effects:
            if isinstance(effect, Send):
                self._sent[effect.request_id] = effect.request
            self._say(effect_line(effect, self._member.generation_id))

    def config(self, command: Command) -> None:
        """`config …`: replaces the member by a new one, at 0 s."""
        if command.words[1:] == ("worker",):
            self._config_worker(command)
            return
        command.only(
            "assignors",
            "auto_commit",
            "instance",
            "session_timeout",
            "heartbeat_interval",
            "max_poll_interval",
        )
        assignors = command.option("assignors", "range,cooperative-sticky")
        config = ConsumerConfig(
            group_instance_id=command.options.get("instance"),
            partition_assignment_strategy=tuple(assignors.split(",")),
            enable_auto_commit=command.option("auto_commit", "yes") == "yes",
            session_timeout_ms=command.ms("session_timeout", 45_000),
            heartbeat_interval_ms=command.ms("heartbeat_interval", 3_000),
            max_poll_interval_ms=command.ms("max_poll_interval", 300_000),
        )
        self._begin(config)

    def _config_worker(self, command: Command) -> None:
        command.only(
            "protocol", "max_delay", "session_timeout", "heartbeat_interval", "rebalance_timeout"
        )
        config = WorkerConfig(
            connect_protocol=command.option("protocol", "sessioned"),
            scheduled_rebalance_max_delay_ms=command.ms("max_delay", 300_000),
            session_timeout_ms=command.ms("session_timeout", 10_000),
            heartbeat_interval_ms=command.ms("heartbeat_interval", 3_000),
            rebalance_timeout_ms=command.ms("rebalance_timeout", 60_000),
        )
        self._begin(config)

    def configuration(self, command: Command) -> None:
        """`configuration 3 c=2`: the worker has read the configuration up to offset 3."""
        offset = whole(command, _one_word(command, "OFFSET"))
        tasks = tuple((name, whole(command, count)) for name, count in command.options.items())
        self._handle(ConfigurationUpdated(offset, tasks))

    def topics(self, command: Command) -> None:
        """`topics t=4 u=1`: the member receives the cluster's metadata."""
        counts = command.options.items()
        topics = tuple(Topic(name, whole(command, count)) for name, count in counts)
        self._handle(MetadataUpdated(topics))

    def subscribe(self, command: Command) -> None:
        """`subscribe t u`: the application subscribes to topics."""
        self._handle(Subscribe(command.words[1:]))

    def subscribe_pattern(self, command: Command) -> None:
        """`subscribe-pattern t.*`: the application subscribes to a pattern."""
        self._handle(SubscribePattern(_one_word(command, "PATTERN")))

    def poll(self, command: Command) -> None:
        """`poll`, `poll t-0=7`: the application polls; it has consumed t-0 up to offset 7."""
        self._positions |= {
            TopicPartition(*partition(command, name)): whole(command, offset)
            for name, offset in command.options.items()
        }
        self._handle(Poll(tuple(self._positions.items())))

    def answer(self, command: Command) -> None:
        """`answer KIND [ERROR] …`: the response to the last request of this kind arrives."""
        number = self._last(command)
        response = answer_to(self._sent[number], command)
        del self._sent[number]
        self._handle(Answered(number, response))

    def fail(self, command: Command) -> None:
        """`fail KIND`: the last request of this kind gets no response."""
        number = self._last(command)
        del self._sent[number]
        self._handle(Failed(number))

    def _last(self, command: Command) -> int:
        kind = command.words[1] if len(command.words) > 1 else ""
        for number, request in reversed(self._sent.items()):
            if type(request).__name__ == kind:
                return number
        raise command.error(f"no request {kind!r} is without an answer")

    def advance(self, command: Command) -> None:
        """`advance 3s`: time passes, with a tick at each deadline."""
        until_ms = self._now_ms + duration_ms(command, _one_word(command, "DURATION"))
        while (due_ms := self._member.next_deadline_ms()) is not None and due_ms <= until_ms:
            self._now_ms = max(self._now_ms, due_ms)
            self._handle(Tick())
        self._now_ms = until_ms

    def show(self, _: Command) -> None:
        """`show`: prints the state of the member, and its partitions."""
        member = self._member
        who = membership(member.member_id, member.generation_id)
        leader = " leader" if member.is_leader else ""
        if isinstance(member, Worker):
            has = f"runs={work_line(member.running)}"
            has += " at work" if member.is_at_work() else ""
        else:
            has = f"owned={listed(member.owned_partitions)}"
            has += " in poll" if member.is_in_poll else ""
        self._say(f"{member.state} {who}{leader} {has}")

    def mark(self, _: Command) -> None:
        """`mark`: stores the commands since `config`, to return to this state later."""
        self._marked = tuple(self._played)

    def again(self, _: Command) -> None:
        """`again`: returns to the state at `mark`."""
        self._begin(ConsumerConfig())
        for one in self._marked:
            _COMMANDS[one.words[0]](self, one)
        self._played = list(self._marked)
        self._lines = []

    def nodes(self, command: Command) -> None:
        """`nodes 1=ready:2 2=away:9s offset=1`: shows which node gets a FindCoordinator."""
        named = {name: what for name, what in command.options.items() if name != "offset"}
        if not named:
            raise command.error("nodes NUMBER=STATE …")
        nodes = [_node(command, whole(command, name), what) for name, what in named.items()]
        chosen = least_loaded_node(nodes, command.number("offset", 0))
        self._say("asks nobody" if chosen is None else f"asks node {chosen.node_id}")


def _node(command: Command, number: int, what: str) -> Node:
    state, _, more = what.partition(":")
    match state:
        case "ready":
            return Node(node_id=number, ready=True, in_flight=whole(command, more or "0"))
        case "full":
            return Node(node_id=number, ready=True, can_send_more=False)
        case "connecting":
            return Node(node_id=number, connecting=True)
        case "away":
            return Node(node_id=number, last_attempt_ms=duration_ms(command, more or "0"))
        case "backing-off":
            return Node(node_id=number, may_connect=False)
    raise command.error(f"no state {what!r}; ready:2, full, connecting, away:9s, backing-off are")


def _one_word(command: Command, what: str) -> str:
    if len(command.words) != 2:
        raise command.error(f"{command.words[0]} {what}")
    return command.words[1]


_COMMANDS: dict[str, Callable[[Tracer, Command], None]] = {
    "config": Tracer.config,
    "topics": Tracer.topics,
    "configuration": Tracer.configuration,
    "subscribe": Tracer.subscribe,
    "subscribe-pattern": Tracer.subscribe_pattern,
    "unsubscribe": lambda tracer, _: tracer._handle(Unsubscribe()),
    "poll": Tracer.poll,
    "close": lambda tracer, _: tracer._handle(Close()),
    "answer": Tracer.answer,
    "fail": Tracer.fail,
    "advance": Tracer.advance,
    "show": Tracer.show,
    "mark": Tracer.mark,
    "again": Tracer.again,
    "nodes": Tracer.nodes,
}

# Command -> the only kind of member that accepts it.
_ONLY: dict[str, type[Consumer] | type[Worker]] = {
    "configuration": Worker,
    "subscribe": Consumer,
    "subscribe-pattern": Consumer,
    "unsubscribe": Consumer,
    "topics": Consumer,
}

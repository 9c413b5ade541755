# SPDX-License-Identifier: Apache-2.0
"""The memory of a consumer that leads a group with `balanced` or `weighted`.

Each rebalance is answered in these steps:

1. If members and topics are as in the last answer, and that answer withheld partitions or is
   younger than `FREEZE_S` (and, under `weighted`, used weights), its weights are used again. If
   each member also claims only what the last target assigns to it or what it claimed before, that
   target is used again. So the second round of a cooperative rebalance takes no further partition
   from a member.
2. Otherwise `balanced` or `weighted` computes a new target. `weighted` without fresh weights takes
   nothing from an owner; it spreads partitions without an owner evenly by number. With weights,
   members without any partition first get an even share of the load, whatever the budget: else
   those that join late would wait for many rebalances. The leader requests a rebalance for this
   as soon as it has weights, once for these members. If a new leader finds partitions without an
   owner, this may be the second round of another leader: with a budget or weights, it takes
   nothing from an owner.
3. In a cooperative group, a partition is withheld if its new owner does not claim it and another
   member does, however old that claim is: the other member may still read it. A claim that a member
   repeats after two answers against it is ignored: else the partition would be withheld forever.

While the consumer leads, a thread reads the weights. A consumer that led the last rebalance but not
this one stops its thread, so only one member reads a group's offsets.

Source   docs/balance.md; for step 3, KIP-429 and CooperativeStickyAssignor (Kafka 4.4.0).
"""

import asyncio
import math
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafka_rebalance.assignors.registry import BALANCED, LISTED, WEIGHTED, row_of
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, Topic, TopicPartition

from .leader import ConsumerMemory, LegalAnswer, legal, log, without_claimed

COOPERATIVE, EAGER = (
    {name: listed for listed, (name, used) in LISTED.items() if used == protocol}
    for protocol in ("cooperative", "eager")
)

FREEZE_S = 60.0
MAX_AGE_S = 600.0
READ_EVERY_S, FIRST_AFTER_S = 60.0, 10.0
BEGINS_AFTER_S = 1.0
"""Seconds from an answer until the leader reads weights: the rebalance should end before that."""
PAYS_IN_A_ROW = 3
_MOST_WEIGHT = 2**53

Weights = Mapping[tuple[str, int], float]
Source = Weights | Callable[[str, Sequence[TopicPartition]], Weights]
"""Weights by (topic, partition), or a function of group id and partitions that reads them."""


class PlugInOptions(Frozen):
    """The options of a plug-in. Times are in seconds.

    `settings` are as in an assignor's name: "budget=3&tolerance=5%". The leader requests a
    rebalance of uneven loads if its last answer is at least `rebalance_every` old; if None, never.

    Errors   GroupError for wrong settings; ValueError for a wrong `rebalance_every`.
    """

    assignor: str
    settings: str = ""
    weights: Source | None = None
    rebalance_every: float | None = None
    is_cooperative: bool = False

    def __post_init__(self) -> None:
        row_of(self.named)
        if self.rebalance_every is not None and not self.rebalance_every > FREEZE_S:
            problem = f"give more than {FREEZE_S:.0f} seconds, or None"
            raise ValueError(f"rebalance_every: {self.rebalance_every!r} is too short; {problem}")

    @property
    def named(self) -> str:
        return f"{self.assignor}?{self.settings}" if self.settings else self.assignor

    @property
    def taking_nothing(self) -> str:
        """Returns the assignor with a budget of 0 in place of the given one."""
        others = [one for one in self.settings.split("&") if one and not one.startswith("budget=")]
        return f"{self.assignor}?{'&'.join([*others, 'budget=0'])}"


class LastAnswer(Frozen):
    """The last answer, and the topics and members for which the leader computed it."""

    group_id: str
    topics: tuple[Topic, ...]
    members: tuple[Member, ...]
    weights: Weights
    target: LegalAnswer
    withheld: bool
    since: float

    @property
    def holders(self) -> tuple[Member, ...]:
        """Returns the members as if each had received its partitions."""
        held = (one.owning(tuple(self.target[one.member_id]), 0) for one in self.members)
        return tuple(replace(one, subscription_version=None, user_data=None) for one in held)

    def is_of(self, topics: Sequence[Topic], members: Sequence[Member]) -> bool:
        """Returns whether members, subscriptions and topics are as in this answer."""
        return bool(_group(topics, members) == _group(self.topics, self.members))

    def agrees(self, members: Sequence[Member]) -> bool:
        """Returns whether members claim only partitions of this target or of their earlier claims.

        A member that did not receive the answer still claims what it had before.
        """
        before = {member.member_id: set(member.owned_partitions) for member in self.members}
        return all(
            set(member.owned_partitions)
            <= before[member.member_id].union(self.target[member.member_id])
            for member in members
        )


def _group(topics: Sequence[Topic], members: Sequence[Member]) -> Any:
    counts = {topic.name: topic.partitions for topic in topics}
    return counts, {member.member_id: frozenset(member.topics) for member in members}


class Leading:
    """Computes a consumer's answers while it is the leader. `rejoin` requests a rebalance."""

    def __init__(self, options: PlugInOptions, rejoin: Callable[[], None]) -> None:
        self.options, self._rejoin = options, rejoin
        self._last: LastAnswer | None = None
        self._read: tuple[Weights, float] | None = None
        self._shared: set[str] | None = None
        self._against: dict[tuple[str, TopicPartition], int] = {}
        self._has_led = False
        self._pays = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def decide(
        self, group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], _listed: str
    ) -> LegalAnswer:
        """Returns each member's partitions; for the parameters, see `leader.legal`."""
        members = self._without_repeated(tuple(map(_with_history, members)))
        self._has_led = True
        last, now = self._last, time.monotonic()
        # 1.
        frozen = last is not None and last.is_of(topics, members)
        known = self.options.assignor == BALANCED or (last is not None and last.weights)
        recent = last is not None and known and now - last.since < FREEZE_S
        if last is not None and frozen and (last.withheld or recent):
            weights, since = last.weights, last.since
            target = last.target if last.agrees(members) else None
        else:
            weights, since, target = self.fresh(now), now, None
        # 2.
        if target is None:
            target = self._target(group_id, topics, members, weights)
        # 3.
        given = without_claimed(target, members) if self.options.is_cooperative else target
        withheld = sum(map(len, given.values())) < sum(map(len, target.values()))
        self._last = LastAnswer(group_id, topics, members, weights, target, withheld, since)
        self._start()
        return given

    def fresh(self, now: float) -> Weights:
        """Returns the given weights, or those last read unless they are older than `MAX_AGE_S`."""
        source = self.options.weights
        if isinstance(source, Mapping):
            return _sound(source)
        found = self._read
        return found[0] if found is not None and now - found[1] <= MAX_AGE_S else {}

    def end_round(self) -> None:
        """Stops the thread if another member led the rebalance that has just ended."""
        if not self._has_led:
            self.stop()
        self._has_led = False

    def stop(self) -> None:
        self._stop.set()
        self._read = self._last = None

    def _without_repeated(self, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """Returns the members without the claims that they repeat after two answers against them.

        A member that missed an answer still claims what it had, so one such claim is not an error.
        An answer that did not reach even its leader does not count.
        """
        if self._last is None or self._has_led or not self.options.is_cooperative:
            return members
        newest = max((one.generation_id or 0 for one in members), default=0)
        self._against = {
            (one.member_id, tp): self._against.get((one.member_id, tp), 0) + 1
            for one in members
            if one.generation_id == newest
            for tp in set(one.owned_partitions).difference(self._last.target.get(one.member_id, ()))
        }
        ignored = {claim for claim, answers in self._against.items() if answers > 2}
        for who, tp in sorted(ignored):
            log.error("%s claims %s-%s after two answers against it; ignored", who, *tp)
        return tuple(
            replace(
                one,
                owned_partitions=tuple(
                    tp for tp in one.owned_partitions if (one.member_id, tp) not in ignored
                ),
            )
            for one in members
        )

    def _target(
        self, group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...], known: Weights
    ) -> LegalAnswer:
        is_new = self._last is None and _unclaimed(topics, members)
        named = self.options.taking_nothing if is_new else self.options.named
        if self.options.assignor == BALANCED:
            is_limited = "budget=" in self.options.settings
            return legal(group_id, topics, members, named if is_limited else self.options.named)
        if not any((topic.name, p) in known for topic in topics for p in range(topic.partitions)):
            log.info("group %s: no fresh weights; no partition is taken from its owner", group_id)
            return legal(group_id, topics, members, f"{BALANCED}?budget=0")
        weighed = tuple(
            replace(one, weights=tuple(known.get((one.name, p)) for p in range(one.partitions)))
            for one in topics
        )
        if not is_new:
            members = _with_shares(group_id, weighed, members)
        return legal(group_id, weighed, members, named)

    def _start(self) -> None:
        is_running = (
            self._thread is not None and self._thread.is_alive() and not self._stop.is_set()
        )
        if callable(self.options.weights) and not is_running:
            self._stop, self._pays = threading.Event(), 0
            # The thread must not keep a consumer alive that its application has dropped.
            given = weakref.ref(self), self._stop
            self._thread = threading.Thread(target=_keep_reading, args=given, daemon=True)
            self._thread.start()

    def read(self) -> None:
        """Reads the weights; requests a rebalance if `PAYS_IN_A_ROW` readings justify one, or if
        members have no partition.
        """
        last, source = self._last, self.options.weights
        if last is None or not callable(source):
            return
        partitions = [TopicPartition(t.name, p) for t in last.topics for p in range(t.partitions)]
        try:
            weights = _sound(source(last.group_id, partitions))
        except Exception as error:
            log.warning("group %s: the weights cannot be read: %s", last.group_id, error)
            return
        if weights:
            self._read = weights, time.monotonic()
            self._request(last, weights)

    def _request(self, last: LastAnswer, weights: Weights) -> None:
        every = self.options.rebalance_every
        if last.withheld:
            return
        names, held = {one.member_id for one in last.members}, last.holders
        if names != self._shared and _with_shares(last.group_id, last.topics, held) is not held:
            self._shared = names
            log.info("group %s: members have no partition; the leader rejoins", last.group_id)
            self._rejoin()
        elif every is not None:
            target = self._target(last.group_id, last.topics, held, weights)
            pays = any(set(last.target[who]) != set(owned) for who, owned in target.items())
            self._pays = self._pays + 1 if pays else 0
            if self._pays >= PAYS_IN_A_ROW and time.monotonic() - last.since >= every:
                self._pays = 0
                log.info("group %s: the load is uneven; the leader rejoins", last.group_id)
                self._rejoin()


def _with_shares(
    group_id: str, topics: tuple[Topic, ...], members: tuple[Member, ...]
) -> tuple[Member, ...]:
    """Returns the members as if those without a partition owned an even share of the load.

    If a share by load would be empty for one of them, the shares are even by number. These members
    first get partitions without an owner, so a second round takes nothing from a member. If no
    partition has to be taken, the result is `members` itself.
    """
    every, free = _read(topics, members), len(_unclaimed(topics, members))
    idle = [one.member_id for one in members if not one.owned_partitions]
    most = len(idle) * (len(every) // len(members)) - free
    if most <= 0:
        return members
    by_load = f"{WEIGHTED}?budget={most}&tolerance=0%&min-gain=0%"
    answer = legal(group_id, topics, members, by_load)
    if not all(answer[who] for who in idle):
        answer = legal(group_id, topics, members, f"{BALANCED}?budget={most}")
    given = {tp for who in idle for tp in answer[who]}
    if not given:
        return members
    newest = max((one.generation_id or 0 for one in members), default=0)
    return tuple(
        one.owning(tuple(answer[one.member_id]), newest)
        if one.member_id in idle
        else one.owning(
            tuple(tp for tp in one.owned_partitions if tp not in given), one.generation_id
        )
        for one in members
    )


def _read(topics: Sequence[Topic], members: Sequence[Member]) -> set[TopicPartition]:
    read = {name for one in members for name in one.topics}
    return {
        TopicPartition(t.name, p) for t in topics if t.name in read for p in range(t.partitions)
    }


def _unclaimed(topics: Sequence[Topic], members: Sequence[Member]) -> set[TopicPartition]:
    return _read(topics, members).difference(*(one.owned_partitions for one in members))


def _keep_reading(leading: "weakref.ref[Leading]", stop: threading.Event) -> None:
    stop.wait(BEGINS_AFTER_S)
    while (one := leading()) is not None and not stop.is_set():
        one.read()
        wait_s = READ_EVERY_S if one.fresh(time.monotonic()) else min(FIRST_AFTER_S, READ_EVERY_S)
        del one
        stop.wait(wait_s)


def _sound(weights: Weights) -> Weights:
    """Returns only the weights that `weighted` accepts; it treats the others as unknown."""
    return {
        (topic, partition): weight
        for (topic, partition), weight in weights.items()
        if isinstance(weight, int | float) and math.isfinite(weight) and 0 <= weight <= _MOST_WEIGHT
    }


def _with_history(member: Member) -> Member:
    """Moves the generation of an eager member's claims from its user data to `generation_id`."""
    generation = member.user_data_generation_id
    if generation is None:
        return member
    known = generation if generation >= 0 else None
    return replace(member, generation_id=known, user_data_generation_id=None)


def leading(known: ConsumerMemory, options: PlugInOptions, consumer: Any) -> Leading:
    """Returns the `Leading` of a consumer, made at the first call; `consumer` is its coordinator.

    If `consumer` is None, no rebalance is requested. Both clients name the coordinator's method
    `request_rejoin`. aiokafka's method has to run in the present event loop, so the thread that
    reads the weights schedules the call there.
    """
    if known.leading is None:
        weak = (lambda: None) if consumer is None else weakref.ref(consumer)
        loop = asyncio._get_running_loop()

        def rejoin() -> None:
            if (alive := weak()) is not None:
                request = alive.request_rejoin
                loop.call_soon_threadsafe(request) if loop else request()

        known.leading = Leading(options, rejoin)
    return known.leading


class Load:
    """The load of each partition in records a second: produced records, plus lag / `catch_up`.

    It reads the cluster with kafka-python's client, which users of aiokafka have to install too
    (`pip install 'kafka-rebalance[kafka]'`). The first call returns no weights, because a rate
    needs two readings. `configs` are kafka-python's client settings, such as those for TLS.

    Errors   MissingExtra without kafka-python. ClusterError if the cluster cannot be read; the
             leader logs it and tries again.
    """

    def __init__(
        self,
        bootstrap_server: str,
        *,
        catch_up: float = 300.0,
        configs: Mapping[str, Any] | None = None,
    ) -> None:
        from kafka_rebalance.live.cluster import kafka_module

        kafka_module()  # imported now, as a later import in the thread would delay the rebalance
        self._server, self._configs, self._catch_up = bootstrap_server, configs, catch_up
        self._before: dict[str, tuple[float, dict[TopicPartition, int]]] = {}

    def __call__(self, group_id: str, partitions: Sequence[TopicPartition]) -> Weights:
        from kafka_rebalance.live.committed_offsets import group_lags, partition_ends

        now = time.monotonic()
        ends = partition_ends(self._server, partitions, configs=self._configs)
        before = self._before.get(group_id)
        self._before[group_id] = now, ends
        if before is None:
            return {}
        lags = group_lags(self._server, {group_id: partitions}, configs=self._configs)[group_id]
        passed = max(now - before[0], 1e-3)
        return {
            tp: max(0, end - before[1][tp]) / passed + lags.get(tp, 0) / self._catch_up
            for tp, end in ends.items()
            if tp in before[1]
        }

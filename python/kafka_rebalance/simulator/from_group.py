# SPDX-License-Identifier: Apache-2.0
"""Makes a scenario from a group and changes, so that the simulator can play the changes.

    scenario_from_group: (GroupSpec, changes) -> Scenario

The scenario has the group's topics, members, assignor and racks. The members start in join order
and own nothing, so before the first change their assignor assigns from scratch. If the group is
broker-assigned, the members with the most partitions start first, so that they also end with the
most. A member's name is its instance id, else its client id, else its member id without the UUID;
members that share a name are numbered. If the group is eager with a cooperative assignor, its
members also list `range`. Changes are played one by one; after each, the group has time to settle:

    add-members                        the new members start
    remove-members, -member, -client   the members close
    remove-rack                        the members of the rack are killed
    bounce-members                     the members restart, one after another
    partitions                         the topic grows
    add-topics                         the topics are created; all members subscribe by pattern
    remove-topics                      the topics are deleted; members that may run Java commit
                                       automatically, other members join without waiting for a
                                       commit

Other changes cannot be played.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any

from kafka_rebalance.assignors.registry import SERVER_SIDE, is_known
from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Message, Mutable
from kafka_rebalance.group.declared_types import check_fields, check_times
from kafka_rebalance.group.model import Member, Topic, quoted
from kafka_rebalance.group.spec import GroupSpec, require_group
from kafka_rebalance.member.config import CONSUMER, ConsumerConfig
from kafka_rebalance.plans.changes.bounces import AWAY_MS, BounceMembers
from kafka_rebalance.plans.changes.change import Change, apply
from kafka_rebalance.plans.changes.edits import find_member
from kafka_rebalance.plans.changes.made_up import prefix_of
from kafka_rebalance.plans.changes.members import AddMembers, RemoveMembers
from kafka_rebalance.plans.changes.topics import AddPartitions, AddTopics, RemoveTopics
from kafka_rebalance.plans.clients import JAVA, clients_for
from kafka_rebalance.plans.rebalance_plan import parse_changes
from kafka_rebalance.plans.rounds import lists_eager
from kafka_rebalance.plans.summary import in_words

from .playable import PLAYABLE
from .scenario import Costs, Happening, Kind, MemberPlan, Scenario, TopicPlan

_NAMELESS = 'the group has none; write it into its line, as "assignor":"range"'

_JOIN_STEP_MS = 10  # between two starts (less in large groups), so that members join in order
_JOINED_WITHIN_MS = 2_000  # all starts take at most this: less than the broker's initial delay
_EAGER = "range"
"""The second assignor of eager members whose first is cooperative; no leader runs it."""

_PLAYED = (AddMembers, RemoveMembers, BounceMembers, AddPartitions, AddTopics, RemoveTopics)

_SPARE_MS = 5_000  # added to the session timeout of a member whose session must end


class Pace(Message):
    """The times at which changes are played.

    first_ms   the time of the first change
    apart_ms   the least time from one restart, or change, to the next
    down_ms    the time between stop and start of a member, unless the change gives one
    """

    first_ms: int = 120_000
    apart_ms: int = 60_000
    down_ms: int = AWAY_MS

    def __post_init__(self) -> None:
        check_fields(self)
        check_times(self)


def scenario_from_group(
    group: GroupSpec,
    changes: Iterable[Change | str] = (),
    *,
    assignor: str | None = None,
    config: ConsumerConfig | None = None,
    work: Costs | None = None,
    pace: Pace | None = None,
    seed: int = 1,
) -> Scenario:
    """Returns the scenario; `config` contains settings that a group lacks (None: Kafka's defaults).

    Errors   GroupError at `assignor`, or at `changes[i]` for a change that does not fit the group
             or cannot be played; TypeError for anything but a GroupSpec.
    """
    require_group(group)
    name = assignor or group.assignor
    if name is None:
        raise GroupError("assignor", _NAMELESS)
    check_playable(name)
    config = replace(config or ConsumerConfig(), group_id=group.group_id or "g")
    config = _with_assignor(config, name)
    if lists_eager(group, name):
        config = replace(config, partition_assignment_strategy=(name, _EAGER))
    maker = _Maker(group, config, work or Costs(), pace or Pace())
    changes = parse_changes(changes)
    for place, change in enumerate(changes):
        try:
            maker.happen(change)
        except GroupError as error:
            path = f"changes[{place}]" if error.path == "change" else error.path
            raise GroupError(path, error.problem) from None
    return maker.scenario(changes, seed)


def scenario(
    of: GroupSpec | str, changes: Iterable[Change | str] = (), **settings: Any
) -> Scenario:
    """Returns the scenario for a group and changes, or a ready scenario.

    `of` is a group, the name of a ready scenario (`kafka_rebalance.simulator.ready()`), or the path
    of a TOML file. `settings` are arguments of `simulator.scenario_from_group`, for a group only.

    Errors   those of `scenario_from_group`; GroupError at `scenario` for an unknown name; TypeError
             for changes or settings with a ready scenario.
    """
    if not isinstance(of, str):
        return scenario_from_group(of, changes, **settings)
    if settings or (changes := list(changes)):
        raise TypeError(f"{quoted(of)}: a ready scenario takes no changes and no settings")
    from .scenario_files import load

    return load(of)


_PLAYED_BY_BROKER = ("consumer/uniform", "consumer/range")


def is_playable(name: str) -> bool:
    """Returns whether the simulator plays the assignor: a leader's, or a consumer group's."""
    return is_known(name) and (name not in SERVER_SIDE or name in _PLAYED_BY_BROKER)


def check_playable(name: str) -> None:
    """Raises a GroupError at `assignor` if the simulator does not play the assignor."""
    if not is_known(name):
        raise GroupError("assignor", f"{quoted(name)} cannot be played")
    if not is_playable(name):
        raise GroupError(
            "assignor",
            f"{quoted(name)} runs in the brokers, and of their assignors, the simulator plays "
            f"{' and '.join(_PLAYED_BY_BROKER)}; `plan` plays the targets of this one",
        )


def _with_assignor(config: ConsumerConfig, name: str) -> ConsumerConfig:
    """Returns the settings of members that use this assignor, in the leader or in the broker."""
    if name not in SERVER_SIDE:
        return replace(config, partition_assignment_strategy=(name,))
    remote = name.partition("/")[2]
    return replace(config, group_protocol=CONSUMER, group_remote_assignor=remote)


class _Maker(Mutable):
    """Builds a scenario. `now_ms` is the next change's time, `names` maps member ids to names."""

    group: GroupSpec
    config: ConsumerConfig
    work: Costs
    pace: Pace
    now_ms: int = 0
    names: dict[str, str] = field(default_factory=dict)
    plans: dict[str, MemberPlan] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)  # with their final number of partitions
    counts: dict[str, int] = field(default_factory=dict)  # topic -> partitions at the start
    created: list[str] = field(default_factory=list)
    deletes: bool = False
    others: set[str] = field(default_factory=set)  # members that do not run Java
    happenings: list[Happening] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now_ms = self.pace.first_ms
        self._see_topics()
        members = self.group.members
        step = min(_JOIN_STEP_MS, _JOINED_WITHIN_MS // len(members))
        self._name(members)
        if self.group.assignor in SERVER_SIDE:
            members = tuple(sorted(members, key=lambda one: -len(one.owned_partitions)))
        for place, member in enumerate(members):
            self._start(member, place * step)

    def _name(self, members: Sequence[Member]) -> None:
        bases = [m.group_instance_id or prefix_of(m.client_id, m.member_id) for m in members]
        taken = set(self.names.values())
        for member, base in zip(members, bases, strict=True):
            alone = bases.count(base) == 1 and base not in taken
            used = taken | set(bases)
            numbered = (f"{base}-{number}" for number in count(1))
            name = base if alone else next(one for one in numbered if one not in used)
            taken.add(name)
            self.names[member.member_id] = name

    def _start(self, member: Member, at_ms: int) -> None:
        name = self.names[member.member_id]
        if JAVA not in clients_for(member, self.group.group_id):
            self.others.add(name)
        config = self._config(member, member.group_instance_id)
        self.plans[name] = MemberPlan(
            name=name,
            config=config,
            topics=member.topics,
            start_ms=at_ms,
            work=self.work,
            member_ids=() if config.is_classic else (member.member_id,),
        )

    def _config(self, member: Member, instance_id: str | None) -> ConsumerConfig:
        rack = member.rack or ""
        return replace(self.config, group_instance_id=instance_id, client_rack=rack)

    # Changes --------------------------------------------------------------------------------------

    def happen(self, change: Change) -> None:
        """Adds the events of a change, and moves `now_ms` to the time of the next change."""
        before = self.group
        if not isinstance(change, _PLAYED):
            problem = f"the simulator cannot play it; it plays {', '.join(PLAYABLE)}"
            raise GroupError("change", problem)
        if not isinstance(change, BounceMembers):
            self.group = apply(change, before)
        match change:
            case AddMembers():
                joined = self.group.members[len(before.members) :]
                self._name(joined)
                for member in joined:
                    self._start(member, self.now_ms)
                self._pass()
            case RemoveMembers():
                left = {one.member_id for one in self.group.members}
                gone = [one for one in before.members if one.member_id not in left]
                self._remove(gone, Kind.KILL if change.rack is not None else Kind.STOP)
            case BounceMembers(member=who):
                self._bounce(change, before.members if who is None else [find_member(before, who)])
            case AddPartitions(topic=topic, partitions=partitions):
                self._happens(Kind.GROW, topic=topic, partitions=partitions)
                self._pass(self.config.metadata_max_age_ms)
            case AddTopics():
                for name, _ in change.topics:
                    if name in self.counts:
                        problem = f"the simulator cannot create {quoted(name)} a second time"
                        raise GroupError("change", problem)
                    self.created.append(name)
                    self._happens(Kind.CREATE_TOPIC, topic=name)
                self._pass(self.config.metadata_max_age_ms)
            case RemoveTopics():
                for name in dict.fromkeys(change.topics):
                    if name in self.counts:
                        self.deletes = True
                        self._happens(Kind.DELETE_TOPIC, topic=name)
                # Commits for deleted topics may fail, first the leader's, then those of the other
                # members: each delays the rebalance by up to the poll interval.
                self._pass(self.config.metadata_max_age_ms + 2 * self.config.max_poll_interval_ms)
        self._see_topics()

    def _see_topics(self) -> None:
        self.topics |= {one.name: one for one in self.group.topics if one.partitions}
        self.counts = {name: one.partitions for name, one in self.topics.items()} | self.counts

    def _remove(self, gone: Iterable[Member], kind: Kind) -> None:
        silent = kind is Kind.KILL
        for member in gone:
            self._happens(kind, member=self.names[member.member_id])
            silent |= member.group_instance_id is not None  # static members send no LeaveGroup
        self._pass(self.config.session_timeout_ms if silent else 0)

    def _bounce(self, change: BounceMembers, members: Sequence[Member]) -> None:
        for member in members:
            name, is_static = self.names[member.member_id], member.group_instance_id is not None
            if change.static and not is_static:
                config = self._config(member, name)
                self.plans[name] = replace(self.plans[name], config=config)
            self._happens(Kind.STOP, member=name)
            # A static member that becomes dynamic is absent until its session has expired.
            too_long = change.static is False and is_static
            session_ms = self.config.session_timeout_ms + _SPARE_MS
            away_ms = self.pace.down_ms if change.away_ms is None else change.away_ms
            self.now_ms += session_ms if too_long else away_ms
            self._happens(Kind.START, member=name)
            self._pass()

    def _happens(self, kind: Kind, **fields: Any) -> None:
        self.happenings.append(Happening(at_ms=self.now_ms, kind=kind, **fields))

    def _pass(self, more_ms: int = 0) -> None:
        self.now_ms += self.pace.apart_ms + more_ms

    # The scenario ---------------------------------------------------------------------------------

    def scenario(self, changes: Sequence[Change], seed: int) -> Scenario:
        return Scenario(
            title=f"{self.group.group_id}: {in_words(changes) if changes else 'as it is'}",
            topics={
                name: TopicPlan(
                    partitions=self.counts[name], racks=one.racks, topic_id=one.topic_id
                )
                for name, one in self.topics.items()
            },
            members=tuple(map(self._subscribed, self.plans.values())),
            happenings=tuple(self.happenings),
            seed=seed,
            until_ms=self.now_ms,
            group_id=self.group.group_id or "g",
        )

    def _subscribed(self, plan: MemberPlan) -> MemberPlan:
        """Returns the plan, with a pattern in place of topics if `add-topics` is among the changes.

        If topics are deleted, members that do not run Java do not wait for commits.
        """
        if self.deletes and plan.name in self.others and isinstance(plan.config, ConsumerConfig):
            plan = replace(plan, config=replace(plan.config, enable_auto_commit=False))
        if not self.created:
            return plan
        names = dict.fromkeys([*plan.topics, *self.created])
        return replace(plan, topics=(), pattern="|".join(map(re.escape, names)))

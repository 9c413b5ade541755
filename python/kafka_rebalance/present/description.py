# SPDX-License-Identifier: Apache-2.0
"""Describes the present state of a group: the owners, the balance, and the faults.

`notes/findings.py` lists the kinds of findings. The next rebalance is played as in `plan`, by the
assignor of each possible leader; without a known assignor, there are no findings on this rebalance.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import Any

from kafka_rebalance.assignors import registry
from kafka_rebalance.errors import GroupError, NeverEnds
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.html_tables import small_table
from kafka_rebalance.group.model import Member, TopicPartition
from kafka_rebalance.group.ownership import Assignment, Balance
from kafka_rebalance.group.spec import GroupSpec, counted, require_group
from kafka_rebalance.notes.findings import FINDINGS, Note, rank, summary
from kafka_rebalance.notes.listed import may_list_eager
from kafka_rebalance.notes.never_ends import endless
from kafka_rebalance.plans.clients import library_evidence
from kafka_rebalance.plans.figures import rack_share
from kafka_rebalance.plans.leaders import LedPlan, plans_by_leader
from kafka_rebalance.plans.leaders import library as library_of_member
from kafka_rebalance.plans.possible.optimum import best_possible
from kafka_rebalance.plans.rounds import lists_eager, subscribed_partitions

from .broker_assigned import Lags, WithLag, lag_in
from .readers import far_finding, has_weights, leaderless_finding, overloaded, why_uneven


class Description(WithLag):
    """The present state of a group.

    `assignment` holds the partitions that the members own now, `balance` is their balance, and
    `possible` is the best balance (in a streams or share group, the present one). `lags` counts the
    records not yet consumed, for each partition with a committed offset; None if the offsets were
    not read (as for a group from a file). In a streams group (KIP-1071), members own tasks, and the
    lags are the lags of the partitions that tasks read. `assignors` are the assignors that a
    possible leader may run next; empty if the group's assignor is unknown. `leaderless` lists the
    owned partitions that cannot be read because no leader answers for them. `facts` are normal, but
    good to know: "foreign" if the assignor, or the last leader's version of it, is not Kafka's.
    """

    group: GroupSpec
    assignment: Assignment
    balance: Balance
    possible: Balance
    rack_share: float | None
    lags: Lags | None = field(hash=False)
    findings: tuple[Note, ...]
    assignors: tuple[str, ...] = ()
    leaderless: tuple[TopicPartition, ...] = ()
    facts: tuple[Note, ...] = ()

    def _repr_html_(self) -> str:
        def member(one: Member) -> tuple[object, ...]:
            lag = self.lag_of(one.member_id)
            owned = self.assignment[one.member_id]
            unknown = "not read" if self.lags is None else "-"
            return one.member_id, len(owned), unknown if lag is None else lag

        def finding(one: Note) -> tuple[object, ...]:
            return one.kind, one.text, len(one.member_ids), len(one.partitions)

        members = ("member", "partitions", "lag")
        title = repr(self.group)[1:-1]
        table = small_table(title, members, self.group.members, member, self.summary)
        found = ("finding", "what is wrong", "members", "partitions")
        return table + small_table("", found, self.findings, finding) if self.findings else table

    @property
    def _read(self) -> list[TopicPartition]:
        return read_partitions(self.group, chain(*self.assignment.values()))

    def lag_of(self, member_id: str) -> int | None:
        """Returns the sum of the known lags of a member's partitions; None if none is known."""
        return lag_in(self.lags, read_partitions(self.group, self.assignment[member_id]))

    @property
    def summary(self) -> str:
        """Returns a sentence: the meaning of each kind of finding, worst first."""
        return summary(str(self.group.group_id), {one.kind: one.text for one in self.findings})

    def also(self, findings: Iterable[Note]) -> "Description":
        """Returns the description with these findings, too; the most severe one comes first."""
        return replace(self, findings=worst_first((*self.findings, *findings)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "group_id": self.group.group_id,
            "summary": self.summary,
            "assignor": self.group.assignor,
            "assignors_by_leader": list(self.assignors),
            "rebalance_protocol": self.group.rebalance_protocol,
            "assumes_cooperative_lists": may_list_eager(self.group, self.group.assignor),
            "generation_id": self.group.generation_id,
            "leader": self.group.leader,
            "members": [self._member(member) for member in self.group.members],
            "balance": self.balance.to_dict(),
            "balance_possible": self.possible.to_dict(),
            "rack_share": self.rack_share,
            "lag": self.lag,
            "without_committed_offset": self.without_committed_offset,
            "findings": [finding.to_dict() for finding in self.findings],
            "facts": [fact.to_dict() for fact in self.facts],
        }

    def _member(self, member: Member) -> dict[str, Any]:
        library, evidence = library_evidence(member, self.group.group_id) or (None, None)
        return {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "client_library": library,
            "client_evidence": evidence,
            "rack_id": member.rack_id,
            "topics": list(member.topics),
            "owned_partitions": [str(tp) for tp in self.assignment[member.member_id]],
            "lag": self.lag_of(member.member_id),
        }


def describe(
    group: GroupSpec,
    *,
    lags: Mapping[TopicPartition, int] | None = None,
    leaderless: Collection[TopicPartition] = (),
    engine: registry.Engine = "rust",
) -> Description:
    """Returns the group's present assignment, its balance, and its faults.

    `leaderless` lists partitions for which no leader answers; partitions that no member owns do not
    count.

    Errors   TypeError for anything but a GroupSpec, and for `lags` without a number for each
             partition; GroupError for a negative lag.
    """
    require_group(group)
    _check_lags(lags)
    assignment = Assignment.owned(group)
    balance = assignment.balance
    possible = balance
    if group.subtopologies is None and not registry.shares_partitions(group.assignor):
        possible = best_possible(group, engine=engine).balance
    led = _led(group, engine)
    read = {*read_partitions(group, chain(*assignment.values()))}
    without_leader = tuple(sorted(read & {*leaderless}))
    notes = [
        *leaderless_finding(without_leader),
        *_faults(group, assignment),
        *_loads(group, assignment, possible, led),
        *overloaded(group, assignment, engine),
        *_subscriptions(group),
        *_next_rebalance(group, led, engine),
    ]
    findings = worst_first(notes)
    share = rack_share(group, assignment)
    names = tuple(one.assignor for one in led)
    found = tuple(one for one in findings if one.kind in FINDINGS)
    facts = tuple(one for one in findings if one.kind not in FINDINGS)
    return Description(
        group, assignment, balance, possible, share, lags, found, names, without_leader, facts
    )


def worst_first(findings: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(sorted(findings, key=lambda one: rank(one.kind)))


def read_partitions(group: GroupSpec, owned: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Returns the partitions that the owner reads; task N reads partition N of known sources."""
    if group.subtopologies is None:
        return list(owned)
    sources = {one.subtopology_id: one.source_topics for one in group.subtopologies}
    return [
        TopicPartition(name, task.partition)
        for task in owned
        for name in sources.get(task.topic, ())
    ]


def _check_lags(lags: object) -> None:
    example = 'give {TopicPartition("t", 0): 5}'
    if lags is None:
        return
    if not isinstance(lags, Mapping):
        raise TypeError(f"lags: {a_type(lags)} is not a mapping; {example}")
    for tp, lag in lags.items():
        if not isinstance(tp, tuple) or len(tp) != 2:
            raise TypeError(f"lags: {tp!r} is not a TopicPartition; {example}")
        if not isinstance(lag, int) or isinstance(lag, bool):
            raise TypeError(f"lags[{tp!r}]: {lag!r} is not a number of records; {example}")
        if lag < 0:
            raise GroupError(f"lags[{tp!r}]", f"{lag} is not a number of records from 0 on")


def _faults(group: GroupSpec, assignment: Assignment) -> Iterator[Note]:
    """Yields findings on the assignment: partitions with no owner, several, or a wrong one."""
    if group.subtopologies is not None:
        yield from _task_faults(group, assignment)
        return
    counts = group.partition_counts()
    owners: dict[TopicPartition, list[str]] = {}
    stale: dict[str, list[TopicPartition]] = {}
    for member in group.members:
        for tp in assignment[member.member_id]:
            owners.setdefault(tp, []).append(member.member_id)
            if tp.topic not in member.topics or tp.partition >= counts.get(tp.topic, 0):
                stale.setdefault(member.member_id, []).append(tp)
    if unread := tuple(tp for tp in subscribed_partitions(group) if tp not in owners):
        text = "no member owns them: the group has not rebalanced since they appeared, or lost them"
        if not owners:
            text = "no member owns any: the group was not assigned yet, or the input has no owners"
        yield Note("unread", text, partitions=unread, ask="plan")
    doubled = tuple(tp for tp, ids in owners.items() if len(ids) > 1)
    if doubled and not registry.shares_partitions(group.assignor):
        ids = tuple(dict.fromkeys(one for tp in doubled for one in owners[tp]))
        yield Note("doubled", "several members own them", ids, doubled, "plan")
    for member_id, partitions in stale.items():
        text = "the member does not subscribe to them, or they do not exist"
        yield Note("stale", text, (member_id,), tuple(partitions), "plan")


def _task_faults(group: GroupSpec, assignment: Assignment) -> Iterator[Note]:
    """Yields findings on active tasks that no member runs, or that several members run."""
    runs = Counter(tp for owned in assignment.values() for tp in owned)
    if missing := tuple(tp for tp in subscribed_partitions(group) if tp not in runs):
        yield Note("unread", "no member runs these tasks at present", partitions=missing)
    if doubled := tuple(tp for tp, count in runs.items() if count > 1):
        yield Note("doubled", "several members run these tasks", partitions=doubled)


def _loads(
    group: GroupSpec, assignment: Assignment, possible: Balance, led: Sequence[LedPlan]
) -> Iterator[Note]:
    balance = assignment.balance
    held = {member_id: len(owned) for member_id, owned in assignment.items()}
    idle = tuple(member_id for member_id, count in held.items() if not count)
    if idle and len(idle) < len(held):
        yield _idle(group, idle, fewer_partitions=possible.min == 0)
    # Kafka Streams is left out, as its tasks are unknown here; so is `weighted`, which evens out
    # loads, not numbers of partitions.
    is_even = not any(held.values()) or balance.stddev <= possible.stddev
    if not is_even and group.assignor not in (registry.STREAM, registry.WEIGHTED):
        text = f"{balance.min} to {balance.max} partitions per member; possible is {possible.min}"
        text += f" to {possible.max}" if possible.max > possible.min else " each"
        plan = led[0].plan if led else None
        cause = None if plan is None else why_uneven(group, assignment, plan)
        text += "" if cause is None else f"; the cause: {cause}"
        if balance.max > possible.max:
            from kafka_rebalance.plans.possible.curve import balance_curve

            moves = counted(balance_curve(group, most=0).first_best.taken, "move")
            text += f"; a fullest member of {possible.max} is {moves} away"
        yield Note("uneven", text, ask="compare")
    ask = None if group.assignor == registry.STREAM else "compare"
    readers = [(one.member_id, one.rack, assignment[one.member_id]) for one in group.members]
    yield from far_finding(group.topics, readers, ask)


def _idle(group: GroupSpec, idle: tuple[str, ...], *, fewer_partitions: bool) -> Note:
    if group.subtopologies is not None:
        return Note("idle", "they run no active task", idle)
    is_stream, own = group.assignor == registry.STREAM, "owns" if len(idle) == 1 else "own"
    text = f"{len(idle)} of {counted(len(group.members), 'member')} {own} nothing"
    if not fewer_partitions:
        text += ", though each could own a partition"
        return Note("idle", text, idle, ask=None if is_stream else "compare")
    text += ": there are fewer partitions than members for their topics"
    # Topics of Kafka Streams must not get more partitions, so this is not advised.
    return Note("idle", text + ": remove members or add partitions" * (not is_stream), idle)


def _subscriptions(group: GroupSpec) -> Iterator[Note]:
    counts = group.partition_counts()
    subscribers = Counter(topic for member in group.members for topic in set(member.topics))
    for topic in sorted(subscribers.keys() - counts.keys()):
        ids = tuple(member.member_id for member in group.members if topic in member.topics)
        yield Note("missing", f"there is no topic {topic}, or no right to describe it", ids)
    if len(group.members) < 2:
        return
    for member in group.members:
        topics = dict.fromkeys(member.topics)
        if only := [one for one in topics if subscribers[one] == 1 and counts.get(one)]:
            text = f"no other member would read {', '.join(only)} if this one left"
            yield Note("one subscriber", text, (member.member_id,))
    versions = sorted({member.version for member in group.members})
    if len(versions) > 1:
        old = tuple(m.member_id for m in group.members if m.version < versions[-1])
        text = f"subscription versions {', '.join(map(str, versions))}: their clients differ"
        yield Note("mixed", text, old)


def _next_rebalance(
    group: GroupSpec, led: Sequence[LedPlan], engine: registry.Engine
) -> Iterator[Note]:
    if group.assignor in registry.FOREIGN:
        yield Note("foreign", f"{group.assignor} is {registry.FOREIGN[group.assignor]}")
        return
    if group.leader_library not in (None, "java"):
        library = group.leader_library
        whose = "kafka-python or aiokafka" if library == "python" else library
        answers = ""
        own = registry.library_of(led[0].assignor) if len(led) == 1 else None
        if own is not None and any(library_of_member(group, one) == own for one in group.members):
            whose, answers = own, "; plan, explain and compare answer as it does"
        text = f"the last leader used the assignor of {whose}, which may answer otherwise"
        yield Note("foreign", f"{text} than Kafka's{answers} (nothing to do)")
    if group.assignor is not None and lists_eager(group, group.assignor):
        yield Note("eager", "each rebalance leaves all partitions without a reader", ask="compare")
    for one in led:
        leads = f" if {one.assignor} answers" if len(led) > 1 else ""
        yield from _led_findings(group, one, leads, engine)


def _led(group: GroupSpec, engine: registry.Engine) -> tuple[LedPlan, ...]:
    """Returns the plan of the next rebalance under each assignor that may answer; None as the plan
    if the assignor never ends; nothing if it is unknown, or is `weighted` without weights.
    """
    if group.assignor is None or not registry.is_known(group.assignor):
        return ()
    if group.assignor == registry.WEIGHTED and not has_weights(group):
        return ()
    try:
        led = plans_by_leader(group, engine=engine)
    except NeverEnds as error:
        return (LedPlan(group.assignor, (), None, error),)
    return tuple(one for one in led if one.plan or isinstance(one.error, NeverEnds))


def _led_findings(
    group: GroupSpec, led: LedPlan, leads: str, engine: registry.Engine
) -> Iterator[Note]:
    """Yields findings on the next rebalance under this leader; `leads` is a part of their texts."""
    found = endless(group, led.assignor, engine=engine)
    if led.plan is None or (found is not None and found.now):
        text = f"the next rebalance never ends{leads}: its leader computes for ever"
        yield Note("hangs", text, ask="plan")
        return
    if found is not None and found.hangs:
        text = f"the rebalance never ends{leads} after: {'; '.join(found.following[:3])}"
        yield Note("hangs", text, ask="plan")
    figures = led.plan.figures()
    if figures.moves and not figures.owns_nothing:
        moved = [tp for one in led.plan.rounds for gained in one.gained.values() for tp in gained]
        text = f"the next rebalance moves them{leads}, whatever its cause"
        yield Note("moves", text, partitions=tuple(dict.fromkeys(moved)), ask="plan")

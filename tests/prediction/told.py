# SPDX-License-Identifier: Apache-2.0
"""Judges a change: does the real group end as the plan predicted from the snapshot?

1. Before the change: compute the plan of the leader's library, and play it again DRAWS times with
   other made-up ids for the new members (samples). If members of several libraries may lead, there
   is a plan for each library, and it is enough if one of them is right.
2. After the change: map the made-up ids to the members that have joined. The plan is right if the
   members own the planned partitions (`direct`).
3. If the samples differ, the assignment depends on the ids (`ids_decide`). Then the plan is also
   right if each partition is where some sample had it (`among`), or if a plan with the real ids
   ends as the group did (`real`). If a plan guessed the racks of new partitions, it is made again
   with the real racks: it cannot know racks in which the topics have no replica.
4. If the samples are equal, a plan that is right only with the real ids is wrong.
5. If the plan warned that the leader dies, or that the group never settles, it is right if the
   group does not settle (`warned`).
6. If the plan named partitions that may end elsewhere after further rebalances, it is right if no
   other partition ends elsewhere (`hedged`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance import GroupSpec
from kafka_rebalance.notes.mixed_subscriptions import played_apart
from kafka_rebalance.notes.other_courses import extra_rebalances, played_further
from kafka_rebalance.plans.changes.made_up import Basis, Draw, MadeUp, Newcomer
from kafka_rebalance.plans.leaders import plans_by_leader
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, parse_changes, played
from kafka_rebalance.plans.samples import NEW, Samples

from . import causes
from .given import inventory_of, judge
from .log import generations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from kafka_rebalance import Topic
    from kafka_rebalance.notes.other_courses import ExtraRebalances, Further

    from .given import Judged
    from .log import Written
    from .observed import Observed

DRAWS = 64

Holds = dict[str, frozenset[tuple[str, int]]]


@dataclass(frozen=True)
class Foreseen:
    """Step 1: the plan with its samples, or the reason why there is no plan.

    `others` are the plans of other libraries that may lead; `warning` is the plans' warning.
    `extra` is the reason why the number of rebalances is a lower bound; `further` are the further
    rebalances that were played.
    """

    plan: RebalancePlan | None
    samples: Samples | None = None
    refusal: str = ""
    others: tuple[Foreseen, ...] = ()
    warning: str = ""
    extra: ExtraRebalances | None = None
    further: Further | None = None

    @property
    def ids_decide(self) -> bool:
        return self.samples is not None and bool(self.samples.depends)


@dataclass(frozen=True)
class Told:
    """Steps 2 to 5 for one change; `causes` is empty if the plan is right.

    `rounds` counts the generations of the change. `idle` and `unasked` count those without a known
    cause: `idle` of them kept the assignment, `unasked` of them changed it.
    """

    ids_decide: bool
    direct: bool
    among: bool
    real: bool
    rounds_planned: int
    rounds: int
    idle: int
    unasked: int
    causes: tuple[str, ...] = field(default=())
    warned: bool = False
    hedged: bool = False
    is_bound: bool = False

    @property
    def is_right(self) -> bool:
        by_ids = self.ids_decide and (self.among or self.real)
        return self.warned or self.direct or by_ids or self.hedged

    @property
    def verdict(self) -> str:
        """Returns one of VERDICTS."""
        if self.warned or any(one.startswith("refused") for one in self.causes):
            return NOT_KNOWN
        if not self.is_right:
            return WRONG
        more = self.rounds - self.rounds_planned
        if more and not self.is_bound:
            return OTHER_ROUNDS
        return AS_TOLD if self.direct and not more else HEDGED


AS_TOLD, HEDGED, NOT_KNOWN, OTHER_ROUNDS, WRONG = VERDICTS = (
    "as told",
    "hedged before",
    "said not known",
    "other rounds",
    "WRONG end",
)
"""A change ended as planned, in as many generations; or in a way that the plan named; or the plan
named a refusal, or a leader that dies; or the end was right after a number of generations that the
plan did not leave open; or the end was wrong."""


def foresee(before: Mapping[str, Any], text: str) -> Foreseen:
    """Plans a change from a snapshot line."""
    group = GroupSpec.from_dict(before)
    try:
        led = plans_by_leader(group, [text])
    except kr.KafkaRebalanceError as error:
        return Foreseen(None, refusal=str(error), warning=_warning(error))
    verb, _, new = text.partition("=")
    if verb == "switch-assignor" and any(m.client_library == "librdkafka" for m in group.members):
        # Below the plan of a mixed group, a sentence names this switch for a leader of librdkafka.
        led += plans_by_leader(group, [f"{verb}=librdkafka/{new}"])
    if verb == "bounce-members":
        # The plan also prints the other course: a member that is back at once.
        led += plans_by_leader(group, [f"{text},away=0s"])
    errors = [one.error for one in led if one.error is not None]
    found = [_foreseen(one.plan) for one in led if one.plan is not None]
    warnings = [_warning(error) for error in errors]
    warnings += ["draws throw" for one in found if one.samples and one.samples.throws]
    warnings += ["never settles" for one in found if one.plan and not one.plan.settled]
    return replace(found[0], others=tuple(found[1:]), warning="; ".join(filter(None, warnings)))


def _foreseen(plan: RebalancePlan) -> Foreseen:
    extra = extra_rebalances(plan.group, plan.changes) if plan.rounds else None
    further = None
    if extra is not None and extra.may_move and extra.cause != "polls":
        further = (played_apart if extra.cause == "subscriptions" else played_further)(plan, DRAWS)
    samples = plan.sample(DRAWS) if plan.has_guesses else None
    return Foreseen(plan, samples, extra=extra, further=further)


def _warning(error: kr.KafkaRebalanceError) -> str:
    return str(error) if isinstance(error, kr.AssignorThrows) else ""


def as_warned(observed: Observed, foreseen: Foreseen) -> Told | None:
    """Returns the verdict on a group that has not settled, if the plan warned of that."""
    if not foreseen.warning or "disturbed" in (observed.problem or ""):
        return None
    records = _new(observed)
    return Told(False, False, False, False, 0, len(records), 0, len(records), warned=True)


def compare(observed: Observed, foreseen: Foreseen) -> Told:
    """Returns the verdict on the first plan that is right; if none is right, on the first plan."""
    told = [_compare(observed, one) for one in (foreseen, *foreseen.others)]
    return next((one for one in told if one.is_right), told[0])


def _compare(observed: Observed, foreseen: Foreseen) -> Told:
    records = _new(observed)
    if foreseen.plan is None:
        why = (f"refused: {foreseen.refusal}",)
        return Told(False, False, False, False, 0, len(records), *_again(observed), why)
    plan, truth = foreseen.plan, _holds(observed.records[-1].assigned())
    joined = _joined(observed)
    names = list(_names(plan, joined, observed.records[-1]))
    direct = any(_renamed(truth, one) == _holds(plan.after) for one in names)
    among = any(_is_among(plan, foreseen.samples, _renamed(truth, one)) for one in names)
    racks = inventory_of(observed.records[-1], observed.inventories).topics
    with_real = _with_real_ids(plan, joined, racks)
    real = with_real is not None and _holds(with_real.after) == truth
    rounds = len(plan.rounds), len(records), *_again(observed)
    told = Told(
        foreseen.ids_decide,
        direct,
        among,
        real,
        *rounds,
        hedged=any(_is_named(plan, foreseen.further, _renamed(truth, one)) for one in names),
        is_bound=foreseen.extra is not None,
    )
    if told.is_right:
        return told
    found = _causes(observed, told, with_real or plan, judge(observed))
    return replace(told, causes=found)


def _new(observed: Observed) -> list[Written]:
    """Returns the first record of each generation since the change."""
    known = -1 if observed.earlier is None else observed.earlier.generation_id
    return [one for one in generations(observed.records) if one.generation_id != known]


def _again(observed: Observed) -> tuple[int, int]:
    """Counts generations without a cause: those that keep the assignment, and those that change it.

    A generation has no cause if members, subscriptions and topics are those of the one before it.
    But a round that leaves partitions unassigned, as with a cooperative leader, causes another
    round.
    """
    idle = unasked = 0
    kept = generations([one for one in (observed.earlier, *observed.records) if one])
    for one, later in pairwise(kept):
        topics = inventory_of(one, observed.inventories).topics
        if (
            one.subscribed() != later.subscribed()
            or inventory_of(later, observed.inventories).topics != topics
        ):
            continue
        if _holds(one.assigned()) == _holds(later.assigned()):
            idle += 1
        else:
            unasked += _is_complete(one, topics)
    return idle, unasked


def _is_complete(record: Written, topics: Sequence[Topic]) -> bool:
    subscribed = frozenset[str]().union(*record.subscribed().values())
    assigned = {tp for owned in record.assigned().values() for tp in owned}
    return all(
        (topic.name, p) in assigned
        for topic in topics
        if topic.name in subscribed
        for p in range(topic.partitions)
    )


def _causes(
    observed: Observed, told: Told, plan: RebalancePlan, judged: Sequence[Judged]
) -> tuple[str, ...]:
    if told.real:
        return (f"ids, though {DRAWS} draws were alike: {_called(observed, plan)}",)
    found = [
        f"leader's answer: {one.cause or one.verdict.value}" for one in judged if not one.is_right
    ] or causes.find(observed, plan, _new(observed))
    more = told.rounds - told.idle - told.unasked - told.rounds_planned
    if more:
        found.append(f"{abs(more)} {'more' if more > 0 else 'fewer'} rounds than planned")
    return tuple(dict.fromkeys(found)) or ("unknown",)


def _called(observed: Observed, plan: RebalancePlan) -> str:
    """Returns a sentence about the wrong guess: a new member's client id, or else its UUID."""
    real = {member.member_id: member.client_id for member in observed.records[-1].value.members}
    for member in plan.final.members:
        client_id = real.get(member.member_id)
        if member.member_id in plan.made_up and client_id != member.client_id:
            return f"client id {client_id} where the plan had {member.client_id}"
    return "the UUID"


def _joined(observed: Observed) -> list[str]:
    """Returns the ids of new members, in the order of the log."""
    assert observed.before
    known = {member["member_id"] for member in observed.before["members"]}
    ids = [m.member_id for one in observed.records for m in one.value.members]
    return [member_id for member_id in dict.fromkeys(ids) if member_id not in known]


def _names(plan: RebalancePlan, joined: Sequence[str], last: Written) -> Iterator[dict[str, str]]:
    """Yields the possible mappings of real new ids to made-up ones; instance ids must agree."""
    made_up = {m.member_id: m.group_instance_id for m in plan.final.members}
    real = {m.member_id: m.group_instance_id for m in last.value.members}
    if len(plan.made_up) == len(joined):  # both are in the order in which the members join
        pairs = dict(zip(joined, plan.made_up, strict=True))
        yield {id_: other for id_, other in pairs.items() if id_ in real}
        return
    ours = [one for one in plan.made_up if one in made_up]
    theirs = [one for one in joined if one in real]
    for order in permutations(ours, min(len(ours), len(theirs))):
        pairs = dict(zip(theirs, order, strict=False))
        if all(
            real[id_] is None or made_up[other] in (None, real[id_]) or len(ours) == 1
            for id_, other in pairs.items()
        ):
            yield pairs


def _renamed(truth: Holds, names: Mapping[str, str]) -> Holds:
    return {names.get(member_id, member_id): owned for member_id, owned in truth.items()}


def _holds(assigned: Mapping[str, Collection[tuple[str, int]]]) -> Holds:
    return {id_: frozenset((t, p) for t, p in owned) for id_, owned in assigned.items()}


def _is_named(plan: RebalancePlan, further: Further | None, truth: Holds) -> bool:
    """Returns whether the plan named every partition that ended elsewhere."""
    if further is None:
        return False
    named = {(tp.topic, tp.partition) for tp in further.partitions}
    ends, planned = (_owners(one) for one in (truth, _holds(plan.after)))
    differing = {tp for tp, _ in ends.items() ^ planned.items()}
    return ends.keys() == planned.keys() and differing <= named


def _owners(holds: Holds) -> dict[tuple[str, int], str]:
    return {tp: member_id for member_id, owned in holds.items() for tp in owned}


def _is_among(plan: RebalancePlan, samples: Samples | None, truth: Holds) -> bool:
    if samples is None:
        return False
    origins = plan.steps[-1].origins
    ends = {tp: origins.get(id_, NEW) for id_, owned in truth.items() for tp in owned}
    told = {(tp.topic, tp.partition): ends for tp, ends in samples.ends.items()}
    return set(ends) == set(told) and all(end in told[tp] for tp, end in ends.items())


class RealIds(MadeUp):
    """Uses the real ids for planned newcomers, in the order in which the members joined."""

    def __init__(self, group_id: str, real: Sequence[str], made_up: Sequence[Newcomer]) -> None:
        super().__init__(group_id, Draw(instead_of=tuple(made_up)))
        self._real = iter(real)

    def newcomer(
        self,
        name: str,
        basis: Basis,
        taken: Collection[str],
        *,
        is_static: bool,
        is_bare: bool = False,
    ) -> Newcomer:
        made = Newcomer(next(self._real), name, basis, is_static)
        self.made.append(made)
        self.aliases[next(self._instead_of, made).member_id] = made.member_id
        return made


def _with_real_ids(
    plan: RebalancePlan, joined: Sequence[str], topics: Sequence[Topic]
) -> RebalancePlan | None:
    """Plans again with the real ids and racks.

    Returns None if the number of new members differs, or if this leader's assignor would throw.
    """
    if len(joined) != len(plan.newcomers):
        return None
    if plan.places_guessed:  # the only change is that of the partition counts
        names = {topic.name for topic in plan.group.topics}
        grown = plan.group.edited(topics=tuple(one for one in topics if one.name in names))
        return kr.plan(grown, plan.assignor, engine=plan.engine)
    ids = RealIds(plan.group.group_id, joined, plan.newcomers)
    try:
        return played(plan.group, parse_changes(plan.changes), plan.engine, ids)
    except kr.AssignorThrows:
        return None

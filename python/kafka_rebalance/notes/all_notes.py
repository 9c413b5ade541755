# SPDX-License-Identifier: Apache-2.0
"""All notes on a plan or on a comparison, in the order in which reports print them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_rebalance.assignors.registry import BALANCED, OURS, WEIGHTED
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.ownership import Assignment
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.clients import who_lists_ours
from kafka_rebalance.plans.leaders import LedPlan, has_no_answer
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, parse_changes, plan
from kafka_rebalance.plans.summary import nobody_reads

from .broker import broker_notes
from .findings import Note
from .leaders import foreign_leader, leading, no_answer, other_leaders, own_rows
from .librdkafka_traps import librdkafka_traps, trap_notes
from .listed import lists_notes
from .lost_rack import lost_rack, lost_rack_of_plan
from .may_happen import commit_waits, may_happen
from .never_ends import Endless, endless, endless_note, endless_plan
from .other_courses import extra_note, extra_rebalances, played_further
from .switches import switch_notes

if TYPE_CHECKING:
    from kafka_rebalance.switching.comparison import Comparison


def plan_notes(
    plan: RebalancePlan,
    led: Sequence[LedPlan] = (),
    *,
    draws: int | None = None,
    is_own: bool = True,
    cheap: bool = False,
) -> tuple[Note, ...]:
    """Returns the notes on a plan: its assumptions, its risks, and the facts that are unknown.

    `led` are the plans of all possible leaders (`plans_by_leader`), if `plan` is one of them. Each
    additional rebalance is played with at most `draws` draws (sets of random ids and orders);
    None: the group's size sets a limit. `is_own` is False if the group runs an assignor other than
    the plan's. With `cheap`, no rebalance is played: the notes that need one are left out, and so
    are those of `may_happen`.
    """
    found: list[Note] = []
    if has_no_answer(led):
        kafkas = f"The answer below is that of Kafka's {plan.assignor}, as if a Java member led."
        found.append(Note("no answer", f"WARNING: {no_answer(led)}. {kafkas}"))
    if text := nobody_reads(lost := plan.unsubscribed):
        found.append(Note("unread", text, partitions=lost))
    found += commit_waits(plan)
    idle = tuple(member_id for member_id, owned in plan.after.items() if not owned)
    if idle and len(idle) < len(plan.after):  # for programs; reports name them elsewhere
        found.append(Note("idle", "they own nothing at the end", idle))
    found += _nowhere(plan)
    if not cheap:
        if (never := endless_plan(plan)) is not None:
            found.append(endless_note(never))
        traps = librdkafka_traps(plan.group, plan.assignor, plan.changes, engine=plan.engine)
        found += (*trap_notes(traps), *broker_notes(plan))
    found += switch_notes(plan, is_own=is_own)
    is_cooperative = any(one.kind == "cooperative" for one in plan.rounds)
    lists = lists_notes(plan.group, plan.assignor)
    found += (note for note in lists if is_cooperative or note.kind != "lists")
    found += lost_rack_of_plan(plan)
    found += _lower_bound(plan, draws, cheap=cheap)
    if not cheap:
        found += may_happen(plan)
    shown = next((one for one in led if one.plan is plan), None)
    of_leader = [] if shown is None else [*leading(led, shown)]
    # In a plan without a rebalance, no leader assigns, so no note on leaders is needed.
    if not of_leader and plan.rounds and not (shown is not None and shown.leaders):
        of_leader += foreign_leader(plan.group, plan.assignor)
    return (*found, *of_leader)


def _nowhere(plan: RebalancePlan) -> Iterator[Note]:
    """Yields a note on a plan with `balanced` or `weighted`: who can run that assignor."""
    name = plan.assignor.partition("?")[0]
    if name in OURS:
        may_list, words = who_lists_ours(plan.group)
        text = _loads(plan) if name == WEIGHTED else ""
        text += f"{name} is this project's own assignor: {words}."
        if name == BALANCED:
            text += " Brokers can run it as consumer/balanced (docs/balance-broker.md)."
        if not may_list:
            text += (
                " Members that call assign() in place of subscribe() can read the answer (--json). "
                "Else the plan shows what the group could have; compare shows what its clients can "
                "run."
            )
        yield Note("nowhere", text)


def _loads(plan: RebalancePlan) -> str:
    """Returns a sentence on the fullest member's load, as a multiple of the mean, after a plan with
    `weighted`; also before it, if a partition is owned.
    """
    from kafka_rebalance.assignors.balance.weights import loads_of

    def of_mean(group: GroupSpec, assignment: Assignment) -> str:
        return f"{loads_of(group).fullest(group, assignment)[1]:.3g} times"

    before, after = Assignment.owned(plan.group), of_mean(plan.final, plan.after)
    if not any(before.values()):
        return f"The fullest member carries {after} the mean load after. "
    now = of_mean(plan.group, before)
    return f"The fullest member carries {now} the mean load before, and {after} after. "


def _lower_bound(plan: RebalancePlan, draws: int | None, *, cheap: bool) -> Iterator[Note]:
    extra = extra_rebalances(plan.group, plan.changes) if plan.rounds else None
    if extra is None:
        return
    further = None
    if extra.cause == "subscriptions" and not cheap:
        from .mixed_subscriptions import played_apart

        further = played_apart(plan, draws)
    elif extra.cause == "metadata" and extra.may_move and not cheap:
        further = played_further(plan, draws)
    yield extra_note(extra, further, {tp: one for one, owned in plan.after.items() for tp in owned})


def comparison_notes(
    compared: "Comparison", led: Sequence[LedPlan] = (), *, cheap: bool = False
) -> tuple[Note, ...]:
    """Returns the notes on a comparison; `led` and `cheap` are as in `plan_notes`."""
    group, changes = compared.group, compared.changes
    found: list[Note] = []
    if not cheap:
        # Notes on rebalances that never end, under the group's own and the recommended assignor.
        names = dict.fromkeys([group.assignor, compared.recommended])
        ends = [_endless_with(name, compared) for name in names if name]
        found += [endless_note(one) for one in ends if one is not None]
        found += trap_notes(librdkafka_traps(group, None, changes, engine=compared.engine))
    found += lost_rack(group, changes)
    found += foreign_leader(group, group.assignor, [one.assignor for one in compared.candidates])
    found += own_rows(group.assignor)
    shown = next((one for one in led if one.plan is not None), None)
    found += other_leaders(led, shown, " (--leader MEMBER)")
    found += lists_notes(group, group.assignor)
    extra = extra_rebalances(group, parse_changes(changes))
    return (*found, *([] if extra is None else [extra_note(extra)]))


def _endless_with(name: str, compared: "Comparison") -> Endless | None:
    where = compared.group, name, compared.changes
    try:
        return endless_plan(plan(*where, engine=compared.engine))
    except GroupError:  # after the changes, the leader's assignor throws or never ends
        return endless(*where, engine=compared.engine)

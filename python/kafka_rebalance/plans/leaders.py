# SPDX-License-Identifier: Apache-2.0
"""Plans changes with the leader's version of the assignor; a library's version is its *dialect*.

1. The leader is `group.leader`. If that is unknown, it is any member whose library can have written
   the last assignments (`group.leader_library`), or any member if none can. If the group has no
   `leader_library` and its members have no `client_library`, it is the first member.
2. A leader leads until it leaves. Then the coordinator appoints the first member of its hash map. A
   static member that restarts stays the leader, under its new id.
3. Each of these leaders runs the dialect of its library; the prefix "" is Kafka's own assignor,
   which this project's plug-ins run, too. A member of an unknown library is assumed to run the
   dialect of the last leader.
4. If several dialects remain, each gets a plan of all changes. Plans with the same assignment in
   each round are merged. The merged plan is named after Kafka's own assignor if this led to one of
   the plans, else after the first dialect.

Source   GroupMetadata, in Kafka 4.4.0 ClassicGroup: remove, replaceStaticMember.
Cost     one plan with Kafka's own assignor, to know the members, and one for each other dialect.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kafka_rebalance.assignors.assigning import assignor_of
from kafka_rebalance.assignors.classic.subscriptions import members_in_order
from kafka_rebalance.assignors.registry import SERVER_SIDE, Engine, is_known, library_of
from kafka_rebalance.errors import AssignorThrows, GroupError, NotAffected, SwitchRefused
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.model import Member, quoted
from kafka_rebalance.group.spec import GroupSpec

from .changes.assignor import SwitchAssignor
from .changes.change import Change
from .changes.edits import find_member
from .changes.other_assignor import run_by
from .changes.protocol import SwitchProtocol, lacking
from .changes.short_names import was_made_up
from .clients import LACK_CONSUMER_PROTOCOL, client_of, library_evidence
from .group_kinds import CONSUMER
from .rebalance_plan import RebalancePlan, parse_changes, plan
from .rounds import Step

_DIALECTS = {
    "librdkafka": ("librdkafka/",),
    "kafka-python": ("kafka-python/",),
    "aiokafka": ("aiokafka/",),
    "python": ("kafka-python/", "aiokafka/"),
}


class LedPlan(Frozen):
    """The plan under the assignor of one library, or the error that this assignor raises.

    `leaders` are the ids of those possible leaders whose library has this assignor.
    """

    assignor: str
    leaders: tuple[str, ...]
    plan: RebalancePlan | None
    error: GroupError | None = None

    @property
    def answering(self) -> tuple[str, ...]:
        """Returns the assignors that leaders run in the rounds: several, if the plan switches."""
        steps = () if self.plan is None else self.plan.steps
        return tuple(dict.fromkeys(step.before.assignor or "" for step in steps if _is_led(step)))

    def to_dict(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "assignor": self.assignor,
            "leaders": list(self.leaders),
            **({} if plan is None else plan.figures().to_dict()),
            "assignment": None if plan is None else plan.after.to_dict(),
            "error": None if self.error is None else str(self.error),
        }


def named_leader(group: GroupSpec, member: str | None) -> GroupSpec:
    """Returns the group led by `member`: a member_id (may be short) or group_instance_id.

    None keeps the group's leader.
    Errors   NotAffected without such a member, GroupError if a short id matches several members.
    """
    if member is None:
        return group
    try:
        return group.edited(leader=find_member(group, member).member_id)
    except NotAffected:
        raise NotAffected("leader", _no_member(group, member)) from None
    except GroupError as error:
        raise GroupError("leader", error.problem) from None


def _no_member(group: GroupSpec, name: str) -> str:
    problem = f"there is no member {quoted(name)}"
    if name.endswith("*") or was_made_up(name, group.group_id, len(group.members)):
        problem += (
            ": this id is a placeholder, for a member that a plan adds or restarts. Only a member "
            "that is there now can be named; the plan has the other leaders' answers as well"
        )
    return problem


def plans_by_leader(
    group: GroupSpec, changes: Iterable[Change | str] = (), *, engine: Engine = "rust"
) -> tuple[LedPlan, ...]:
    """Plans the changes once for each version of the group's assignor that a leader may run.

    The first entry with a plan is the plan of the present leader's library. A single entry means
    that the library is certain, or that the plans of all possible leaders are equal. If no leader's
    assignor has a plan, the first entry is the plan of Kafka's own assignor, without leaders.

    Errors   those of `plan`, if Kafka's own assignor also raises one.
    """
    parsed = parse_changes(changes)
    own = _led(group, assignor_of(group, None), (), parsed, engine)
    _check_switches(group, parsed)
    steps = () if own.plan is None else own.plan.steps
    led = possible_dialects(group, steps)
    if own.plan is not None and not own.plan.rounds and group.assignor not in SERVER_SIDE:
        led = {_name_at_rest(group): ()}
    found = [
        replace(own, leaders=leaders)
        if name == own.assignor
        else _led(group, name, leaders, parsed, engine)
        for name, leaders in led.items()
    ]
    if not any(one.plan for one in found):
        if own.plan is None:
            raise found[0].error or AssertionError(own.assignor)
        found.insert(0, own)
    return tuple(_different([*found, *_after_switches(group, parsed, engine)]))


def has_no_answer(led: Sequence[LedPlan]) -> bool:
    """Returns whether only Kafka's own assignor has a plan, and no possible leader runs it."""
    planned = [one for one in led if one.plan is not None]
    return len(led) > 1 and len(planned) == 1 and not planned[0].leaders


def as_led(group: GroupSpec, led: Sequence[LedPlan]) -> GroupSpec:
    """Returns the group with the assignor of the first entry in `led` that has a plan."""
    name = next((one.assignor for one in led if one.plan is not None), group.assignor)
    return run_by(group, name) if name is not None and library_of(name) else group


def _check_switches(group: GroupSpec, changes: Sequence[Change]) -> None:
    for i, change in enumerate(changes):
        if not isinstance(change, SwitchProtocol) or change.protocol != CONSUMER:
            continue
        evidence = [library_evidence(member, group.group_id) for member in group.members]
        if all(one is not None and one[0] in LACK_CONSUMER_PROTOCOL for one in evidence):
            raise SwitchRefused(f"changes[{i}]", lacking(group.assignor or ""))


def _name_at_rest(group: GroupSpec) -> str:
    """Returns the assignor's name for a plan without a rebalance, in which no member leads."""
    names = list(possible_dialects(group)) or [group.assignor or ""]
    return next((name for name in names if library_of(name) is None), names[0])


def possible_dialects(group: GroupSpec, steps: Sequence[Step] = ()) -> dict[str, tuple[str, ...]]:
    """Returns assignor -> ids of the members that may lead with it in `steps`; a dialect: none."""
    assignor = group.assignor or ""
    if library_of(assignor):
        return {assignor: ()}
    shown = {f"{library(group, member)}/" for member in group.members}
    found: dict[str, dict[str, None]] = {}
    for leader in _last_leaders(group):
        for member in _leaders(leader, steps):
            for name in _dialects(group, member, assignor, shown):
                found.setdefault(name, {})[member.member_id] = None
    return {name: tuple(members) for name, members in found.items()}


def library(group: GroupSpec, member: Member) -> str | None:
    """Returns a member's library: by its bytes, else by its client id, else the last leader's."""
    client = client_of(member, group.group_id)
    by_id = None if client is None else client.name.lower()
    return member.client_library or by_id or group.leader_library


# 1.
def _last_leaders(group: GroupSpec) -> list[Member]:
    known = [member for member in group.members if member.member_id == group.leader]
    wrote = group.leader_library
    if known or (wrote is None and not any(member.client_library for member in group.members)):
        return known or list(group.members[:1])
    fit = [m for m in group.members if wrote is None or _can_have_written(library(group, m), wrote)]
    return fit or list(group.members)


def _can_have_written(member: str | None, wrote: str) -> bool:
    python = ("python", "kafka-python", "aiokafka")
    return member == wrote or (member in python and wrote in python)


# 2.
def _leaders(leader: Member, steps: Sequence[Step]) -> Iterator[Member]:
    """Yields the leader of each step in which a leader assigns; without steps, only `leader`."""
    if not steps:
        yield leader
        return
    known = {leader.member_id}
    for step in steps:
        there = [m for m in step.before.members if m.member_id == leader.member_id]
        back = [m for m in step.before.members if step.origins.get(m.member_id) in known]
        if there or back:
            leader = (there or back)[0]
        elif step.before.members:
            leader = members_in_order(step.before)[0]
        known = {leader.member_id, step.origins.get(leader.member_id, leader.member_id)}
        if _is_led(step):
            yield leader


def _is_led(step: Step) -> bool:
    """Returns whether a leader assigns in this step: it has a round, and no broker assigns."""
    return bool(step.rounds) and step.before.assignor not in SERVER_SIDE


# 3.
def _dialects(group: GroupSpec, member: Member, assignor: str, shown: set[str]) -> list[str]:
    """Returns the versions of `assignor` that a member's library may have, first those whose prefix
    is in `shown`.
    """
    prefixes = sorted(
        _DIALECTS.get(library(group, member) or "", ("",)), key=lambda prefix: prefix not in shown
    )
    names = [prefix + assignor for prefix in prefixes]
    return [name for name in names if is_known(name)] or [assignor]


# 4.
def _led(
    group: GroupSpec,
    name: str,
    leaders: tuple[str, ...],
    changes: tuple[Change, ...],
    engine: Engine,
) -> LedPlan:
    try:
        # Only the leader's class assigns, so the other members' libraries do not matter.
        led = run_by(group, name)
        own = tuple(_of_library(group, name, change) for change in changes)
        return LedPlan(name, leaders, plan(led, changes=own, engine=engine))
    except GroupError as error:
        if not isinstance(error, AssignorThrows) and error.path != "assignor":
            raise  # a change does not fit the group
        return LedPlan(name, leaders, None, error)


def _after_switches(
    group: GroupSpec, changes: tuple[Change, ...], engine: Engine
) -> Iterator[LedPlan]:
    """Yields a plan for each library whose own class may assign after a switch of assignor."""
    for at, change in enumerate(changes):
        if not isinstance(change, SwitchAssignor) or change.assignor in SERVER_SIDE:
            continue
        leaders: dict[str, list[str]] = {}
        for member in () if library_of(change.assignor) else group.members:
            for name in _dialects(group, member, change.assignor, set()):
                leaders.setdefault(name, []).append(member.member_id)
        leaders.pop(change.assignor, None)
        for name, ids in leaders.items():
            own = (*changes[:at], SwitchAssignor(name), *changes[at + 1 :])
            led = _led(group, group.assignor or "", tuple(ids), own, engine)
            yield replace(led, assignor=name)


def _of_library(group: GroupSpec, name: str, change: Change) -> Change:
    """Returns the change for a plan under the assignor `name`. If `name` is librdkafka's and all
    members run librdkafka, a switch to X becomes a switch to `librdkafka/X`, if that exists.
    """
    only = all(library(group, member) == "librdkafka" for member in group.members)
    if not isinstance(change, SwitchAssignor) or library_of(name) != "librdkafka" or not only:
        return change
    own = f"librdkafka/{change.assignor}"
    return SwitchAssignor(own) if is_known(own) else change


def _different(found: Sequence[LedPlan]) -> Iterator[LedPlan]:
    kept: list[LedPlan] = []
    for one in found:
        for at, other in enumerate(kept):
            if _ends(one) == _ends(other):
                # If one of two equal plans is the plan of Kafka's own assignor, its name is kept.
                named = other if library_of(one.assignor) else one
                leaders = dict.fromkeys((*other.leaders, *one.leaders))
                kept[at] = replace(named, leaders=tuple(leaders))
                break
        else:
            kept.append(one)
    return iter(kept)


def _ends(one: LedPlan) -> object:
    if one.plan is None:
        return one.assignor
    rounds = [{m: set(owned) for m, owned in r.assignment.items()} for r in one.plan.rounds]
    return rounds, one.plan.settled

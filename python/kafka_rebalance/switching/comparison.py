# SPDX-License-Identifier: Apache-2.0
"""Compares assignors for one group, and recommends one with a reason.

Every assignor is planned as if the group already used it. Another library's versions, such as
"librdkafka/range", are candidates if the group's assignor is one of them, if a librdkafka member
led last, or if the caller names them. An eager group's own assignor (`rounds.lists_eager`) is
planned twice: for the present lists, and as if its members listed only this assignor.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import (
    KAFKAS,
    OURS,
    PLUG_IN,
    SERVER_SIDE,
    WEIGHTED,
    Engine,
    bare,
    is_known,
    library_of,
    misspelt,
    planned_names,
    protocol_of,
)
from kafka_rebalance.errors import AssignorThrows, GroupError, error_kind
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.html_tables import clipped, small_table
from kafka_rebalance.group.spec import GroupSpec, counted, require_group
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.edits import AS_IT_IS
from kafka_rebalance.plans.changes.members import AddMembers
from kafka_rebalance.plans.changes.protocol import SwitchProtocol
from kafka_rebalance.plans.changes.topics import AddPartitions, AddTopics
from kafka_rebalance.plans.group_kinds import by_switch_protocol, never_runs
from kafka_rebalance.plans.rebalance_plan import RebalancePlan, parse_changes, plan
from kafka_rebalance.plans.rounds import lists_eager

from .migrations import Migration, migration
from .recommendation import MEASURES_SAY, Candidate, alone_label, recommend
from .rounds import is_large


class Comparison(Frozen):
    """All candidates and the recommendation. `recommended` is None if no candidate is possible.

    `alone` is the group's own assignor as if all members listed only this one. It is None if the
    group is not eager (`rounds.lists_eager`), would never settle with this list, is assigned to one
    member by every assignor, or has an assignor that is not a candidate.
    """

    group: GroupSpec
    changes: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    recommended: str | None
    reason: str
    engine: Engine = "rust"
    alone: Candidate | None = None

    @property
    def title(self) -> str:
        changes = ", ".join(self.changes) or AS_IT_IS.cause
        runs = self.group.assignor or "an unknown assignor"
        return f"{self.group.group_id}, which runs {runs}: {changes}"

    @property
    def summary(self) -> str:
        """Returns the recommendation in words, with its reason and the cost of the switch."""
        name = self.recommended
        if name is None:
            return f"No assignor is recommended: {self.reason}."
        label = alone_label(name) if self.keeps_assignor and self.alone is not None else name
        why = self._why(label)
        if self.keeps_assignor and self.alone is None:
            return f"Keep {name}: {why}."
        price, steps = "", self.migration
        if self.switch_protocol is not None:
            price = "; it needs another group.protocol"
        elif steps is None and self.group.assignor is not None:
            price = "; but a leader dies in a rebalance of the switch to it"
        elif steps is not None and steps.moves is not None:
            most = "at most " * ((steps.from_default or steps).rebalances < steps.rebalances)
            rebalances = f"{most}{counted(steps.rebalances, 'rebalance')}"
            price = f"; getting there costs {rebalances} and {counted(steps.moves, 'move')} once"
            if {one.way for one in steps.recipes} == {"stop all"}:
                price = "; to get there, all members stop once (no rolling restart)"
        if not self._is_advice:
            return f"No advice: only {name} was compared{price}."
        do = "List" if self.keeps_assignor else "Switch to"
        return f"{do} {label}: {why}{price}."

    def _why(self, label: str) -> str:
        """Returns the reason as a clause; "it" replaces `label` at its beginning."""
        why = self.reason.removeprefix(f"{label} ")
        if why == self.reason:
            return why
        is_by_figures = why.startswith(MEASURES_SAY) and not self.changes
        return f"in {AS_IT_IS.cause} it {why}" if is_by_figures else f"it {why}"

    def __repr__(self) -> str:
        return f"<Comparison {clipped(self.title)}: recommended is {self.recommended}>"

    def _repr_html_(self) -> str:
        def row(labelled: tuple[str, Candidate]) -> tuple[object, ...]:
            name, one = labelled
            figures = one.figures
            if figures is None:
                return name, one.error or "", "", "", ""
            rounds = figures.rounds if figures.settled else "never stable"
            balance = figures.balance_after.least_to_most
            return name, rounds, figures.moves, figures.unavailable, balance

        columns = ("assignor", "rebalances", "moves", "no reader", "partitions per member")
        return small_table(self.title, columns, [*self.rows()], row, self.summary)

    def rows(self) -> Iterator[tuple[str, Candidate]]:
        """Yields (label, candidate); `alone` follows the group's own assignor, and the label of the
        recommended candidate ends with " <".
        """
        for one in self.candidates:
            is_best = one.assignor == self.recommended and self._is_advice
            if self.alone is None or one.assignor != self.alone.assignor:
                yield f"{one.assignor}{' <' if is_best else ''}", one
            else:
                yield one.assignor, one
                yield f"{alone_label(one.assignor)}{' <' if is_best else ''}", self.alone

    @property
    def _is_advice(self) -> bool:
        return len(self.candidates) > 1 or self.keeps_assignor

    @property
    def keeps_assignor(self) -> bool:
        """Returns whether the recommended assignor is the group's own."""
        return self.recommended is not None and self.recommended == self.group.assignor

    @property
    def migration(self) -> Migration | None:
        """Plays the migration to the recommended assignor. Returns None if there is nothing to
        change, if the group needs `switch_protocol` instead, or if the leader dies in a rebalance
        of the migration because its assignor throws; then `summary` names this.
        """
        old, new = self.group.assignor, self.recommended
        if old is None or new is None or self.switch_protocol is not None:
            return None
        try:
            return self.completion if old == new else migration(self.group, old, new, self.engine)
        except AssignorThrows:
            return None

    @property
    def switch_protocol(self) -> str | None:
        """Returns the value of `switch-protocol` for the recommended assignor; else None."""
        old, new = self.group.assignor, self.recommended
        return None if old is None or new is None else by_switch_protocol(old, new)

    @property
    def completion(self) -> Migration | None:
        """Plays the bounce after which an eager group with `alone` is cooperative; None for other
        groups.
        """
        if self.alone is None:
            return None
        own = self.alone.assignor
        return migration(self.group, own, own, self.engine)

    def to_dict(self) -> dict[str, Any]:
        steps = self.migration
        answer: dict[str, Any] = {
            "group_id": self.group.group_id,
            "assignor": self.group.assignor,
            "leader_library": self.group.leader_library,
            "changes": list(self.changes),
            "summary": self.summary,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "recommended": self.recommended,
            "reason": self.reason,
            "migration": None if steps is None else steps.to_dict(),
        }
        if self.switch_protocol is not None:
            answer["switch_protocol"] = self.switch_protocol
        completion = steps if self.keeps_assignor else self.completion
        if self.alone is not None and completion is not None:
            (bounce,) = completion.bounces
            answer["listed_alone"] = {**self.alone.to_dict(), "bounce": bounce.to_dict()}
        return answer


def compare(
    group: GroupSpec,
    changes: Iterable[Change | str] = (),
    *,
    assignors: Sequence[str] | None = None,
    engine: Engine = "rust",
) -> Comparison:
    """Plans the changes with each of `assignors`; None means those that the group may run.

    Without changes, this plans the next rebalance of the present group. The group runs the
    `assignor` in its line: if `leader_library` is librdkafka, librdkafka's assignors are compared,
    too, but none of them replaces the group's own. The command `compare` first replaces the group's
    own by that of the leader's library: the first in `plans_by_leader` that has a plan.

    Errors   GroupError at `changes[i]` for a change that is a switch or does not fit the group; at
             `assignor` if the group's own assignor is unknown, as that of Kafka Streams; at
             `assignors[i]` for another unknown name, or for an assignor that the group's kind can
             never run (`plans/group_kinds.py`); TypeError.
    """
    require_group(group)
    if assignors is not None:
        _check_names(assignors)
    if group.assignor is not None:
        protocol_of(group.assignor)  # raises if the assignor is not known
    for i, name in enumerate(assignors or ()):
        if problem := never_runs(group, name):
            raise GroupError(f"assignors[{i}]", problem)
    changes = parse_changes(changes)
    for i, change in enumerate(changes):
        if isinstance(change, SwitchAssignor | SwitchProtocol):
            problem = "a comparison asks every assignor as it is; leave the switch out"
            raise GroupError(f"changes[{i}]", problem)
    names = _met_by(group) if assignors is None else assignors
    large = assignors is None and is_large(group)
    by_load = any(bare(name) == WEIGHTED for name in names) and any(t.weights for t in group.topics)
    candidates = tuple(
        Candidate(name, None, _TOO_LARGE)
        if large and name in PYTHON_LIBRARIES and name != group.assignor
        else _candidate(group, name, changes, engine, by_load=by_load)
        for name in names
    )
    keeps = _why_all_are_equal(group, changes)
    is_listed = group.assignor in names and keeps is None
    alone = _listed_alone(group, changes, engine, by_load=by_load) if is_listed else None
    is_change = bool(changes)
    recommended, reason = recommend(group, candidates, alone, keeps, changes=is_change)
    texts = tuple(str(change) for change in changes)
    return Comparison(group, texts, candidates, recommended, reason, engine, alone)


_TOO_LARGE = "left out: its class is slow for so large a group; --assignors has it all the same"


def _why_all_are_equal(group: GroupSpec, changes: Sequence[Change]) -> str | None:
    """Returns why every assignor must assign all partitions to one member; None if not so."""
    if len(group.members) == 1 and not any(isinstance(one, AddMembers) for one in changes):
        return "its only member reads all"
    grows = any(isinstance(one, AddPartitions | AddTopics) for one in changes)
    if sum(topic.partitions for topic in group.topics) == 1 and not grows:
        return "there is only one partition, which one member reads under every assignor"
    return None


def _check_names(assignors: Sequence[str]) -> None:
    if isinstance(assignors, str):
        raise TypeError(f'assignors: "{assignors}" is one text; give a list, ["{assignors}"]')
    if not isinstance(assignors, Sequence):
        raise TypeError(f"assignors: {a_type(assignors)} is not a list of names")
    if not assignors:
        raise GroupError("assignors", "empty; name one assignor at least, or leave the list out")
    for i, name in enumerate(assignors):
        if not isinstance(name, str):
            raise TypeError(f'assignors[{i}]: {a_type(name)} is not a name; give one, as "sticky"')
        if not is_known(name):
            raise GroupError(f"assignors[{i}]", misspelt(name))


def _met_by(group: GroupSpec) -> list[str]:
    if group.assignor in SERVER_SIDE:
        family = library_of(group.assignor)
        own = [
            name
            for name in SERVER_SIDE
            if library_of(name) == family and (name == group.assignor or name != PLUG_IN)
        ]
        return own if SERVER_SIDE[group.assignor].shares else [*own, *KAFKAS]
    library = library_of(group.assignor) or group.leader_library
    shown = (None, "librdkafka") if library == "librdkafka" else (None,)
    names = [name for name in planned_names() if library_of(name) in shown and name not in OURS]
    if group.assignor in PYTHON_LIBRARIES:
        names += [name for name in PYTHON_LIBRARIES if library_of(name) == library]
    return names


def _listed_alone(
    group: GroupSpec, changes: tuple[Change, ...], engine: Engine, *, by_load: bool
) -> Candidate | None:
    """Returns the candidate for an eager group that becomes cooperative because members list only
    its own assignor; None if this is not possible, or if the group would never settle.
    """
    own = group.assignor
    if own is None or group.rebalance_protocol != "eager" or not lists_eager(group, own):
        return None
    alone = group.edited(rebalance_protocol="cooperative")
    one = _candidate(alone, own, changes, engine, by_load=by_load)
    return one if one.settles else None


def _candidate(
    group: GroupSpec,
    name: str,
    changes: tuple[Change, ...],
    engine: Engine,
    *,
    by_load: bool,
) -> Candidate:
    try:
        planned = plan(group, name, changes, engine=engine)
        load = _fullest(planned) if by_load else None
        return Candidate(name, planned.figures(), load=load)
    except GroupError as error:
        if error.path.startswith("changes["):
            raise
        return Candidate(name, None, str(error), error_kind=error_kind(error))


def _fullest(planned: RebalancePlan) -> float | None:
    from kafka_rebalance.assignors.balance.weights import loads_of

    return loads_of(planned.final).fullest(planned.final, planned.after)[1]

# SPDX-License-Identifier: Apache-2.0
"""Compares assignors for one group, and recommends one, with the reason.

Each step of the rule compares the candidates that were equal in the steps before:

1. An assignor that fails, or never settles, is not recommended.
2. The smallest difference at the end between the members with the most and fewest partitions.
3. The fewest partition-rounds without a reader (each partition counts once for each such round).
4. The fewest moves.
5. The largest share of partitions read in the rack of a replica.
6. The group's own assignor, which needs no migration; then the first in the registry's order (or
   in the caller's, if the caller names the assignors).

Every assignor is planned as if the group already used it, from the partitions that the members own
now. `migration` has the steps and costs of the change to the recommended assignor. A change to a
built-in assignor is recommended only if every member may have it: if one of the clients that the
member's client id reveals, or else that its bytes fit (`clients.py`), has the assignor.

Dialects ("librdkafka/range", another library's version of an assignor) are candidates if the
group's assignor is a dialect of this library, if a librdkafka member led the group last, or if the
caller names them. Assignors of a library other than that of the group's own assignor are
recommended only if none of its own library settles. Members of the Python libraries can also have
Kafka's assignors, as plug-ins, except the one with the same name in JoinGroup: the member that
leads would decide which of the two answers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import (
    BUILT_IN,
    KAFKAS,
    SERVER_SIDE,
    Engine,
    is_known,
    library_of,
    planned_names,
    protocol_name,
    unknown,
)
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import a_type
from kafka_rebalance.group.html_tables import clipped, small_table
from kafka_rebalance.group.spec import GroupSpec, require_group

from .changes import Change, SwitchAssignor, SwitchProtocol
from .changes.edits import AS_IT_IS
from .clients import CLIENTS, clients_for
from .figures import Figures
from .migrations import Migration, migration
from .rebalance_plan import parse_changes, plan
from .rounds import protocol_of
from .switch import is_large


@dataclass(frozen=True, slots=True)
class Candidate:
    """The figures of one assignor, or the reason why it has none."""

    assignor: str
    figures: Figures | None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        figures = {} if self.figures is None else self.figures.to_dict()
        return {"assignor": self.assignor, **figures, "error": self.error}


@dataclass(frozen=True, slots=True)
class Comparison:
    """All candidates with the recommendation; `recommended` is None if no assignor is left."""

    group: GroupSpec
    changes: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    recommended: str | None
    reason: str
    engine: Engine = "rust"

    @property
    def title(self) -> str:
        changes = ", ".join(self.changes) or AS_IT_IS.cause
        runs = self.group.assignor or "an unknown assignor"
        return f"{self.group.group_id}, which runs {runs}: {changes}"

    def __repr__(self) -> str:
        return f"<Comparison {clipped(self.title)}: recommended is {self.recommended}>"

    def _repr_html_(self) -> str:
        def row(one: Candidate) -> tuple[object, ...]:
            name = f"{one.assignor}{' <' if one.assignor == self.recommended else ''}"
            figures = one.figures
            if figures is None:
                return name, one.error or "", "", "", ""
            rounds = figures.rounds if figures.settled else "never settles"
            balance = figures.balance_after.least_to_most
            return name, rounds, figures.moves, figures.unavailable, balance

        columns = ("assignor", "rounds", "moves", "no reader", "partitions a member")
        return small_table(self.title, columns, self.candidates, row)

    @property
    def migration(self) -> Migration | None:
        """Plays the migration to the recommended assignor; None if there is nothing to change."""
        old, new = self.group.assignor, self.recommended
        if old is None or new is None or old == new:
            return None
        return migration(self.group, old, new, self.engine)

    def to_dict(self) -> dict[str, Any]:
        steps = self.migration
        return {
            "group_id": self.group.group_id,
            "assignor": self.group.assignor,
            "leader_library": self.group.leader_library,
            "changes": list(self.changes),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "recommended": self.recommended,
            "reason": self.reason,
            "migration": None if steps is None else steps.to_dict(),
        }


def compare(
    group: GroupSpec,
    changes: Iterable[Change | str] = (),
    *,
    assignors: Sequence[str] | None = None,
    engine: Engine = "rust",
) -> Comparison:
    """Plans the changes with each of `assignors`; None means all that a leader may run.

    Without changes, this plans the next rebalance of the present group.

    Errors   GroupError at `changes[i]` for a change that does not fit the group; at `assignor` if
             the group's own assignor is not known here, for example that of Kafka Streams; at
             `assignors[i]` for another unknown name; TypeError.
    """
    require_group(group)
    if assignors is not None:
        _check_names(assignors)
    if group.assignor is not None:
        protocol_of(group.assignor)  # raises if the assignor is not known
    changes = parse_changes(changes)
    for i, change in enumerate(changes):
        if isinstance(change, SwitchAssignor | SwitchProtocol):
            problem = "a comparison asks every assignor as it is; leave the switch out"
            raise GroupError(f"changes[{i}]", problem)
    names = _met_by(group) if assignors is None else assignors
    large = assignors is None and is_large(group)
    candidates = tuple(
        Candidate(name, None, _TOO_LARGE)
        if large and name in PYTHON_LIBRARIES and name != group.assignor
        else _candidate(group, name, changes, engine)
        for name in names
    )
    recommended, reason = _recommended(group, candidates)
    texts = tuple(str(change) for change in changes)
    return Comparison(group, texts, candidates, recommended, reason, engine)


_TOO_LARGE = "left out: its class is slow for so large a group; --assignors has it all the same"


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
            raise GroupError(f"assignors[{i}]", unknown(name))


def _recommended(group: GroupSpec, candidates: Sequence[Candidate]) -> tuple[str | None, str]:
    """Returns the recommended assignor, None if no candidate is possible, and the reason."""
    settled = sorted(
        (one for one in candidates if one.figures is not None and one.figures.settled),
        key=lambda one: _rank(group, one),
    )
    ranked = [one for one in settled if _is_alike(group, one.assignor)] or settled
    is_alone = len(ranked) == 1 < len(settled)
    if not ranked:
        return None, "every assignor fails, or never settles"
    possible = [one for one in ranked if not _lacking(group, one.assignor)]
    if not possible:
        names = dict.fromkeys(name for one in ranked for name in _lacking(group, one.assignor))
        return None, f"{' and '.join(names)} has none of these assignors that settles"
    best = possible[0]
    reason = _reason(group, best, possible[1:])
    if is_alone:
        reason = f"{best.assignor} is the only one here of the kind that the group runs"
    if len(candidates) == 1:
        reason = f"{best.assignor} is the only one that was compared"
    if len(possible) == 1 < len(ranked):
        reason = f"{best.assignor} is the only one that settles and that the clients have"
    if ranked[0] is not best:
        lacking = _lacking(group, ranked[0].assignor)
        reason += f"; {ranked[0].assignor} would do better, but {' and '.join(lacking)} "
        reason += f"{'does' if len(lacking) == 1 else 'do'} not have it"
    return best.assignor, reason


def _is_alike(group: GroupSpec, assignor: str) -> bool:
    """Returns whether members that have the group's own assignor can have this one too."""
    own = group.assignor or ""
    if library_of(assignor) == library_of(own):
        return True
    by_plug_in = own in PYTHON_LIBRARIES and library_of(assignor) is None
    return by_plug_in and protocol_name(own) != assignor


def _met_by(group: GroupSpec) -> list[str]:
    """Returns the assignors that a leader of this group may run, and those of its brokers."""
    if group.assignor in SERVER_SIDE:
        family = library_of(group.assignor)
        own = [name for name in SERVER_SIDE if library_of(name) == family]
        return own if SERVER_SIDE[group.assignor].shares else [*own, *KAFKAS]
    library = library_of(group.assignor) or group.leader_library
    shown = (None, "librdkafka") if library == "librdkafka" else (None,)
    names = [name for name in planned_names() if library_of(name) in shown]
    if group.assignor in PYTHON_LIBRARIES:
        names += [name for name in PYTHON_LIBRARIES if library_of(name) == library]
    return names


def _lacking(group: GroupSpec, assignor: str) -> list[str]:
    """Returns the clients, in `CLIENTS`' order, of members that cannot have this assignor.

    A member cannot if all clients that it may run lack it. Any client may have a custom assignor.
    """
    if assignor == group.assignor or assignor not in (*BUILT_IN, *PYTHON_LIBRARIES):
        return []
    may_run = {clients_for(member, group.group_id) for member in group.members}
    lack = [client for client in CLIENTS if assignor not in client.assignors]
    named = {client for clients in may_run if {*clients} <= {*lack} for client in clients}
    return [client.name for client in lack if client in named]


def _candidate(
    group: GroupSpec, name: str, changes: tuple[Change, ...], engine: Engine
) -> Candidate:
    try:
        return Candidate(name, plan(group, name, changes, engine=engine).figures())
    except GroupError as error:
        if error.path.startswith("changes["):
            raise
        return Candidate(name, None, str(error))


class _Measure(NamedTuple):
    """A criterion of the rule; the candidate with the smallest value is the best.

    `words` is a text that compares the values of two candidates; `show` is the format of a value.
    `equal` is the text after `words`: it says that both are equal in all earlier criteria.
    """

    words: str
    of: Callable[[Figures], float]
    show: str
    equal: str


_MEASURES = (
    _Measure(
        "a spread of {} to {}'s {}", lambda f: f.balance_after.max - f.balance_after.min, "d", ""
    ),
    _Measure(
        "{} partition-rounds without a reader to {}'s {}",
        lambda f: f.unavailable_rounds,
        "d",
        ", and is as even",
    ),
    _Measure("{} moves to {}'s {}", lambda f: f.moves, "d", ", is as even and stops as little"),
    _Measure(
        "{} read in another rack to {}'s {}",
        lambda f: 1 - (f.rack_share_after or 0.0),
        ".0%",
        ", and is equal in all else",
    ),
)


def _rank(group: GroupSpec, candidate: Candidate) -> tuple[float, ...]:
    figures = candidate.figures
    assert figures is not None
    return (
        *(measure.of(figures) for measure in _MEASURES),
        float(candidate.assignor != group.assignor),
    )


def _reason(group: GroupSpec, best: Candidate, others: Sequence[Candidate]) -> str:
    """Returns why `best` is better than the group's own assignor, or than the next best one."""
    if not others:
        return f"{best.assignor} is the only one that settles"
    own = [one for one in others if one.assignor == group.assignor]
    other = (own or list(others))[0]
    assert best.figures is not None
    assert other.figures is not None
    for measure in _MEASURES:
        mine, its = measure.of(best.figures), measure.of(other.figures)
        if mine != its:
            how = measure.words.format(
                format(mine, measure.show), other.assignor, format(its, measure.show)
            )
            return f"{best.assignor} has {how}{measure.equal}"
    if best.assignor == group.assignor:
        return f"{best.assignor} is what the group runs, and no other does better"
    return f"{best.assignor} does as well as {other.assignor} and comes first in Kafka's order"

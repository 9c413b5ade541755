# SPDX-License-Identifier: Apache-2.0
"""The rule by which `compare` recommends an assignor, and the reason in words.

Each step of the rule compares the candidates that are equal in all earlier steps:

1. An assignor that fails, or never settles, is not recommended.
2. The smallest difference at the end between the members with the most and fewest partitions.
3. The fewest partition-rounds without a reader (each partition counts once for each such round).
4. The fewest moves.
5. The largest share of partitions read in the rack of a replica.
6. The group's own assignor, which needs no migration; then the first one in the registry's order
   or, if the caller names the assignors, in the caller's, but this project's own last.

If one candidate is `weighted` and the group has weights, step 2 begins with the load of the fullest
member: even numbers of partitions are then not the aim. Loads are compared in tenths of the mean.

A built-in assignor is recommended only if every member may have it: if at least one of the clients
that fit the member's client id, or else its bytes (`plans/clients.py`), has it. If the bytes fit
only "kafka-python or aiokafka", both libraries must have it. `balanced` and `weighted` are
recommended only if all members certainly run Python libraries, which have the plug-ins, and no two
certainly different ones.

A group whose only member stays the only one keeps its assignor if the group settles with it.

Assignors of another library are recommended only if the group settles with no assignor that its own
library may have. Members of the Python libraries can also have Kafka's assignors, as plug-ins,
except the one that has the name of the group's own assignor in JoinGroup: with it, the answer would
depend on which member leads.

The members of an eager group (`rounds.lists_eager`) need one more rolling bounce to become
cooperative. So the group's own assignor is ranked as if members listed only this assignor.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kafka_rebalance.assignors.python_libraries import PYTHON_LIBRARIES
from kafka_rebalance.assignors.registry import BUILT_IN, OURS, bare, library_of, protocol_name
from kafka_rebalance.frozen import Frozen
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.clients import (
    CLIENTS,
    EITHER_PYTHON,
    HAVE_CONSUMER_PROTOCOL,
    ClientLibrary,
    clients_for,
    in_python,
    sure_to_run,
    who_lists_ours,
)
from kafka_rebalance.plans.figures import Figures
from kafka_rebalance.plans.group_kinds import CONSUMER, protocol_kind


class Candidate(Frozen):
    """The figures of one assignor; or an error in their place, and its kind for columns."""

    assignor: str
    figures: Figures | None
    error: str | None = None
    load: float | None = None
    """The fullest member's load at the end, divided by the mean; None if loads are not a criterion.
    """
    error_kind: str | None = None

    def to_dict(self) -> dict[str, Any]:
        figures = {} if self.figures is None else self.figures.to_dict()
        load = {} if self.load is None else {"load": self.load}
        return {"assignor": self.assignor, **figures, **load, "error": self.error}

    @property
    def settles(self) -> bool:
        return self.figures is not None and self.figures.settled


def recommend(
    group: GroupSpec,
    candidates: Sequence[Candidate],
    alone: Candidate | None,
    keeps: str | None,
    *,
    changes: bool,
) -> tuple[str | None, str]:
    """Returns the recommended assignor (None if no candidate is possible) and the reason.

    `alone` is the own assignor of an eager group, as if members listed only this one; else None.
    `keeps` is the reason why the group keeps its assignor in any case, or None. `changes` is True
    if the figures are those of changes, False for a rebalance without a change.
    """
    own = [one.assignor for one in candidates if one.settles and one.assignor == group.assignor]
    if keeps is not None and own:
        return own[0], f"{own[0]} is what the group runs, and {keeps}"
    if alone is not None:
        candidates = [alone if one.assignor == alone.assignor else one for one in candidates]
    settled = sorted((one for one in candidates if one.settles), key=lambda one: _rank(group, one))
    if not settled:
        return None, "every assignor fails, or never becomes stable"
    ranked = [one for one in settled if _is_alike(group, one.assignor)] or settled
    had = [one for one in settled if not lacking_clients(group, one.assignor)]
    if not had:
        names = {name for one in settled for name in lacking_clients(group, one.assignor)}
        lacking = [client.name for client in CLIENTS if client.name in names]
        verb = "has" if len(lacking) == 1 else "have"
        if all(bare(one.assignor) in OURS for one in settled):
            return None, who_lists_ours(group)[1]
        return None, f"{' and '.join(lacking)} {verb} none of these assignors that becomes stable"
    possible = [one for one in had if one in ranked] or had
    best = possible[0]
    is_ours = bare(best.assignor) in OURS
    others = [one for one in had if one is not best] if is_ours else possible[1:]
    reason = _reason(group, best, others, alone, changes=changes)
    if len(candidates) == 1:
        reason = f"{best.assignor} is the only one that was compared"
    elif len(possible) == 1 < len(had) and not is_ours:
        reason = f"{best.assignor} is the only one here of the kind that the group runs"
    elif len(possible) == 1 < len(settled) and not others:
        reason = f"{best.assignor} is the only one that becomes stable and that the clients have"
    if settled.index(ranked[0]) < settled.index(best):
        reason += f"; {ranked[0].assignor} would do better{_why_not(group, ranked[0].assignor)}"
    if alone is not None:
        reason += "; the members list an eager assignor too: the rolling bounce to "
        reason += f"{alone.assignor} alone is missing"
    return best.assignor, reason


def _why_not(group: GroupSpec, assignor: str) -> str:
    """Returns why the better `assignor` is not recommended, as the end of a sentence."""
    if bare(assignor) in OURS:
        return f", but {who_lists_ours(group)[1]}"
    lacking = lacking_clients(group, assignor)
    who, verb = " and ".join(lacking), "does" if len(lacking) == 1 else "do"
    if sure_to_run(group, lacking):
        return f", but {who} {verb} not have it"
    return f" if no member runs {who}, which {verb} not have it"


def _is_alike(group: GroupSpec, assignor: str) -> bool:
    """Returns whether `assignor` may replace the group's own: it is of the same library, of this
    project, or Kafka's with another name than a Python library's class. See `lacking_clients`.
    """
    own = group.assignor or ""
    if library_of(assignor) == library_of(own):
        return True
    by_plug_in = own in PYTHON_LIBRARIES and library_of(assignor) is None
    if bare(assignor) in OURS:
        return True
    return by_plug_in and protocol_name(own) != assignor


def lacking_clients(group: GroupSpec, assignor: str) -> list[str]:
    """Returns the clients, in `CLIENTS`' order, of members that cannot have this assignor.

    A member cannot have it if every client that it may run lacks it. A member of an unknown Python
    library cannot have it if one of the two lacks it. Any client may have a custom assignor, or the
    group's own. This project's own require a group for which `in_python` is True.
    """
    known = (*BUILT_IN, *PYTHON_LIBRARIES)
    name = bare(assignor)
    if assignor == group.assignor or not (name in known or protocol_kind(assignor) == CONSUMER):
        return []
    may_run = {clients_for(member, group.group_id) for member in group.members}
    if name in OURS:
        others = {client for clients in may_run for client in clients} - {*EITHER_PYTHON}
        mix = () if in_python(group) else others or {*EITHER_PYTHON}
        return [client.name for client in CLIENTS if client in mix]
    lack = [client for client in CLIENTS if not _has(client, assignor)]
    named = {
        client
        for clients in may_run
        if clients == EITHER_PYTHON or {*clients} <= {*lack}
        for client in clients
    }
    return [client.name for client in lack if client in named]


def _has(client: ClientLibrary, assignor: str) -> bool:
    if protocol_kind(assignor) == CONSUMER:
        return client in HAVE_CONSUMER_PROTOCOL
    return assignor in client.assignors


class _Measure(NamedTuple):
    """A criterion of the rule; the candidate with the smallest value is the best.

    `words` is a phrase with placeholders: the value, the other candidate, its value. `of` returns
    the value from a candidate's figures and load. `show` is the format of both values; the first
    also gets the noun `unit`. `equal` is appended to the phrase, to say that both candidates are
    equal in all earlier criteria.
    """

    words: str
    of: Callable[[Figures, float], float]
    show: str = "d"
    unit: str = ""
    equal: str = ""


_EVENNESS = _Measure(
    "leaves the fullest and the emptiest member {} apart, {} {}",
    lambda f, _: f.balance_after.max - f.balance_after.min, unit="partition",
)  # fmt: skip
_UNREAD = _Measure(
    "leaves partitions without a reader {}, {} {}", lambda f, _: f.unavailable_rounds,
    unit="time", equal=", and is as even",
)  # fmt: skip
_MEASURES = (
    _Measure(
        "loads the fullest member with {} times the mean, {} {}",
        lambda _, load: round(load, 1), ".1f",
    ),
    _EVENNESS,
    _UNREAD,
    _Measure(
        "makes {}, {} {}", lambda f, _: f.moves,
        unit="move", equal=", is as even and leaves as few without a reader",
    ),
    _Measure(
        "reads {} in another rack, {} {}", lambda f, _: 1 - (f.rack_share_after or 0.0),
        ".0%", equal=", and is equal in all else",
    ),
)  # fmt: skip

MEASURES_SAY = tuple(f"{measure.words.partition(' ')[0]} " for measure in _MEASURES)
"""The verbs after the assignor's name in reasons that a measure decided."""


def _rank(group: GroupSpec, candidate: Candidate) -> tuple[float, ...]:
    figures = candidate.figures
    assert figures is not None
    return (
        *(measure.of(figures, candidate.load or 0.0) for measure in _MEASURES),
        float(candidate.assignor != group.assignor),
        float(bare(candidate.assignor) in OURS),
    )


def _reason(
    group: GroupSpec,
    best: Candidate,
    others: Sequence[Candidate],
    alone: Candidate | None,
    *,
    changes: bool,
) -> str:
    """Returns why `best` is better than the group's own assignor if `others` contain it, else than
    the next best one.
    """
    name = _label(best, alone)
    if not others:
        return f"{name} is the only one that becomes stable"
    own = [one for one in others if one.assignor == group.assignor]
    other = (own or list(others))[0]
    figures, its_figures = best.figures, other.figures
    assert figures is not None
    assert its_figures is not None
    stops = f"{counted(figures.unavailable, 'partition')} without a reader"
    again = any(one.unavailable_rounds > one.unavailable for one in (figures, its_figures))
    for measure in _MEASURES:
        mine = measure.of(figures, best.load or 0.0)
        its = measure.of(its_figures, other.load or 0.0)
        if mine == its:
            continue
        shown = counted(int(mine), measure.unit) if measure.unit else format(mine, measure.show)
        how = measure.words.format(shown, _label(other, alone), format(its, measure.show))
        if measure is _UNREAD and not again:
            how = f"leaves {stops}, {_label(other, alone)} {its}"
        if measure is _EVENNESS and figures.unavailable < its_figures.unavailable:
            first = "" if changes or not figures.unavailable else "the first time "
            how += f", and {first}{stops} instead of {its_figures.unavailable}"
        return f"{name} {how}{measure.equal}"
    if best is alone:
        return f"no other does better than {name}"
    if best.assignor == group.assignor:
        return f"{best.assignor} is what the group runs, and no other does better"
    where = "in the list" if bare(other.assignor) in OURS else "in Kafka's order"
    return f"{best.assignor} does as well as {other.assignor} and comes first {where}"


def _label(one: Candidate, alone: Candidate | None) -> str:
    return alone_label(one.assignor) if one is alone else one.assignor


def alone_label(assignor: str) -> str:
    """Returns the label of an eager group's own assignor if members list only this one."""
    return f"{assignor} alone"

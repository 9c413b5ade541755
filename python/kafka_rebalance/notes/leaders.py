# SPDX-License-Identifier: Apache-2.0
"""Notes on the leader: other client libraries have assignors of their own under Kafka's names."""

from collections.abc import Iterable, Iterator, Sequence

from kafka_rebalance.assignors.registry import is_known, library_of
from kafka_rebalance.group.spec import GroupSpec, counted
from kafka_rebalance.plans.leaders import LedPlan, has_no_answer

from .findings import Note

_OTHERS = {
    "librdkafka": "librdkafka (confluent-kafka and others)",
    "python": "kafka-python or aiokafka",
}
_MOST_LEADERS = 3
_DIALECTS = {
    "librdkafka": " The names that begin with librdkafka/ are its own assignors.",
    "python": " The names that begin with kafka-python/ or aiokafka/ are their own assignors.",
}


def leading(led: Sequence[LedPlan], shown: LedPlan) -> Iterator[Note]:
    """Yields notes: who leads in the shown plan, and the figures of the plan under each other
    leader.
    """
    if has_no_answer(led):
        return  # the note "no answer" states the reason
    lead = f"{_members(shown)} {'leads' if len(shown.leaders) == 1 else 'may lead'}"
    if (library_of(shown.assignor) and shown.leaders) or len(led) > 1:
        where = f": {lead}" if shown.leaders else ""
        text = f"The figures are those of {_answering(shown)}{where}."
        yield Note("leader", text, shown.leaders)
    yield from other_leaders(led, shown)


def no_answer(led: Sequence[LedPlan]) -> str:
    """Returns the reasons why no possible leader has an answer (see `has_no_answer`)."""
    each = "; ".join(_if_leads(one).replace("If", "if", 1) for one in led if one.plan is None)
    return f"no member that may lead has an answer: {each}"


def other_leaders(led: Sequence[LedPlan], shown: LedPlan | None, how: str = "") -> Iterator[Note]:
    """Yields a note for each plan in `led` except `shown`; `how` ends the note's sentence."""
    for one in led:
        if one is not shown:
            yield Note("leader", f"{_if_leads(one)}{how}.", one.leaders)


def _answering(one: LedPlan) -> str:
    """Returns the names of the assignors that answer in the plan; if an answer is Kafka's, although
    the library has an assignor with that name, also the switch to the library's assignor.
    """
    library = library_of(one.assignor)
    names = one.answering or (one.assignor,)
    text = " and ".join(name if library_of(name) else f"Kafka's {name}" for name in names)
    own = [f"{library}/{name}" for name in names if not library_of(name)]
    known = [name for name in own if is_known(name)]
    return f"{text} (switch-assignor={known[0]} has the library's own)" if known else text


def _if_leads(one: LedPlan) -> str:
    lead = "leads" if len(one.leaders) == 1 else "lead"
    head = f"If {_members(one)} {lead} with {one.assignor}"
    if one.plan is None:
        return f"{head}: {one.error}"
    figures = one.plan.figures()
    counts = f"{counted(figures.rounds, 'rebalance')}, {counted(figures.moves, 'move')}"
    ends = "" if figures.settled else ", and the group never settles"
    return f"{head}: {counts}, {figures.balance_after.least_to_most} partitions per member{ends}"


def _members(one: LedPlan) -> str:
    named = ", ".join(one.leaders[:_MOST_LEADERS])
    more = len(one.leaders) - _MOST_LEADERS
    return f"{named} or {more} more" if more > 0 else named.replace(", ", " or ")


def foreign_leader(
    group: GroupSpec, assignor: str | None, shown: Iterable[str] = ()
) -> Iterator[Note]:
    """Yields a warning if another library led last, unless `assignor` is a library's own; `shown`
    are the assignors that a comparison shows.
    """
    library = group.leader_library
    if library in (None, "", "java") or library_of(assignor):
        return
    whose = _OTHERS.get(library or "", library)
    text = (
        f"The last leader used the assignor of {whose}, whose answers "
        "differ from those of Kafka's assignor with that name. The figures here are true if a Java "
        "member leads, or a member with this project's plug-in."
    )
    own = ("kafka-python", "aiokafka") if library == "python" else (library,)
    if any(library_of(name) in own for name in shown):
        text += _DIALECTS.get(library or "", "")
    yield Note("foreign", text, detail={"leader_library": library})


def own_rows(assignor: str | None) -> Iterator[Note]:
    """Yields a note on the rows of a comparison that show a Python library's own assignors."""
    library = library_of(assignor)
    if library in ("kafka-python", "aiokafka"):
        yield Note(
            "own rows",
            f"{library}/ marks the library's own assignors; the others are Kafka's, which its "
            "members have as this project's plug-ins"
            + (", except cooperative-sticky." if library == "aiokafka" else "."),
        )

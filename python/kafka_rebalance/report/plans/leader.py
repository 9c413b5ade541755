# SPDX-License-Identifier: Apache-2.0
"""Reports who leads: other client libraries have their own assignors under the names of Kafka's.

The report of a plan has the figures of the leader's assignor, and the answers of other members that
may lead. For comparisons, for many groups, and if it is unknown who may lead, there is only a
warning.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafka_rebalance.assignors.registry import is_known, library_of
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.plans.clients import class_name
from kafka_rebalance.plans.leaders import LedPlan, has_no_answer
from kafka_rebalance.report.text.names import counted

from .plan import names_in_plan

_OTHERS = {
    "librdkafka": "librdkafka (confluent-kafka and others)",
    "python": "kafka-python or aiokafka",
}
_MOST_LEADERS = 3
_DIALECTS = {
    "librdkafka": " The names that begin with librdkafka/ are its own assignors.",
    "python": " The names that begin with kafka-python/ or aiokafka/ are their own assignors.",
}


def leading_lines(led: Sequence[LedPlan], shown: LedPlan) -> Iterator[str]:
    """Yields sentences about the leaders whose answer is shown, and about each other answer.

    Yields nothing if only Kafka's own assignor can answer. Made-up ids have a star.
    """
    names = _short_names(led)
    if has_no_answer(led):
        return  # the first line has the reason
    if library_of(shown.assignor) and shown.leaders:
        yield f"The figures are those of {_answering(shown)}: {_lead(shown, names)}."
    elif len(led) > 1:
        yield f"The figures are those of {_answering(shown)}{_where(shown, names)}."
    for one in led:
        if one is not shown:
            yield f"If {_names(one, names)} with {one.assignor}: {_answer(one)}."


def no_answer(led: Sequence[LedPlan]) -> str:
    """Returns why no member that may lead has an answer (`has_no_answer`)."""
    names = _short_names(led)
    dead = (one for one in led if one.plan is None)
    each = "; ".join(f"if {_names(one, names)} with {one.assignor}: {_answer(one)}" for one in dead)
    return f"no member that may lead has an answer: {each}"


def other_leaders(led: Sequence[LedPlan]) -> Iterator[str]:
    """Yields a sentence for each answer of another leader than the first that has one."""
    shown = next((one for one in led if one.plan is not None), None)
    names = _short_names(led)
    for one in led:
        if one is not shown:
            who = _names(one, names)
            yield f"If {who} with {one.assignor}: {_answer(one)} (--leader MEMBER)."


def _answering(one: LedPlan) -> str:
    """Returns the assignors of the plan's rounds; after a switch, also the library's own one."""
    library = library_of(one.assignor)
    names = one.answering or (one.assignor,)
    text = " and ".join(name if library_of(name) else f"Kafka's {name}" for name in names)
    own = [f"{library}/{name}" for name in names if not library_of(name)]
    known = [name for name in own if is_known(name)]
    return f"{text} (switch-assignor={known[0]} has the library's own)" if known else text


def _short_names(led: Sequence[LedPlan]) -> dict[str, str]:
    """Returns member id -> short name, as in the tables of the plans; `--leader` takes these."""
    plans = [one.plan for one in led if one.plan is not None]
    return {id_: name for plan in plans for id_, name in names_in_plan(plan).items()}


def _lead(one: LedPlan, names: Mapping[str, str]) -> str:
    return f"{_members(one, names)} {'leads' if len(one.leaders) == 1 else 'may lead'}"


def _where(one: LedPlan, names: Mapping[str, str]) -> str:
    return f": {_lead(one, names)}" if one.leaders else ""


def _names(one: LedPlan, names: Mapping[str, str]) -> str:
    return f"{_members(one, names)} lead{'s' if len(one.leaders) == 1 else ''}"


def _members(one: LedPlan, names: Mapping[str, str]) -> str:
    named = ", ".join(names.get(leader, leader) for leader in one.leaders[:_MOST_LEADERS])
    more = len(one.leaders) - _MOST_LEADERS
    return f"{named} or {more} more" if more > 0 else named.replace(", ", " or ")


def _answer(one: LedPlan) -> str:
    if one.plan is None:
        return str(one.error)
    figures = one.plan.figures()
    ends = "" if figures.settled else ", and the group never settles"
    parts = [counted(figures.rounds, "rebalance"), counted(figures.moves, "move")]
    return f"{', '.join(parts)}, {figures.balance_after.least_to_most} partitions a member{ends}"


def leader_note(group: GroupSpec, assignor: str | None, shown: Iterable[str] = ()) -> str | None:
    """Returns a warning if another library led last and `assignor` is Kafka's, else None.

    `shown` are the assignors of the rows of a comparison.
    """
    library = group.leader_library
    if library in (None, "", "java") or library_of(assignor):
        return None
    whose = _OTHERS.get(library or "", library)
    return (
        f"The last leader used the assignor of {whose}, whose answers "
        "differ from those of Kafka's assignor with that name. The figures here are true if a Java "
        "member leads, or a member with this project's plug-in."
    ) + _dialects_text(library or "", shown)


def either_note(groups: Iterable[tuple[GroupSpec, str | None]]) -> str | None:
    """Returns a sentence about tables in which a group has an assignor that begins with python/."""
    names = (class_name(group, assignor) or "" for group, assignor in groups)
    if not any(name.startswith("python/") for name in names):
        return None
    return (
        "python/ marks an assignor of kafka-python or aiokafka: the members' bytes do not show "
        "which of the two they run. Where the two differ, the figures are kafka-python's."
    )


def own_rows_note(assignor: str | None) -> str | None:
    """Returns a sentence about the rows of a Python library's own assignors, else None."""
    library = library_of(assignor)
    if library not in ("kafka-python", "aiokafka"):
        return None
    return (
        f"{library}/ marks the library's own assignors; the others are Kafka's, which its members "
        "have as this project's plug-ins"
        + (", except cooperative-sticky." if library == "aiokafka" else ".")
    )


def _dialects_text(library: str, shown: Iterable[str]) -> str:
    own = ("kafka-python", "aiokafka") if library == "python" else (library,)
    there = any(library_of(name) in own for name in shown)
    return _DIALECTS.get(library, "") if there else ""


def leaders_note(libraries: Iterable[str | None]) -> str | None:
    """Returns the warning for many groups: their number, and the libraries that led them last."""
    found = Counter(library for library in libraries if library not in (None, "", "java"))
    if not found:
        return None
    which = ", ".join(f"{library} {count}" for library, count in sorted(found.items(), key=str))
    return (
        f"{counted(found.total(), 'group')} ({which}) last had a leader with another library's "
        "assignor, whose answers differ from Kafka's. --group G prints details."
    )

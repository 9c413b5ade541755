# SPDX-License-Identifier: Apache-2.0
"""Prints the notes on a plan or a comparison, and sentences on the notes of many groups."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.group.spec import first_of
from kafka_rebalance.notes.findings import Note
from kafka_rebalance.notes.lost_rack import BEFORE, loses_rack, lost_rack_text
from kafka_rebalance.plans.changes.bounces import BounceMembers
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.topics import AddPartitions, AddTopics
from kafka_rebalance.plans.clients import class_name
from kafka_rebalance.plans.figures import Figures, new_partitions
from kafka_rebalance.plans.leaders import LedPlan
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.summary import in_words, without_reader

from ..text.sentences import GLOSSARY, counted, print_wrapped, shortened
from ..text.tables import print_table
from .figures import print_plans
from .plan import names_in_plan

FIRST = ("no answer", "commit waits")
"""The kinds of notes that are printed above the figures."""

SAID_ELSEWHERE = ("lost rack", "idle", "unread")
"""The kinds of notes that a report prints at a step or in its first sentence, and nowhere else."""

_WITH_LINES = ("bugs", "hangs", "rolling", "refused", "stop all")
_MEANT_TO_BE_COPIED = ("hangs", "dies", "never settles")
_HANGING = ("hangs",)
_NAMED = (
    *("tasks", "stops", "interval", "tie", "ignored", "delay", "warm-up", "same place", "order"),
    *("new topics", "pause", "threads", "blocks", "unknown", "policy", "first join", "owners"),
    *("jar", "racks", "steps"),
)
_MOST_ROWS = 20
_GROUPS_NAMED = 3


def names_of(led: Iterable[LedPlan], *plans: RebalancePlan) -> dict[str, str]:
    """Returns member id -> short name, as in the plans' tables; `--leader` accepts these names."""
    of_led = (one.plan for one in led if one.plan is not None)
    each = [*(one for one in of_led if not any(one is plan for plan in plans)), *plans]
    return {id_: name for one in each for id_, name in names_in_plan(one).items()}


def print_notes(
    notes: Iterable[Note],
    names: Mapping[str, str],
    given: str,
    *,
    made_up: Container[str] = (),
    everything: bool = False,
) -> None:
    """Prints notes; `given` is the part of the command line that selects input and group.

    `names` maps member ids to short names. With `made_up` ids, the last owners are a guess.
    """
    for note in notes:
        text = note.text if note.kind in _MEANT_TO_BE_COPIED else shortened(note.text, names)
        if note.kind in _NAMED:
            print_wrapped(f"{note.kind}: {text}", "", "  ")
        for line in text.split("\n") if note.kind in _WITH_LINES else ():
            print_line(line, "  " * (note.kind in _HANGING))
        if note.kind not in (*_NAMED, *_WITH_LINES):
            print_wrapped(text)
        if note.kind in (*FIRST, "hangs"):
            print()
        if note.kind == "owners":
            _print_owners(note, names, is_guess=bool(made_up), everything=everything)
        if note.ask is not None:
            word, _, rest = note.ask.partition(" ")
            print(f"  kafka-rebalance {word} {given} {rest}")


def print_line(line: str, more: str = "") -> None:
    """Prints a line with its own indent; one with 5 or more leading spaces is not wrapped."""
    text = line.lstrip()
    if line.startswith("     "):
        print(line)
    else:
        print_wrapped(text, " " * (len(line) - len(text)), more)


def _print_owners(
    note: Note, names: Mapping[str, str], *, is_guess: bool, everything: bool
) -> None:
    """Prints the partitions of the note that have another owner at the end of the plan than now."""
    moved = (note.detail or {})["moved"]
    shown = moved if everything else moved[:_MOST_ROWS]
    if shown:
        rows = [(tp, *(names.get(one or "", "nobody") for one in who)) for tp, *who in shown]
        # Ids break ties, so if ids are made up, the real owners may differ.
        afterwards = "afterwards (a guess)" if is_guess else "afterwards"
        print_table(("partition", "now", afterwards), rows, left=(1, 2))
    if len(moved) > len(shown):
        print(f"  … and {len(moved) - len(shown)} more (--all shows them)")


# Many groups --------------------------------------------------------------------------------------


def notes_on_groups(
    each: Iterable[tuple[str, Sequence[Note]]], *, losing: int, before: bool = False
) -> dict[str, str]:
    """Returns kind -> a sentence about all groups with such a note; most kinds have no sentence.

    `each` pairs group ids with their notes; `losing` is the number of groups that lose a rack. With
    `before`, lost racks are counted before the changes.
    """
    found: dict[str, list[tuple[str, Note]]] = {}
    for group_id, notes in each:
        for note in notes:
            found.setdefault(note.kind, []).append((group_id, note))
    said: dict[str, str] = {}
    if lost := found.get("unread"):
        partitions = sum(len(note.partitions) for _, note in lost)
        said["unread"] = (
            f"WARNING: nobody reads {counted(partitions, 'partition')} of "
            f"{first_of([group_id for group_id, _ in lost], _GROUPS_NAMED)} then: no member is "
            "left that subscribes to their topics."
        )
    if waits := found.get("commit waits"):
        said["commit waits"] = (
            f"WARNING: {counted(len(waits), 'group')} may not rebalance for minutes, because "
            "members of Java, aiokafka or kafka-python commit offsets of a deleted topic in vain "
            "(enable.auto.commit, the default); --group G prints more."
        )
    if bounds := found.get("lower bound"):
        moving = sum((note.detail or {})["may_move"] for _, note in bounds)
        too = f" In {moving} of them, partitions may move again." if moving else ""
        said["lower bound"] = (
            f"+: the rounds of {counted(len(bounds), 'group')} are lower bounds, because members "
            f"may join once more, or subscribe one after another (docs/plans.md).{too}"
        )
    if unknown := found.get("lost rack"):
        where = f" of {counted(len(unknown), 'group')}" if losing > 1 else ""
        members = sum(len(note.member_ids) for _, note in unknown)
        said["lost rack"] = BEFORE * before + lost_rack_text(members, where)
    if foreign := found.get("foreign"):
        libraries = Counter((note.detail or {})["leader_library"] for _, note in foreign)
        which = ", ".join(f"{name} {count}" for name, count in sorted(libraries.items(), key=str))
        said["foreign"] = (
            f"{counted(len(foreign), 'group')} ({which}) last had a leader with another library's "
            "assignor, whose answers differ from Kafka's. --group G prints details."
        )
    if lists := found.get("lists"):
        said["lists"] = lists_note([group_id for group_id, _ in lists])
    return said


def lists_note(group_ids: Sequence[str]) -> str:
    """Returns the note on groups whose members may list assignors of both protocols."""
    few = len(group_ids) <= _GROUPS_NAMED
    return (
        f"Assumed for {counted(len(group_ids), 'cooperative group')}"
        f"{' (' + ', '.join(group_ids) + ')' if few else ''}: every member lists only cooperative "
        'assignors. For members that list others, set "rebalance_protocol": "eager" in the '
        "line of the group. --group G prints details."
    )


def either_note(names: Iterable[str | None]) -> str | None:
    """Returns a sentence for tables that name an assignor python/…; None if there is none."""
    if not any(name is not None and name.startswith("python/") for name in names):
        return None
    return (
        "python/ marks an assignor of kafka-python or aiokafka: the members' bytes do not show "
        "which of the two they run. Where the two differ, the figures are kafka-python's."
    )


class PlanTable(Mutable):
    """The rows of many groups, and the groups' notes.

    Three fields count groups. `losing`: the changes remove a rack. `places_guessed`: members have
    racks, and the racks of new partitions' replicas are guessed. `restarts_assumed`: restarts may
    cause more or fewer rebalances than assumed (`changes/bounces.py`). `new` counts moves of new
    partitions, which had no owner before.
    """

    rows: list[tuple[str, str, Figures]] = field(default_factory=list)
    notes: list[tuple[str, tuple[Note, ...]]] = field(default_factory=list)
    losing: int = 0
    places_guessed: int = 0
    restarts_assumed: int = 0
    new: int = 0
    changes: tuple[Change, ...] = ()

    def add(self, planned: RebalancePlan, notes: tuple[Note, ...]) -> None:
        group = planned.group
        self.changes = max(self.changes, planned.changes, key=len)
        name = class_name(group, planned.assignor) or ""
        self.rows.append((group.group_id, name, planned.figures()))
        self.notes.append((group.group_id, notes))
        if any(isinstance(one, AddPartitions | AddTopics) for one in planned.changes):
            self.new += new_partitions(planned)
        self.losing += loses_rack(map(str, planned.changes))
        has_racks = any(member.rack_id for member in group.members)
        self.places_guessed += planned.places_guessed and has_racks
        self.restarts_assumed += any(
            isinstance(one, BounceMembers) and not one.is_certain_in(group)
            for one in planned.changes
        )

    def _summary(self) -> str:
        figures = [one for _, _, one in self.rows]
        silent = [one for one in figures if one.unavailable]
        moves = counted(sum(one.moves for one in figures), "move")
        moves += f" ({self.new:,} of new partitions)" * (self.new > 0)
        stops = without_reader(sum(one.unavailable for one in silent), len(silent))
        moving = sum(one.moves > 0 for one in figures)
        groups = f"{moving} of " * (moving < len(figures)) + counted(len(figures), "group")
        what = in_words(self.changes)
        return f"{what[0].upper()}{what[1:]}: {moves} in {groups}; {stops}."

    def show(self) -> None:
        print_wrapped(self._summary())
        print_plans(self.rows, [notes for _, notes in self.notes])
        either = either_note(name for _, name, _ in self.rows)
        of_groups = notes_on_groups(self.notes, losing=self.losing)
        for note in filter(None, (either, *of_groups.values())):
            print_wrapped(note)
        if self.places_guessed:
            which = counted(self.places_guessed, "group")
            print_wrapped(
                f"Guessed for {which} with racks: where brokers put the new partitions. The "
                "members that get them can depend on it; --group G prints samples."
            )
        if self.restarts_assumed:
            which = counted(self.restarts_assumed, "group")
            print_wrapped(
                f"Assumed for {which}: how long restarted members are away (bounce-members: "
                "away=). Back within a heartbeat, they start fewer rebalances; --group G prints "
                "both courses."
            )
        print(f"--group G shows one group in detail. {GLOSSARY}")

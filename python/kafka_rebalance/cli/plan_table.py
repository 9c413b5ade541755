# SPDX-License-Identifier: Apache-2.0
"""Prints the plans of many groups: a row for each, then sentences on their notes."""

from dataclasses import field

from kafka_rebalance.frozen import Mutable
from kafka_rebalance.notes.all_notes import plan_notes
from kafka_rebalance.notes.lost_rack import loses_rack
from kafka_rebalance.notes.note import Note
from kafka_rebalance.plans.changes.bounces import BounceMembers
from kafka_rebalance.plans.changes.change import Change
from kafka_rebalance.plans.changes.topics import AddPartitions, AddTopics
from kafka_rebalance.plans.clients import class_name
from kafka_rebalance.plans.figures import Figures, new_partitions
from kafka_rebalance.plans.rebalance_plan import RebalancePlan
from kafka_rebalance.plans.summary import in_words, without_reader
from kafka_rebalance.report.text.sentences import counted


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

    def add(self, planned: RebalancePlan) -> None:
        group = planned.group
        self.changes = max(self.changes, planned.changes, key=len)
        name = class_name(group, planned.assignor) or ""
        self.rows.append((group.group_id, name, planned.figures()))
        self.notes.append((group.group_id, plan_notes(planned, cheap=True)))
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
        from kafka_rebalance.report.plans.figures import print_plans
        from kafka_rebalance.report.plans.notes import either_note, notes_on_groups
        from kafka_rebalance.report.text.sentences import GLOSSARY, print_wrapped

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

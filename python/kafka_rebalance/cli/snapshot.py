# SPDX-License-Identifier: Apache-2.0
"""Reads the groups of a live cluster whose members own partitions, and writes one contract line for
each: the input of the other commands. These are classic consumer groups, consumer groups that the
broker assigns (KIP-848), share groups and streams groups. Changes nothing on the cluster and joins
no group.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.registry import FOREIGN
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.text.sentences import counted, print_note
from kafka_rebalance.report.text.terminal import item_progress

from . import of_errors
from .options import add_cluster, add_table, cluster_configs

if TYPE_CHECKING:
    from kafka_rebalance.live import Progress
    from kafka_rebalance.present.triage import TriagedGroup

_MOVING = {
    "assigned_partitions": "the target",
    "target_active_tasks": "the present tasks, which the assignor reads",
}
"""A field that shows that a member is not at its target -> what a plan of the group begins with, in
words.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    options = """
    --group G: only this group (repeatable); default: every group that has members
    --leaders: read who leads, too: from __consumer_offsets, on which the user needs Read; this
      reads the whole partitions of the groups
    """
    add_table(parser, options, group={"action": "append"})


def run(args: argparse.Namespace) -> int:
    from kafka_rebalance.live import snapshot_lines

    with item_progress("groups") as advance:
        counts = _Counts(advance)
        lines = snapshot_lines(
            args.bootstrap_server,
            args.group,
            configs=cluster_configs(args),
            on_left_out=counts.leave_out,
            on_progress=counts.progressed,
        )
        for line in _with_leaders(lines, args) if args.leaders else lines:
            print(contract.dumps(line), flush=True)
            counts.add(line)
    print_note(str(counts))
    return of_errors(counts.bad + counts.causes)


def _with_leaders(
    lines: Iterable[dict[str, Any]], args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yields the lines, each with its group's leader if the leader is still a member."""
    from kafka_rebalance.live import group_leaders

    described = list(lines)
    groups = [line["group_id"] for line in described if "error" not in line]
    leaders = group_leaders(args.bootstrap_server, groups, configs=cluster_configs(args))
    for line in described:
        leader = leaders.get(line["group_id"])
        if any(member["member_id"] == leader for member in line.get("members", ())):
            line = {**line, "leader": leader}
        yield line


def note_left_out(group_id: str, why: str) -> None:
    """Reports on standard error why a group of the cluster has no line."""
    print_note(f"{group_id} left out: {why}")


class _Counts:
    """Counts the groups of a snapshot, and warns of the groups that `plan` and `compare` refuse."""

    def __init__(self, advance: Callable[[int, int], None]) -> None:
        self._advance = advance
        self._left_out = self._changed = self.bad = 0
        self._written: list[TriagedGroup] = []
        self.causes = 0  # error lines without a group id: each names a cause of missing groups

    def add(self, line: dict[str, Any]) -> None:
        if line["group_id"] is None:
            self.causes += 1
            print_note(line["error"])
            return
        self.bad += "error" in line
        if "error" not in line:
            from kafka_rebalance.present.description import describe
            from kafka_rebalance.present.triage import TriagedGroup

            found = TriagedGroup(line["group_id"], None, "Stable", ())
            with suppress(GroupError):  # the line of an unknown assignor is written, too
                found = TriagedGroup.of(describe(GroupSpec.from_dict(line)))
            self._written.append(replace(found, described=None))
        assignor = line.get("assignor")
        if assignor in FOREIGN and line.get("application", {"error": ""}).get("error") is not None:
            whose = f"{assignor} is {FOREIGN[assignor]}"
            print_note(f"{line['group_id']}: {whose}; plan and compare refuse the group")

        members = line.get("members", ())
        given = {run["topic"] for one in members for run in one.get("owned_partitions", ())}
        unresolved = sorted({topic["name"] for topic in line.get("topics", ())} - given)
        if unresolved and any("topic_regex" in member for member in members):
            names = ", ".join(unresolved[:5])
            print_note(f"{line['group_id']}: the broker has not applied a pattern to {names} yet")
        for field, begins in _MOVING.items():
            if moving := sum(field in member for member in members):
                who = f"{counted(moving, 'member')} of {len(members)} not at the target yet"
                print_note(f"{line['group_id']}: {who}; a plan begins at {begins}")

    def leave_out(self, group_id: str, why: str) -> None:
        self._left_out += group_id != "*"
        note_left_out(group_id, why)

    def progressed(self, progress: "Progress") -> None:
        self._changed = progress.changed
        self._advance(progress.done, progress.total)

    def __str__(self) -> str:
        from kafka_rebalance.present.triage import summary

        counts = f"wrote {summary(self._written)}" if self._written else "wrote no group."
        counts += f" {counted(self.bad, 'line')} with an error, "
        counts += f"{counted(self._left_out, 'group')} left out"
        if self.causes:
            counts += "; others are missing, because brokers are down"
        if self._changed:
            counts += f"; {self._changed} changed while the cluster was read: ask again for these"
        return counts

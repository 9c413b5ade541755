# SPDX-License-Identifier: Apache-2.0
"""Compares plans of groups that the broker assigns with the runs of Kafka's own coordinator.

    python -m tools.differential_broker_plans --plans 500 --seed 1 --assignors share/simple

Kafka's coordinator plays a random history of a group in virtual time: members join, leave and
subscribe, topics grow. Its records become a contract line, with each target as in its record. Both
engines plan one to three changes from this line. Then the coordinator plays each step of the plan,
with the member ids that the plan made up. After each step, every target must have equal entries in
equal order, and the group must have the planned epoch.

A broker's table of members never shrinks, and no plan knows how large it once was
(`plans/changes/member_table.py`). A plan that would be equal with the table of the most members
that the group ever had is counted separately, not as a difference.
"""

from __future__ import annotations

import argparse
import base64
import functools
import random
import string
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

import kafka_rebalance as kr
from kafka_rebalance.group.model import in_runs
from kafka_rebalance.plans.changes import member_table
from tests.support.coordinator_oracle import CoordinatorOracle
from tools import judge
from tools.judge import Block, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_rebalance import Member
    from kafka_rebalance.plans.rounds import Step

BLOCK = 50
SHARE, UNIFORM, RANGE = "share/simple", "consumer/uniform", "consumer/range"
Runs = list[dict[str, Any]]


class Played:
    """A group `g` at Kafka's coordinator, and its state as known from requests and records."""

    def __init__(self, oracle: CoordinatorOracle, seed: int, assignor: str) -> None:
        self.oracle, self.seed, self.assignor = oracle, seed, assignor
        self.rng = random.Random(f"{assignor}/{seed}")
        self.epoch = self.most_members = 0
        self.topics: dict[str, dict[str, Any]] = {}
        self.subscribed: dict[str, list[str]] = {}
        self.targets: dict[str, Runs] = {}
        self.initialized: dict[str, list[int]] = {}
        self._epochs: dict[str, int] = {}
        # Without an interval, each heartbeat that finds a new epoch computes a target.
        self._ask(op="init", seed=seed, init_delay=1_000, sai=0, cai=0)

    def _ask(self, **command: Any) -> dict[str, Any]:
        answer = self.oracle.ask(command)
        for event in answer["events"]:
            if event.get("type", "").endswith("_TARGET_ASSIGNMENT_MEMBER"):
                self._keep(event["k"]["memberId"], event["value"])
            elif event.get("type") in ("SHARE_GROUP_METADATA", "CONSUMER_GROUP_METADATA"):
                self.epoch = event["value"]["epoch"]
            elif event.get("type") == "SHARE_GROUP_STATE_PARTITION_METADATA":
                known = event["value"]["initializedTopics"]
                self.initialized = {one["topicName"]: one["partitions"] for one in known}
        return answer

    def _keep(self, member_id: str, value: dict[str, Any] | None) -> None:
        names = {one["topic_id"]: name for name, one in self.topics.items()}
        entries = () if value is None else value["topicPartitions"]
        self.targets[member_id] = [
            {"topic": names[one["topicId"]], "partitions": one["partitions"]} for one in entries
        ]

    def beat(self, member_id: str, topics: Iterable[str] | None = None) -> None:
        """Sends a heartbeat: a new member's first one, one with other topics, or a plain one."""
        fields: dict[str, Any] = {"epoch": self._epochs.get(member_id, 0)}
        if topics is not None:
            # Java's clients send sorted topics, and a record lists them in this order.
            self.subscribed[member_id] = fields["topics"] = sorted(topics)
        share = self.assignor == SHARE
        if not share and fields["epoch"] == 0:
            assignor = self.assignor.rpartition("/")[2]
            fields |= {"rt": 90_000, "owned": {}, "assignor": assignor}
        answer = self._ask(op="shb" if share else "chb", g="g", m=member_id, **fields)
        assert answer["err"] == "NONE", (member_id, fields, answer)
        self._epochs[member_id] = answer["epoch"]
        self.most_members = max(self.most_members, len(self._epochs))

    def leave(self, member_id: str) -> None:
        share = self.assignor == SHARE
        self._ask(op="shb" if share else "chb", g="g", m=member_id, epoch=-1)
        del self.subscribed[member_id], self._epochs[member_id]

    def set_topics(self, counts: dict[str, int]) -> None:
        for name in (one for one in counts if one not in self.topics):
            text = "".join(self.rng.choices(string.ascii_letters, k=16))
            topic_id = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
            self.topics[name] = {"id": text, "topic_id": topic_id}
        for name, count in counts.items():
            self.topics[name]["partitions"] = count
        topics = {
            name: {"partitions": one["partitions"], "id": one["id"]}
            for name, one in self.topics.items()
        }
        self._ask(op="topics", topics=topics)

    def settle(self) -> None:
        """Lets all members reach their targets; before that, new partitions are initialised."""
        for _ in range(2):
            for member_id in list(self.subscribed):
                self._ask(op="advance", ms=10)
                self.beat(member_id)

    def line(self) -> dict[str, Any]:
        """Returns the group's contract line; the members have the order of a description.

        Topics to which nobody subscribes list the partitions that a share group has read before.
        """
        members = self._ask(op="mstate", g="g")["state"]["members"]
        read = {name for topics in self.subscribed.values() for name in topics}
        before = {
            name: {"initialized": sorted(self.initialized.get(name, []))}
            for name in (self.topics.keys() - read if self.assignor == SHARE else ())
        }
        return {
            "group_id": "g",
            "assignor": self.assignor,
            "generation_id": self.epoch,
            "topics": [
                {"name": name, "partitions": one["partitions"], "topic_id": one["topic_id"]}
                | before.get(name, {})
                for name, one in self.topics.items()
            ],
            "members": [
                {
                    "member_id": member_id,
                    "client_id": "c",
                    "topics": self.subscribed[member_id],
                    "owned_partitions": self.targets.get(member_id, []),
                    "generation_id": self.epoch,
                }
                for member_id in members
            ],
        }

    def play_history(self) -> None:
        rng = self.rng
        most = rng.choice((3, 8, 20))
        self.set_topics({f"t{n}": rng.randint(1, 6) for n in range(rng.randint(2, most))})
        same = rng.random() < 0.6
        for n in range(rng.randint(2, 14)):
            what = rng.random()
            members = list(self.subscribed)
            if len(members) < 2 or what < 0.5:
                self.beat(new_id(rng), self.topics if same else self._some())
            elif what < 0.8:
                self.leave(rng.choice(members))
            elif what < 0.9 and not same:
                self.beat(rng.choice(members), self._some())
            else:
                name = rng.choice(list(self.topics))
                self.set_topics({name: self.topics[name]["partitions"] + rng.randint(1, 3)})
            if n % 2 or rng.random() < 0.7:
                self.settle()
        self.settle()

    def _some(self) -> list[str]:
        return self.rng.sample(list(self.topics), self.rng.randint(1, len(self.topics)))

    def changes(self) -> list[kr.Change]:
        """Draws one to three changes; no two of them name one member."""
        rng, members = self.rng, list(self.subscribed)
        rng.shuffle(members)
        drawn: list[kr.Change] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            what = rng.choice(("add", "add", "remove", "bounce", "grow", "subscribe"))
            read = sorted({name for topics in self.subscribed.values() for name in topics})
            if what == "remove" and len(members) > 1:
                drawn.append(kr.RemoveMembers(member=members.pop()))
            elif what == "bounce" and members:
                drawn.append(kr.BounceMembers(members.pop()))
            elif what == "subscribe" and members:
                member = members.pop()
                if sorted(topics := self._some()) != self.subscribed[member]:
                    drawn.append(kr.Resubscribe(tuple(topics), member))
            elif what == "grow" and not any(isinstance(one, kr.AddPartitions) for one in drawn):
                name = rng.choice(read)
                more = self.topics[name]["partitions"] + rng.randint(1, 4)
                drawn.append(kr.AddPartitions(name, more))
            else:
                drawn.append(kr.AddMembers(rng.randint(1, 2)))
        return drawn or [kr.AddMembers(1)]

    def play_step(self, step: Step) -> str | None:
        """Plays a step of a plan; returns the difference after it, or None."""
        before = {one.member_id: one for one in step.before.members}
        for member_id in [one for one in self.subscribed if one not in before]:
            self.leave(member_id)
        counts = {one.name: one.partitions for one in step.before.topics}
        if counts != {name: one["partitions"] for name, one in self.topics.items()}:
            self.set_topics(counts)
        for member_id, topics in self.subscribed.items():
            if sorted(before[member_id].topics) != topics:
                self.beat(member_id, before[member_id].topics)
        known = set(self.subscribed)
        for one in _joining(step, known):
            self.beat(one.member_id, one.topics)
            self.settle()
        self.settle()
        planned = step.after.generation_id or 0
        if self.epoch != planned:
            return f"epoch {self.epoch}, planned {planned}"
        for member in step.after.members:
            target = in_runs(member.owned_partitions, topics=member.owned_topics)
            found = self.targets.get(member.member_id, [])
            if target != found:
                return f"{member.member_id} has {found}, planned {target}"
        return None


def _joining(step: Step, known: set[str]) -> list[Member]:
    """Returns the new members of a step in the order in which they join, one in each round."""
    found: dict[str, Member] = {}
    for one in step.rounds:
        found |= {m.member_id: m for m in one.group.members if m.member_id not in known}
    return list(found.values())


def new_id(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_letters + string.digits + "-_", k=22))


def compare(block: Block, *, assignors: tuple[str, ...]) -> Outcome:
    """Plays one block of plans."""
    outcome = Outcome(block.cases)
    # A new process for each block, because Kafka never frees all memory of a coordinator.
    with CoordinatorOracle() as oracle:
        for n in range(block.cases):
            assignor = assignors[n % len(assignors)]
            group = Played(oracle, block.seed * 1_000 + n, assignor)
            group.play_history()
            line, changes = group.line(), group.changes()
            owned = [run for one in line["members"] for run in one["owned_partitions"]]
            outcome.met["with topics without partitions"] += not all(
                run["partitions"] for run in owned
            )
            what = _difference(group, line, changes)
            if what is not None and _is_equal_in_larger_table(oracle, group, line, changes):
                outcome.met["by a table that was larger once"] += 1
            elif what is not None:
                texts = [str(one) for one in changes]
                name = f"{assignor} {block.seed * 1_000 + n}"
                found = {"name": name, "difference": f"{texts}: {what}", "case": line}
                outcome.differences.append(found | {"changes": texts})
    return outcome


def _is_equal_in_larger_table(
    oracle: CoordinatorOracle, group: Played, line: dict[str, Any], changes: list[kr.Change]
) -> bool:
    """Plays and plans again, with the table of the most members that the group has had."""
    again = Played(oracle, group.seed, group.assignor)
    again.play_history()
    slots = member_table.SMALLEST
    while (again.most_members + 1) * member_table.LOAD > slots:
        slots *= 2
    with mock.patch.object(member_table, "SMALLEST", slots):
        return _difference(again, line, changes) is None


def _difference(group: Played, line: dict[str, Any], changes: list[kr.Change]) -> str | None:
    spec = kr.GroupSpec.from_dict(line)
    plan = kr.plan(spec, None, changes)
    if kr.plan(spec, None, changes, engine="reference").to_dict() != plan.to_dict():
        return "the engines differ"
    for step in plan.steps:
        what = group.play_step(step)
        if what is not None:
            return f"{step.cause}: {what}"
    return None


def main() -> int:
    """Parses the command line, plays, prints a report; returns the exit code."""
    parser = judge.options(__doc__, "plans", 500, "broker-plan-differences.jsonl")
    parser.add_argument("--assignors", type=_assignors, default=(SHARE,), metavar="NAME,NAME")
    chosen = parser.parse_args()
    return judge.run(
        functools.partial(compare, assignors=chosen.assignors),
        chosen,
        block=BLOCK,
        equal="plan = Kafka's coordinator",
        details=lambda met: ", ".join(f"{name} {n:,}" for name, n in sorted(met.items())),
    )


def _assignors(text: str) -> tuple[str, ...]:
    if not set(names := tuple(text.split(","))) <= {SHARE, UNIFORM, RANGE}:
        raise argparse.ArgumentTypeError(f"{text!r}: known are {SHARE}, {UNIFORM}, {RANGE}")
    return names


if __name__ == "__main__":
    sys.exit(main())

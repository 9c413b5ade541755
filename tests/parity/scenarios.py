# SPDX-License-Identifier: Apache-2.0
"""Reads the scenarios from steps/*.txt: each line is a command to a coordinator.

    == leader-leaves slow
    # A comment states the reason.
    join A v=3
    advance 1000
    sync A asg=A:a,B:b
      differs answer.err: ours "NONE", broker "UNKNOWN_MEMBER_ID", because ...

A step is an operation, a member, and fields with the driver's names. A member is a capital letter.
For a field that is left out, the member sends its usual value: its newest id, its last generation,
its instance id. As an id, in `m=`, in `asg=` (id:text) and in the list of `leave` (id/instance),
`A` is A's newest id, `A.1` its first id, `none` is "", and any other word is itself. In another
text, `none` is null ("" in `g` and `md`; no entry in `asg` and `protos`). The value `sub(t+u)`
stands for the bytes of a consumer's subscription to t and u.

A `differs` line accepts one difference of its step: exactly these two values in this field, for the
stated reason. Any other difference is an error.

A word after the scenario's name states its special need. `--part quick` leaves out such scenarios.
    slow    more time
    sweeps  a broker that removes expired offsets every second: `sweep 700` waits 700 ms and then
            for the next removal; a driver runs `advance` and `cleanup`
    moves   two brokers: `unload` moves the offsets topic to the other broker; after `reload`,
            requests go to that broker

The broker and the driver have the settings in `CONFIG`. A broker runs in real time, so every wait
must end at least 250 ms before or after a deadline.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent / "steps"

CONFIG = {"init_delay": 600, "min_st": 500, "max_st": 1_800_000, "max_size": 4, "meta_max": 64}
"""The fields of the command `init`, which makes a new coordinator."""

NEEDS = ("", "slow", "sweeps", "moves")

BROKER = {
    "group.initial.rebalance.delay.ms": str(CONFIG["init_delay"]),
    "group.min.session.timeout.ms": str(CONFIG["min_st"]),
    "group.max.session.timeout.ms": str(CONFIG["max_st"]),
    "group.max.size": str(CONFIG["max_size"]),
    "offset.metadata.max.bytes": str(CONFIG["meta_max"]),
    "group.coordinator.append.linger.ms": "0",  # an append does not wait for others
    "transaction.state.log.num.partitions": "2",
    # One hour, so that no expired offsets are removed during a scenario.
    "offsets.retention.check.interval.ms": "3600000",
}
"""The settings of a broker: `CONFIG`, and other settings that change its answers."""

SWEEP_MS = 1000
SWEEPING_BROKER = {**BROKER, "offsets.retention.check.interval.ms": str(SWEEP_MS)}

OPERATIONS = {
    "join": "g m inst st rt pt protos v client",
    "sync": "g m inst gen pt pn asg",
    "hb": "g m inst gen",
    "leave": "g members",
    "commit": "g m inst gen topic p off md le retention v",
    "txncommit": "g m inst gen topic p off md le v pid",
    "endtxn": "pid commit",
    "fetch": "g topic p stable",
    "delete_offsets": "g topic p",
    "delete_group": "g",
    "topic_deleted": "topic p",
    "describe": "g",
    "advance": "ms",
    "sweep": "ms",
    "unload": "",
    "reload": "",
}
"""Operation -> the names of its fields."""

WHO = {"join", "sync", "hb", "commit", "txncommit"}
"""Operations of one member; the next word is the member's letter, or `-` for no member."""

POSITIONAL = {"leave": "members", "advance": "ms", "sweep": "ms"}
NUMBERS = {"st", "rt", "v", "gen", "p", "off", "le", "retention", "pid", "ms"}


@dataclass(frozen=True)
class Accepted:
    """A difference that a `differs` line accepts."""

    path: str
    ours: Any
    broker: Any
    because: str


@dataclass(frozen=True)
class Step:
    """One line of a scenario; `number` counts the steps from 1."""

    number: int
    text: str
    operation: str
    who: str
    fields: dict[str, str]
    accepted: tuple[Accepted, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """Steps on groups that no other scenario uses; `needs` is one of `NEEDS`."""

    name: str
    needs: str
    steps: tuple[Step, ...]

    @property
    def doomed(self) -> list[str]:
        """Returns the topics that the scenario deletes; on a broker, their names get a prefix."""
        return [step.fields["topic"] for step in self.steps if step.operation == "topic_deleted"]


class ScenarioError(ValueError):
    """A scenario cannot be read, or a step cannot be played; the message states the reason."""


def load(part: str = "full") -> list[Scenario]:
    """Returns all scenarios in the order of files and lines, or only the `quick` ones."""
    found: list[Scenario] = []
    for path in sorted(HERE.glob("*.txt")):
        found.extend(parse(path.read_text(encoding="utf-8"), path.name))
    names = [scenario.name for scenario in found]
    if len(set(names)) < len(names):
        raise ScenarioError(f"twice: {sorted({name for name in names if names.count(name) > 1})}")
    return [scenario for scenario in found if part == "full" or not scenario.needs]


def parse(text: str, source: str) -> Iterator[Scenario]:
    name, needs, steps = "", "", list[Step]()
    for at, line in enumerate(text.splitlines(), 1):
        try:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "==":
                if name:
                    yield Scenario(name, needs, tuple(steps))
                name, needs, steps = words[1], " ".join(words[2:]), []
                if needs not in NEEDS:
                    raise ValueError(f"needs {needs!r}")
            elif words[0] == "differs":
                last = steps[-1]
                steps[-1] = Step(
                    last.number, last.text, last.operation, last.who, last.fields,
                    (*last.accepted, _accepted(line.strip())),
                )  # fmt: skip
            else:
                steps.append(_step(len(steps) + 1, words))
        except (LookupError, ValueError) as error:
            raise ScenarioError(f"{source}:{at}: {line!r}: {error}") from error
    yield Scenario(name, needs, tuple(steps))


def _step(number: int, words: list[str]) -> Step:
    operation, *rest = words
    who = rest.pop(0) if operation in WHO else "-"
    if operation in WHO and not re.fullmatch("[A-Z]|-", who):
        raise ValueError(f"{who} is not a member")
    fields = {}
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals:
            name, value = POSITIONAL[operation], word
        if name not in OPERATIONS[operation].split():
            raise ValueError(f"{operation} has no {name}")
        fields[name] = value
    return Step(number, " ".join(words), operation, who, fields)


def _accepted(line: str) -> Accepted:
    match = re.fullmatch(r"differs (\S+): ours (.+?), broker (.+?), because (.+)", line)
    if not match:
        raise ValueError("not `differs PATH: ours JSON, broker JSON, because ...`")
    path, ours, broker, because = match.groups()
    return Accepted(path, json.loads(ours), json.loads(broker), because)

# SPDX-License-Identifier: Apache-2.0
"""The scenarios: steps/*.txt, a command of the coordinator's driver a line.

    == leader-leaves slow
    # A comment tells why.
    join A v=3
    advance 1000
    sync A asg=A:a,B:b
      differs answer.err: ours "NONE", broker "UNKNOWN_MEMBER_ID", because ...

A step is an operation, the member that does it, and fields with the driver's names. Members are
capital letters, and what is not given is what that member would send: its newest id, the
generation it last got and its instance id. As values, `A` is A's newest id, `A.1` its first one,
`none` nothing ("" for an id), and any other word stands for itself. So do ids in `asg=` (id:text)
and in the list of `leave`: an id, then /instance if there is one. Metadata `sub(t+u)` is the bytes
of a consumer's subscription to t and u.

A step's `differs` lines are the accepted differences: exactly these two values at this place, and
why. Any other difference is one.

After the name may stand what a scenario needs; all of these are left out of the quick part.
    slow    nothing, but it takes time
    sweeps  a broker that looks every second for what has expired: `sweep 700` waits so long and
            then for that look, and is `advance` and `cleanup` to a driver
    moves   two brokers: `unload` moves the offsets topic to the other one, and `reload` follows it

The broker and the driver are set up as in `CONFIG`; it decides which waits are safe. Between a
wait's end and the nearest deadline there are always 250 ms, for a broker runs in real time.
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
"""Fields of the driver's `init`."""

NEEDS = ("", "slow", "sweeps", "moves")

BROKER = {
    "group.initial.rebalance.delay.ms": str(CONFIG["init_delay"]),
    "group.min.session.timeout.ms": str(CONFIG["min_st"]),
    "group.max.session.timeout.ms": str(CONFIG["max_st"]),
    "group.max.size": str(CONFIG["max_size"]),
    "offset.metadata.max.bytes": str(CONFIG["meta_max"]),
    "group.coordinator.append.linger.ms": "0",  # an answer waits for nothing but its own append
    "transaction.state.log.num.partitions": "2",
    # No scenario meets a sweep by chance.
    "offsets.retention.check.interval.ms": "3600000",
}
"""The same for a broker, and what else its answers depend on."""

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
"""Every operation and its fields."""

WHO = {"join", "sync", "hb", "commit", "txncommit"}
"""Operations of one member; its letter, or `-` for nobody, is their first word."""

POSITIONAL = {"leave": "members", "advance": "ms", "sweep": "ms"}
NUMBERS = {"st", "rt", "v", "gen", "p", "off", "le", "retention", "pid", "ms"}


@dataclass(frozen=True)
class Accepted:
    """A difference that is known and wanted."""

    path: str
    ours: Any
    broker: Any
    because: str


@dataclass(frozen=True)
class Step:
    """One line; `number` counts a scenario's steps from 1."""

    number: int
    text: str
    operation: str
    who: str
    fields: dict[str, str]
    accepted: tuple[Accepted, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """Steps on groups of its own; `needs` is one of `NEEDS`."""

    name: str
    needs: str
    steps: tuple[Step, ...]

    @property
    def doomed(self) -> list[str]:
        """Topics that it deletes: no other scenario may use them."""
        return [step.fields["topic"] for step in self.steps if step.operation == "topic_deleted"]


class ScenarioError(ValueError):
    """A line that is not a step; says where."""


def load(part: str = "full") -> list[Scenario]:
    """All scenarios in the order of files and lines, or only the `quick` ones."""
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

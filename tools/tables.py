# SPDX-License-Identifier: Apache-2.0
"""Writes the generated tables of docs/contract.md and docs/behaviour, from tables in the code.

    python -m tools.tables

A block is between `<!-- generated: NAME -->` and `<!-- end -->`; NAME is a key of `BLOCKS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from kafka_rebalance.coordinator.classic_group import group as states
from kafka_rebalance.coordinator.classic_group.kind import ERROR_BY_STATE
from kafka_rebalance.group import group_fields as fields
from kafka_rebalance.member import answers
from kafka_rebalance.member import states as member_states
from kafka_rebalance.wire.error_codes import ErrorCode

_DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = [_DOCS / "contract.md", *sorted((_DOCS / "behaviour").glob("*.md"))]
_State = TypeVar("_State", bound=Enum)

_BLOCK = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"{' '.join(['|', *(f'{cell} |'.lstrip() for cell in line)])}\n" for line in lines
    )


def transitions(predecessors: Mapping[_State, frozenset[_State]]) -> str:
    """Returns a diagram and a table of legal transitions; a row lists the transitions from one
    state.
    """
    arrows = [
        f"    {before} --> {after}\n"
        for after in predecessors
        for before in predecessors
        if before in predecessors[after] and before is not after
    ]
    rows = [
        [str(before), *("yes" if before in predecessors[after] else "" for after in predecessors)]
        for before in predecessors
    ]
    diagram = "".join(["```mermaid\nstateDiagram-v2\n", *arrows, "```\n\n"])
    return diagram + table(["from \\ to", *map(str, predecessors)], rows)


def errors_by_state() -> str:
    """Returns the table of errors: a row for each request, a column for each group state."""
    columns = [None, *states.STATES]
    rows = [
        [request.__name__, *(str(errors.get(one, "")) for one in columns)]
        for request, errors in ERROR_BY_STATE.items()
    ]
    return table(["", "absent", *map(str, states.STATES)], rows)


def member_reactions() -> str:
    """Returns the table of a member's reactions: a row for each error code."""
    columns = {
        "JoinGroup": answers.JOIN_GROUP,
        "SyncGroup": answers.SYNC_GROUP,
        "Heartbeat": answers.HEARTBEAT,
        "OffsetCommit": answers.OFFSET_COMMIT,
    }
    rows = [
        [str(error), *(_name(column.get(error)) for column in columns.values())]
        for error in ErrorCode
        if any(error in column for column in columns.values())
    ]
    return table(["", *columns], rows)


def group_fields(block: str) -> str:
    """Returns the table of a group's fields. Its meanings are those of the present block."""
    meanings = dict(re.findall(r"^\| (`.*?`) \|.*\| (.*) \|$", block, re.MULTILINE))
    named = [[f"`{path}`", "required" * is_required] for path, is_required in fields.rows()]
    rows = [[name, needed, meanings.get(name, "")] for name, needed in named]
    return table(["field", "", "meaning"], rows)


def _name(reaction: answers.Reaction | None) -> str:
    return "" if reaction is None else reaction.name


BLOCKS: dict[str, Callable[[str], str]] = {
    "legal transitions": lambda _: transitions(states.LEGAL_PREDECESSORS),
    "errors by state": lambda _: errors_by_state(),
    "legal transitions of a member": lambda _: transitions(member_states.LEGAL_PREDECESSORS),
    "member reactions": lambda _: member_reactions(),
    "fields of a group": group_fields,
}
"""Name of a block -> a function that returns it, from the block on the page."""


def rewritten(text: str) -> str:
    """Returns a page's text with current blocks. Raises KeyError for an unknown block."""
    return _BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]](found[0]) + found[3], text)


def blocks(text: str) -> list[str]:
    """Returns the names of a page's blocks."""
    return [found[1] for found in _BLOCK.findall(text)]


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rewritten(page.read_text("utf-8")), "utf-8")

# SPDX-License-Identifier: Apache-2.0
"""Writes a block of docs/design.md: which rooms (top folders) import from which other rooms.

python -m tools.rooms
"""

from tests.support import imports

PAGE = imports.ROOT / "docs" / "design.md"
_BEGIN, _END = "<!-- generated: rooms -->\n", "<!-- end -->"


def block() -> str:
    """Returns the rooms of both languages, lowest first, each with the rooms that it imports."""
    python = imports.rooms(imports.python_graph(), imports.RANK, ".")
    rust = imports.rooms(imports.rust_graph(), imports.RUST_RANK, "::")
    lines = [*_arrows("Python", python), "", *_arrows("Rust", rust), "", _circles()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def page(text: str) -> str:
    """Returns the page with a new generated block."""
    before, _, rest = text.partition(_BEGIN)
    return before + _BEGIN + block() + _END + rest.partition(_END)[2]


def _arrows(language: str, rooms: imports.Imports) -> list[str]:
    width = max(map(len, rooms))
    order = {room: place for place, room in enumerate(rooms)}
    return [
        f"{language}: a room -> the rooms it imports from",
        *(
            f"  {room:{width}} -> {' '.join(sorted(below, key=lambda one: order.get(one, -1)))}"
            if below
            else f"  {room}"
            for room, below in rooms.items()
        ),
    ]


def _circles() -> str:
    found = imports.circles(imports.run_time_graph()) + imports.circles(imports.rust_graph())
    return f"Circles: {found}" if found else "No circle, file by file, in either language."


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")

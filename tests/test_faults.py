# SPDX-License-Identifier: Apache-2.0
"""`tools.faults` can be run: each fault's line exists once, in its room, and each room has one."""

from __future__ import annotations

from tests.support.imports import MODULES, ROOT
from tools.faults import FAULTS, place

WITHOUT = {"data", "errors", "frozen", "lazy", "testing"}
"""No code, or code that the faults of other rooms and the tests of processes reach."""


def test_each_fault_is_one_line_of_its_room() -> None:
    for fault in FAULTS:
        parts = place(fault).relative_to(ROOT).parts  # exits if the line is missing or occurs twice
        top = parts[:2] if parts[0] == "src" else parts[2:3]
        assert "/".join(top) == fault.room


def test_each_room_has_a_fault() -> None:
    rooms = {name.split(".")[0] for name in MODULES if not name.startswith("__")}
    assert rooms - WITHOUT - {fault.room for fault in FAULTS} == set()

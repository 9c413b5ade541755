# SPDX-License-Identifier: Apache-2.0
"""A coordinator on which a test plays commands of the driver: ours, or Kafka's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = dict[str, Any]


class Played:
    """A coordinator that has no initial delay and keeps offsets for a minute."""

    def __init__(self, command: Callable[[Answer], Answer]) -> None:
        self._command = command
        command({"op": "init", "ret_min": 1, "init_delay": 0})

    def __call__(self, *commands: Answer) -> list[Answer]:
        """Plays the commands and returns their answers."""
        return [self._command(command) for command in commands]


def keys(answer: Answer) -> list[tuple[str, bool]]:
    """Returns (key, whether the value is null) for each record in the answer's events."""
    return [(one["key"], one["vb"] is None) for one in answer["events"] if one["ev"] == "record"]

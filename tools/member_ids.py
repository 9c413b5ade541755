# SPDX-License-Identifier: Apache-2.0
"""Passes the random member ids of Kafka's coordinator to ours, and holds a symbol for each.

A symbol such as `@7` stands for an id in the commands of a run, so that the run can be played again
with other ids.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections import deque
from itertools import count
from typing import Any
from uuid import UUID

from tests.support.generate_commands import Command

SYMBOL = re.compile(r"@\d+x*")
SHORT_ID = re.compile(
    r'"member": "([\w-]{22})"|"([\w-]{22})": \{"epoch"'
    r'|"(?:session-timeout|heartbeat)-\w-([\w-]{22})": '
)
"""An id that Kafka drew for a member of a group whose broker assigns.

It is in an answer, in a state, or, after a failed append, only in the name of a timer.
"""
MEMBER_ID = re.compile(r"\w+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


class Ids:
    """Passes Kafka's random member ids to our coordinator, and holds a symbol for each id.

    `@7` stands for the id that first appeared in the answer to command 7.
    """

    def __init__(self) -> None:
        self._drawn: deque[str] = deque()
        self._own = count(1)
        self._ids: dict[str, str] = {}
        self._symbols: dict[str, str] = {}

    def draw(self) -> str:
        """Returns the id that Kafka chose for this command; a new id if Kafka's answer contains
        none.
        """
        return self._drawn.popleft() if self._drawn else str(UUID(int=next(self._own)))

    def clear(self) -> None:
        """Forgets all ids, at the start of a run."""
        self._drawn.clear()
        self._ids.clear()
        self._symbols.clear()

    def seen(self, number: int, answer: Any) -> list[str]:
        """Stores the ids in Kafka's answer to the command `number`; returns the new ids."""
        self._drawn.clear()
        known = len(self._symbols)
        text = json.dumps(answer)
        for found in MEMBER_ID.finditer(text):
            self._store(number, found[0], found[1])
        for found in SHORT_ID.finditer(text):
            member_id = found[found.lastindex or 0]
            self._store(number, member_id, str(UUID(bytes=urlsafe_b64decode(member_id + "=="))))
        return list(self._symbols)[known:]

    def _store(self, number: int, member_id: str, drawn: str) -> None:
        if member_id in self._symbols:
            return
        symbol = f"@{number}"
        while symbol in self._ids:
            symbol += "x"
        self._symbols[member_id] = symbol
        self._ids[symbol] = member_id
        self._drawn.append(drawn)

    def concrete(self, command: Command, *, others: bool = False) -> Command:
        """Replaces symbols by ids in a command; with `others`, unknown symbols stay."""

        def id_of(found: re.Match[str]) -> str:
            symbol = found[0]
            return self._ids.get(symbol, symbol if others else f"gone{symbol[1:]}")

        return dict(json.loads(SYMBOL.sub(id_of, json.dumps(command))))

    def shown(self, answer: Any) -> Any:
        """Replaces ids by symbols in an answer."""
        named = json.dumps(answer)
        for member_id, symbol in self._symbols.items():
            named = named.replace(member_id, symbol)
        return json.loads(named)

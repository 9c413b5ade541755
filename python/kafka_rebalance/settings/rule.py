# SPDX-License-Identifier: Apache-2.0
"""A rule for the settings of clients, and its application to one client.

In the sentence of a rule, `{session.timeout.ms}` stands for the value of that setting of the client
or the broker, and `{session.timeout.ms=}` for its name and its value, as in Python. `{processing}`
and `{restart}` stand for the times in `Surroundings`. If a rule finds several settings, each with a
sentence of its own, `{several}` stands for these sentences.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.notes.findings import Severity

from .clients import PYTHON, SETTINGS, Client, Library
from .played import Setup, duration


class Surroundings(NamedTuple):
    """The facts that a client's own settings do not contain.

    processing_ms    the longest time to process a batch of records; None if unknown
    restart_ms       how long a member is away when it restarts; None if unknown
    broker           the settings of the brokers
    others           clients of the group whose settings were read before
    """

    processing_ms: int | None = None
    restart_ms: int | None = None
    broker: CoordinatorConfig = CoordinatorConfig()
    others: tuple[Client, ...] = ()

    def refuses_session(self, client: Client) -> bool:
        """Returns whether the broker answers a join with INVALID_SESSION_TIMEOUT."""
        least = self.broker.group_min_session_timeout_ms
        most = self.broker.group_max_session_timeout_ms
        return client.is_classic and not least <= client["session.timeout.ms"] <= most


class Rule(NamedTuple):
    """A rule: the client has a problem if `when` returns a true value, such as a dict: setting ->
    a sentence on its problem.

    `text` describes the problem. A report shows the line of the first setting in this dict, then in
    `text`, that the file sets.
    """

    id: str
    libraries: tuple[Library, ...]
    severity: Severity
    source: str
    when: Callable[[Client, Surroundings], object]
    text: str
    plays: Callable[[Setup], str | None] | None = None

    @property
    def see(self) -> str:
        return f"docs/settings.md#{self.id}"

    @property
    def meaning(self) -> str:
        """Returns the rule's sentence without values."""
        named = re.sub(r"\{([a-z.]+)=\}", r"\1", self.text)
        return re.sub(r":? ?\(?\{[^}]*\}\)?", "", named)


class Breach(NamedTuple):
    """A rule that a client breaks: its sentence with values, the simulator's result, and the line
    in the file.
    """

    rule: Rule
    client: Client
    text: str
    played: str | None
    line: int


_MOST_CHARACTERS = 200
_PLACEHOLDER = re.compile(r"\{([a-z.]+)(=?)\}")
_NAME = re.compile(r"\w+(?:\.\w+)+")


def broken(rule: Rule, client: Client, around: Surroundings) -> Breach | None:
    """Returns the client's breach of a rule; None if the client does not break it."""
    found = client.library in rule.libraries and rule.when(client, around)
    if not found:
        return None
    several: dict[str, str] = found if isinstance(found, dict) else {}
    names = (name for name in [*several, *_NAME.findall(rule.text)] if name in client.lines)
    line = client.lines.get(next(names, ""), min(client.lines.values(), default=1))
    played = None
    if rule.plays is not None and not around.refuses_session(client):
        times = around.processing_ms or 0, around.restart_ms or 0
        with suppress(GroupError):  # an invalid setting, or too many heartbeats
            played = rule.plays(Setup(client.config, around.broker, *times))

    def value(match: re.Match[str]) -> str:
        if match[1] == "several":
            return "; ".join(several.values())
        return f"{match[1]} " * bool(match[2]) + _value(match[1], client, around)

    text = _PLACEHOLDER.sub(value, rule.text)
    if client.library in PYTHON:  # these libraries write names with underscores
        known = {*SETTINGS, *client.names}
        text = _NAME.sub(lambda one: one[0].replace(".", "_") if one[0] in known else one[0], text)
    return Breach(rule, client, text, played, line)


def _value(name: str, client: Client, around: Surroundings) -> str:
    if name in ("processing", "restart"):
        return duration(getattr(around, f"{name}_ms") or 0)
    of_broker = name not in SETTINGS
    value = getattr(around.broker, name.replace(".", "_")) if of_broker else client[name]
    text = ", ".join(value) or "empty" if isinstance(value, tuple) else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"

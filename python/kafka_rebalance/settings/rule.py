# SPDX-License-Identifier: Apache-2.0
"""A rule for the settings of clients, and how it is applied to one client."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from kafka_rebalance.coordinator.config import CoordinatorConfig
from kafka_rebalance.errors import GroupError
from kafka_rebalance.notes.findings import Severity

from .clients import PYTHON, SETTINGS, Client, Library
from .played import Setup, duration


class Surroundings(NamedTuple):
    """The facts that a client's own settings lack.

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
        """Returns whether the broker answers INVALID_SESSION_TIMEOUT."""
        least = self.broker.group_min_session_timeout_ms
        most = self.broker.group_max_session_timeout_ms
        return client.is_classic and not least <= client["session.timeout.ms"] <= most

    def value(self, name: str) -> str:
        """Returns a value of the surroundings, as text for a sentence."""
        broker = self.broker
        values = {
            "processing": duration(self.processing_ms or 0),
            "restart": duration(self.restart_ms or 0),
            "least": broker.group_min_session_timeout_ms,
            "most": broker.group_max_session_timeout_ms,
            "server assignors": ", ".join(broker.group_consumer_assignors),
        }
        return str(values[name])


Condition = Callable[[Client, Surroundings], object]
Play = Callable[[Setup, Surroundings], str | None]
Sentences = Callable[[Client], Mapping[str, str]]


class Rule(NamedTuple):
    """A rule: if `when` holds, the client has the problem that `text` describes.

    `setting` is the one whose line is shown. If several settings can be wrong, it is a function
    that returns them, each with a sentence; {several} stands for these sentences.
    """

    id: str
    libraries: tuple[Library, ...]
    severity: Severity
    setting: str | Sentences
    when: Condition
    text: str
    source: str
    plays: Play | None = None

    @property
    def see(self) -> str:
        return f"docs/settings.md#{self.id}"

    @property
    def meaning(self) -> str:
        """Returns the sentence without values."""
        return re.sub(r":? ?\(?\{[^}]*\}\)?", "", self.text)


class Breach(NamedTuple):
    """A rule that a client breaks: the sentence, what the simulator played, and the line."""

    rule: Rule
    client: Client
    text: str
    played: str | None
    line: int


_MOST_CHARACTERS = 200
_PLACEHOLDER = re.compile(r"\{([a-z. ]+)\}")


def broken(rule: Rule, client: Client, around: Surroundings) -> Breach | None:
    """Returns the breach of a rule; None if the client does not break it."""
    if client.library not in rule.libraries:
        return None
    several = {} if isinstance(rule.setting, str) else rule.setting(client)
    if not several and not rule.when(client, around):
        return None
    names = [rule.setting] if isinstance(rule.setting, str) else [*several]
    names += [name for name in _PLACEHOLDER.findall(rule.text) if name in SETTINGS]
    line = next((client.lines[name] for name in names if name in client.lines), client.first_line)
    story = None
    if rule.plays is not None and not around.refuses_session(client):
        with suppress(GroupError):  # with another setting that cannot work, there is no run
            story = rule.plays(Setup(client.config, around.broker), around)

    def value(match: re.Match[str]) -> str:
        if match[1] == "several":
            return "; ".join(several.values())
        return _text(client[match[1]]) if match[1] in SETTINGS else around.value(match[1])

    text = _PLACEHOLDER.sub(value, rule.text)
    return Breach(rule, client, _named(text, client), story, line)


def _text(value: object) -> str:
    text = ", ".join(value) or "empty" if isinstance(value, tuple) else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _named(text: str, client: Client) -> str:
    """Returns a sentence with the names that the client's library has for settings."""
    if client.library not in PYTHON:
        return text
    for name in sorted({*SETTINGS, *client.given}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", name.replace(".", "_"), text)
    return text

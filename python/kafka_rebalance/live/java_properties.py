# SPDX-License-Identifier: Apache-2.0
"""Reads the two formats of a Kafka client's settings: properties files and JAAS entries.

Source   java.util.Properties.load; org.apache.kafka.common.security.JaasConfig.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from kafka_rebalance.errors import ClusterError

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<quoted>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<word>[\w$.\-]+) | (?P<sign>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_JAAS_FLAGS = ("required", "requisite", "sufficient", "optional")


class Secret(str):
    """A string whose repr hides it, for example in a logged dict."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class JaasEntry(NamedTuple):
    """The one login module of a client's `sasl.jaas.config`, with its options."""

    module: str
    options: dict[str, Secret]


def parse_properties(text: str) -> dict[str, str]:
    """Returns the settings of a properties file; a later line replaces an earlier one."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _KEY.fullmatch(line).groups()  # type: ignore[union-attr]  # matches any text
        found[_unescaped(key)] = _unescaped(value).strip()  # Kafka strips values too
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Yields lines without comments; a line that ends in a backslash continues in the next one."""
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if _CONTINUED.search(line):
            pending = pending[:-1]
        else:
            yield pending
            pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        one = match[1]
        return chr(int(one[1:], 16)) if len(one) > 1 else _CONTROLS.get(one, one)

    return _ESCAPE.sub(character, text)


def parse_jaas(text: str) -> JaasEntry:
    """Returns the login module of `sasl.jaas.config`. Errors: ClusterError, without values."""
    tokens = list(_tokens(text))
    if len(tokens) < 3 or _unquoted(tokens[1]).lower() not in _JAAS_FLAGS or tokens[-1] != ";":
        raise _jaas_error("it is not MODULE required KEY='VALUE' …; or the `;` is missing")
    options = tokens[2:-1]
    if ";" in options:
        raise _jaas_error("it has more than one login module, or text after the `;`")
    keys, signs, values = options[::3], options[1::3], options[2::3]
    if len(options) % 3 or any(sign != "=" for sign in signs):
        raise _jaas_error('an option is not KEY="VALUE"; is a quote missing or not escaped?')
    pairs = zip(map(_unquoted, keys), map(_unquoted, values), strict=True)
    return JaasEntry(_unquoted(tokens[0]), {key: Secret(value) for key, value in pairs})


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _jaas_error(f"character {at + 1} is unexpected; is a quote missing?")
        if match.lastgroup:
            yield match[0]
        at = match.end()


def _unquoted(token: str) -> str:
    return _unescaped(token[1:-1]) if token[0] in "\"'" else token


def _jaas_error(problem: str) -> ClusterError:
    return ClusterError(f"sasl.jaas.config: {problem}")

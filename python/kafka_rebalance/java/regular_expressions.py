# SPDX-License-Identifier: Apache-2.0
"""Checks regular expressions and matches topic names, as RE2/J does, in linear time.

RE2/J has no look-around, no back references and no possessive or atomic groups: it refuses them.
It knows `\\z`, `\\Q…\\E` and POSIX classes such as `[[:alpha:]]`, which are translated. A pattern
matches if it matches the whole name.

Differs  Unicode classes (`\\p{…}`), `\\C` and the flag `U` are refused here, and RE2/J knows them.
         So are patterns of more than 10,000 states, such as `((a{100}){100}){100}`.
Source   com.google.re2j.Pattern (RE2/J 1.8).
"""

import re
from functools import lru_cache

from .linear_matcher import LinearMatcher

_MOST_REPEATS = 1000
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKENS = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|$)|\\(?P<escape>.)"
    r"|\[:(?P<not>\^?)(?P<posix>[a-z]+):\]"
    r"|\(\?(?P<group>[^:)]*)"
    r"|\{(?P<least>[0-9]+)(?P<comma>,?)(?P<most>[0-9]*)\}(?P<after>[?+*]?)"
    r"|(?P<repeat>[*+?])(?P<suffix>[*+?]?)"
    r"|(?P<brace>\{,)"
    r"|(?P<bracket>\[)\^?\]?|(?P<end>\])",
    re.DOTALL,
)
_ESCAPES = "AbBdDsSwWzafnrtvx01234567"
_GROUPS = re.compile(r"P<\w+>.*|<\w+>.*|[ims]*(-[ims]+)?", re.DOTALL | re.ASCII)


class InvalidPattern(ValueError):
    """RE2/J refuses the pattern, or only RE2/J knows it."""


class Matcher:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        try:
            self._linear = LinearMatcher(_translated(pattern), re.ASCII)
        except re.error as error:
            raise InvalidPattern(str(error)) from error

    def matches(self, name: str) -> bool:
        return self._linear.matches(name)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Matcher:
    """Returns the matcher of a pattern. Errors: InvalidPattern."""
    return Matcher(pattern)


def _translated(pattern: str) -> str:
    in_class = False

    def token(found: re.Match[str]) -> str:
        nonlocal in_class
        text = found.group()
        if found["literal"] is not None:
            return re.escape(found["literal"])
        if found["escape"] is not None:
            return _escape(found["escape"])
        if in_class:
            if found["end"]:
                in_class = False
            return _in_class(found)
        if found["bracket"]:
            in_class = True
        elif found["group"] is not None:
            return _group(text, found["group"])
        elif found["least"] is not None:
            most = found["most"] or found["least"]
            too_many = max(int(found["least"]), int(most)) > _MOST_REPEATS
            if too_many or int(most) < int(found["least"]) or found["after"] in ("+", "*"):
                raise InvalidPattern(f"invalid repeat count {text}")
        elif found["repeat"] and found["suffix"] not in ("", "?"):
            raise InvalidPattern(f"invalid nested repetition operator {text}")
        elif found["brace"]:
            return r"\{,"
        return text

    return _TOKENS.sub(token, pattern)


def _escape(letter: str) -> str:
    if letter.isascii() and letter.isalnum() and letter not in _ESCAPES:
        raise InvalidPattern(f"invalid escape sequence \\{letter}")
    if letter in "123456789" and letter:
        raise InvalidPattern(f"invalid escape sequence \\{letter}")
    return r"\Z" if letter == "z" else f"\\{letter}"


def _in_class(found: re.Match[str]) -> str:
    name = found["posix"]
    if name is None:
        return found.group().replace("[", r"\[")
    if name not in _POSIX or found["not"]:
        raise InvalidPattern(f"invalid character class {found.group()}")
    return _POSIX[name]


def _group(text: str, inside: str) -> str:
    if not _GROUPS.fullmatch(inside):
        raise InvalidPattern(f"invalid group {text}")
    return text.replace("(?<", "(?P<")

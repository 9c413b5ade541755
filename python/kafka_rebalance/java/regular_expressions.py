# SPDX-License-Identifier: Apache-2.0
"""Checks regular expressions and matches topic names, as RE2/J does, in linear time.

RE2/J has no look-around, no back references and no possessive or atomic groups: it refuses them.
It knows `\\z`, `\\Q…\\E` and POSIX classes such as `[[:alpha:]]`, which are translated; the parser
of `re` reads the result, and a `LinearMatcher` runs it. A pattern matches if it matches the whole
name.

Differs  Unicode classes (`\\p{…}`), `\\C` and the flag `U` are refused here; RE2/J accepts them.
         So are patterns of more than 10,000 states, such as `((a{100}){100}){100}`.
Source   com.google.re2j.Pattern (RE2/J 1.8).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_MOST_STATES = 10_000
_MOST_KEPT = 500_000
"""The largest number of states in the cache for later names, summed over all its sets of states."""
_WORD = frozenset("0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_CATEGORIES = {"DIGIT": frozenset("0123456789"), "WORD": _WORD, "SPACE": frozenset(" \t\n\r\f\v")}

_States = frozenset[int]


class _State(NamedTuple):
    """A state that reads a character (`items`), checks the position (`place`), or only branches."""

    next: tuple[int, ...]
    items: tuple[tuple[Any, Any], ...] = ()
    place: str = ""
    flags: int = 0


class LinearMatcher:
    """Matches a pattern of Python's `re` that has no look-around, back reference or atomic group.

    `re` tries one path after another, so its time can grow exponentially with the name. Here, all
    paths are followed at once:

    1. The pattern, as `re` parses it, becomes states. A repeat of n times becomes n copies.
    2. For each character of a name, the set of states that can be reached is computed from the
       previous set. Each of these steps is cached, so similar names need few new steps.

    Order    has no effect: neither the order of alternatives, nor whether a repeat is greedy or
             lazy.
    Cost     O(states · characters) for a name; `_MOST_STATES` bounds the states.
    Errors   re.error for a pattern that has more states, or is nested too deeply.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        # 1.
        self._states = [_State(())]  # state 0: the name matches if it ends here
        try:
            parsed = _parser.parse(pattern, flags)
            first = self._add(list(parsed), 0, parsed.state.flags)
        except RecursionError:
            raise re.error("expression nests too deeply") from None
        self._has_places = any(state.place for state in self._states)
        self._first = frozenset((first,))
        self._forget()

    def _forget(self) -> None:
        """Empties the cache of steps, each from one set of states to the next."""
        self._kept = 0
        self._sets = [self._first]
        self._numbers = {self._first: 0}
        self._steps: dict[tuple[int, str, str], int] = {}

    def matches(self, name: str) -> bool:
        """Returns whether the pattern matches the whole name."""
        # 2.
        if self._kept > _MOST_KEPT:
            self._forget()
        at, before, steps = 0, "", self._steps
        for letter in name:
            step = (at, before, letter)
            at = steps[step] if step in steps else self._step(step)
            before = letter if self._has_places else ""
        return self._ends(at, before)

    def _step(self, step: tuple[int, str, str]) -> int:
        at, before, letter = step
        found = frozenset(self._after(self._sets[at], before, letter))
        if found not in self._numbers:
            self._numbers[found] = len(self._sets)
            self._sets.append(found)
        self._kept += 1 + len(found)
        self._steps[step] = self._numbers[found]
        return self._steps[step]

    def _ends(self, at: int, before: str) -> bool:
        """Returns whether a name that ends in the states `at` matches; cached as a step on ""."""
        step = (at, before, "")
        if step not in self._steps:
            self._steps[step] = int(0 in self._closure(self._sets[at], before, ""))
        return self._steps[step] == 1

    def _after(self, states: _States, before: str, letter: str) -> Iterator[int]:
        for number in self._closure(states, before, letter):
            state = self._states[number]
            if state.items and any(_fits(item, letter, state.flags) for item in state.items):
                yield from state.next

    def _closure(self, states: Iterable[int], before: str, after: str) -> set[int]:
        """Returns the `states`, and those that can be reached without reading a character."""
        found, waiting = set(states), list(states)
        while waiting:
            state = self._states[waiting.pop()]
            if state.items or (state.place and not _is_at(state, before, after)):
                continue
            new = [number for number in state.next if number not in found]
            found.update(new)
            waiting += new
        return found

    def _state(self, state: _State) -> int:
        if len(self._states) == _MOST_STATES:
            raise re.error(f"the pattern has more than {_MOST_STATES} states")
        self._states.append(state)
        return len(self._states) - 1

    def _add(self, items: list[tuple[Any, Any]], then: int, flags: int) -> int:
        for item in reversed(items):
            then = self._add_item(item, then, flags)
        return then

    def _add_item(self, item: tuple[Any, Any], then: int, flags: int) -> int:
        kind, content = str(item[0]), item[1]
        if kind == "SUBPATTERN":
            _, added, removed, inner = content
            return self._add(list(inner), then, (flags | added) & ~removed)
        if kind == "BRANCH":
            return self._state(
                _State(tuple(self._add(list(one), then, flags) for one in content[1]))
            )
        if kind in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._add_repeat(content, then, flags)
        if kind == "AT":
            return self._state(_State((then,), place=str(content), flags=flags))
        return self._state(_State((then,), items=(item,), flags=flags))

    def _add_repeat(self, content: tuple[int, Any, Any], then: int, flags: int) -> int:
        least, most, inner = content
        items = list(inner)
        if most is _parser.MAXREPEAT:
            loop = self._state(_State(()))
            self._states[loop] = _State((self._add(items, loop, flags), then))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                before = self._add(items, then, flags)
                if before == then:
                    break  # the repeated item is empty
                then = self._state(_State((before, end)))
        for _ in range(least):
            before, then = then, self._add(items, then, flags)
            if before == then:
                break
        return then


def _is_at(state: _State, before: str, after: str) -> bool:
    lines = bool(state.flags & re.MULTILINE)
    match state.place:
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return not before or (lines and before == "\n" and state.place == "AT_BEGINNING")
        case "AT_END" | "AT_END_STRING":
            return not after or (lines and after == "\n" and state.place == "AT_END")
        case _:
            return (state.place == "AT_BOUNDARY") is ((before in _WORD) is not (after in _WORD))


def _fits(item: tuple[Any, Any], letter: str, flags: int) -> bool:
    """Returns whether an item of the pattern, which reads one character, accepts `letter`."""
    kind, content = str(item[0]), item[1]
    letters = {letter, letter.lower(), letter.upper()} if flags & re.IGNORECASE else {letter}
    if kind == "ANY":
        return bool(flags & re.DOTALL) or letter != "\n"
    if kind == "NOT_LITERAL":
        return chr(content) not in letters
    listed = content if kind == "IN" else [item]
    negated = str(listed[0][0]) == "NEGATE"
    return negated is not any(_is_listed(one, letters) for one in listed[negated:])


def _is_listed(item: tuple[Any, Any], letters: set[str]) -> bool:
    kind, content = str(item[0]), item[1]
    if kind == "LITERAL":
        return chr(content) in letters
    if kind == "RANGE":
        return any(content[0] <= ord(one) <= content[1] for one in letters if len(one) == 1)
    _, _, name = str(content).partition("CATEGORY_")
    return name.startswith("NOT_") is not any(
        one in _CATEGORIES[name.removeprefix("NOT_")] for one in letters
    )


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
_ESCAPES = "AbBdDsSwWzafnrtvx0"
_GROUPS = re.compile(r"P<\w+>.*|<\w+>.*|[ims]*(-[ims]+)?", re.DOTALL | re.ASCII)


class InvalidPattern(ValueError):
    """RE2/J refuses the pattern, or only RE2/J can read it."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> LinearMatcher:
    """Returns the matcher for a pattern, from a cache. Errors: InvalidPattern."""
    try:
        return LinearMatcher(_translated(pattern), re.ASCII)
    except re.error as error:
        raise InvalidPattern(str(error)) from error


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

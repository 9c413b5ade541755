# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package; `KafkaRebalanceError` is the base of all.

A bad group raises `GroupError` with the path of the bad field. A group on which Kafka's own class
throws raises `AssignorThrows`. In bulk (files, batches, Spark) such a group raises nothing: the
text of the exception is the value of the `error` field.

A message may contain names from outside: print `shown(str(error))`.
"""

import re
from collections.abc import Iterable


class KafkaRebalanceError(Exception):
    """Base of this package's own exceptions."""


class GroupError(KafkaRebalanceError, ValueError):
    """A group or another input is wrong: `path` is the wrong field's path, `problem` the reason."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    def __reduce__(self) -> tuple[type["GroupError"], tuple[str, str]]:
        return type(self), (self.path, self.problem)


class AssignorThrows(GroupError):
    """The real assignor fails on this group, so a live leader would fail its rebalance."""

    @classmethod
    def of(cls, assignor: str, exception: str, reason: str) -> "AssignorThrows":
        return cls("assignor", f"Kafka's {assignor} assignor throws {exception} here: {reason}")

    @classmethod
    def dies(cls, assignor: str, reason: str) -> "AssignorThrows":
        """Returns the error for a group on which a C library's assignor crashes the leader."""
        return cls("assignor", f"{assignor} kills the leader's process here: {reason}")


class NeverEnds(AssignorThrows):
    """The real assignor never ends on this group, so a live leader hangs (docs/never-ends.md)."""

    @classmethod
    def here(cls, assignor: str) -> "NeverEnds":
        whose = assignor if "/" in assignor else f"Kafka's {assignor}"
        return cls(
            "assignor",
            f"{whose} assignor never ends here: it moves the same partitions round for "
            "ever, and no member reads on; range, roundrobin and equal subscriptions always end",
        )


class NotAffected(GroupError):
    """A change names a topic, member, client or rack that this group does not have.

    Or the change switches to an assignor or protocol that the group already uses.
    """


class SwitchRefused(GroupError):
    """The members' clients or the broker refuse a switch of the protocol: a plan reports this."""


NO_MEMBERS = "no-members"
"""The `error_kind` of `NoMembersLeft` in columns: this kind counts as a result, not as an error."""


class NoMembersLeft(GroupError):
    """A change leaves the group without members: a result without assignment, not a bad input."""


def error_kind(error: GroupError) -> str:
    """Returns the `error_kind` of an error in columns, as `GroupError::kind_name` in the core."""
    if isinstance(error, NoMembersLeft):
        return NO_MEMBERS
    if isinstance(error, AssignorThrows):
        return "never-ends" if isinstance(error, NeverEnds) else "throws"
    return "change" if error.path.startswith("change") else "group"


class WireError(KafkaRebalanceError, ValueError):
    """Protocol bytes that cannot be read or written."""


class ClusterError(KafkaRebalanceError):
    """The cluster cannot be read: no connection, no permission, or a wrong client setting."""


class NotReachedError(ClusterError):
    """A broker does not answer now, but may answer later, for example after an election.

    `none_answered` is True if no bootstrap server answered either.
    """

    def __init__(self, problem: str, *, none_answered: bool = False) -> None:
        super().__init__(problem)
        self.none_answered = none_answered


class MissingExtra(KafkaRebalanceError, ImportError):
    """An optional part of this package is not installed; the message names the command for it."""

    def __init__(self, part: str, extra: str) -> None:
        checkout = f"pip install '.[{extra}]'"
        packages = " ".join(f"'{one}'" for one in _packages(extra))
        how = f"pip install {packages} (in a checkout: {checkout})" if packages else checkout
        super().__init__(f"{part} needs an optional part: {how}")


def _packages(extra: str) -> list[str]:
    """Returns the packages that an extra installs; none if kafka-rebalance itself is not installed.

    The message names them, because kafka-rebalance itself may be missing from the package index.
    """
    from importlib import metadata  # imported here: it is slow, and only this error needs it

    try:
        required = metadata.requires("kafka-rebalance") or []
    except metadata.PackageNotFoundError:
        return []
    pairs = (one.partition(";") for one in required)
    return [
        name.strip()
        for name, _, marker in pairs
        if f"extra == '{extra}'" in marker.replace('"', "'")
    ]


class SchemaError(KafkaRebalanceError, TypeError):
    """A DataFrame lacks the contract's columns or types; the message names the wrong column."""


class SparkFailedError(KafkaRebalanceError):
    """Spark failed, or its executors cannot run this package; the message contains the reason."""


# Characters that Python calls printable, but that are invisible: fillers of Hangul and Khmer, and
# variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def shown(text: str) -> str:
    r"""Returns a name from outside in visible form: for tables, sentences, pages and pictures.

    A client or a broker accepts any string as a group id or a client id. Characters that move the
    cursor, change the reading order, break the line or are invisible are written as JSON escapes.
    So a line of JSON keeps its value when `shown` has escaped it.

    >>> print(shown("a\x1b[2J\u202eb\nc"))
    a\u001b[2J\u202eb\nc
    """
    if text.isascii() and text.isprintable():
        return text
    import json  # imported here: few names need it

    unseen = (one for one in set(text) if not one.isprintable() or _INVISIBLE.match(one))
    return text.translate({ord(one): json.dumps(one)[1:-1] for one in unseen})


def nearest(name: str, known: Iterable[str], cutoff: float = 0.75) -> str | None:
    """Returns the known name most like `name`; None if no ratio of `difflib` reaches `cutoff`."""
    from difflib import get_close_matches  # imported here: only errors need it

    return next(iter(get_close_matches(name, [*known], 1, cutoff)), None)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.75) -> str:
    """Returns the end of an error for a misspelt name, or "" if no known name resembles it.

    >>> did_you_mean("paymnts", ["orders", "payments"])
    '; did you mean payments?'
    """
    near = nearest(name, known, cutoff)
    return "" if near is None else f"; did you mean {shown(near)}?"

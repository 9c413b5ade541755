# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as exceptions.

One base class. A bad group raises `GroupError` with the path of the field; where Kafka's own class
would throw, that is `AssignorThrows`. In bulk (files, batches, Spark) the same text is a value in
the `error` field, and nothing is raised.
"""


class KafkaRebalanceError(Exception):
    """Base of every error that this package raises on purpose."""


class GroupError(KafkaRebalanceError, ValueError):
    """A group that cannot be assigned: `path` names the field, `problem` what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem

    def __reduce__(self) -> tuple[type["GroupError"], tuple[str, str]]:
        return type(self), (self.path, self.problem)


class AssignorThrows(GroupError):
    """Kafka's class has no answer for this group: a live leader would fail its rebalance here."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)

    @classmethod
    def of(cls, assignor: str, exception: str, reason: str) -> "AssignorThrows":
        return cls("assignor", f"Kafka's {assignor} assignor throws {exception} here: {reason}")


class NeverEnds(AssignorThrows):
    """Kafka's class computes for ever: a live leader hangs, and its group with it.

    See docs/never-ends.md; `plans/never_ends.py` looks for a way out.
    """

    @classmethod
    def here(cls, assignor: str) -> "NeverEnds":
        return cls(
            "assignor",
            f"Kafka's {assignor} assignor never ends here: it moves the same partitions round for "
            "ever, and no member reads on; range, roundrobin and equal subscriptions always end",
        )


class NotAffected(GroupError):
    """A change names a topic, member, client or rack that this group does not have.

    Where many groups are asked what one change would do to them, the change does not apply to such
    a group; where one group is asked, the name is wrong.
    """


class WireError(KafkaRebalanceError, ValueError):
    """Protocol bytes that cannot be read or written."""


class MissingExtra(KafkaRebalanceError, ImportError):
    """An optional part is not installed; the message says how to get it."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f"{part} needs an optional part: pip install 'kafka-rebalance[{extra}]'")

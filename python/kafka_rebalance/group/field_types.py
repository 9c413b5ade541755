# SPDX-License-Identifier: Apache-2.0
"""The types of a group's fields: each class reads, checks and writes values of one type."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.frozen import Frozen

from .field_paths import (
    MAX_INT32,
    array,
    integer,
    kind,
    list_or_tuple,
    object_,
    objects,
    path,
    required,
    text,
    wrong,
)
from .model import USER_DATA, TopicPartition, in_runs, quoted

MIN_INT32 = -(2**31)
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


class Text:
    """A string."""

    spark = "string"

    def read(self, value: Any, at: str) -> Any:
        """Returns the value of a contract line's field. Errors: GroupError."""
        return text(value, at)

    def check(self, value: Any, at: str) -> None:
        """Raises a GroupError if Python code passed a value of another type."""
        if not isinstance(value, str):
            raise wrong(value, at, "string", "a str")
        self.read(value, at)

    def write(self, value: Any) -> Any:
        """Returns the value for a contract line."""
        return value

    def exact(self) -> tuple[Any, ...]:
        """Returns this type as a tuple for `_core.FieldTypes`, which accepts only values of exactly
        this type.
        """
        return ("text",)


class UserDataName(Text):
    """One of the strings in `USER_DATA`."""

    def read(self, value: Any, at: str) -> Any:
        if text(value, at) not in USER_DATA:
            raise GroupError(at, f"{quoted(value)} is not {' or '.join(map(quoted, USER_DATA))}")
        return value

    def exact(self) -> tuple[Any, ...]:
        return "text", *USER_DATA


class Whole(Text, Frozen):
    """A whole number from `least` to `most`; errors call it `noun`."""

    noun: str
    least: int = 0
    most: int = MAX_INT32

    @property
    def spark(self) -> str:  # type: ignore[override]
        return "int" if self.most <= MAX_INT32 else "bigint"

    def read(self, value: Any, at: str) -> Any:
        return integer(value, at, self.noun, self.least, self.most)

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(value, at, self.noun, "an int")
        self.read(value, at)

    def exact(self) -> tuple[Any, ...]:
        return "whole", self.least, self.most


class Number(Text, Frozen):
    """A number, whole or not, from `least` to `most`; errors call it `noun`.

    Errors show `bounds` and not the value, because the engines write some numbers differently.
    """

    noun: str
    least: float
    most: int
    bounds: str

    spark = "double"

    def read(self, value: Any, at: str) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise GroupError(at, f"{kind(value)} is not a {self.noun}")
        if not self.least <= value <= self.most:
            raise GroupError(at, f"not a {self.noun} {self.bounds}")
        return value

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong(value, at, self.noun, "a number")
        self.read(value, at)

    def exact(self) -> tuple[Any, ...]:
        return "number", self.least, self.most


class Flag(Text, Frozen):
    """True or false."""

    spark = "boolean"

    def read(self, value: Any, at: str) -> Any:
        if not isinstance(value, bool):
            raise GroupError(at, f"{kind(value)} is not true or false")
        return value

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, bool):
            raise wrong(value, at, "boolean", "a bool")

    def exact(self) -> tuple[Any, ...]:
        return ("flag",)


class OrNull(Text, Frozen):
    """A list entry that may be null; a JSON null is read as the Python value `null`."""

    item: Text
    null: Any = None

    def read(self, value: Any, at: str) -> Any:
        return self.null if value is None else self.item.read(value, at)

    def check(self, value: Any, at: str) -> None:
        if value is not None or self.null is not None:
            self.item.check(value, at)

    def write(self, value: Any) -> Any:
        return self.item.write(value)

    def exact(self) -> tuple[Any, ...]:
        return self.item.exact() if self.null is not None else ("optional", self.item.exact())


class List(Text, Frozen):
    """A list; in Python, a tuple of the items."""

    item: Text

    def read(self, value: Any, at: str) -> Any:
        read = self.item.read
        return tuple([read(one, f"{at}[{i}]") for i, one in enumerate(array(value, at))])

    def check(self, value: Any, at: str) -> None:
        for i, one in enumerate(list_or_tuple(value, at)):
            self.item.check(one, f"{at}[{i}]")

    def write(self, value: Any) -> Any:
        if not isinstance(self.item, List | OrNull | Record):
            return list(value)
        return [self.item.write(one) for one in value]

    def exact(self) -> tuple[Any, ...]:
        return "list", self.item.exact()


class UnreadNames(List):
    """A list of strings that affects no answer; in a line, a value of another type is ignored."""

    def read(self, value: Any, at: str) -> Any:
        names = value if isinstance(value, list) else []
        return tuple(names) if all(isinstance(name, str) for name in names) else ()


class Field(NamedTuple):
    """A field of an object in a contract line, and the attribute of the Python object."""

    name: str
    kind: Text
    required: bool = False
    default: Any = None
    """The attribute's value if the field is absent; a default of None or () is not written."""
    spark: str = "input all recorded"
    """The names of Spark's schemas (`input`, `all`, `recorded`) in which the field is a column."""


class Record(Text, Frozen):
    """An object with certain `fields`. `example` is Python code that makes such an object."""

    fields: tuple[Field, ...]
    of: type
    example: str
    attributes: tuple[Field, ...] = ()
    """Attributes of the Python object that a line holds elsewhere, not in these fields."""

    def read(self, value: Any, at: str) -> Any:
        return self.of(**self.values(object_(value, at), at))

    def values(self, given: Mapping[str, Any], at: str) -> dict[str, Any]:
        """Returns the values of all fields, read in their order."""
        found = {}
        for one in self.fields:
            value = given.get(one.name)
            if value is not None:
                found[one.name] = one.kind.read(value, path(at, one.name))
            else:
                found[one.name] = required(given, one.name, at) if one.required else one.default
        return found

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, self.of):
            raise wrong(value, at, self.of.__name__, self.example)
        self.check_fields(value, at)

    def check_fields(self, value: Any, at: str) -> None:
        for one in (*self.fields, *self.attributes):
            given = getattr(value, one.name)
            if given is not None or one.required or one.default is not None:
                one.kind.check(given, path(at, one.name))

    def write(self, value: Any) -> Any:
        line = {}
        for one in self.fields:
            given = self.given(value, one.name)
            if one.required or not (given is None or (one.default == () and not given)):
                line[one.name] = one.kind.write(given)
        return line

    def given(self, value: Any, name: str) -> Any:
        """Returns what the contract line's field `name` holds for the Python object `value`."""
        return getattr(value, name)

    def in_lines(self) -> tuple[Field, ...]:
        """Returns the fields that the object has in a contract line."""
        return self.fields

    def exact(self) -> tuple[Any, ...]:
        return "object", self.of, self.exact_fields()

    def exact_fields(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        def exact(one: Field) -> tuple[Any, ...]:
            is_optional = not one.required and one.default is None
            return ("optional", one.kind.exact()) if is_optional else one.kind.exact()

        return tuple((one.name, exact(one)) for one in (*self.fields, *self.attributes))


class Entry(Record):
    """An entry of a list of runs: a topic and some of its partitions, or a subtopology and some of
    its tasks.
    """

    def read(self, value: Any, at: str) -> Any:
        found = self.values(object_(value, at), at)
        return found[self.fields[0].name], found["partitions"]


class Runs(List):
    """Partitions or tasks: in a line a list of runs, in Python a tuple of TopicPartition."""

    item: Entry

    def read(self, value: Any, at: str) -> Any:
        runs = List.read(self, value, at)
        return tuple([TopicPartition(topic, p) for topic, numbers in runs for p in numbers])

    def check(self, value: Any, at: str) -> None:
        check_pairs(value, at)

    def write(self, value: Any) -> Any:
        return in_runs(value, self.item.fields[0].name)

    def exact(self) -> tuple[Any, ...]:
        return "list", ("pair", TopicPartition)


class OwnedRuns(Runs):
    """Like `Runs`, but `read` returns and `write` takes runs, even those without partitions."""

    def read(self, value: Any, at: str) -> Any:
        return List.read(self, value, at)

    def write(self, value: Any) -> Any:
        return value


TEXT, PARTITION = Text(), Whole("partition")


def check_pairs(pairs: Any, at: str) -> None:
    """Raises a GroupError for the first entry that is not a TopicPartition of a str and an int."""
    for i, one in enumerate(objects(pairs, at, TopicPartition, "TopicPartition(topic, partition)")):
        TEXT.check(one.topic, f"{at}[{i}].topic")
        if not isinstance(one.partition, int) or isinstance(one.partition, bool):
            raise wrong(one.partition, f"{at}[{i}].partition", "partition", "an int")
        PARTITION.read(one.partition, f"{at}[{i}]")

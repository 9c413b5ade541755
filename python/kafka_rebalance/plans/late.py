# SPDX-License-Identifier: Apache-2.0
"""The base of values whose fields are read from the core only when they are first needed."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self


class Late:
    """The base of frozen dataclasses with slots that may have a source instead of field values.

    `late` makes such a value. The source has an attribute for each field, which is read once.
    """

    __slots__ = ("_source",)

    _source: object

    @classmethod
    def late(cls, source: object) -> Self:
        value = cls.__new__(cls)
        object.__setattr__(value, "_source", source)
        return value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for a field that has no value in its slot yet.
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            found = getattr(self._source, name)
            object.__setattr__(self, name, found)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

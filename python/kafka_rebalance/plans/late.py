# SPDX-License-Identifier: Apache-2.0
"""Values whose fields are found when they are first asked for: the core's rounds and steps."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self


class Late:
    """Base of frozen dataclasses with slots; `late` makes one whose fields a source finds.

    The source has an attribute for each field. A field that was found once is kept.
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
            # Python asks here only for what is in no slot yet.
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            found = getattr(self._source, name)
            object.__setattr__(self, name, found)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

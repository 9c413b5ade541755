# SPDX-License-Identifier: Apache-2.0
"""The base class of values, such as rounds, whose fields are computed when they are first read."""

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self


class Late:
    """The base of frozen dataclasses with slots, whose fields are computed at their first use."""

    __slots__ = ("_computed",)

    _computed: dict[str, Callable[[], Any]]

    @classmethod
    def late(cls, **computed: Callable[[], Any]) -> Self:
        value = cls.__new__(cls)
        object.__setattr__(value, "_computed", computed)
        return value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for a field whose slot has no value yet.
            if name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__} has no attribute {name}")
            found = self._computed[name]()
            object.__setattr__(self, name, found)
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

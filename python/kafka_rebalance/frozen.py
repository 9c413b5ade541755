# SPDX-License-Identifier: Apache-2.0
"""The base classes of values and states that become dataclasses when they are first used.

It takes a third of a millisecond to make a dataclass. A command imports hundreds, and uses few.
"""

from _thread import RLock  # `threading` is too slow to import
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, ClassVar, dataclass_transform

_MAKING = RLock()


class _WhenUsed:
    """Stands for an attribute that `dataclass` sets, until it is read: `__get__` then makes it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, one: object, kind: type["_Lazy"]) -> Any:
        with _MAKING:
            if vars(kind).get(self.name) is self:
                (_make if self.name in _WHEN_USED else _complete)(kind)
        return getattr(kind if one is None else one, self.name)


_WHEN_USED = {
    name: _WhenUsed(name) for name in ("__dataclass_fields__", "__match_args__", "__init__")
}
_WHEN_COMPARED = {name: _WhenUsed(name) for name in ("__eq__", "__hash__", "__repr__")}


def _make(kind: type["_Lazy"]) -> None:
    """Runs `dataclass` on a copy of the class, then copies what it made into the class.

    So no thread sees a half-made class.
    """
    meta: Any = type(kind)
    left = {*_WHEN_USED, "__dict__", "__weakref__"}
    before = {name: value for name, value in vars(kind).items() if name not in left}
    named = {**before, "__qualname__": kind.__qualname__}
    equal = meta(kind.__name__, kind.__bases__, named, is_copy=True)
    is_message = issubclass(kind, Message)
    dataclass(init=False, eq=False, repr=False, kw_only=is_message)(equal)
    made = vars(equal) | {"__init__": _Constructor(equal)}
    for name in before.keys() - made.keys():
        delattr(kind, name)  # a field with a default_factory: `dataclass` removes this attribute
    for name in (*(made.keys() - left - {"__setattr__", "__delattr__"}), *_WHEN_USED):
        if before.get(name) is not made[name]:
            setattr(kind, name, made[name])


class _Default:
    """Stands for an argument whose default comes from the field's `default_factory`."""

    def __repr__(self) -> str:
        return "<factory>"


class _Constructor:
    """Makes the first 20 objects: compiling `__init__` takes as long as making 100 of them here."""

    def __init__(self, kind: type["_Lazy"]) -> None:
        given = [one for one in fields(kind) if one.init]
        self.kind, self.left, self.size = kind, 20, len(given)
        self.names = [one.name for one in given if not one.kw_only]
        self.defaults = {one.name: one.default for one in given if one.default is not MISSING}
        calls = {one.name: one.default_factory for one in given}
        self.factories = [(name, call) for name, call in calls.items() if call is not MISSING]
        self.is_checked = hasattr(kind, "__post_init__")

    def __get__(self, one: Any, kind: type["_Lazy"]) -> Any:
        self.left -= 1
        if one is None or self.left < 0:
            setattr(kind, "__init__", made := _compiled(self.kind))  # noqa: B010
            return made if one is None else made.__get__(one)
        return partial(self._call, one)

    def _call(self, one: Any, *args: Any, **given: Any) -> None:
        values = {**self.defaults, **dict(zip(self.names, args, strict=False)), **given}
        for name, call in self.factories:
            if name not in values:
                values[name] = call()
        twice = not given.keys().isdisjoint(self.names[: len(args)])
        if twice or len(args) > len(self.names) or len(values) != self.size:
            _compiled(self.kind)(one, *args, **given)  # raises the TypeError
        for name, value in values.items():
            object.__setattr__(one, name, value)
        if self.is_checked:
            one.__post_init__()


def _compiled(kind: type["_Lazy"]) -> Any:
    """Compiles `__init__`, in a third of the time that `dataclass(frozen=True)` takes for it.

    A call is three times as fast, too: a dict stores a field faster than `object.__setattr__`.
    """
    scope: dict[str, Any] = {"_default": _Default()}
    given: dict[bool, list[str]] = {False: ["self"], True: []}
    body, sets = ["_own = self.__dict__"], "_own[{0!r}] = {1}"
    if not issubclass(kind, Frozen):
        body, sets = [], "self.{0} = {1}"
    for one in fields(kind):
        if not one.init:
            continue
        name = value = one.name
        argument, scope[f"_default_{name}"] = f"{name}=_default_{name}", one.default
        if one.default_factory is not MISSING:
            argument, scope[f"_default_{name}"] = f"{name}=_default", one.default_factory
            value = f"_default_{name}() if {name} is _default else {name}"
        elif one.default is MISSING:
            argument = name
        given[bool(one.kw_only)].append(argument)
        body.append(sets.format(name, value))
    body.append("self.__post_init__()" if hasattr(kind, "__post_init__") else "pass")
    named = ["*", *given[True]] if given[True] else []
    exec(f"def __init__({', '.join((*given[False], *named))}):\n " + "\n ".join(body), scope)
    made = scope["__init__"]
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__annotations__ = {**{one.name: one.type for one in fields(kind)}, "return": None}
    return made


def _complete(kind: type["_Lazy"]) -> None:
    """Makes the methods for comparison and repr: few classes need them."""
    meta: Any = type(kind)
    bare = meta(kind.__name__, (kind,), {"__doc__": kind.__doc__}, is_copy=True)
    made = vars(dataclass(init=False, unsafe_hash=True)(bare))
    for name, attribute in _WHEN_COMPARED.items():
        if vars(kind).get(name) is attribute:
            setattr(kind, name, made[name])


class _Lazy:
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, *, is_copy: bool = False) -> None:
        super().__init_subclass__()
        if is_copy or cls.__module__ == __name__:
            return
        for name, attribute in _WHEN_USED.items():
            setattr(cls, name, attribute)
        for name in _WHEN_COMPARED.keys() - vars(cls).keys() if issubclass(cls, Frozen) else ():
            setattr(cls, name, _WHEN_COMPARED[name])


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Mutable(_Lazy):
    """Makes each subclass a dataclass with fields that can change; an object equals only itself."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(_Lazy):
    """Makes each subclass a frozen dataclass."""

    def __setattr__(self, name: str, _: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)  # even if empty, so that `__setstate__` is called

    def __setstate__(self, state: dict[str, Any]) -> None:
        is_dataclass(self)  # unpickling calls no `__init__`, which would make the class a dataclass
        vars(self).update(state)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Message(Frozen):
    """Makes each subclass a frozen dataclass whose constructor takes the fields by name only."""

# SPDX-License-Identifier: Apache-2.0
"""Values become dataclasses when they are first used, and are then as `dataclass` makes them."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from threading import Barrier
from typing import Any

import pytest

from kafka_rebalance.frozen import Frozen, Message, Mutable
from kafka_rebalance.plans.changes.members import AddMembers
from kafka_rebalance.wire.messages import Tick


def pair() -> tuple[Any, Any]:
    """Returns two equal classes: a lazy one, and a dataclass."""

    class Base(Frozen):
        a: int

    class Lazy(Base):
        b: list[int] = field(default_factory=list)
        c: str = field(default="c", compare=False)

        def __post_init__(self) -> None:
            assert self.a

    @dataclass(frozen=True)
    class Old:
        a: int

    @dataclass(frozen=True)
    class Eager(Old):
        b: list[int] = field(default_factory=list)
        c: str = field(default="c", compare=False)

        def __post_init__(self) -> None:
            assert self.a

    return Lazy, Eager


def test_it_is_the_class_that_dataclass_makes() -> None:
    lazy, eager = pair()
    assert lazy.__match_args__ == eager.__match_args__ == ("a", "b", "c")
    assert str(inspect.signature(lazy)) == str(inspect.signature(eager))
    one = lazy(1, c="x")
    assert repr(one).replace("Lazy", "Eager") == repr(eager(1, c="x"))
    assert one == lazy(1, [], "y") != lazy(2)
    assert [f.name for f in fields(lazy)] == [f.name for f in fields(eager)]
    assert replace(one, a=3) == lazy(3) == copy.copy(lazy(3))
    assert not hasattr(lazy, "b")
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(FrozenInstanceError):
        one.a = 2
    with pytest.raises(FrozenInstanceError):
        del one.a

    class Named(Message):
        x: int = 1

    assert (Named(x=2), hash(Named(x=2))) == (Named(x=2), hash(Named(x=2)))
    with pytest.raises(TypeError):
        Named(2)  # type: ignore[call-arg]


def test_objects_that_change_are_compared_by_identity() -> None:
    class State(Mutable):
        a: int
        b: list[int] = field(default_factory=list)
        later: str = field(init=False)

    class Kind(State):
        a: int = 3

    one = Kind()
    one.a, one.later = 4, "x"
    assert (one.a, one.b, one.later, one == replace(State(4), b=one.b)) == (4, [], "x", False)
    assert len({one, Kind(), copy.copy(one)}) == 3


def test_threads_that_use_a_class_first_see_it_whole() -> None:
    kinds = [pair()[0] for _ in range(50)]
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    start = Barrier(4)

    def use() -> list[object]:
        start.wait()
        return [(kind(1), kind(1) == kind(1)) for kind in kinds]

    try:
        with ThreadPoolExecutor(4) as pool:
            runs = [each.result() for each in [pool.submit(use) for _ in range(4)]]
    finally:
        sys.setswitchinterval(every)
    assert runs == [[(kind(1), True) for kind in kinds]] * 4


@pytest.mark.parametrize("value", [AddMembers(2), Tick()], ids=str)
def test_a_pickled_value_is_whole_in_a_process_that_made_none(value: object) -> None:
    script = """
import pickle, sys
one, other = pickle.load(sys.stdin.buffer)
print(one == other, hash(one) == hash(other), one)
"""
    pickled = pickle.dumps((value, copy.deepcopy(value)))
    ran = subprocess.run([sys.executable, "-c", script], input=pickled, capture_output=True)
    assert ran.stdout.decode() == f"True True {value}\n"

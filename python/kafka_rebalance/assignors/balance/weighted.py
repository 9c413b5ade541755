# SPDX-License-Identifier: Apache-2.0
"""weighted: the most even load by weights and capacities, with few partitions taken.

The best result is NP-hard to find: with two members, it is the partition problem. So the order of
preference is exact, the answer comes with a bound, and a target says when to stop.

1. A member's *level* is how full it is (`weights.py`). The bound is a proven minimum (`bound.py`):
   in every assignment, the fullest member is at this level or above. The target is `tolerance`
   above the bound. If no result reaches it, or the group is small and has no budget, the target is
   `tolerance` above the best level found.
2. Hand out the partitions without an owner. If no member is above the target, this is the answer.
3. Else take as few partitions from their owners as will bring all members to the target, at most
   `budget`; if no result reaches the target, the closest one counts. All results up to the target
   are equally good. The search starts from the answer of 2; from assignments for which owners above
   a level gave up their heaviest partitions; from the answer of `balanced`; and from all partitions
   handed out from scratch. From each start, it makes single steps (`search.py`); in groups of few
   partitions, it visits all assignments (`small.py`).
4. If this lowers the greatest level by less than `min_gain`, the answer of 2 stands.
5. A partition that alone is above the bound of divisible weights is a giant. The members that have
   giants keep their partitions as found, and steps 1 to 4 run for the others, with a bound of their
   own.

Order    members by instance id or member id, topics by name: the order of lists changes nothing.
Cost     at most `MOST_WORK` comparisons; a search that needs more stops there (`exhausted`).
Mirror   `src/assignors/balance/weighted.rs`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.model import TopicPartition, quoted
from kafka_rebalance.group.spec import GroupSpec

from . import balanced, bound, small
from .balanced import by_place
from .search import Effort, State, bring_home, hand_out, improve
from .weights import NOBODY, Loads, loads_of

NAME = "weighted"
MOST_WORK, STARTS = 20_000_000, 13
_WHOLE, _LARGE = 10**6, 1000


class Options(NamedTuple):
    """The settings of `weighted`; shares are integers, in millionths.

    `budget` is a number of partitions or, if `is_share` is True, a share of the partitions that
    have a reader; None means that there is no limit.
    """

    tolerance: int = 50_000
    min_gain: int = 100_000
    budget: int | None = 50_000
    is_share: bool = True


DEFAULTS = Options()


def options_of(name: str) -> Options:
    """Returns the options in a name such as `weighted?tolerance=5%&min-gain=10%&budget=3`.

    Errors   GroupError at `assignor` for other settings.
    """
    options = DEFAULTS
    _, mark, settings = name.partition("?")
    given: set[str] = set()
    wrong = GroupError("assignor", f"{quoted(name)} has a wrong setting; {_SETTINGS}")
    for setting in settings.split("&") if mark else ():
        key, _, value = setting.partition("=")
        share = _share(value)
        if key in given:
            raise wrong
        given.add(key)
        if key == "tolerance" and share is not None and share <= _WHOLE:
            options = options._replace(tolerance=share)
        elif key == "min-gain" and share is not None and share <= _WHOLE:
            options = options._replace(min_gain=share)
        elif key == "budget" and share is not None:
            options = options._replace(budget=share, is_share=True)
        elif key == "budget" and (value == "none" or _is_number(value)):
            budget = None if value == "none" else int(value)
            options = options._replace(budget=budget, is_share=False)
        else:
            raise wrong
    return options


_SETTINGS = (
    "give tolerance=5%, min-gain=10% or budget=5% (or =3, or =none), with & between them, each once"
)


def _share(text: str) -> int | None:
    """Returns a share such as 5% or 0.5% in millionths; None for other strings."""
    whole, _, decimals = text.removesuffix("%").partition(".")
    if not (text.endswith("%") and _is_number(whole) and len(decimals) <= 4):
        return None
    if decimals and not _is_number(decimals):
        return None
    return int(whole) * 10_000 + int(decimals.ljust(4, "0"))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


@dataclass(slots=True)
class Found:
    """An answer: partition -> member (`where`), and its `greatest` level, in the units of `Loads`.
    No answer within the budget is below `bound`; with `exact`, none is below `greatest`.
    """

    where: list[int]
    greatest: int
    bound: int
    exact: bool
    exhausted: bool = False
    kept_because: str | None = None


def assign(group: GroupSpec, options: Options = DEFAULTS) -> dict[str, list[TopicPartition]]:
    """Returns the partitions of each member."""
    loads = loads_of(group)
    return assignment_of(group, loads, solve(group, loads, options).where)


def assignment_of(
    group: GroupSpec, loads: Loads, where: list[int]
) -> dict[str, list[TopicPartition]]:
    answer: dict[str, list[TopicPartition]] = {m.member_id: [] for m in group.members}
    for tp, m in zip(loads.partitions, where, strict=True):
        answer[group.members[loads.members[m]].member_id].append(tp)
    return {who: sorted(owned, key=by_place) for who, owned in answer.items()}


def solve(group: GroupSpec, loads: Loads, options: Options) -> Found:
    """Returns the answer for a group, by the steps of the module's docstring."""
    effort, nobody = Effort(MOST_WORK), [NOBODY] * len(loads.parts)
    if not loads.parts:
        return Found(nobody, 0, 0, exact=True)
    budget = options.budget
    if budget is None:
        budget = len(loads.parts)
    elif options.is_share:
        budget = -(-len(loads.parts) * budget // _WHOLE)
    most, stage = budget, _Stage(loads, options, budget, effort)
    first = last = stage.run(loads.owner, 0, lambda: _balanced(group, loads, most))
    # 5.
    while loads.parts and effort.left > 0:
        levels = zip(loads.parts, stage.alone, strict=True)
        gone = {last.where[i] for i, alone in levels if alone > stage.area}
        if not gone:
            break
        for i in loads.parts:
            is_settled = last.where[i] in gone or loads.owner[i] in gone
            budget -= is_settled and _is_taken(loads, last.where, i)
        loads = loads.without(gone, last.where)
        if loads.parts:
            stage = _Stage(loads, options, budget, effort)
            last = stage.run(last.where, _taken(loads, last.where), None)
    first.where, first.exhausted = last.where, effort.left <= 0
    return first


def _is_taken(loads: Loads, where: list[int], i: int) -> bool:
    return loads.owner[i] not in (NOBODY, where[i])


def _emptied(where: list[int], gone: Iterable[int]) -> list[int]:
    emptied = list(where)
    for i in gone:
        emptied[i] = NOBODY
    return emptied


def _taken(loads: Loads, where: list[int]) -> int:
    return sum(_is_taken(loads, where, i) for i in loads.parts)


def _balanced(group: GroupSpec, loads: Loads, budget: int) -> list[int]:
    """Returns the answer of `balanced` with this budget: partition -> member."""
    place = {group.members[m].member_id: n for n, m in enumerate(loads.members)}
    limit = f"?budget={budget}" if budget < len(loads.parts) else ""
    answer = balanced.assign(group, balanced.objective_of(balanced.NAME + limit))
    readers = {tp: place[who] for who, owned in answer.items() for tp in owned}
    return [readers[tp] for tp in loads.partitions]


class _Stage:
    """Runs steps 1 to 4 for the partitions and members that are still to be decided."""

    def __init__(self, loads: Loads, options: Options, budget: int, effort: Effort) -> None:
        self.loads, self.options, self.budget, self.effort = loads, options, budget, effort
        self.owned = bound.owned_by(loads)
        # 1.
        self.area, self.alone = bound.area(loads), bound.alone(loads)
        self.free_bound = self.bound = max(self.area, *self.alone, bound.pigeonhole(loads))
        if budget < sum(map(len, self.owned)):
            self.bound = bound.within_budget(loads, self.owned, budget, self.bound)
        self.target = self.above(self.bound)

    def above(self, level: int) -> int:
        return level * (_WHOLE + self.options.tolerance) // _WHOLE

    def run(self, start: list[int], taken: int, even: Callable[[], list[int]] | None) -> Found:
        """Returns the best result. The assignment `start` takes `taken` partitions from owners;
        `even` returns the answer of `balanced`, or is None.
        """
        # 2.
        kept = self.best(iter([start]), taken)
        if kept.greatest <= self.target:
            kept.kept_because = None if kept.exact else "tolerance"
            return kept
        least = kept.greatest * (_WHOLE - self.options.min_gain)
        if self.bound * _WHOLE > least:
            kept.kept_because = "min_gain"
            return kept
        # 3.
        is_free = len(self.loads.parts) < _LARGE and self.budget >= len(self.loads.parts)
        self.target = self.bound if is_free else self.target
        found = self.best(self.starts(kept, even), self.budget)
        level = self.above(found.greatest)
        if found.greatest < level and (is_free or self.target < found.greatest):
            # The best level found takes the place of the bound.
            self.target = level
            found = self.best(chain([found.where], self.starts(kept, even)), self.budget)
        # 4.
        if found.greatest * _WHOLE > least:
            kept.kept_because = "min_gain"
            return kept
        is_short = found.greatest > self.above(self.free_bound) and self.bound > self.free_bound
        found.kept_because = "budget" if is_short else None
        return found

    def starts(self, kept: Found, even: Callable[[], list[int]] | None) -> Iterator[list[int]]:
        home = list(kept.where)
        for i in self.loads.parts:
            home[i] = self.loads.owner[i]
        low = self.bound // 2
        lower = [kept.greatest - (kept.greatest - low) * n // STARTS for n in range(STARTS)]
        for level in [self.target, *lower]:
            gone = bound.shed(self.loads, self.owned, level, self.budget)
            if gone is not None:
                yield _emptied(home, gone)
        yield kept.where
        if even is not None:
            yield even()
        yield _emptied(home, self.loads.parts)

    def best(self, starts: Iterator[list[int]], budget: int) -> Found:
        """Returns the best assignment that single steps from any start, or `search_whole`, find."""
        loads, target = self.loads, self.target
        # For a large group, the first start that reaches the target is enough: it is nearly always
        # the best one.
        least_taken = len(loads.parts)
        if least_taken < _LARGE:
            least_taken = len(bound.shed(loads, self.owned, target, least_taken) or ())
        enough = min(budget, least_taken)
        best: tuple[int, ...] = ()
        where: list[int] = []
        for start in starts:
            there = list(start)
            hand_out(loads, there, self.effort)
            if self.greatest(there) <= target and _taken(loads, there) <= enough:
                where = there
                break
            state = State(loads, there, self.effort)
            bring_home(state, max(target, state.fullest()[0]))
            if state.taken > budget:
                continue
            improve(state, target, budget)
            bring_home(state, max(target, state.fullest()[0]))
            key = self.key(state)
            if not best or key < best:
                best, where = key, state.where
            if self.effort.left <= 0 or (best[0] <= target and best[1] <= enough):
                break
        result = Found(where, self.greatest(where), self.bound, exact=False)
        if len(loads.parts) <= small.MOST_PARTS:
            self.search_whole(result, budget, least_taken)
        result.exact |= result.greatest <= self.bound
        return result

    def key(self, state: State) -> tuple[int, ...]:
        shift = max(0, sum(state.load).bit_length() - 36)
        squares = sum(
            (x >> shift) ** 2 * f for x, f in zip(state.load, self.loads.factor, strict=True)
        )
        counts = sum(len(of) ** 2 for of in state.has)
        return max(self.target, state.fullest()[0]), state.taken, squares, counts

    def greatest(self, where: list[int]) -> int:
        load: Counter[int] = Counter()
        for i in self.loads.parts:
            load[where[i]] += self.loads.weight[i]
        return max(self.loads.level(m, x) for m, x in load.items())

    def search_whole(self, result: Found, budget: int, least_taken: int) -> None:
        """Improves the result until a search fails; this may prove its greatest level exact."""
        nodes = min(small.MOST_NODES, self.effort.left)
        effort = Effort(nodes)
        while True:
            taken = _taken(self.loads, result.where)
            if result.greatest > self.target:
                found = small.fitting(self.loads, result.greatest - 1, budget, effort)
            elif taken > least_taken:
                found = small.fitting(self.loads, self.target, taken - 1, effort)
            else:
                break
            if found is None:
                result.exact = result.greatest > self.target and effort.left > 0
                break
            result.where = [
                one if m == NOBODY else m for one, m in zip(result.where, found, strict=True)
            ]
            result.greatest = self.greatest(result.where)
        self.effort.spend(nodes - effort.left)

# SPDX-License-Identifier: Apache-2.0
"""The seeds of laws: the same few in a quick run, fresh ones in a run of everything.

    @pytest.mark.seeds(quick=200, whole=2_000)
    def test_laws(seeds: Seeds) -> None:
        for seed in seeds: ...

The mark makes PARTS tests, which pytest-xdist can run side by side. `--first-seed` chooses the
seeds; a failure reports the seed at which it happened, and the command that begins with this seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

PARTS = 4


@dataclass
class Seeds:
    """The seeds of one test; `reached` is the seed that the test uses now."""

    numbers: range
    reached: int | None = None

    def __iter__(self) -> Iterator[int]:
        for seed in self.numbers:
            self.reached = seed
            yield seed

    def __len__(self) -> int:
        return len(self.numbers)


def choose_first(config: pytest.Config) -> None:
    """Chooses the first seed, if `--first-seed` does not; workers get the choice as an option."""
    if config.option.first_seed is None:
        is_fresh = config.option.whole
        config.option.first_seed = random.SystemRandom().randrange(10**9) if is_fresh else 0


def seeds_of(metafunc: pytest.Metafunc) -> None:
    """Makes PARTS tests of a test with the mark `seeds`, each with its share of the seeds."""
    mark = metafunc.definition.get_closest_marker("seeds")
    if mark is not None:
        option = metafunc.config.option
        share = mark.kwargs["whole" if option.whole else "quick"] // PARTS
        starts = [option.first_seed + part * share for part in range(PARTS)]
        parts = [Seeds(range(start, start + share)) for start in starts]
        metafunc.parametrize("seeds", parts, ids=[f"part{part}" for part in range(PARTS)])


def add_the_seed(item: pytest.Item, report: pytest.TestReport) -> None:
    """Adds the seed of a failure to its report, and how to run it again."""
    seeds = getattr(item, "callspec", None) and item.callspec.params.get("seeds")  # type: ignore[attr-defined]
    if report.failed and isinstance(seeds, Seeds) and seeds.reached is not None:
        again = f"pytest --first-seed {seeds.reached} {item.nodeid.partition('[')[0]}"
        report.sections.append((f"seed {seeds.reached}", f"Run it again: {again}"))

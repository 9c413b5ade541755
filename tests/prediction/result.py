# SPDX-License-Identifier: Apache-2.0
"""One observation with the verdicts of both judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import given, told
from .observed import Observed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .given import Judged
    from .told import Foreseen, Told


@dataclass(frozen=True)
class Result:
    """The verdicts.

    `told` is None without a plan, or if the group did not settle and no plan warned of this.
    """

    observed: Observed
    judged: list[Judged]
    told: Told | None

    @property
    def is_miss(self) -> bool:
        return not all(one.is_right for one in self.judged) or (
            self.told is not None and not self.told.is_right
        )


def result(observed: Observed, foreseen: Foreseen | None = None) -> Result:
    """Judges an observation; without `foreseen`, the plan is computed again from the snapshot."""
    compared = None
    if observed.before is not None and observed.problem is None:
        compared = told.compare(observed, foreseen or told.foresee(observed.before, observed.text))
        if compared.unasked and not compared.is_right:
            problem = "disturbed: a member joined again though nothing asked for it"
            observed, compared = replace(observed, problem=problem), None
    elif observed.before is not None and "error" not in observed.before:
        compared = told.as_warned(
            observed, foreseen or told.foresee(observed.before, observed.text)
        )
    return Result(observed, given.judge(observed), compared)


def again(lines: Iterable[str]) -> list[Result]:
    """Judges the observations of an earlier run with the present package."""
    return [result(Observed.from_json(line)) for line in lines]

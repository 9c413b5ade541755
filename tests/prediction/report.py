# SPDX-License-Identifier: Apache-2.0
"""Reports a run: tables by leader, assignor and event, causes of misses, and two figures."""

from __future__ import annotations

from collections import Counter
from datetime import date
from importlib.metadata import version
from typing import TYPE_CHECKING

from .cast import ASSIGNORS, LIBRARIES
from .events import EVENTS, LOST_RACK, SWITCH
from .given import Verdict
from .log import generations
from .observed import FORMATION
from .told import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .result import Result
    from .told import Told


def made_with() -> str:
    """Returns the day, and the versions of the clients."""
    names = ("kafka-python", "aiokafka", "confluent-kafka")
    clients = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{date.today()}; brokers and Java clients of Kafka 4.4.0, {clients}"


def show(results: Sequence[Result]) -> str:
    """Returns the whole report, as the run prints it."""
    judged = [one for result in results for one in result.judged]
    compared = [result for result in results if result.told]
    unsettled = [result for result in results if result.observed.problem]
    changes = sum(result.observed.event != FORMATION for result in results)
    right = sum(one.is_right for one in judged)
    told = [result.told for result in compared if result.told]
    again = sum(
        len([record for record in one.observed.records if record.value.members])
        - len(generations(one.observed.records))
        for one in results
    )
    older = sum(one.verdict is Verdict.OLDER for one in judged)
    foreseen = sum(one.is_right for one in told)
    parts = [
        _given(results),
        f"passed by, as written again by static restarts: {again}",
        f"equal only with metadata that the leader had before: {older}",
        "",
        _told("event", (*EVENTS, SWITCH, LOST_RACK), compared, lambda one: one.observed.event),
        "",
        _told("leader, assignor", _kinds(), compared, _kind),
        "",
        *_causes(results),
        f"{changes} changes, {len(unsettled)} groups or changes that have not settled:",
        *(f"  {one.observed.group_id}, {_kind(one)}, {one.observed.event}: {one.observed.problem}"
          for one in unsettled),
        "",
        f"given what members sent: {_share(right, len(judged))} of the generations",
        f"as told:                 {_share(foreseen, len(told))} of the changes that settled",
    ]  # fmt: skip
    return "\n".join(parts)


def miss(result: Result) -> str:
    """Returns one line about a wrong prediction."""
    observed = result.observed
    why = list(result.told.causes) if result.told else []
    why += [
        f"generation {one.generation_id}, led by {one.leader}: {one.verdict.value}"
        + (f" ({one.cause})" if one.cause else "")
        for one in result.judged
        if not one.is_right
    ]
    what = f"{observed.group_id}, {_kind(result)}, {observed.event}"
    return f"{what}: {'; '.join(why)}"


def _given(results: Sequence[Result]) -> str:
    rows = [["generations by leader", *ASSIGNORS]]
    judged = [one for result in results for one in result.judged]
    for leader in (*LIBRARIES, "unknown"):
        cells = []
        for assignor in ASSIGNORS:
            some = [one for one in judged if (one.leader, one.assignor) == (leader, assignor)]
            cells.append(f"{sum(one.is_right for one in some)}/{len(some)}" if some else "-")
        if leader in LIBRARIES or set(cells) != {"-"}:
            rows.append([leader, *cells])
    return _table(rows)


def _told(
    title: str, keys: Sequence[str], compared: Sequence[Result], key: Callable[[Result], str]
) -> str:
    head = [
        "compared",
        "right as told",
        "directly",
        "ids decide",
        "among draws",
        "real ids",
        "rounds differ",
        "idle rounds",
        *VERDICTS,
    ]
    rows = [[title, *head]]
    some = {name: [one.told for one in compared if one.told and key(one) == name] for name in keys}
    for name, told in (*some.items(), ("all", [one.told for one in compared if one.told])):
        if told:
            rows.append([name, *map(str, _counts(told))])
    return _table(rows)


def _counts(told: Sequence[Told]) -> list[int]:
    return [
        len(told),
        sum(one.is_right for one in told),
        sum(one.direct for one in told),
        sum(one.ids_decide for one in told),
        sum(one.ids_decide and one.among for one in told),
        sum(one.real for one in told),
        sum(one.rounds - one.idle - one.unasked != one.rounds_planned for one in told),
        sum(one.idle for one in told),
        *(sum(one.verdict == verdict for one in told) for verdict in VERDICTS),
    ]


def _causes(results: Sequence[Result]) -> list[str]:
    counted = Counter(cause for one in results if one.told for cause in one.told.causes)
    counted.update(
        f"leader's answer: {one.cause or one.verdict.value}"
        for result in results if not (result.told and result.told.causes)
        for one in result.judged
        if not one.is_right
    )  # fmt: skip
    if not counted:
        return []
    return ["missed because of", *(f"{n:4} {cause}" for cause, n in counted.most_common()), ""]


def _kinds() -> list[str]:
    return [
        f"{leader}, {assignor}{mixed}"
        for leader in LIBRARIES
        for assignor in ASSIGNORS
        for mixed in ("", ", mixed")
    ]


def _kind(result: Result) -> str:
    observed = result.observed
    return f"{observed.leader}, {observed.assignor}{', mixed' if observed.is_mixed else ''}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f}%)" if whole else "")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([lines[0], "─" * len(lines[0]), *lines[1:]])

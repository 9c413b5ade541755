# SPDX-License-Identifier: Apache-2.0
"""Tables on terminals of several widths: figures stay whole, in one line, with room between."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.plans.figures import Figures
from kafka_rebalance.report.plans.figures import moves_text, print_plans
from kafka_rebalance.report.plans.plan import names_in_plan, print_plan
from kafka_rebalance.report.text.tables import table_lines

if TYPE_CHECKING:
    from pathlib import Path

WIDTHS = (80, 90, 100, 120)
MOST = 100
ASSIGNORS = ("range", "cooperative-sticky", "librdkafka/cooperative-sticky")
LONGEST = 40


def _group(rng: random.Random, number: int) -> kr.GroupSpec:
    """Returns a group in two racks; without rack a, some partitions may have no replica."""
    sizes = [rng.choice((3, 40, 400)) for _ in range(rng.randint(1, 3))]
    alone = rng.random() < 0.5
    topics = tuple(
        kr.Topic(
            f"{'events.' * rng.randint(0, 3)}t{n}",
            size,
            racks=tuple((("a",), ("b",), ("a", "b"))[p % 3 if alone else 2] for p in range(size)),
        )
        for n, size in enumerate(sizes)
    )
    name = ("payments-settlement-eu-west" * 2)[: rng.randint(2, LONGEST - 3)]
    members = tuple(
        kr.Member(f"{name}-{n}", tuple(t.name for t in topics), rack_id="ab"[n % 2])
        for n in range(rng.randint(2, 12))
    )
    group = kr.GroupSpec(f"{name}-{number}", topics, members, rng.choice(ASSIGNORS))
    return group.owning(kr.assign(group))


def _figures(one: Figures, out: str) -> list[str]:
    counts = [one.rounds, moves_text(one), one.unavailable]
    counts += [one.waiting] if "waits" in out else []
    counts += [one.leaderless] if "leader" in out.partition("─")[0] else []
    balances = (one.balance_before, one.balance_after, one.balance_possible)
    return [*map(str, counts), *(each.least_to_most for each in balances)]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("seed", range(6))
def test_the_figures_of_a_group_stand_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, seed: int
) -> None:
    """Without a rack, a row of `plan` was torn at 100 columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    rng = random.Random(seed)
    groups = [_group(rng, n) for n in range(rng.randint(2, 4))]
    plans = [kr.plan(group, changes=["remove-rack=a"]) for group in groups]
    rows = [(p.group.group_id, p.assignor, p.figures()) for p in plans]
    print_plans(rows, [()] * len(rows))
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= min(columns, MOST)
    for group_id, assignor, one in rows:
        figures = _figures(one, out)
        (at,) = (i for i, line in enumerate(lines) if group_id in line.split())
        beside = re.split(r" {2,}", lines[at].strip())
        below = re.split(r" {2,}", lines[at + 1].strip())
        assert beside == [group_id, assignor, *figures] or (
            [*beside, *below] == [group_id, assignor, *figures]
        )


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("seed", range(4))
def test_every_command_fits(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    seed: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rng = random.Random(seed)
    groups = [_group(rng, n) for n in range(3)]
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(f"{one.to_json()}\n" for one in groups), encoding="utf-8")
    for words in (("plan", "--remove-rack", "a"), ("compare", "--remove-rack", "a"), ("describe",)):
        word, *rest = words
        assert main([word, str(file), *rest]) == 0
    for group in groups:
        plan = kr.plan(group, changes=["remove-rack=a"])
        print_plan(plan, None, names_in_plan(plan), everything=False)
    for line in capsys.readouterr().out.splitlines():
        assert len(line) <= min(columns, MOST) or " " not in line.strip()


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_figure_is_not_broken_while_a_heading_can_be(columns: int) -> None:
    """The heading `moves (best)` takes two lines; the figure `1234 (1200)` below it takes one."""
    names = ("group", "assignor", "rounds", "moves (best)", "no reader", "waits", "best")
    row = ("payments-eu", "cooperative-sticky", "1", "1234 (1200)", "1500", "9", "1000-1001")
    for width in range(columns - 12, columns + 1):
        lines = list(table_lines(names, [row], width, whole=True, names=2))
        assert max(map(len, lines)) <= width
        assert any("1234 (1200)" in line for line in lines)

# SPDX-License-Identifier: Apache-2.0
"""In a real browser, the page of a history is complete, and fits a phone and a desktop."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.history.all_groups import recorded_generations
from kafka_rebalance.report.history.page import LOOKS, timeline
from tests.test_history import VECTORS, records_of
from tests.test_pages import BROWSER, _is_readable, _seen

if TYPE_CHECKING:
    from pathlib import Path


def page_of(directory: Path, *words: str) -> str:
    path = directory / "history.html"
    records = str(VECTORS / "kafka-4.4.0" / "records.jsonl.gz")
    assert main(["history", records, *words, "--output", str(path)]) == 0
    return path.read_text(encoding="utf-8")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium: `python -m tools browser` installs it")
@pytest.mark.parametrize("width", [380, 1200])
def test_a_history_in_the_browser(tmp_path: Path, width: int) -> None:
    seen = _seen(page_of(tmp_path), tmp_path, width)
    _is_readable(seen)
    groups = ["shop", "mixed", "billing", "rdk", "orders"]
    assert seen["heads"][-5:] == groups
    assert seen["pictures"] == [f"timeline of {name}" for name in groups]
    assert seen["tables"][:2] == [6, 7]  # five worst groups; six groups over time
    assert seen["smallest"] >= 10


def test_the_heat_map_counts_each_rebalance_once(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    heat = page[page.index('class="heat"') : page.index("A column is")]
    counts = [int(number) for number in re.findall(r'<td style="[^"]*">(\d+)</td>', heat)]
    assert f"{sum(counts)} rebalances of 6 groups" in page


def test_every_generation_is_a_column_and_every_member_has_its_partitions() -> None:
    recorded = [
        one for one in recorded_generations(records_of("4.4.0")) if one[0].group_id == "rdk"
    ]
    drawn = timeline(recorded)
    assert len(re.findall(r"<title>generation \d+,", drawn)) == len(recorded)
    for _, generation in recorded:
        assert generation is not None
        for member in generation.members:
            number = len(member.assigned)
            noun = "partition" if number == 1 else "partitions"
            place = f"{member.member_id}, generation {generation.generation_id}"
            assert f"<title>{place}: {number} {noun}</title>" in drawn


def test_one_group_has_its_own_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, "--group", "shop")
    assert "<h1>Rebalances of shop</h1>" in page
    assert "timeline of shop" in page
    assert "timeline of billing" not in page
    assert "came back 6 times" in page
    with pytest.raises(SystemExit):
        page_of(tmp_path, "--output", "x.png")


def test_names_from_the_log_are_escaped(tmp_path: Path) -> None:
    """Clients choose their ids and groups' names, so these may contain HTML."""
    page = page_of(tmp_path)
    assert "<script" not in page
    recorded = [one for one in recorded_generations(records_of("2.4.1")) if one[1] is not None]
    row, generation = next(one for one in recorded if one[1] is not None and one[1].members)
    assert generation is not None
    evil = replace(generation.members[0], client_id="<b>&", member_id="<i>-1")
    drawn = timeline([(row, replace(generation, members=(evil,)))])
    assert "<b>" not in drawn
    assert "<i>" not in drawn
    assert "&lt;b&gt;&amp;" in drawn


def test_colours_are_told_apart_by_a_letter_too() -> None:
    letters = [letter for _, letter in LOOKS.values()]
    assert len(set(letters)) == len(letters)

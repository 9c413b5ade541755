# SPDX-License-Identifier: Apache-2.0
"""The generated tables in docs/behaviour are current; `python -m tools.tables` writes them."""

from collections import Counter

from tools.tables import BLOCKS, PAGES, blocks, rewritten


def test_every_block_is_current() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        assert text == rewritten(text), f"{page.name}: run python -m tools.tables"


def test_every_table_stands_once() -> None:
    counts = Counter(name for page in PAGES for name in blocks(page.read_text("utf-8")))
    assert counts == Counter(BLOCKS.keys())


def test_a_changed_block_is_noticed() -> None:
    text = "<!-- generated: legal transitions -->\n| Empty | yes |\n<!-- end -->\n"
    assert rewritten(text) != text

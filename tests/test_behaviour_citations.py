# SPDX-License-Identifier: Apache-2.0
"""Every citation of docs/behaviour names an existing page; if it has an anchor, a heading there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "behaviour"
DIRECTORIES = ("python", "src", "tests", "tools", "docs")
SUFFIXES = {".java", ".jsonl", ".md", ".py", ".pyi", ".rs", ".sh", ".toml", ".txt"}
# In all files: `docs/behaviour/X.md#anchor`, or a relative path in a page of docs.
CITATION = re.compile(r"\bbehaviour/(?P<page>[\w.-]*\w)(?:#(?P<anchor>[\w-]*))?")
# On the pages of docs/behaviour: a link to another page, or to a heading of this page.
LINK = re.compile(r"\]\((?P<page>[\w-]+\.md)?(?:#(?P<anchor>[\w-]*))?\)")
# A citation of a section by number, which is forbidden. It may be spread over two comment lines.
NUMBERED = re.compile(r"\bsections?(?:\s|#|//[/!]?|\*)+\d+(?:\.\d+)*\b", re.IGNORECASE)


class Page(NamedTuple):
    """A page with the anchors that can be cited."""

    name: str
    anchors: frozenset[str]


def anchors(text: str) -> frozenset[str]:
    """Returns the anchors that GitHub makes of headings; a repeated heading gets `-1`, `-2`, …"""
    seen: Counter[str] = Counter()
    found = set()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", prose, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def read_pages(directory: Path) -> dict[str, Page]:
    """Returns a mapping from the name of a page to the page."""
    paths = sorted(directory.glob("*.md"))
    return {path.name: Page(path.name, anchors(path.read_text("utf-8"))) for path in paths}


def problems(text: str, pages: Mapping[str, Page], own: str | None = None) -> Iterator[str]:
    """Yields `line: problem` for each wrong citation; `own` is the page's name, if it is a page."""
    for pattern in (CITATION,) if own is None else (CITATION, LINK):
        for match in pattern.finditer(text):
            page = pages.get(match["page"] or own or "")
            anchor = match["anchor"]
            if page is None:
                yield f"{_line(text, match)}: there is no page {match['page']}"
            elif anchor is not None and anchor not in page.anchors:
                yield f"{_line(text, match)}: {page.name} has no heading {anchor!r}"
    for match in NUMBERED.finditer(text):
        said = " ".join(match[0].split())
        yield f"{_line(text, match)}: {said!r}: cite docs/behaviour/PAGE.md#HEADING"


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def _files() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    for directory in DIRECTORIES:
        for path in sorted((ROOT / directory).rglob("*")):
            is_ours = "target" not in path.relative_to(ROOT).parts and path != Path(__file__)
            is_ours &= path.name != "llms.txt"  # it has links of the site
            if is_ours and path.suffix in SUFFIXES and path.is_file():
                yield path


def test_citations_name_a_page_and_a_heading_that_exist() -> None:
    pages = read_pages(PAGES)
    wrong = []
    for path in _files():
        own = path.name if path.parent == PAGES else None
        found = problems(path.read_text("utf-8", errors="replace"), pages, own)
        wrong += [f"{path.relative_to(ROOT)}:{problem}" for problem in found]
    assert wrong == []


# The check can fail -------------------------------------------------------------------------------

MADE_UP = {"a.md": Page("a.md", anchors("# A page\n## 1. One, two\n### 1.1 JoinGroup\n## 2. B\n"))}


def test_anchors_are_githubs() -> None:
    assert MADE_UP["a.md"].anchors == {"a-page", "1-one-two", "11-joingroup", "2-b"}
    assert anchors("# A\n# A\n```\n# no heading\n```\n# Kafka's `x_y` (z)\n") == {
        "a",
        "a-1",
        "kafkas-x_y-z",
    }


@pytest.mark.parametrize(
    "text",
    [
        "see docs/behaviour/a.md#11-joingroup.",
        "docs/behaviour/a.md, docs/behaviour/a.md#2-b;",
        "[b](behaviour/a.md#2-b), docs/behaviour/ holds the pages",
        "this section has 3 rows",
    ],
)
def test_correct_citations_pass(text: str) -> None:
    assert list(problems(text, MADE_UP)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x\ndocs/behaviour/b.md#2-b", "2: there is no page b.md"),
        ("docs/behaviour/a#2-b", "1: there is no page a"),
        ("docs/behaviour/a.md#12-joingroup", "1: a.md has no heading '12-joingroup'"),
        ("docs/behaviour/a.md#11-\n# joingroup", "1: a.md has no heading '11-'"),
        ("section 1.2 of the behaviour", "1: 'section 1.2': cite docs/behaviour/PAGE.md#HEADING"),
        ("x\n// sections\n// 7.4", "2: 'sections // 7.4': cite docs/behaviour/PAGE.md#HEADING"),
    ],
)
def test_wrong_citations_are_found_where_they_stand(text: str, problem: str) -> None:
    assert list(problems(text, MADE_UP)) == [problem]


def test_links_between_the_pages_are_followed() -> None:
    assert list(problems("[x](#2-b) [y](a.md#a-page) [z](a.md)", MADE_UP, own="a.md")) == []
    assert list(problems("[x](#3-c) [y](b.md)", MADE_UP, own="a.md")) == [
        "1: a.md has no heading '3-c'",
        "1: there is no page b.md",
    ]


def test_the_search_for_citations_reads_every_kind_of_file() -> None:
    walked = {path.relative_to(ROOT).parts[0] for path in _files()}
    assert walked >= {*DIRECTORIES, "README.md", "CONTRIBUTING.md"}
    assert {path.suffix for path in _files()} >= {".md", ".py", ".rs", ".txt", ".java"}

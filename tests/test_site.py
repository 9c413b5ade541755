# SPDX-License-Identifier: Apache-2.0
"""Links of the pages lead to files and headings, and the site's navigation has every page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.test_behaviour_citations import anchors
from tests.test_documents import PAGES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY = "https://github.com/kafka-rebalance/kafka-rebalance/blob/main/"
PICTURES = "https://raw.githubusercontent.com/kafka-rebalance/kafka-rebalance/main/"
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def _is_on_site(name: str, path: str) -> bool:
    """Returns whether a page of docs/ may link to a path: only files of docs/ are on the site."""
    return not name.startswith("docs/") or (path.startswith("docs/") and (ROOT / path).is_file())


def broken(name: str, text: str, pages: Mapping[str, str]) -> Iterator[str]:
    """Yields the links of a page that lead to no file of the repository or site, or no heading."""
    for link in LINK.findall(CODE.sub("", text)):
        local = link.removeprefix(REPOSITORY).removeprefix(PICTURES)
        target, _, anchor = local.partition("#")
        if "://" in target:
            continue
        start = Path(name).parent if local == link else Path()
        path = os.path.normpath(start / target) if target else name
        if not (ROOT / path).exists():
            yield f"{name}: {link}: no such file"
        elif local == link and not _is_on_site(name, path):
            yield f"{name}: {link}: not a file of the site; link to {REPOSITORY}"
        elif anchor and anchor not in anchors(pages[path]):
            yield f"{name}: {link}: no such heading"


def test_links_lead_to_files_and_headings() -> None:
    assert [one for name, text in PAGES.items() for one in broken(name, text, PAGES)] == []


def test_docstrings_and_messages_name_pages_that_exist() -> None:
    """A page is named as docs/NAME.md, or with a heading, as docs/NAME.md#heading."""
    places = [*sorted((ROOT / "python").rglob("*.py")), *sorted((ROOT / "src").rglob("*.rs"))]
    found = {
        (place.name, link)
        for place in places
        for link in re.findall(
            r"docs/[\w/.-]+\.(?:md|toml|txt)(?:#[\w-]+)?", place.read_text("utf-8")
        )
    }
    assert len(found) > 30
    assert [
        one for name, link in found for one in broken("README.md", f"[{name}]({link})", PAGES)
    ] == []


QUESTIONS = re.findall(
    r"^      - .*: (\S+)$",
    (ROOT / "mkdocs.yml").read_text("utf-8").partition("  - Guides:\n")[2].partition("  - Conc")[0],
    re.MULTILINE,
)

@pytest.mark.parametrize("page", QUESTIONS)
def test_the_page_of_a_question_is_one_screen_of_numbered_steps(page: str) -> None:
    text = PAGES[f"docs/{page}"]
    assert len(text.splitlines()) <= 45
    steps = [int(one) for one in re.findall(r"^(?:\*\*)?(\d)\. ", text, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= 3


@pytest.mark.parametrize(
    "link",
    ["docs/nowhere.md", "docs/faq.md#nothing", "#nothing", f"{REPOSITORY}docs/nowhere.md"],
)
def test_broken_links_are_found(link: str) -> None:
    text = f"[x]({link})"
    assert list(broken("README.md", text, {**PAGES, "README.md": text}))


@pytest.mark.parametrize("link", ["incident", "../tests/test_site.py"])
def test_a_link_out_of_the_site_is_found(link: str) -> None:
    assert list(broken("docs/faq.md", f"[x]({link})", PAGES))


def test_the_readme_can_stand_on_another_host() -> None:
    """All links of the README are absolute, because package indexes show it, and it is short."""
    links = LINK.findall(CODE.sub("", PAGES["README.md"]))
    assert [link for link in links if not link.startswith("https://")] == []
    assert len(PAGES["README.md"].splitlines()) <= 110


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """`make docs` checks this too, but needs mkdocs."""
    nav = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    site = (ROOT / "tools" / "site.py").read_text(encoding="utf-8")
    made = set(re.findall(r'"(\w+\.md)"', site.partition("def ")[0])) - PAGES.keys()
    written = {name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")}
    assert sorted(nav) == sorted(written | made | {"reference.md"})

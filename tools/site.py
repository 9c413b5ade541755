# SPDX-License-Identifier: Apache-2.0
"""Adds to the site the pages that are not files of docs/; `make docs` loads this hook of mkdocs.

The README is the first page. Its links are absolute, because package indexes show the README, too;
on the site, they are changed to links to the site's own pages.
"""

from typing import Any

from mkdocs.structure.files import File, Files

from tools.api_page import ROOT, public_modules

REPOSITORY = "https://github.com/kafka-rebalance/kafka-rebalance/blob/main/"
PICTURES = "https://raw.githubusercontent.com/kafka-rebalance/kafka-rebalance/main/"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}


def on_files(files: Files, config: Any) -> Files:
    for name, page in PAGES.items():
        text = _local((ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "reference.md", content=_reference()))
    return files


def _local(text: str) -> str:
    """Returns the text of a page of the root folder, with links as they are in docs/."""
    for page, local in PAGES.items():
        for link in (REPOSITORY + page, page):
            text = text.replace(f"]({link}", f"]({local}")
    for prefix in (REPOSITORY + "docs/", PICTURES + "docs/", "docs/"):
        text = text.replace(f"]({prefix}", "](")
    return text


def _reference() -> str:
    """Returns directives for mkdocstrings: every public name, module by module."""
    text = "# Reference\n\nThe [names](api.md) in short; here with their docstrings.\n"
    for module, names in public_modules().items():
        text += f"\n## {module}\n\n"
        text += "".join(f"::: {module}.{name}\n\n" for name in names)
    return text

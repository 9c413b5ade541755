# SPDX-License-Identifier: Apache-2.0
"""Writes docs/llms.txt: the pages of the site for agents, by the navigation in mkdocs.yml.

python -m tools llms
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "llms.txt"
_ENTRY = re.compile(r'^( +)- "?(.+?)"?:(?: (\S+)\.md)?$')


def page() -> str:
    """Returns the text of llms.txt: a title, what the project is, and the pages by section."""
    about, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    named = dict(re.findall(r"^site_(name|description): (.*)$", about, re.MULTILINE))
    lines = [f"# {named['name']}", "", f"> {named['description']}"]
    for one in filter(None, map(_ENTRY.match, nav.splitlines())):
        if one[3] is None:
            lines += ["", f"## {one[2]}", ""]
        elif len(one[1]) > 2:
            address = f"{one[3].removesuffix('README')}.html".replace("/.html", "/index.html")
            lines.append(f"- [{one[2]}]({address})")
    return "\n".join([*lines, ""])


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Runs a tool by its name: `python -m tools NAME ...`, and `python -m tools` lists the names."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = ("tools/*.py", "tools/broker/*.py", "benches/*.py", "tests/*/__main__.py")


def tools() -> dict[str, tuple[str, str]]:
    """Returns the module and the first line of the docstring of each tool, by its name.

    A tool is a file that can be run. Names have hyphens in place of underscores.
    """
    found = {}
    for path in sorted(one for pattern in LISTED for one in ROOT.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        is_package = path.name == "__main__.py"
        if path != Path(__file__).resolve() and (is_package or "\nif __name__ ==" in text):
            file = path.parent if is_package else path.with_suffix("")
            name = f"bench-{file.name}" if file.parent.name == "benches" else file.name
            line = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
            module = ".".join(file.relative_to(ROOT).parts)
            found[name.replace("_", "-").replace("bench-bench-", "bench-")] = (module, line)
    return found


def main() -> None:
    """Runs the tool of the command line with the rest of the arguments."""
    found = tools()
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help"):
        print("python -m tools NAME ..., with --help for the options of one:")
        for each, (_, line) in found.items():
            print(f"  {each:26} {line}")
    elif name in found:
        # Not `runpy`: processes that a tool starts could not load its functions.
        os.execv(sys.executable, [sys.executable, "-m", found[name][0], *sys.argv[2:]])
    else:
        sys.exit(f"{name!r} is not a tool; `python -m tools` lists all")


if __name__ == "__main__":
    main()

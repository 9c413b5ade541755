# SPDX-License-Identifier: Apache-2.0
"""Shows examples and aligned lists of docstrings as code; mkdocs.yml loads this extension."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r">>> ")
_ALIGNED = re.compile(r"\S+(?: \S+)*  +\S.*(?:\n.+)*\Z")


class Blocks(griffe.Extension):  # type: ignore[misc]  # griffe is there only with the extra docs
    """Puts code fences around paragraphs whose lines Markdown would join."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(map(_fenced, paragraphs))


def _fenced(paragraph: str) -> str:
    if _EXAMPLE.match(paragraph):
        return f"```pycon\n{paragraph}\n```"
    return f"```text\n{paragraph}\n```" if _ALIGNED.match(paragraph) else paragraph

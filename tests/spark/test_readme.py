# SPDX-License-Identifier: Apache-2.0
"""The README's Spark example prints the output that the README shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = Path(__file__).parent.parent.parent / "README.md"


def example(name: str) -> str:
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "group.jsonl"
    source.write_text(example("group.jsonl"), encoding="utf-8")
    # Spark resolves a relative path from the directory in which its JVM was started.
    code = example("spark").replace('"group.jsonl"', repr(str(source)))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"spark": spark})
    assert printed.getvalue().strip() == example("spark output").strip()

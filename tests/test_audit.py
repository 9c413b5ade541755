# SPDX-License-Identifier: Apache-2.0
"""`make audit` names a package whose licence is not allowed, and passes what is installed here."""

from __future__ import annotations

from importlib.metadata import Distribution, PathDistribution
from typing import TYPE_CHECKING

import pytest

from tools import audit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("metadata", "allowed"),
    [
        ("License-Expression: MIT\n", True),
        ("License-Expression: Apache-2.0 OR GPL-3.0-only\n", True),
        ("License-Expression: MIT AND (GPL-3.0-only OR AGPL-3.0-only)\n", False),
        ("License: BSD 3-Clause License\n", True),
        ("Classifier: License :: OSI Approved :: Apache Software License\n", True),
        ("License: GPL-3.0\nClassifier: License :: OSI Approved :: MIT License\n", False),
        ("", False),
    ],
)
def test_a_licence_that_is_not_allowed_is_named(
    metadata: str, allowed: bool, tmp_path: Path
) -> None:
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: x\nVersion: 1\n{metadata}")
    wrong = audit.wrong_licences({"x": PathDistribution(info)})
    assert [one.partition(":")[0] for one in wrong] == ([] if allowed else ["x 1"])


def test_what_is_installed_is_allowed() -> None:
    found: dict[str, Distribution] = audit.needed()
    assert {"pyspark", "py4j", "kafka-python", "kio"} <= set(found)
    assert audit.wrong_licences(found) == []

# SPDX-License-Identifier: Apache-2.0
"""Without pyarrow, lines of a fleet cannot be read: the error names the extra."""

import sys

import pytest

from kafka_rebalance.bulk.splits import Split, line_batches
from kafka_rebalance.errors import MissingExtra


def test_missing_pyarrow_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="fleet needs an optional part"):
        next(line_batches(Split("groups.jsonl", 0, 1)))

# SPDX-License-Identifier: Apache-2.0
"""The history of consumer groups (KIP-848) in the records of a real run, with its known causes.

`python -m tests.history_live --by-broker FILE` recorded the run.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.history import read_records, rebalance_history
from tests.history_live.by_broker import SESSION_MS, judged, read_script
from tests.history_live.judge import RIGHT, WRONG

RUN = Path(__file__).parent / "data" / "history_by_broker.jsonl.gz"


def test_causes_from_records_alone() -> None:
    verdicts = Counter(how for _, how in judged(list(read_records(str(RUN))), read_script(RUN)))
    print(verdicts)
    assert verdicts[RIGHT] >= 71
    assert verdicts[WRONG] <= 2


def test_moves_are_those_of_targets_and_each_answer_of_a_member_is_timed() -> None:
    rows = rebalance_history(read_records(str(RUN)), session_ms=SESSION_MS)
    epochs = [row for row in rows if row.group_type == "consumer"]
    owned: Counter[str] = Counter()
    for row in epochs:
        if row.group_id != "converted":  # its first assignment is that of the classic group
            owned[row.group_id] += row.gained - row.revoked
            assert owned[row.group_id] == row.partitions
    revocations = [one for row in epochs for one in row.revocations]
    assert revocations
    assert all(one.took_ms is None or 0 <= one.took_ms < 10_000 for one in revocations)
    assert sum(row.reconciled_ms is not None for row in epochs) > len(epochs) / 2


def test_the_command_shows_the_epochs_of_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(RUN), "--group", "mixed"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "mixed: 15 rebalances" in text
    assert "epoch" in text
    assert "slowest to revoke" in text

# SPDX-License-Identifier: Apache-2.0
"""The list of findings: its order, and its page."""

import re
from pathlib import Path

from kafka_rebalance.notes.findings import FINDINGS, SEVERITIES, rank, see, severity_of

PAGE = Path(__file__).parents[1] / "docs" / "findings.md"


def test_the_page_has_a_heading_for_each_finding_in_the_order_of_the_list() -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    found = [
        re.match(r"(.*)\n\n\*\*(\w+)\*\*: (.*)\.\n\n- Kafka's tool: ", one) for one in sections
    ]
    shown = [one.groups() for one in found if one]
    assert shown == [(kind, one.severity, one.meaning) for kind, one in FINDINGS.items()]
    assert all("\n- Do: " in one for one in sections)


def test_the_list_has_the_worst_severity_first() -> None:
    severities = [SEVERITIES.index(one.severity) for one in FINDINGS.values()]
    assert severities == sorted(severities)
    assert (
        rank("leaderless")
        < rank("unread")
        < rank("idle")
        < rank("one subscriber")
        < rank("foreign")
    )


def test_a_note_on_a_plan_has_no_severity() -> None:
    assert (severity_of("not ready"), see("not ready")) == ("error", "docs/findings.md#not-ready")
    assert (severity_of("foreign"), see("foreign")) == (None, None)

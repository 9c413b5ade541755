# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/balance.md: Kafka's assignors beside proven optima.

    python -m tools.balance_evidence

The groups are those of tests/vectors/balanced.jsonl.gz, whose optima a judge proved that shares no
code with this project. An assignor's answer is the group's after all rounds of its next rebalance.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_rebalance import GroupError, GroupSpec, assign, plan
from kafka_rebalance.assignors.balance.balanced import NAME
from kafka_rebalance.assignors.balance.figures import balance_figures
from tests.support.imports import ROOT
from tools.tables import table

if TYPE_CHECKING:
    from kafka_rebalance import Assignment

PAGE = ROOT / "docs" / "balance.md"
VECTORS = ROOT / "tests" / "vectors" / "balanced.jsonl.gz"
BEGIN, END = "<!-- generated: evidence -->\n", "<!-- end -->"
_NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky", "consumer/uniform", NAME)
_HEAD = ["", "no sound answer", "not the most even load", "worst fullest / best",
         "more moves than needed*", "in rack (possible)"]  # fmt: skip
_ORDER = "rack,moves,topics"


def answer(group: GroupSpec, name: str) -> Assignment | None:
    """Returns the assignment after all rounds; None if there is none, or if it is not sound."""
    try:
        if name == "consumer/uniform":
            ids = (replace(one, topic_id=_made_up(one.name)) for one in group.topics)
            return assign(group.edited(topics=tuple(ids)), name)
        planned = plan(group, name)
    except GroupError:
        return None
    sound = planned.settled and not assign(planned.final, name).anomalies
    return planned.after if sound else None


def _made_up(topic: str) -> str:
    """Returns a topic id, which this assignor reads and the groups lack."""
    return base64.urlsafe_b64encode(hashlib.sha256(topic.encode()).digest()[:16]).decode()[:22]


def row(name: str, cases: list[dict[str, Any]]) -> list[str]:
    unsound = uneven = costly = even = near = could = 0
    worst = 1.0
    for case in cases:
        group, best = GroupSpec.from_dict(case["case"]), case["best"][_ORDER]
        if (found := answer(group, name)) is None:
            unsound += 1
            continue
        counts = sorted(found.counts(), reverse=True)
        figures = balance_figures(group, found)
        near, could = near + figures["in_rack"], could + best["in_rack"]
        worst = max(worst, counts[0] / best["loads"][0]) if best["loads"][0] else worst
        uneven += counts != best["loads"]
        if counts == best["loads"] and not any(one.rack_id for one in group.members):
            even += 1
            costly += figures["moves"] > best["moves"]
    return [
        name,
        str(unsound),
        str(uneven),
        f"{worst:.2f}",
        f"{costly} of {even}",
        f"{near:,} ({could:,})",
    ]


def page(text: str) -> str:
    """Returns the page with a new table."""
    cases = [*map(json.loads, gzip.decompress(VECTORS.read_bytes()).splitlines())]
    before, rest = text.split(BEGIN)
    new = table([f"on {len(cases)} groups", *_HEAD[1:]], [row(name, cases) for name in _NAMES])
    return f"{before}{BEGIN}{new}{END}{rest.split(END, 1)[1]}"


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

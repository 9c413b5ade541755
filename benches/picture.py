# SPDX-License-Identifier: Apache-2.0
"""Draws the running time by number of partitions: one line for each peer, logarithmic axes.

The core has two lines: first answers (from names), and later answers for a group (again).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

AGAIN = "core, again"
STYLES = {
    "core": ("black", "-", "o"),
    AGAIN: ("#808080", "-", "."),
    "Java": ("#b03a2e", "--", "s"),
    "franz-go": ("#1f618d", "-.", "^"),
    "kafka-python": ("#7d6608", ":", "D"),
    "aiokafka": ("#5b2c6f", ":", "v"),
}
PANELS = (
    ("range", "same", "full"),
    ("cooperative-sticky", "same", "full"),
    ("cooperative-sticky", "same", "joins"),
    ("sticky", "buckets", "full"),
    ("sticky", "buckets", "joins"),
    ("cooperative-sticky", "buckets", "joins"),
)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8))
    for axes, (assignor, subscriptions, kind) in zip(
        figure.subplots(2, 3, sharex=True, sharey=True).flat, PANELS, strict=True
    ):
        wanted = (assignor, subscriptions, kind, "none", "")
        mine = [
            row
            for row in rows
            if (
                row["assignor"],
                row["subscriptions"],
                row["kind"],
                row["racks"],
                row["title"],
            )
            == wanted
        ]
        for peer, (colour, line, mark) in STYLES.items():
            best: dict[int, list[float]] = {}
            for row in mine:
                if (ms := _ms(row, peer)) is not None:
                    best.setdefault(row["partitions"], []).append(ms)
            points = sorted((x, sum(ys) / len(ys)) for x, ys in best.items())
            if points:
                xs, ys = zip(*points, strict=True)
                axes.plot(xs, ys, color=colour, ls=line, marker=mark, label=peer)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"{assignor}, {subscriptions} subscriptions, {kind}", size=10)
        axes.grid(visible=True, which="major", color="#dddddd")
        axes.set_axisbelow(True)
    figure.supxlabel("partitions")
    figure.supylabel("ms, median; mean over numbers of topics")
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        lines, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="upper center", ncols=len(STYLES), frameon=False
    )
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(path, dpi=120, facecolor="white")


def _ms(row: dict[str, Any], peer: str) -> float | None:
    peers = row["peers"]
    ms: float | None = peers["core"].get("again_ms") if peer == AGAIN else peers[peer].get("ms")
    return ms

# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/simulator.md again: `python -m tools pictures`.

Each picture shows one run of a shipped scenario, or a comparison if the scenario is made for one.
It contains the timeline of the page that `--output run.html` writes; a comparison contains only the
numbers of partitions that nobody reads, one run below the other.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from kafka_rebalance.cli import main
from kafka_rebalance.simulator.scenario_files import ready

OUT = Path(__file__).resolve().parent.parent / "docs" / "simulator"
COMPARED = {
    "connect-90-connectors": "eager,cooperative",
    "consumer-protocol": "cooperative,consumer",
    "rolling-bounce": "eager,cooperative,static",
    "seven-topics": "eager,cooperative",
}
HEADING = 24
STEPS, EVENTS = 215, 58  # heights: of the steps with the events above them; of the events
STYLE = "text { font: 11px sans-serif; } text.name { font-weight: bold; } .cut { fill: #e4e4e4; }"


def picture(page: str) -> str:
    """Returns the timelines of a page as one SVG file, each with its name above it."""
    timelines = re.findall(
        r'<svg class="timeline".*?aria-label="(.*?)" viewBox="0 0 (\d+) (\d+)".*?>(.*?)</svg>',
        page,
        re.DOTALL,
    )
    parts, y = [], 0
    for label, width, whole, drawn in timelines:
        drawn = re.sub(r"<title>.*?</title>", "", drawn)  # pictures in the docs need no tooltips
        top = int(whole) - STEPS if len(timelines) > 1 else 0
        if top:
            drawn, label = _steps(drawn, top), label.partition(":")[0]
        parts.append(f'<text class="name" x="8" y="{y + 16}">{label}</text>')
        place = f'y="{y + HEADING}" width="{width}" height="{int(whole) - top}"'
        parts.append(f'<svg {place} viewBox="0 {top} {width} {int(whole) - top}">{drawn}</svg>')
        y += HEADING + int(whole) - top
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
        f'height="{y}"><style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def _steps(drawn: str, top: int) -> str:
    """Removes the bars above `top` with their names, and moves the events' names below `top`."""
    drawn = re.sub(r'<rect x="[^>]*></rect>', "", drawn)
    drawn = re.sub(r"(translate\([\d.]+),\d+\)", rf"\1,{top + EVENTS})", drawn)
    texts = r'<text x="[\d.]+" y="(\d+)"[^>]*>[^<]*</text>'
    return re.sub(texts, lambda one: one[0] if int(one[1]) > top + EVENTS + 7 else "", drawn)


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory, "run.html")
        for name in ready():
            options = ["--compare", COMPARED[name]] if name in COMPARED else []
            print(f"$ kafka-rebalance simulate {' '.join([name, *options])}", flush=True)
            if main(["simulate", name, *options, "--output", str(page)]):
                sys.exit(1)
            drawn = picture(page.read_text(encoding="utf-8"))
            (OUT / f"{name}.svg").write_text(drawn, encoding="utf-8")

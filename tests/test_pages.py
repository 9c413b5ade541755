# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser: nothing overlaps or is cut off, and no page asks the network."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import kafka_rebalance as kr
from kafka_rebalance.group.model import Member, Topic
from kafka_rebalance.group.spec import GroupSpec
from kafka_rebalance.report.plans.page import plan_page
from kafka_rebalance.report.runs.page import runs_page
from kafka_rebalance.simulator import simulate
from kafka_rebalance.simulator.scenario_files import load, read

if TYPE_CHECKING:
    from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium: `make browser` installs it, as root on Debian"
)
WIDTH = 1300

# A script that measures the page in the browser and writes the result into the page's text.
LOOK = """
<script>
addEventListener("load", () => {
  const box = (one) => one.getBoundingClientRect();
  const svgs = [...document.querySelectorAll("svg")];
  const out = svgs.flatMap((svg) => [...svg.querySelectorAll("text")].filter((text) =>
    box(text).left < box(svg).left - 1 || box(text).right > box(svg).right + 1 ||
    box(text).top < box(svg).top - 1 || box(text).bottom > box(svg).bottom + 1
  ).map((text) => text.textContent));
  const beyond = svgs.flatMap((svg) => [...svg.querySelectorAll("rect, path, line")].filter((one) =>
    !one.closest("defs") && box(one).right > box(svg).right + 1)).length;
  const bars = [...document.querySelectorAll("svg rect:has(title)")];
  const seen = {
    wider: document.documentElement.scrollWidth - innerWidth,
    asked: performance.getEntriesByType("resource").map((one) => one.name),
    heads: [...document.querySelectorAll("h1, h2")].map((one) => one.textContent),
    tables: [...document.querySelectorAll("table")].map((one) => one.rows.length),
    unseen: bars.filter((one) => !(box(one).width > 0 && box(one).height > 5)).length,
    bars: bars.length,
    titles: bars.map((one) => one.textContent),
    out,
    beyond,
  };
  const place = document.createElement("pre");
  place.id = "seen";
  place.textContent = JSON.stringify(seen);
  document.body.append(place);
});
</script>
"""


def _seen(page: str, directory: Path) -> dict[str, Any]:
    """Opens a page in the browser and returns what `LOOK` measures."""
    path = directory / "page.html"
    path.write_text(page.replace("</body>", LOOK + "</body>"), encoding="utf-8")
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={directory / 'profile'}", f"--window-size={WIDTH},2000",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    table: dict[str, Any] = json.loads(html.unescape(found[1]))
    return table


def _is_readable(seen: dict[str, Any]) -> None:
    assert seen["wider"] <= 0
    assert seen["asked"] == []
    assert seen["out"] == []
    assert seen["beyond"] == 0
    assert seen["unseen"] == 0


def test_a_run(tmp_path: Path) -> None:
    run = simulate(load("scale-out"))
    seen = _seen(runs_page({"": run}), tmp_path)
    _is_readable(seen)
    assert seen["heads"][0] == run.title
    assert seen["tables"][-1] >= 1 + len(run.rebalances)
    assert seen["bars"] >= len(run.holds)
    gap = run.gaps[0]
    assert f"nobody (nobody works on it), 0.00 s to {gap.to_ms / 1000:.2f} s" in seen["titles"]


def test_runs_side_by_side(tmp_path: Path) -> None:
    scenario = load("connect-90-connectors")
    runs = {
        name: simulate(scenario.with_protocol(eager=name == "eager"))
        for name in ("eager", "cooperative")
    }
    seen = _seen(runs_page(runs), tmp_path)
    _is_readable(seen)
    assert seen["heads"][-2:] == ["eager", "cooperative"]
    assert seen["tables"][:2] == [3, 3]  # the table of totals, then that of two happenings


def test_a_run_in_which_much_happens(tmp_path: Path) -> None:
    """Too many quiet times for the width of the page: they are drawn narrower."""
    bounces = """
        [[happening]]
        at = "1m"
        do = "bounce"
        members = "c*"
        every = "2m"
        for = "5s"
    """
    text = 'until = "2h"\n[topics]\nt = 70\n[[member]]\nname = "c"\ncount = 55\n' + bounces
    seen = _seen(runs_page({"": simulate(read(text))}), tmp_path)
    _is_readable(seen)


def test_a_plan(tmp_path: Path) -> None:
    members = tuple(Member(f"m{n}", ("orders", "payments")) for n in range(4))
    topics = (Topic("orders", 12), Topic("payments", 5))
    seen = _seen(
        plan_page(kr.plan(GroupSpec("g", topics, members), "range", ["add-members=1"])), tmp_path
    )
    _is_readable(seen)
    assert len(seen["tables"]) >= 3

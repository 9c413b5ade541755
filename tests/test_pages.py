# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser: no text is cut off, no bar is invisible, and no network is used."""

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
from kafka_rebalance.report.fleet import (
    Bin,
    FleetReport,
    WorstGroup,
    fleet_page,
)
from kafka_rebalance.report.plans.page import plan_page
from kafka_rebalance.report.runs.files import runs_page
from kafka_rebalance.simulator import simulate
from kafka_rebalance.simulator.scenario_files import load, read
from tests.support.fleet_totals import totals_of

if TYPE_CHECKING:
    from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium: `python -m tools browser` installs it"
)
WIDTH = 1300

# A script that measures the page in the browser and writes the result into the page's text.
LOOK = r"""
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
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((one) => one / 255).map((one) =>
    one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4
  ).reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one) => {
    const pair = [light(getComputedStyle(one).color), light(behind(one))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const texts = [...document.querySelectorAll("h1, h2, p, li, td, th, summary, figcaption, code")];
  const bars = [...document.querySelectorAll("svg rect:has(title)")];
  const seen = {
    wider: document.documentElement.scrollWidth - innerWidth,
    asked: performance.getEntriesByType("resource").map((one) => one.name),
    heads: [...document.querySelectorAll("h1, h2")].map((one) => one.textContent),
    firsts: [...document.querySelectorAll("tr > :first-child:not(.count, [scope=col])")].map(
      (one) => one.textContent),
    tables: [...document.querySelectorAll("table")].map((one) => one.rows.length),
    unseen: bars.filter((one) => !(box(one).width > 0 && box(one).height > 5)).length,
    bars: bars.length,
    pictures: svgs.map((svg) => svg.getAttribute("aria-label")),
    width: Math.max(0, ...svgs.map((svg) => box(svg).width)),
    smallest: Math.min(99, ...svgs.flatMap((svg) => [...svg.querySelectorAll("text")].map((text) =>
      parseFloat(getComputedStyle(text).fontSize) * box(svg).width /
      (svg.viewBox.baseVal.width || box(svg).width)))),
    contrast: Math.min(...texts.filter((one) => one.textContent.trim()).map(contrast)),
    paper: light(behind(document.body)),
    unnamed: [...document.querySelectorAll("table")].filter((one) =>
      !one.querySelector("th[scope]")).length,
    fills: [...new Set(bars.map((one) => one.getAttribute("fill")))],
    titles: bars.map((one) => one.textContent),
    split: [...document.querySelectorAll(".key span")].filter((one) => {
      const letter = document.createRange(), text = one.nextSibling;
      if (!(text instanceof Text)) return false;
      letter.setStart(text, 0);
      letter.setEnd(text, 1);
      return Math.abs(box(letter).bottom - box(one).bottom) > 9;
    }).map((one) => one.className),
    out,
    beyond,
  };
  const place = document.createElement("pre");
  place.id = "seen";
  place.textContent = JSON.stringify(seen);
  top.document.body.append(place);
});
</script>
"""


def _seen(
    page: str, directory: Path, width: int = WIDTH, *, is_dark: bool = False
) -> dict[str, Any]:
    """Opens a page in the browser and returns what `LOOK` measures."""
    path = directory / "page.html"
    page = page.replace("</body>", LOOK + "</body>")
    if width < 500:  # a browser window cannot be so narrow, but a frame can
        page = f'<iframe width="{width}" height="2000" srcdoc="{html.escape(page)}"></iframe>'
    path.write_text(page, encoding="utf-8")
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={directory / 'profile'}", f"--window-size={width},2000",
        f"--blink-settings=preferredColorScheme={0 if is_dark else 1}",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    table: dict[str, Any] = json.loads(html.unescape(found[1]))
    return table


# A script that follows a member by the keyboard's event, and leaves what is still shown.
FOLLOW = """
<script>
document.querySelector("#member").selectedIndex = 2;
document.querySelector(".choice").dispatchEvent(new Event("change"));
for (const one of document.querySelectorAll("[hidden], .aside table")) one.remove();
document.title = document.querySelector("output").textContent;
</script>
"""


def test_a_reader_follows_a_member_of_a_plan(tmp_path: Path) -> None:
    """A restarted member is found under its new id, too; columns that it never had are hidden."""
    topics = (Topic("a", 2), Topic("a.b", 2))
    owned = [tuple(kr.TopicPartition(one.name, i) for one in topics) for i in range(2)]
    members = [Member(f"m{i}", ("a", "a.b"), owned_partitions=owned[i]) for i in range(2)]
    group = GroupSpec("g", topics, tuple(members))
    page = plan_page(kr.plan(group, "range", ["bounce-members=m1"]))
    all_of_it, followed = _seen(page, tmp_path), _seen(page + FOLLOW, tmp_path)
    assert all_of_it["firsts"][-4:-1] == ["m1", "m0", "m0"]
    assert [all_of_it["firsts"][-1]] == followed["firsts"][-1:]
    assert followed["firsts"][-2:-1] == ["m1"]


def _is_readable(seen: dict[str, Any]) -> None:
    assert seen["wider"] <= 0
    assert seen["asked"] == []
    assert seen["out"] == []
    assert seen["beyond"] == 0
    assert seen["unseen"] == 0
    assert seen["unnamed"] == 0
    assert seen["split"] == []  # each mark of the key is beside its text
    assert seen["contrast"] >= 4.5  # what WCAG asks of text


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
    assert seen["tables"][:2] == [3, 3]  # the table of totals, then that of two events


def test_a_run_in_which_much_happens(tmp_path: Path) -> None:
    """At one scale, the times without events would fill the page's width; they are compressed."""
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


@pytest.mark.parametrize("width", [WIDTH, 380])
def test_a_plan(tmp_path: Path, width: int) -> None:
    members = tuple(Member(f"m{n}", ("orders", "payments")) for n in range(4))
    topics = (Topic("orders", 12), Topic("payments", 5))
    plan = kr.plan(GroupSpec("g", topics, members), "range", ["add-members=1"])
    seen = _seen(plan_page(plan), tmp_path, width)
    _is_readable(seen)
    assert len(seen["tables"]) >= 3


@pytest.mark.parametrize("kind", ["plan", "run", "fleet"])
def test_dark_pages(tmp_path: Path, kind: str) -> None:
    """Each kind of page is dark if the reader prefers dark pages, and light if not."""
    group = GroupSpec("g", (Topic("t", 3),), (Member("m", ("t",)),))
    pages = {
        "plan": lambda: plan_page(kr.plan(group, "range", ["add-members=1"])),
        "run": lambda: runs_page({"": simulate(load("scale-out"))}),
        "fleet": lambda: fleet_page(_fleet()),
    }
    page = pages[kind]()
    dark = _seen(page, tmp_path, is_dark=True)
    _is_readable(dark)
    assert dark["paper"] < 0.05
    assert _seen(page, tmp_path)["paper"] > 0.9


def test_nine_members_have_nine_looks(tmp_path: Path) -> None:
    """The ninth member has the first one's shade with stripes, and the key explains the stripes."""
    page = runs_page({"": simulate(load("zone-lost"))})
    seen = _seen(page, tmp_path, 380)
    _is_readable(seen)
    assert len(seen["fills"]) == 9 + 1  # nine members, and the times without a holder
    assert "held, by another member with this shade" in page
    assert "held, by another member" not in runs_page({"": simulate(load("scale-out"))})


def _fleet() -> FleetReport:
    """Makes a report with large figures, long names, and a name that contains HTML."""

    def totals(change: str, seed: int) -> dict[str, Any]:
        figures = {"groups": 1_234_567, "errors": 12, "not_affected": 300, "without_members": 7}
        figures |= {"unsettled": 2, "uneven": 180_000, "moves": 92_000_000 // seed}
        figures |= {"least_moves": 41_000_000 // seed, "with_unavailable": 700_000 // seed}
        figures |= {"with_waiting": 30_000, "with_leaderless": 4_000}
        moves = {"p50": 3, "p99": 120, "max": 90_000}
        return totals_of(change, {**figures, "group_moves": moves})

    racks = {f"eu-west-1-a-very-long-name-{n}": totals(f"remove-rack={n}", n) for n in (1, 2, 3)}
    worst = [
        WorstGroup(
            "eu", f"<orders>-{n}-{'x' * 40}", "remove-rack=eu-west-1a", 30 - n, 1, 45, 300,
            f"kafka-rebalance plan /data/fleet/worst/{n:02}.jsonl --change remove-rack=eu-west-1a",
        )
        for n in range(20)
    ]  # fmt: skip
    bins = [
        Bin(0, 0, 900_000),
        Bin(1, 1, 300_000),
        *(Bin(2**n, 2**n * 2 - 1, 9) for n in range(1, 12)),
    ]
    return FleetReport(
        "1,234,567 groups", ["one", "two"], bins, bins[:3], [totals("", 9), *racks.values()], racks,
        [{"cluster": "eu", "groups": 12, "errors": 1, "uneven": 2, "moves": 3}], worst,
        {"uneven": [(f"<b>{'x' * 40}", 9), ("payments", 7)]},
    )  # fmt: skip


@pytest.mark.parametrize("width", [1200, 380])
def test_a_fleet(tmp_path: Path, width: int) -> None:
    report = _fleet()
    seen = _seen(fleet_page(report), tmp_path, width)
    _is_readable(seen)
    assert seen["heads"] == [report.title, "Each change alone", "Clusters", "The worst groups"]
    assert seen["tables"] == [1 + len(report.changes), 2, 21]
    assert seen["pictures"] == ["Groups by spread, now and at best", "Moves by change",
                                "Groups hurt by the loss of each rack"]  # fmt: skip
    assert 0.6 * width / 2 < seen["width"] <= width
    assert seen["smallest"] >= 8

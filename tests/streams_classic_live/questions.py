# SPDX-License-Identifier: Apache-2.0
"""Asks a real application the nine questions of docs/streams-classic.md, each by its command."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance.applications.lines import uuid_text
from kafka_rebalance.cli import main

from .judge import PROBING_MS, SESSION_MS, Found, Run, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from kafka_rebalance.applications.replayed import Replay

PAGE = Path(__file__).parents[2] / "docs" / "streams-classic.md"
_ANSWERS = (
    r"Not final: .* rebalances every 1 min: next at .*Waiting: .* records behind",
    r"as now, it is never stable; .*acceptable\.recovery\.lag=\d+ is stable",
    r"not yet at .*, where it belongs.* is to have \d+ of \d+, with \d+ of \d+ threads",
    r"bounce-members=\*: \d+ of \d+ tasks move .* after 6 s, nobody reads the tasks of the process",
    r"before they run, .* are restored, from up to \d+ records each.* -> ",
    r"the new one has .* of them, the last one .* later, after .* probing rebalance.* chance",
    r"\d+ stateful\), (each with a thread|\d+ read by nobody)\.",
    r"num\.standby\.replicas=1 [^.]*leaves \d+ of [\d,]+ records to restore",
    r"Its state is final: no rebalance is due\..*Checked: the last rebalance, played again",
)
"""What the answer to each question has, as a pattern."""


def questions() -> Iterator[tuple[str, str]]:
    """Yields each question of the page with its command."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\| (.+\?) \| `kafka-rebalance (.+)` \|", line):
            yield found[1], found[2]


def asked(server: str, directory: Path, random: Random) -> int:
    """Starts an application and a process that joins it, asks, and returns the right answers."""
    topics = {"shop-orders": 4, "shop-returns": 6, "shop-clicks": 3}
    stage = Stage("shop", topics, standbys=0, is_static=False)
    properties = directory / "shop.properties"
    properties.write_text(
        f"acceptable.recovery.lag={stage.lag}\nprobing.rebalance.interval.ms={PROBING_MS}\n"
        f"session.timeout.ms={SESSION_MS}\n"
    )
    source = f"--bootstrap-server {server} --group shop --streams-config {properties}"
    pairs = list(zip(questions(), _ANSWERS, strict=True))
    run, right = Run(server, random, directory, None, Found()), 0
    try:
        run.fill(stage)
        for _ in range(2):
            run.start(stage, 2)
        run.settled([stage])
        run.start(stage, 2)
        while not (look := run.settled([stage])["shop"][1]).waiting():
            time.sleep(1)
        final = pairs.pop()
        for pair, pattern in pairs:
            right += _answered(pair, pattern, source, *_names(look))
        while run.settled([stage])["shop"][1].deadline:
            time.sleep(2)
        return right + _answered(*final, source, "0_0", "0")
    finally:
        run.java.close()


def _names(look: Replay) -> tuple[str, str]:
    """Returns a task that waits, and the process that has it now."""
    task, now, *_ = look.waiting()[0]
    return str(task), uuid_text(now)[:8] if now else ""


def _answered(pair: tuple[str, str], pattern: str, source: str, task: str, process: str) -> bool:
    question, command = pair
    command = command.replace("1_2", task).replace("0420", process).replace("shop.jsonl", source)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(shlex.split(command))
    text = " ".join(out.getvalue().split())
    found = re.search(pattern, text)
    print(f"{question}\n  $ kafka-rebalance {command}\n  {text[:420]}", flush=True)
    print(f"  {'answered' if found else f'NOT ANSWERED: {pattern}'}\n", flush=True)
    return bool(found)

# SPDX-License-Identifier: Apache-2.0
"""Plants faults one at a time in a copy of the tree, and shows which of them the tests find.

    python -m tools faults                   # the quick tests against all faults
    python -m tools faults --only report     # one room
    python -m tools faults --whole           # all tests against the faults that the quick ones miss
    python -m tools faults --check           # only whether the line of each fault exists

A fault is one line of the source and a wrong line in its place. The line is found by its text, so
the file can move; a line that is missing, or occurs twice, is an error: choose another line. A
fault in Rust builds the core of the copy. All quick tests must pass without a fault. Then, of each
fault, those of its module and room run first, and the first failure ends the run. The quick tests
must find at least four faults in five.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.tiers import NOT_QUICK

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "kafka_rebalance"
CORE = "_core.abi3.so"
TIMED_OUT = 124  # the code of `timeout`
NO_TESTS = 5  # the code of pytest if it has run nothing
FRAMES = "tests/test_frames.py"  # these tests have an environment of their own
DEADLINE_S = 3600  # a fault can make the code loop for ever, which the tests find, too


class Fault(NamedTuple):
    """`right` is a part of one line of the source; `wrong` replaces it."""

    room: str
    right: str
    wrong: str


FAULTS = (
    Fault(
        "applications",
        "min((counts[task] for task in stateful)",
        "max((counts[task] for task in stateful)",
    ),
    Fault(
        "assignors",
        "< self._possible(member_id) or any(",
        "< self._possible(member_id) or all(",
    ),
    Fault(
        "bulk", "min(data, column.dictionary_page_offset", "max(data, column.dictionary_page_offset"
    ),
    Fault("cli", "without + self.unreadable == self", "without + self.unreadable != self"),
    Fault("checks", "value > limits.get(name, value)", "value >= limits.get(name, value)"),
    Fault("clients", "(_VERSION, sorted(subscribed), user_data,", "(_VERSION, [], user_data,"),
    Fault(
        "connect",
        "Idle(lost, why, memory.scheduled_rebalance_ms)",
        "Idle(lost, why, now_ms)",
    ),
    Fault(
        "coordinator",
        "units > state.config.offset_metadata_max_bytes",
        "units >= state.config.offset_metadata_max_bytes",
    ),
    Fault("explain", "claims[one] < claims[holder]", "claims[one] <= claims[holder]"),
    Fault("follow", "if now_s - then_s < WINDOW_S:", "if now_s - then_s > WINDOW_S:"),
    Fault(
        "group", "(self.rack_id or None) if self.version >= 3", "self.rack_id if self.version >= 2"
    ),
    Fault("history", "len(run) > max(one.members", "len(run) < max(one.members"),
    Fault("java", "> 0.75 * len(self._slots)", ">= 0.75 * len(self._slots)"),
    Fault("live", "chr(int(one[1:], 16))", "chr(int(one[1:], 10))"),
    Fault(
        "member", "max(config.request_timeout_ms, config.", "min(config.request_timeout_ms, config."
    ),
    Fault(
        "notes",
        'for one in plan.rounds if one.kind == "coop',
        'for one in plan.rounds if one.kind != "coop',
    ),
    Fault(
        "plans",
        "return len(led) > 1 and len(planned) == 1",
        "return len(led) > 2 and len(planned) == 1",
    ),
    Fault("present", "if known or not partitions", "if known"),
    Fault("report", 'f"{ms / 1000:,.1f}" if ms < 100_000', 'f"{ms / 1000:,.1f}" if ms < 10_000'),
    Fault("rollout", "range(min(spare, len(old)))", "range(max(spare, len(old)))"),
    Fault("scaling", "other.busiest * (1 - 1e-9)", "other.busiest * (1 + 1e-9)"),
    Fault("serve", "0 <= partition < self.topics[topic]", "0 <= partition <= self.topics[topic]"),
    Fault(
        "settings",
        'min(self["heartbeat.interval.ms"], session',
        'max(self["heartbeat.interval.ms"], session',
    ),
    Fault("simulator", "from_ms=max(now_ms, one.from_ms)", "from_ms=min(now_ms, one.from_ms)"),
    Fault("spark", "min(n, max(1, n * limit // total))", "min(n, max(0, n * limit // total))"),
    Fault("switching", "len(group.members) == 1 else 2 * dynamic", "True else 2 * dynamic"),
    Fault("watch", "by - one.get(tp, frozenset())", "one.get(tp, frozenset()) - by"),
    Fault("playback", 'if absent and answer.get("err") ==', 'if absent and answer.get("err") !='),
    Fault("wire", "since.first <= version <= since.last", "since.first < version <= since.last"),
    Fault(
        "src/assignors",
        "let keep = if sorted.len() < self.least {",
        "let keep = if sorted.len() <= self.least {",
    ),
    Fault(
        "src/group",
        "if partition.partition >= group.topics[",
        "if partition.partition > group.topics[",
    ),
    Fault("src/plans", "m >= members.saturating_sub(count)", "m > members.saturating_sub(count)"),
)


def place(fault: Fault, root: Path = ROOT) -> Path:
    """Returns the only file with the fault's line; exits if there is none, or more than one."""
    top, suffix = ("src", ".rs") if fault.room.startswith("src/") else ("python", ".py")
    files = sorted((root / top).rglob(f"*{suffix}"))
    counts = {path: path.read_text("utf-8").count(fault.right) for path in files}
    found = [path for path, count in counts.items() if count]
    if len(found) != 1 or counts[found[0]] != 1:
        where = ", ".join(path.relative_to(root).as_posix() for path in found) or "nowhere"
        sys.exit(f"the fault of {fault.room}: {fault.right!r} must stand once, but stands: {where}")
    return found[0]


def copied(to: Path) -> Path:
    """Copies what git knows of the tree, the compiled core and Kafka's classes; returns `to`."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
    shutil.copy2(PACKAGE / CORE, to / "python" / "kafka_rebalance" / CORE)
    for built in ROOT.glob("tools/*/target"):
        (to / built.relative_to(ROOT)).symlink_to(built)
    return to


@contextmanager
def planted(fault: Fault, copy: Path) -> Iterator[None]:
    """Plants a fault in the copy, and builds the copy's core if it is in Rust; then removes it."""
    path = place(fault, copy)
    right = path.read_text("utf-8")
    core = copy / "python" / "kafka_rebalance" / CORE
    path.write_text(right.replace(fault.right, fault.wrong), "utf-8")
    try:
        if path.suffix == ".rs":
            target = ROOT / "build" / "faults"  # all builds in one directory
            fast = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_TARGET_DIR": str(target)}
            command = ["cargo", "build", "--quiet", "--release", "--lib", "--features", "mimalloc"]
            subprocess.run(command, cwd=copy, check=True, env={**os.environ, **fast})
            core.unlink()  # a process that still has it open keeps the old file
            shutil.copy2(target / "release" / "lib_core.so", core)
        yield
    finally:
        path.write_text(right, "utf-8")
        core.unlink()
        shutil.copy2(PACKAGE / CORE, core)


def near(fault: Fault, copy: Path) -> list[str]:
    """Returns the test files that name the fault's module, then those that name its room."""
    module = place(fault, copy).with_suffix("").relative_to(copy).as_posix()
    room = fault.room.rpartition("/")[2]
    names = (f"{room}.{module.rpartition(f'{room}/')[2].replace('/', '.')}", room)
    files = {*(copy / "tests").rglob("test_*.py")} - {copy / FRAMES}
    each = {path: path.read_text("utf-8") for path in sorted(files)}
    found = [
        path.relative_to(copy).as_posix()
        for name in names
        for path, text in each.items()
        if re.search(rf"kafka_rebalance\.{re.escape(name)}\b", text)
    ]
    return [*dict.fromkeys(found)]


def first_failure(copy: Path, options: Iterable[str]) -> str | None:
    """Returns the first test that fails in the copy, or None."""
    # A fault must change behaviour, not style.
    command = ["timeout", str(DEADLINE_S), sys.executable, "-m", "pytest", "-q", "-x"]
    command += ["--deselect=tests/test_shape.py", *options]
    paths = f"{copy / 'python'}{os.pathsep}{copy}"
    environment = {**os.environ, "PYTHONPATH": paths}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if ran.returncode in (0, NO_TESTS):
        return None
    if ran.returncode == TIMED_OUT:
        return "a test that does not end"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    if not failed:
        sys.exit(f"pytest failed without a test:\n{ran.stdout}{ran.stderr}")
    return str(failed[0])


def found_by(fault: Fault, copy: Path, workers: Sequence[str], *, whole: bool) -> str | None:
    """Returns the first quick test that finds the fault, or (`whole`) the first test; else None."""
    quick = f"not ({' or '.join(NOT_QUICK)})"
    files = near(fault, copy)
    with planted(fault, copy):
        found = first_failure(copy, ["-m", quick, *files]) if files else None
        found = found or first_failure(copy, workers)
        if found or not whole:
            return found
        found = first_failure(copy, [*workers, "--whole"])
        return found and f"{found} (not quick)"


def main() -> None:
    """Plants the faults, and exits with 1 if the quick tests find too few faults, or all tests miss
    one.
    """
    parser = argparse.ArgumentParser(prog="python -m tools faults", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ROOM", help="only the faults of these rooms")
    parser.add_argument("--whole", action="store_true", help="then all tests, for what was missed")
    parser.add_argument("--check", action="store_true", help="only look for the lines")
    parser.add_argument("--workers", default="2", help="processes of pytest-xdist (2)")
    options = parser.parse_args()
    chosen = [one for one in FAULTS if not options.only or one.room in options.only]
    for fault in chosen:
        print(f"{fault.room:14} {place(fault).relative_to(ROOT)}", flush=True)
    if options.check:
        return
    workers = ["-n", options.workers]
    each: list[str | None] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as directory:
        copy = copied(Path(directory))
        if found := first_failure(copy, workers):
            sys.exit(f"without a fault, {found} fails")
        for fault in chosen:
            found = found_by(fault, copy, workers, whole=options.whole)
            each.append(found)
            print(f"{fault.room:14} {f'found by {found}' if found else 'MISSED'}", flush=True)
    by_all = sum(found is not None for found in each)
    quick = sum(found is not None and not found.endswith("(not quick)") for found in each)
    print(f"the quick tests found {quick} of {len(chosen)}")
    if options.whole:
        print(f"all tests found {by_all} of {len(chosen)}")
    allowed = len(FAULTS) // 5 if not options.only else 0
    lost = options.whole and by_all < len(chosen)
    sys.exit(1 if lost or len(chosen) - quick > allowed else 0)


if __name__ == "__main__":
    main()

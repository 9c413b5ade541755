# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, checks it, and tries it in empty environments. `make wheel` runs it.

    python -m tools.wheel [--target TRIPLE | --wheel FILE] [PYTHON ...]

1. maturin builds one wheel for all Pythons from 3.11 on (abi3). On Linux zig links it against glibc
   2.17, so that it runs with this glibc or a newer one; on macOS and Windows it fits that system.
2. abi3audit, and on Linux auditwheel, check that the wheel runs where its name promises.
3. This tool checks that the wheel is small (`MOST_BYTES`), that its metadata are complete, and that
   it contains exactly the package's files in git, the core, and its metadata with a list of the
   crates.
4. Each PYTHON (default: those of `VERSIONS` on the path) installs the wheel into an empty
   environment, from no index, and runs tools/wheel_smoke.py there. A wheel for another machine
   (--target) is only built and checked.
"""

import argparse
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "wheels"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
MOST_BYTES = 3_500_000
METADATA = (
    "Name", "Version", "Summary", "Author", "License-Expression", "License-File", "Requires-Python",
    "Keywords", "Classifier", "Project-URL", "Description-Content-Type",
)  # fmt: skip
PROMISE = "manylinux_2_17"
ON_LINUX = sys.platform == "linux"
ON_WINDOWS = sys.platform == "win32"
CORE = "kafka_rebalance/_core." + ("pyd" if ON_WINDOWS else "abi3.so")
_INFO = re.compile(
    r"METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE|sboms/kafka-rebalance\.cyclonedx\.json"
)


class WheelError(Exception):
    """A program failed, or the wheel did not pass a check."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.wheel")
    parser.add_argument("--wheel", type=Path, help="check this wheel; build none")
    parser.add_argument("--target", help="build for this target of Rust, not for this machine")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    arguments = parser.parse_args()
    try:
        wheel = arguments.wheel or build(arguments.target)
        check(wheel)
        for python in [] if arguments.target else arguments.pythons or found_pythons():
            print(f"{python}: {tried(wheel, python)}")
    except WheelError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 1
    return 0


def build(target: str | None) -> Path:
    shutil.rmtree(OUT, ignore_errors=True)
    where = ("--target", target) if target else ()
    linked = ("--zig", "--compatibility", "manylinux2014") if ON_LINUX else ()
    _run("maturin", "build", "--release", "--locked", "--out", str(OUT), *linked, *where)
    (wheel,) = OUT.glob("*.whl")
    return wheel


def check(wheel: Path) -> None:
    if ON_LINUX:
        shown = " ".join(_run("auditwheel", "show", str(wheel)).split())
        if f'consistent with the following platform tag: "{PROMISE}_' not in shown:
            raise WheelError(f"{wheel.name} is not {PROMISE}: {shown}")
    report = json.loads(_run("abi3audit", "--strict", "--report", str(wheel)))
    (spec,) = report["specs"].values()
    for one in spec["wheel"]:
        if not one["result"]["is_abi3_baseline_compatible"]:
            raise WheelError(f"{one['name']} uses symbols that are not in abi3: {one['result']}")
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise WheelError(f"{wheel.name} has {size:,} bytes, more than {MOST_BYTES:,}")
    missing = missing_metadata(wheel)
    if missing:
        raise WheelError(f"{wheel.name} lacks {', '.join(missing)}")
    tracked = set(_run("git", "ls-files", "python").splitlines())
    for problem in wrong_files(wheel, {name.removeprefix("python/") for name in tracked}):
        raise WheelError(f"{wheel.name}: {problem}")
    print(
        f"{_shown(wheel)}: {size:,} bytes, {PROMISE if ON_LINUX else sys.platform}, "
        f"abi3 since {VERSIONS[0]}, metadata complete"
    )


def _shown(wheel: Path) -> str:
    """Returns the path of the wheel, relative to the current directory if it is below."""
    here, path = Path.cwd(), wheel.resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def missing_metadata(wheel: Path) -> list[str]:
    """Returns the fields that an index shows and the wheel lacks."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    missing = [field for field in METADATA if not metadata[field]]
    return missing if metadata.get_payload() else [*missing, "its description"]


def wrong_files(wheel: Path, tracked: set[str]) -> list[str]:
    """Returns sentences about files that the wheel should not contain, and about missing files.

    `tracked` are the package's files in git.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    kinds = {name.partition("/")[2] for name in info}
    expected = tracked | {CORE}
    stray = (names - info - expected) | {
        name for name in info if not _INFO.fullmatch(name.partition("/")[2])
    }
    lacks = (expected - names) | ({"sboms/kafka-rebalance.cyclonedx.json"} - kinds)
    return [
        *(f"{name} does not belong there" for name in sorted(stray)),
        *(f"{name} is missing" for name in sorted(lacks)),
    ]


def found_pythons() -> list[str]:
    """Returns the interpreters on the path that run; prints the versions that do not.

    A shim of pyenv is on the path, but runs only the versions that `pyenv global` has selected.
    """
    found = []
    for version in VERSIONS:
        python = shutil.which(f"python{version}")
        if python is None:
            print(f"python{version}: not on the path, not tried")
            continue
        ran = subprocess.run([python, "-V"], capture_output=True, text=True)
        if ran.returncode:
            said = (ran.stderr.strip() or f"exit code {ran.returncode}").splitlines()[0]
            print(f"python{version}: {python} does not run, not tried: {said}")
            print(f"  name another one: make wheel PYTHONS=/path/of/python{version}")
        else:
            found.append(python)
    return found


def tried(wheel: Path, python: str) -> str:
    """Installs the wheel into an empty environment, and returns what its smoke test printed."""
    with tempfile.TemporaryDirectory() as directory:
        _run(python, "-m", "venv", directory)
        programs = "Scripts" if ON_WINDOWS else "bin"
        installed = str(Path(directory, programs, "python"))
        _run(installed, "-m", "pip", "install", "--quiet", "--no-index", str(wheel))
        said = _run(installed, "-I", str(ROOT / "tools" / "wheel_smoke.py"), cwd=directory).strip()
        bare, imported = (
            _least_cpu_ms(installed, code) for code in ("", "import kafka_rebalance as k; k.assign")
        )
    return f"{said}; import {imported - bare:.0f} ms of CPU"


def _least_cpu_ms(python: str, code: str) -> float:
    """Returns the CPU time of the quickest of five runs."""
    times = []
    for _ in range(5):
        before = os.times()
        _run(python, "-I", "-c", code)
        after = os.times()
        used = after.children_user + after.children_system
        times.append(used - before.children_user - before.children_system)
    return min(times) * 1000


def _run(program: str, *arguments: str, cwd: str | Path = ROOT) -> str:
    """Runs a program and returns its standard output; programs of this environment come first."""
    own = Path(sys.executable).parent
    path = f"{own}{os.pathsep}{os.environ['PATH']}"
    started = time.monotonic()
    ran = subprocess.run(
        [shutil.which(program, path=path) or program, *arguments],
        cwd=cwd, env={**os.environ, "PATH": path}, capture_output=True, encoding="utf-8",
        check=False,
    )  # fmt: skip
    if ran.returncode:
        raise WheelError(f"{program} {' '.join(arguments)}:\n{ran.stdout}{ran.stderr}")
    if program == "maturin":
        print(f"built in {time.monotonic() - started:.0f} s")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())

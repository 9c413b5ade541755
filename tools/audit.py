# SPDX-License-Identifier: Apache-2.0
"""Checks licences and advisories of what the package needs. `make audit` runs it; so does CI.

1. Licences of the installed packages of all extras, and of what they need. Needs no network.
2. pip-audit: advisories of these packages. Skipped where PyPI's advisories cannot be read.
3. cargo-deny: advisories, licences and sources of the crates, by deny.toml. Skipped where the
   program is not installed (CI has an action for it); without a network, its advisories are.

Each skipped step is named with its reason. In CI (`--strict`), unreadable advisories are a failure.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where pip-audit and cargo-deny read advisories. A mirror of the index may lack this interface.
OF_PACKAGES = "https://pypi.org/pypi/packaging/24.0/json"
OF_CRATES = "https://github.com/RustSec/advisory-db"
# The tokens of License-Expression, License or a classifier that the package may need at run time.
ALLOWED = re.compile(
    r"(?:apache[ -](?:software license|2(?:\.0)?)|mit(?:-0)?|mit license|bsd(?:[ -][23]-clause)?"
    r"(?: license)?|0bsd|zlib|cc0-1\.0|psf-2\.0)",
    re.IGNORECASE,
)
# Packages with another licence, and why they may be installed beside this one.
EXCEPTIONS = {"crc32c": "LGPL-2.1-or-later; kio (extra serve) imports it, nothing of it is shipped"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.audit")
    parser.add_argument("--strict", action="store_true", help="fail if advisories cannot be read")
    strict = parser.parse_args().strict
    found = needed()
    wrong = wrong_licences(found)
    print(f"licences: {len(found)} packages, {len(wrong)} not allowed", *wrong, sep="\n  ")
    reachable = _reachable(OF_PACKAGES)
    failed = bool(wrong) or (strict and not reachable)
    if reachable:
        pinned = [f"{one.name}=={one.version}" for one in found.values()]
        # `--strict`: a package without an answer is a failure, too.
        audit = [sys.executable, "-m", "pip_audit", "--strict", "--no-deps", "--disable-pip"]
        failed |= _ran([*audit, "-r", "/dev/stdin"], pinned)
    else:
        print(f"pip-audit: skipped, {OF_PACKAGES} cannot be read from here")
    deny = shutil.which("cargo-deny")
    if deny and _reachable(OF_CRATES):
        failed |= _ran([deny, "check"])
    elif deny:
        print(f"cargo-deny: advisories are skipped, {OF_CRATES} cannot be read from here")
        failed |= _ran([deny, "--offline", "check", "licenses", "bans", "sources"])
    else:
        print("cargo-deny: skipped, the program is not installed; the job `crates` of CI runs it")
    return int(failed)


def needed() -> dict[str, Distribution]:
    """Returns the installed packages of all extras, with what they need, by name."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    waiting = [
        need
        for extra, needs in extras["optional-dependencies"].items()
        if extra not in ("all", "docs")
        for need in needs
    ]
    found: dict[str, Distribution] = {}
    while waiting:
        name = re.split(r"[^\w.-]", waiting.pop())[0].lower().replace("_", "-")
        if name not in found:
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:  # of another system or Python
                continue
            waiting += [one for one in found[name].requires or [] if "extra ==" not in one]
    return found


def wrong_licences(found: dict[str, Distribution]) -> list[str]:
    """Returns a sentence for each package whose licence is unknown or not allowed."""
    wrong = []
    for name, one in sorted(found.items()):
        classes = [
            each for each in one.metadata.get_all("Classifier") or [] if "License ::" in each
        ]
        said = one.metadata["License-Expression"] or one.metadata["License"] or ""
        said = said.partition("\n")[0].strip() or " AND ".join(
            each.rpartition(":: ")[2] for each in classes
        )
        # A choice is allowed if one of its licences is; all parts of a conjunction must be.
        parts = [part.strip("() ").split(" OR ") for part in said.split(" AND ")]
        allowed = all(any(ALLOWED.fullmatch(each.strip("() ")) for each in part) for part in parts)
        if not allowed and name not in EXCEPTIONS:
            wrong.append(f"{name} {one.version}: {said or 'no licence in its metadata'}")
    return wrong


def _reachable(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:  # URLError is one
        return False


def _ran(command: list[str], lines: list[str] | None = None) -> bool:
    """Runs a program with lines on its standard input; returns whether it failed."""
    print(f"{Path(command[2] if command[1:2] == ['-m'] else command[0]).name}:", flush=True)
    return bool(
        subprocess.run(command, input="\n".join(lines or []), text=True, cwd=ROOT).returncode
    )


if __name__ == "__main__":
    sys.exit(main())

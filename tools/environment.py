# SPDX-License-Identifier: Apache-2.0
"""Makes a virtual environment or updates it, and prints its interpreter.

    python -m tools environment build/wheel-tools --group wheel

The words after the directory go to `pip install`. Nothing is installed if the environment is newer
than pyproject.toml and was made with the same words.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools environment", description=__doc__)
    parser.add_argument("directory", type=Path)
    chosen, packages = parser.parse_known_args()
    python, made = chosen.directory / "bin" / "python", chosen.directory / "made"
    words = "\n".join(packages)
    is_new = made.is_file() and made.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime
    if not is_new or made.read_text("utf-8") != words:
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        steps = [[*pip, *packages]]
        if "--group" in packages:  # pip knows groups from 25.1 on
            steps.insert(0, [*pip, "--upgrade", "pip"])
        if not python.exists():
            steps.insert(0, [sys.executable, "-m", "venv", chosen.directory])
        for step in steps:
            if subprocess.run(step, stdout=sys.stderr).returncode:
                sys.exit(1)
        made.write_text(words, encoding="utf-8")
    print(python)


if __name__ == "__main__":
    main()

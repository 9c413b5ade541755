# SPDX-License-Identifier: Apache-2.0
"""Installs a headless Chromium for the tests of pages, as root on Debian; else says what to do."""

import os
import shutil
import subprocess
import sys


def main() -> None:
    if shutil.which("chromium") or shutil.which("google-chrome"):
        return
    apt = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    is_possible = os.geteuid() == 0 and shutil.which("apt-get") is not None
    for command in (["apt-get", "update", "-qq"], apt) if is_possible else ():
        subprocess.run(command, capture_output=True, check=False)
    if shutil.which("chromium") is None:
        print(
            "No Chromium ('apt-get install chromium'): the tests of pages are skipped.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Runs the driver in the arguments, but answers every heartbeat with NONE, even if that is wrong.

Tests use it to show that the comparison can fail.
"""

from __future__ import annotations

import json
import subprocess
import sys


def main() -> None:
    with subprocess.Popen(
        sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as honest:
        assert honest.stdin
        assert honest.stdout
        for line in sys.stdin:
            honest.stdin.write(line)
            honest.stdin.flush()
            answer = json.loads(honest.stdout.readline())
            if json.loads(line)["op"] == "hb":
                answer["err"] = "NONE"
            print(json.dumps(answer), flush=True)
        honest.stdin.close()


if __name__ == "__main__":
    main()

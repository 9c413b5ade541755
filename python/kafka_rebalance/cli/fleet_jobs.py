# SPDX-License-Identifier: Apache-2.0
"""The parts that the jobs of `fleet` share, with Spark and without it."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_rebalance.assignors.registry import BUILT_IN, OURS
from kafka_rebalance.group.model import shell_option, shell_word

RECOMMENDABLE = [name for name in BUILT_IN if name not in OURS]
"""The assignors that a comparison may recommend."""
WITHHOLDING = [name for name, one in BUILT_IN.items() if one.withholds and name not in OURS]
"""The assignors that assign a partition of another member only after that member has revoked it."""
BETTER = {
    "stop_less": r" leaves (\d+ )?partitions? without ",
    "be_more_even": " leaves the fullest and ",
}
"""Name of a count -> a pattern. The count is the number of comparisons that recommend another
assignor for a `reason` that matches this pattern.
"""


def command(
    args: argparse.Namespace, file: Path | str, group_id: str | None, changes: Sequence[Any]
) -> str:
    """Returns a command that plans or compares one group, with the assignor of this job."""
    words = ["kafka-rebalance", "compare" if args.word == "compare" else "plan"]
    words.append(shell_word(os.fspath(file)))
    if group_id is not None:
        words.append(shell_option("--group", group_id))
    if getattr(args, "assignor", None) is not None:
        words.append(shell_option("--assignor", args.assignor))
    return " ".join([*words, *(shell_option("--change", str(change)) for change in changes)])


def asked(args: argparse.Namespace) -> dict[str, Any]:
    """Returns those parameters of the job that this command has as options (`assign` has no
    `changes`).
    """
    names = ("assignor", "changes", "max_partitions")
    return {name: vars(args)[name] for name in names if name in vars(args)}

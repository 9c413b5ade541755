# SPDX-License-Identifier: Apache-2.0
"""Reads the sample of groups of a real cluster, which README.md in this directory describes."""

from importlib.resources import files


def captured_lines() -> list[str]:
    """Returns the sample: a JSON line per group, or an error line if the group was rebalancing."""
    text = files(__package__).joinpath("captured_groups.jsonl").read_text(encoding="utf-8")
    return text.splitlines()

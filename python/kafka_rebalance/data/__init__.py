# SPDX-License-Identifier: Apache-2.0
"""Reads the sample of groups of a real cluster, which README.md in this directory describes."""

from importlib.resources import files


def captured_lines() -> list[str]:
    """Returns a JSON line for each group of the sample: an error line if it was rebalancing."""
    text = files(__package__).joinpath("captured_groups.jsonl").read_text(encoding="utf-8")
    return text.splitlines()

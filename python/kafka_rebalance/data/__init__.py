# SPDX-License-Identifier: Apache-2.0
"""Reads the captured sample: groups of a real cluster; README.md here describes them."""

from importlib.resources import files


def captured_lines() -> list[str]:
    """Returns the sample: a JSON line for each group, or an error line if it was rebalancing."""
    text = files(__package__).joinpath("captured_groups.jsonl").read_text(encoding="utf-8")
    return text.splitlines()

# SPDX-License-Identifier: Apache-2.0
"""The option that selects groups by patterns like those of a shell."""

import argparse
from collections.abc import Callable
from fnmatch import fnmatchcase

from .options import add_table


def add_patterns(parser: argparse.ArgumentParser, default: str = "all") -> None:
    text = "only this group, or groups as in orders-*; may be given again"
    add_table(parser, f"--group G: {text} (default: {default})", group={"action": "append"})


def is_pattern(name: str) -> bool:
    return any(one in name for one in "*?[")


def wanted(args: argparse.Namespace) -> Callable[[str], bool]:
    """Returns a function that checks whether a group id matches a pattern; without any, all do."""
    patterns = args.group
    return lambda name: patterns is None or any(fnmatchcase(name, one) for one in patterns)

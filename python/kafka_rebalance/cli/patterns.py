# SPDX-License-Identifier: Apache-2.0
"""The option that selects groups by patterns, as a shell selects files."""

import argparse
from collections.abc import Callable
from fnmatch import fnmatchcase


def add_patterns(parser: argparse.ArgumentParser, default: str = "all") -> None:
    parser.add_argument(
        "--group",
        metavar="G",
        action="append",
        help=f"only this group, or groups as in orders-*; may be given again (default: {default})",
    )


def is_pattern(name: str) -> bool:
    return any(one in name for one in "*?[")


def wanted(args: argparse.Namespace) -> Callable[[str], bool]:
    """Returns whether a group is selected; every group without the option."""
    patterns = args.group
    return lambda name: patterns is None or any(fnmatchcase(name, one) for one in patterns)

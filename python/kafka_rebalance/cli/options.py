# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have; a value out of range is wrong usage."""

import argparse
from collections.abc import Callable

from kafka_rebalance.group.field_paths import MAX_INT32
from kafka_rebalance.group.model import MAX_PARTITIONS


def whole(least: int) -> Callable[[str], int]:
    """Returns a type for argparse: a whole number from `least` to Kafka's largest integer."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
        if not least <= value <= MAX_INT32:
            raise argparse.ArgumentTypeError(f"{text} is not a number from {least} to {MAX_INT32}")
        return value

    return read


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Adds the choice between the two implementations, whose answers are equal."""
    parser.add_argument(
        "--engine",
        choices=("rust", "reference"),
        default="rust",
        help="the compiled core, or the readable Python implementation (default: rust)",
    )


def add_max_partitions(parser: argparse.ArgumentParser) -> None:
    """Adds the limit that protects the memory against a group with a wrong number."""
    parser.add_argument(
        "--max-partitions",
        type=whole(0),
        default=MAX_PARTITIONS,
        metavar="N",
        help="refuse groups with more than N partitions (default: %(default)s)",
    )

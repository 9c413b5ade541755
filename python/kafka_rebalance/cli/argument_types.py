# SPDX-License-Identifier: Apache-2.0
"""Types of option values; a value out of range is wrong usage."""

import argparse
from collections.abc import Callable

from kafka_rebalance.group.field_paths import MAX_INT32


def whole(least: int) -> Callable[[str], int]:
    """Returns a type for argparse: a whole number from `least` to Kafka's largest integer."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
        if not least <= value <= MAX_INT32:
            raise argparse.ArgumentTypeError(f"{text} is not a number from {least} to {MAX_INT32}")
        return value

    return read

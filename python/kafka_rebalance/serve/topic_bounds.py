# SPDX-License-Identifier: Apache-2.0
"""Checks the topics to serve: Kafka's rule for names, and a limit for numbers of partitions."""

import json
import re

from kafka_rebalance.errors import GroupError

MOST_PARTITIONS = 100_000
"""The most partitions that all topics together may have."""
TOO_MANY = f"all topics together may have {MOST_PARTITIONS} partitions"

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_legal(name: str) -> bool:
    """Returns whether Kafka would make a topic of this name."""
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def check(name: str, partitions: int, elsewhere: int, path: str | None = None) -> None:
    """Raises a GroupError, at `path` if it is given, for a name or number that is not allowed.

    `elsewhere` is the number of partitions that all other topics have.
    """
    shown = json.dumps(name, ensure_ascii=False)
    if not is_legal(name):
        raise GroupError(
            path or "name",
            f"{shown} is not a name of a topic; give 1 to 249 of a-z, A-Z, 0-9, ., _ and -",
        )
    if not isinstance(partitions, int) or partitions < 1:
        raise GroupError(
            path or "partitions",
            f"{shown} cannot have {partitions} partitions; give a whole number from 1",
        )
    if elsewhere + partitions > MOST_PARTITIONS:
        problem = f"{shown} would have {partitions}, other topics have {elsewhere}; {TOO_MANY}"
        raise GroupError(path or "partitions", problem)

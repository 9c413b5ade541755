# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have; a value out of range is reported as wrong usage."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from kafka_rebalance.assignors.registry import BALANCED, OURS, WEIGHTED, planned_names
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group.field_paths import MAX_INT32
from kafka_rebalance.group.model import MAX_PARTITIONS, quoted

if TYPE_CHECKING:
    from pathlib import Path

_MOST_DIGITS = 10
"""The most digits of a number: Python's time to read it grows with the square of the digits."""


def whole(least: int, most: int = MAX_INT32, noun: str = "number") -> Callable[[str], int]:
    """Returns a type for argparse: a whole number from `least` to `most`."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not a {noun} from {least} to {most}")
        return value

    return read


PORT = whole(0, 65_535, "port")


def path(text: str) -> "Path":
    from pathlib import Path  # slow to import, and most commands write no file

    return Path(text)


def topic_count(text: str) -> tuple[str, int]:
    """Parses a topic with its number of partitions, NAME=N. Errors: GroupError at `--topic`."""
    name, _, count = text.rpartition("=")
    if not name or not count.isascii() or not count.isdigit() or len(count) > _MOST_DIGITS:
        raise GroupError("--topic", f"{quoted(text)} is not NAME=N, as orders=6")
    return name, int(count)


def seconds(text: str) -> float:
    """Parses a number of seconds above 0, with or without an `s`."""
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = 0.0
    if not 0 < value < MAX_INT32 / 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0, such as 5")
    return value


def of_topic(text: str) -> tuple[str, float]:
    """Parses a topic with a number, such as `orders=1200`."""
    name, _, number = text.rpartition("=")
    with suppress(ValueError):
        if name:
            return name, float(number)
    raise argparse.ArgumentTypeError(f"{text} is not TOPIC=N, such as orders=1200")


def member_options(args: argparse.Namespace) -> dict[str, str | bool]:
    """Returns name -> value of `--member` or `--setting`, such as process -> 500ms."""
    found: dict[str, str | bool] = {}
    for text in args.member:
        key, separator, value = text.partition("=")
        if not separator:
            args.parser.error(f"{text!r} is not SETTING=VALUE, like session_timeout=10s")
        found[key] = {"true": True, "false": False}.get(value, value)
    return found


_ENTRY = re.compile(r"^(\S+?)(?: (\S+?))?(?:: (.*(?:\n +.*)*))?$", re.MULTILINE)
REPEATED: Mapping[str, Any] = {"action": "append", "default": []}
"""The arguments of `add_argument` for an option that may be repeated."""


_SHARED = {
    entry[0]: entry
    for entry in _ENTRY.findall("""\
--command-config FILE: the settings of Kafka's own clients, for TLS and SASL: client.properties
  (docs/secured-clusters.md)
--timeout S: how many seconds the cluster may take for an answer (default: 5)
--engine: the compiled core, or the readable Python implementation (default: rust)
--leader MEMBER: as if this member led its group: a member_id, also shortened as in the tables, or a
  group_instance_id (default: the leader in FILE)
--max-partitions N: refuse groups with more than N partitions (default: %(default)s)
""")
}
_HOW: Mapping[str, Any] = {
    "timeout": seconds,
    "engine": {"choices": ("rust", "reference"), "default": "rust"},
    # A mistyped number must not use up the memory.
    "max_partitions": {"type": whole(0), "default": MAX_PARTITIONS},
}


def add_table(parser: Any, table: str, **how: Callable[[str], Any] | Mapping[str, Any]) -> None:
    """Adds the options of a table. Each entry is `--name METAVAR: help`, or `name METAVAR: help`
    for an argument without a name. An option without METAVAR is a switch unless `how` names it;
    an option that several commands share is `--name` alone.

    `how` maps a name (`max_size` for --max-size) to its type, or to arguments of `add_argument`.
    """
    for entry in _ENTRY.findall(dedent(table)):
        flag, metavar, text = entry if entry[2] else _SHARED[entry[0]]
        name = flag.lstrip("-").replace("-", "_")
        found = how.get(name, _HOW.get(name, {}))
        more: dict[str, Any] = {"type": found} if callable(found) else dict(found)
        if metavar:
            more["metavar"] = metavar
        elif flag.startswith("--") and not more:
            more["action"] = "store_true"
        parser.add_argument(flag, help=" ".join(text.split()), **more)


def add_cluster(parser: argparse.ArgumentParser, *, instead: str = "") -> None:
    """Adds the option that names the cluster, and the options of the client that connects to it."""
    table = f"""
    --bootstrap-server H:P: a broker, or several separated by commas{instead}
    --command-config
    --timeout
    """
    add_table(parser, table, bootstrap_server={"required": not instead})


def cluster_configs(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the client settings of `--command-config`, the environment and `--timeout`."""
    from kafka_rebalance.live import client_configs, read_properties

    return client_configs(read_properties(args.command_config), timeout_s=args.timeout)


def add_patterns(parser: argparse.ArgumentParser) -> None:
    """Adds the option that selects groups by patterns like those of a shell."""
    text = "--group G: only this group, or groups as in orders-*; may be given again (default: all)"
    add_table(parser, text, group={"action": "append"})


def is_pattern(name: str) -> bool:
    return any(one in name for one in "*?[")


def fits(name: str, patterns: Iterable[str] | None) -> bool:
    """Returns whether a group id fits a pattern; without patterns (None), all ids fit."""
    return patterns is None or any(fnmatchcase(name, one) for one in patterns)


def add_pasted(parser: argparse.ArgumentParser) -> None:
    """Adds the options for facts that the tables of Kafka's command and of rpk do not show."""
    pasted = parser.add_argument_group(
        "tables of kafka-consumer-groups.sh and rpk",
        "FILE may hold these, too (docs/paste.md). What they do not show is assumed, and set here.",
    )
    table = """
    --topic NAME=N: a topic has N partitions
    --assume FIELD=VALUE: a field of docs/contract.md: assignor=sticky, members[NAME].topics=A,B,
      where NAME is any id of the member, or members[*].rack_id=a
    """
    add_table(pasted, table, topic=REPEATED, assume=REPEATED)


def add_assignor(parser: argparse.ArgumentParser) -> None:
    """Adds the options that replace the group's own assignor and its leader."""
    names = ", ".join(planned_names())
    own = "(default: its own, as the leader's library has it)"
    add_table(parser, f"--assignor NAME: as if the group ran this one: {names} {own}\n--leader")


def add_objective(parser: argparse.ArgumentParser) -> None:
    table = f"""
    --prefer ORDER: with --assignor {BALANCED}: the criteria after the even load (default:
      rack,moves,topics; with a budget, moves first)
    --budget K: with --assignor {" or ".join(OURS)}: take at most so many partitions from their
      owners, as 3 or 5%% (weighted: also none)
    --tolerance SHARE: with --assignor {WEIGHTED}: let the fullest member be this far above the
      least possible load (default: 5%%)
    --min-gain SHARE: with --assignor {WEIGHTED}: take no partition unless this lowers the fullest
      member's load so far (default: 10%%)
    """
    add_table(parser, table)


_OBJECTIVE = {
    "prefer": (BALANCED,), "budget": OURS, "tolerance": (WEIGHTED,), "min-gain": (WEIGHTED,),
}  # fmt: skip
"""An option of `add_objective` -> the assignors that have this setting."""


def name_with_objective(args: argparse.Namespace) -> str | None:
    """Returns the name of `--assignor` with the settings that options add: `balanced?budget=5%`.
    Errors: GroupError.
    """
    settings = []
    for option, assignors in _OBJECTIVE.items():
        value = getattr(args, option.replace("-", "_"))
        if value is not None and args.assignor not in assignors:
            names = " or ".join(assignors)
            raise GroupError(f"--{option}", f"only --assignor {names} has this option")
        if value is not None:
            settings.append(f"{option}={value}")
    name: str | None = args.assignor
    return f"{name}?{'&'.join(settings)}" if settings else name

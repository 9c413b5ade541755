# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line; a command's own options are in the command's module."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import kafka_rebalance
from kafka_rebalance.errors import did_you_mean

from . import COMMANDS, EXAMPLES, PROG, USAGE

TYPE_CHECKING = False  # `typing` imports slowly; type checkers take this name as true
if TYPE_CHECKING:
    from typing import Any, NoReturn


def _columns() -> int:
    """Returns `shutil.get_terminal_size().columns`; shutil imports every format of archives."""
    given = os.environ.get("COLUMNS", "")
    try:
        found = int(given) if given.isdecimal() else 0
        return found or os.get_terminal_size(1).columns or 80
    except OSError:  # standard output is not a terminal
        return 80


class _Help(argparse.HelpFormatter):
    """Formats help: keeps line breaks in indented text, and has room for the longest command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if "\n  " in part else super(_Help, self)._fill_text(part, width, indent)
            for part in text.split("\n\n")
        )


class _Parser(argparse.ArgumentParser):
    """Prints a usage error as one sentence; a long usage text would push it off the screen."""

    def _print_message(self, message: str, file: Any = None) -> None:
        for line in message.splitlines():  # the streams escape line breaks inside of one write
            print(line, file=file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        from kafka_rebalance.report.text.sentences import print_sentence

        usage = self.format_usage()
        is_short = usage.count("\n") == 1
        if is_short:
            sys.stderr.write(usage)
        print_sentence(f"{self.prog}: error: {message}{self._near(message)}")
        if not is_short:
            print_sentence(f"{self.prog} --help shows all options.")
        self.exit(USAGE)

    def _near(self, message: str) -> str:
        """Returns the question for a misspelt option or choice, or ""."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            return did_you_mean(found[1], re.findall(r"[\w -]+", found[2]), 0.6)
        found = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
        return did_you_mean(found[1], self._option_string_actions) if found else ""


class _Command(_Parser):
    """Accepts FILE before, between and after the options; names the command in usage errors."""

    _is_intermixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is not None or self._is_intermixing:  # the second: called from below
            return super().parse_known_args(args, namespace)
        self._is_intermixing = True
        # parse_known_args alone takes an optional FILE as left out once it meets an option.
        found, extra = self.parse_known_intermixed_args(args, namespace)
        self._is_intermixing = False
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra


class _Version(argparse.Action):
    """Prints the version. This loads the compiled core, which the other options need not load."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{parser.prog} {kafka_rebalance.__version__}")
        parser.exit()


def parser(given: Sequence[str]) -> argparse.ArgumentParser:
    whole = _Parser(
        prog=PROG,
        formatter_class=_Help,
        description="Computes Kafka rebalances exactly as Apache Kafka does.",
        epilog="Exit codes: 0 done, 2 wrong usage, 3 some groups had errors or none has an answer, "
        "4 `check` or `rollout --gate` fails, 130 interrupted, 1 any other failure. "
        "docs/glossary.md explains the words of all outputs.",
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version, and exit")
    word = next((one for one in given if not one.startswith("-")), "")
    is_first = word in COMMANDS and word == given[0]  # else an option before it may ask for all

    def command_parser(**how: Any) -> _Command | None:
        """Returns a parser for the command that is parsed; the help only names the others."""
        return _Command(**how) if how["prog"] == f"{PROG} {word}" else None

    own: Any = command_parser
    commands = whole.add_subparsers(
        title="commands", required=True, metavar="COMMAND", parser_class=own
    )
    for name in [word] if is_first else COMMANDS:
        command = commands.add_parser(name, help=COMMANDS[name], formatter_class=_Help)
        if name == word:
            module = import_module(f".{name}", __package__)
            module.add_options(command)
            command.set_defaults(run=module.run, parser=command)
            shown = "\n".join(f"  {PROG} {example}" for example in EXAMPLES[name])
            command.epilog = "\n\n".join(filter(None, (f"examples:\n{shown}", command.epilog)))
    return whole

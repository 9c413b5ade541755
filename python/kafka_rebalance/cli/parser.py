# SPDX-License-Identifier: Apache-2.0
"""The parser of the command line; the module of each command adds the command's options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from kafka_rebalance.errors import did_you_mean
from kafka_rebalance.report.text.terminal import columns

TYPE_CHECKING = False  # `typing` is slow to import; type checkers assume True
if TYPE_CHECKING:
    from typing import Any, NoReturn

PROG = "kafka-rebalance"

COMMANDS = {
    "demo": "assign 20,000 sample groups on Spark",
    "snapshot": "read the groups of a live cluster",
    "describe": "show who owns what in a group, and what is wrong with it",
    "check": "fail a pipeline if groups, or a change of them, have problems",
    "history": "show past rebalances with their causes, from __consumer_offsets",
    "explain": "explain why a partition goes to its owner",
    "plan": "predict changes: moves, pauses and balance, round by round",
    "scale": "show which numbers of members help, and what each step costs",
    "rollout": "predict a deploy on Kubernetes, and what makes it cheaper",
    "compare": "predict changes with every assignor, and recommend one",
    "watch": "follow a live group: was each rebalance as predicted?",
    "exporter": "serve metrics of all groups, for Prometheus",
    "simulate": "simulate a rebalance in seconds: who stops, and for how long",
    "connect": "predict the rebalances of a Kafka Connect cluster",
    "assign": "compute which member owns which partitions",
    "fleet": "assign many groups on Spark",
    "coordinator": "step through a group coordinator in virtual time",
    "serve": "run a coordinator behind a port, for tests of consumers",
    "probe": "let a real client lead invented groups, and read its answers",
    "mcp": "answer an agent's questions over the Model Context Protocol",
    "completion": "complete commands and options in a shell",
}
"""Each command with its line in the help. The module of that name adds the command's options; the
module's docstring is the description in the help.

The commands are in the order in which a new user needs them.
"""

_RESTARTS = re.compile("restart|rolling")
"""Words in the options that people try when they look for --bounce-members."""

_EXAMPLES = """
demo
snapshot --bootstrap-server broker:9092 > groups.jsonl
snapshot --bootstrap-server broker:9093 --command-config client.properties
describe --bootstrap-server broker:9092 --group payments
describe groups.jsonl
check groups.jsonl --fail-on warning --max-spread 2
check groups.jsonl --group payments --add-members 2 --format github
check --bootstrap-server broker:9092 --baseline known.json
history records.jsonl.gz --broker-log server.log
history records.parquet --group payments --what-if
history records.jsonl.gz --output history.html
explain payments-3 groups.jsonl --group payments --add-members 1
plan groups.jsonl --group payments --add-members 2
plan groups.jsonl --partitions payments=24
plan --bootstrap-server broker:9092 --group payments --bounce-members --output plan.html
scale groups.jsonl --group payments --members 8..20
scale --bootstrap-server broker:9092 --group payments --rate payments=1200 --capacity 100
rollout deployment.yaml groups.jsonl --group payments
rollout deployment.yaml --bootstrap-server broker:9092 --group payments --setting on_sigterm=dies
rollout deployment.yaml --bootstrap-server broker:9092 --group payments --gate --for 120
compare --bootstrap-server broker:9092 --group payments --add-members 1
watch --bootstrap-server broker:9092 --group payments --add-members 1 --rebalances 1
exporter --bootstrap-server broker:9092
exporter --bootstrap-server broker:9092 --group 'orders-*' --port 0
simulate rolling-bounce --compare eager,cooperative,static
simulate --from groups.jsonl --group payments --bounce-members --seeds 20
connect --url http://worker:8083 --then "worker host:8083 leaves" --then 300s
assign groups.jsonl --assignor sticky > assigned.jsonl
fleet assign groups.jsonl assigned
coordinator trace.txt
serve --topic orders=6 --port 9092
serve --topics-of groups.jsonl --port 0
probe groups.jsonl --client confluent-kafka --assignor range
mcp groups.jsonl
mcp --bootstrap-server broker:9092
completion bash
"""
EXAMPLES = {
    name: [line for line in _EXAMPLES.splitlines() if line.partition(" ")[0] == name]
    for name in COMMANDS
}
"""The examples in the help of each command; a test parses them."""


class _Help(argparse.HelpFormatter):
    """Formats help: keeps line breaks in indented text, and has room for the longest command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=(columns() or 80) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if "\n  " in part else super(_Help, self)._fill_text(part, width, indent)
            for part in text.split("\n\n")
        )


class _Parser(argparse.ArgumentParser):
    """Prints a usage error as one sentence, after the usage text only if that fits on one line."""

    def _print_message(self, message: str, file: Any = None) -> None:
        for line in message.splitlines():  # `ShownStream` escapes line breaks inside of a write
            print(line, file=file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        from kafka_rebalance.report.text.sentences import print_sentence

        if message.endswith("required: COMMAND"):
            self.print_help(sys.stderr)
            self.exit(2)
        usage = self.format_usage()
        is_short = usage.count("\n") == 1
        if is_short:
            sys.stderr.write(usage)
        print_sentence(f"{self.prog}: error: {message}{self._near(message)}")
        if not is_short:
            print_sentence(f"{self.prog} --help shows all options.")
        self.exit(2)  # USAGE

    def _near(self, message: str) -> str:
        """Returns a suggestion if `message` reports a misspelt option or choice; else ""."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            return did_you_mean(found[1], re.findall(r"[\w -]+", found[2]), 0.6)
        found = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
        known = self._option_string_actions
        if found and _RESTARTS.search(found[1]) and "--bounce-members" in known:
            return "; did you mean --bounce-members?"
        return did_you_mean(found[1], known) if found else ""


class _Command(_Parser):
    """Accepts FILE before, between and after the options; names the command in usage errors."""

    _is_intermixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # If `_is_intermixing`, argparse calls this method during the call below.
        if self._subparsers is not None or self._is_intermixing:
            return super().parse_known_args(args, namespace)
        self._is_intermixing = True
        # parse_known_args alone considers an optional FILE absent as soon as it meets an option.
        found, extra = self.parse_known_intermixed_args(args, namespace)
        self._is_intermixing = False
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra


class _Version(argparse.Action):
    """Prints the version. This loads the compiled core, which the other options do not need."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import kafka_rebalance

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
    # An option before the command may be --help, which lists all commands.
    is_first = word in COMMANDS and word == given[0]

    def command_parser(**how: Any) -> _Command | None:
        """Returns a parser if this is the given command; None for others, which are only listed."""
        return _Command(**how) if how["prog"] == f"{PROG} {word}" else None

    own: Any = command_parser
    commands = whole.add_subparsers(
        title="commands", prog=PROG, required=True, metavar="COMMAND", parser_class=own
    )
    for name in [word] if is_first else COMMANDS:
        command = commands.add_parser(name, help=COMMANDS[name], formatter_class=_Help)
        if name == word:
            module = import_module(f".{name}", __package__)
            command.description = module.__doc__
            module.add_options(command)
            command.set_defaults(run=module.run, parser=command)
            shown = "\n".join(f"  {PROG} {example}" for example in EXAMPLES[name])
            command.epilog = "\n\n".join(filter(None, (f"examples:\n{shown}", command.epilog)))
    return whole

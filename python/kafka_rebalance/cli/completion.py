# SPDX-License-Identifier: Apache-2.0
"""Prints a script for a shell: eval "$(kafka-rebalance completion bash)", for example in ~/.bashrc;
eval "$(kafka-rebalance completion zsh)", for example in ~/.zshrc, after compinit; kafka-rebalance
completion fish | source, for example in config.fish.
"""

import argparse
import shlex
from collections.abc import Iterator, Mapping
from importlib import import_module

from . import DONE


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    from .parser import COMMANDS

    options = {name: sorted(_options(name)) for name in COMMANDS}
    lines = _fish(COMMANDS, options) if args.shell == "fish" else _bash(options)
    if args.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    for line in lines:
        print(line)
    return DONE


def _options(command: str) -> Iterator[str]:
    parser = argparse.ArgumentParser()
    import_module(f".{command}", __package__).add_options(parser)
    for action in parser._actions:
        yield from (text for text in action.option_strings if text.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices


def _bash(options: Mapping[str, list[str]]) -> Iterator[str]:
    yield "_kafka_rebalance() {"
    yield '  local word="${COMP_WORDS[COMP_CWORD]}" words=""'
    yield '  case "${COMP_WORDS[1]}" in'
    for command, found in options.items():
        yield f"    {command}) words={shlex.quote(' '.join(found))} ;;"
    yield "  esac"
    yield f'  [ "$COMP_CWORD" -eq 1 ] && words={shlex.quote(" ".join(options))}'
    yield '  COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _kafka_rebalance kafka-rebalance"


def _fish(commands: Mapping[str, str], options: Mapping[str, list[str]]) -> Iterator[str]:
    start = "complete -c kafka-rebalance -n"
    for command, line in commands.items():
        yield f"{start} __fish_use_subcommand -f -a {command} -d {shlex.quote(line)}"
    for command, found in options.items():
        seen = shlex.quote(f"__fish_seen_subcommand_from {command}")
        for option in found:
            is_option = option.startswith("--")
            yield f"{start} {seen} {f'-l {option[2:]}' if is_option else f'-a {option}'}"

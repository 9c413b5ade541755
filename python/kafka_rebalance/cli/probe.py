# SPDX-License-Identifier: Apache-2.0
"""Reads groups as JSON lines, lets a real client lead each of them, and writes its answer as a
result line, in order. Nothing is assigned: the members are invented. Needs the extra `serve`.
"""

import argparse
import asyncio
import json
import shlex
import time
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.report.text.sentences import counted, print_sentence
from kafka_rebalance.serve.probe_workers import CONSUMERS, PATIENCE_S

from . import of_errors
from .lines import group_lines, open_input, required
from .options import add_table, whole

if TYPE_CHECKING:  # `--help` works without the extra
    from kafka_rebalance.serve.probe_cases import ProbeCase
    from kafka_rebalance.serve.probed_client import ProbedClient


def add_options(parser: argparse.ArgumentParser) -> None:
    add_table(parser, "file FILE: contract lines; - for standard input")
    names = sorted(CONSUMERS)
    clients = """
    --client LIBRARY: a Python library: {}
    --command LINE: a program that subscribes to a topic; {{address}} and {{assignor}} are put in
    """
    add_table(
        parser.add_mutually_exclusive_group(required=True),
        clients.format(", ".join(names)),
        client={"choices": names},
        command=_command,
    )
    options = """
    --assignor NAME: for all groups, not their own
    --patience S: a group without an answer for S seconds is an error (default: %(default)s)
    """
    add_table(parser, options, patience={"type": whole(1), "default": int(PATIENCE_S)})


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation mark is not closed
        problem = f"{text} cannot be split into words as a shell does: {error}"
        raise argparse.ArgumentTypeError(problem) from None
    if not words or not words[0]:
        raise argparse.ArgumentTypeError("empty; give a program and its arguments")
    return text


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_probe(args))


async def _probe(args: argparse.Namespace) -> int:
    from kafka_rebalance.serve.probed_client import ProbedClient

    groups = bad = 0
    start = time.monotonic()
    with open_input(args.file) as source:
        cases = (_case(line, args.assignor) for _, line in group_lines(source, args))
        for protocol, run_of in groupby(cases, lambda one: getattr(one, "protocol", None)):
            client = None
            if protocol is not None:
                client = ProbedClient(
                    protocol, library=args.client, command=args.command, patience_s=args.patience
                )
            async for result in _results(client, run_of):
                print(json.dumps(result, ensure_ascii=False), flush=True)
                groups += 1
                bad += "error" in result
    minutes = (time.monotonic() - start) / 60
    told = f"{counted(groups, 'group')}, {counted(bad, 'error')}, {groups / minutes:.0f} a minute"
    print_sentence(told)
    return of_errors(bad)


def _case(line: bytes | None, assignor: str | None) -> "ProbeCase | dict[str, Any]":
    """Returns the case in a line; for a wrong line, a result line with the error."""
    from kafka_rebalance.serve.probe_cases import probe_case

    try:
        return probe_case(required(line), assignor)
    except (GroupError, WireError) as error:
        return {"group_id": None, "error": str(error)}


async def _results(client: "ProbedClient | None", cases: Iterator[Any]) -> Any:
    """Yields the client's answer to each case; without a client, all cases are error lines and are
    yielded as they are.
    """
    if client is None:
        for line in cases:
            yield line
        return
    async with client:
        async for result in client.results(cases):
            yield result

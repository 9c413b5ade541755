# SPDX-License-Identifier: Apache-2.0
"""Runs `kafka-rebalance probe`: lets the client lead each line's group, and prints its answers."""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from kafka_rebalance.errors import GroupError, WireError
from kafka_rebalance.group.line_files import MAX_LINE_BYTES, read_lines
from kafka_rebalance.report.text.names import counted
from kafka_rebalance.report.text.sentences import print_sentence
from kafka_rebalance.serve.probe_cases import ProbeCase, probe_case
from kafka_rebalance.serve.probed_client import ProbedClient

from .exit_codes import of_errors
from .lines import open_input


def probe(args: argparse.Namespace) -> int:
    """Prints a result line for each line of the input, and returns the exit code."""
    return asyncio.run(_probe(args))


async def _probe(args: argparse.Namespace) -> int:
    groups = bad = 0
    start = time.monotonic()
    with open_input(args.file) as source:
        lines = (
            line for line in read_lines(source, MAX_LINE_BYTES) if line is None or line.strip()
        )
        cases = (_case(line, args.assignor) for line in lines)
        for protocol, run_of in groupby(cases, key=_protocol):
            if protocol is None:
                results: Any = _each(run_of)
            else:
                client = ProbedClient(
                    protocol, library=args.client, command=args.command, patience_s=args.patience
                )
                results = _led(client, run_of)
            async for result in results:
                print(json.dumps(result, ensure_ascii=False), flush=True)
                groups += 1
                bad += "error" in result
    minutes = (time.monotonic() - start) / 60
    told = f"{counted(groups, 'group')}, {counted(bad, 'error')}, {groups / minutes:.0f} a minute"
    print_sentence(told)
    return of_errors(bad)


def _case(line: bytes | None, assignor: str | None) -> ProbeCase | dict[str, Any]:
    """Returns the case, or the result line of its error."""
    try:
        if line is None:
            raise GroupError("line", f"more than {MAX_LINE_BYTES} bytes")
        return probe_case(line, assignor)
    except (GroupError, WireError) as error:
        return {"group_id": None, "error": str(error)}


def _protocol(case: ProbeCase | dict[str, Any]) -> str | None:
    return None if isinstance(case, dict) else case.protocol


async def _each(results: Iterator[Any]) -> Any:
    for one in results:
        yield one


async def _led(client: ProbedClient, cases: Iterator[Any]) -> Any:
    async with client:
        async for result in client.results(cases):
            yield result

# SPDX-License-Identifier: Apache-2.0
"""Generated groups for `probe`, the client that leads them, and its answers in a common form."""

from __future__ import annotations

import asyncio
import json
import random
import shlex
from typing import TYPE_CHECKING, Any

import kafka_rebalance as kr
from kafka_rebalance.serve.probe_cases import probe_case
from kafka_rebalance.serve.probed_client import ProbedClient
from kafka_rebalance.wire.consumer_protocol import (
    by_topic,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
)
from tests.support.broker import java
from tests.support.generate import generate
from tests.support.generate_sent import by_bytes, group_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_rebalance.assignors.registry import Engine

Case = dict[str, Any]
Answer = dict[str, Any]


def led(cases: Iterable[Case], **client: Any) -> list[Answer]:
    """Returns the results of a client that leads the cases, which all use one assignor."""
    made = [probe_case(json.dumps(case)) for case in cases]

    async def results() -> list[Answer]:
        async with ProbedClient(made[0].protocol, **client) as probed:
            return [result async for result in probed.results(made)]

    return asyncio.run(results())


def ours(case: Case, engine: Engine = "rust") -> Answer:
    try:
        return {"assignment": kr.assign(group_of(case), case["assignor"], engine=engine).to_dict()}
    except kr.GroupError as error:
        return {"error": str(error)}


def on_the_wire(assignment: dict[str, Any]) -> dict[str, dict[str, list[int]]]:
    """Returns the assignment by topic, in order of appearance, as Java and Python write it."""
    return {member: by_topic(map(tuple, owned)) for member, owned in assignment.items()}


# Java ---------------------------------------------------------------------------------------------


def java_command(assignor: str) -> str:
    """Returns a command that runs four consumers of the program `Consumers`."""
    configs = {"metadata.max.age.ms": "20", "retry.backoff.ms": "1", "retry.backoff.max.ms": "1"}
    members = [
        {
            "client_id": f"probe-{number}",
            "group_id": f"probe-{number}",
            "assignors": [assignor],
            "topics": ["kafka-rebalance-probe"],
            "configs": {**configs, "session.timeout.ms": "30000"},
        }
        for number in range(4)
    ]
    line = shlex.quote(json.dumps({"wait": False, "add": members}))
    program = shlex.join(java("kafkarebalance.Consumers", "{address}", log="off"))
    return shlex.join(["sh", "-c", f"(echo {line}; cat) | {program}"])


def newest_generation(case: Case) -> int:
    """Returns the newest generation that Java's assignor reads from a group's members.

    Java's sticky assignors remember the newest generation that they have seen, so the groups are
    led in the order of this number.
    """
    found = [-1]
    for member in case["members"]:
        sent = decode_subscription(bytes.fromhex(member["subscription"]))
        data = sent.user_data or b""
        if case["assignor"] == "sticky":
            found.append(_or_none(decode_sticky_user_data(data).generation_id))
        elif case["assignor"] == "cooperative-sticky" and sent.generation_id is None:
            # The field is absent or negative, so the class reads the user data.
            found.append(decode_cooperative_user_data(data))
        else:
            found.append(_or_none(sent.generation_id))
    return max(found)


def _or_none(generation: int | None) -> int:
    return -1 if generation is None else generation


def java_cases(seed: int, assignor: str) -> Iterator[Case]:
    """Yields a million groups; their members send bytes of every version and library."""
    rng = random.Random(f"{seed}/{assignor}/bytes")
    for case in generate(seed, 1_000_000, (assignor,), ours):
        yield by_bytes(case, rng)


# librdkafka ---------------------------------------------------------------------------------------


def librdkafka_cases(seed: int, dialect: str) -> Iterator[Case]:
    """Yields a million groups; in every second one, the members are given as bytes."""
    rng = random.Random(f"{seed}/{dialect}/bytes")
    for number, case in enumerate(generate(seed, 1_000_000, (dialect,), ours)):
        yield by_bytes(case, rng) if number % 2 else case

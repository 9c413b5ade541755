# SPDX-License-Identifier: Apache-2.0
"""Both engines return the stored answers of Kafka's own classes, with equal order."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from tests.support import tiers
from tests.support.oracle import ask_once
from tools.check_vectors import agrees, check

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine
    from tests.support.oracle import Oracle

VECTORS = Path(__file__).resolve().parent / "vectors"
ALL_FILES = sorted(path.name for path in VECTORS.glob("*.jsonl*"))
# Prefixes of files that other tests read: Connect's scripts (test_connect.py), members as bytes
# (test_sent_members.py), classic Kafka Streams groups (test_stream_leader.py), curves
# (test_balance_curve.py). Files that do not end in .gz also have tests of their own.
ELSEWHERE = ("balance_curve", "connect-", "sent", "stream.")
BROKERS = ("consumer-", "share-", "streams-")
NOT_JAVAS = ("balanced", "weighted", "librdkafka", *BROKERS)
FILES = [name for name in ALL_FILES if name.endswith(".gz") and not name.startswith(ELSEWHERE)]
# A row of the README's table: file, number of cases, checksum.
ROW = re.compile(r"^\| `([\w.-]+)` \| ([\d,]+) \| `([0-9a-f]{64})` \|$", re.MULTILINE)


def _lines(file: str) -> list[str]:
    with gzip.open(VECTORS / file, "rt", encoding="utf-8") as lines:
        return list(lines)


def _stated() -> dict[str, tuple[int, str]]:
    readme = (VECTORS / "README.md").read_text(encoding="utf-8")
    rows = ROW.findall(readme)
    assert len(rows) == len(re.findall(r"^\| `", readme, re.MULTILINE))  # no row is malformed
    return {file: (int(count.replace(",", "")), checksum) for file, count, checksum in rows}


def _assignor(file: str) -> str:
    name = re.sub(r"(-treeified|-odd)?\.jsonl\.gz$", "", file)
    return re.sub(r"^(librdkafka|consumer|share|streams)-", r"\1/", name)


def test_every_assignor_has_its_vectors() -> None:
    assert {_assignor(file) for file in FILES} == {
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
        "librdkafka/range",
        "librdkafka/roundrobin",
        "librdkafka/cooperative-sticky",
        "consumer/uniform",
        "consumer/range",
        "share/simple",
        "streams/sticky",
        "balanced",
        "weighted",
    }


def test_the_readme_tells_of_every_file() -> None:
    assert sorted(_stated()) == ALL_FILES


@pytest.mark.parametrize("file", ALL_FILES)
def test_files_are_as_the_readme_says(file: str) -> None:
    count, checksum = _stated()[file]
    data = (VECTORS / file).read_bytes()
    assert hashlib.sha256(data).hexdigest() == checksum
    text = gzip.decompress(data) if file.endswith(".gz") else data
    assert text.count(b"\n") == count


@pytest.mark.parametrize("file", FILES)
def test_ids_are_unique_and_the_assignor_is_the_files(file: str) -> None:
    cases = [json.loads(line)["case"] for line in _lines(file)]
    repeated = [name for name, n in Counter(c["group_id"] for c in cases).items() if n > 1]
    assert repeated == []
    assert {case["assignor"] for case in cases} == {_assignor(file)}


@pytest.mark.parametrize("file", FILES)
def test_vectors(file: str, engine: Engine, pytestconfig: pytest.Config) -> None:
    """In a quick run, the reference answers every fourth case."""
    is_short = engine == "reference" and tiers.is_quick_run(pytestconfig)
    lines = _lines(file)[:: 4 if is_short else 1]
    count, differences = check(lines, engine)
    assert differences == []
    assert count == len(lines) > 0


@pytest.mark.oracle
@pytest.mark.parametrize("file", [f for f in FILES if not f.startswith(NOT_JAVAS)])
def test_kafka_still_says_so(file: str, oracle: Oracle) -> None:
    """Kafka's classes of the version that we claim to equal return the vectors of Kafka 4.0."""
    assert _differing(file, oracle) == []


@pytest.mark.oracle
@pytest.mark.parametrize("file", [file for file in FILES if file.startswith(BROKERS)])
def test_kafkas_brokers_still_say_so(file: str, server_oracle: Oracle) -> None:
    assert _differing(file, server_oracle) == []


def _differing(file: str, oracle: Oracle) -> list[str]:
    vectors = [json.loads(line) for line in _lines(file)]
    answers = oracle.ask_many(vector["case"] for vector in vectors)
    return [
        vector["case"]["group_id"]
        for vector, answer in zip(vectors, answers, strict=True)
        if not agrees(vector["expected"], answer)
    ]


def test_where_kafka_never_ends_we_say_so(engine: Engine) -> None:
    group = kr.GroupSpec.from_json((VECTORS / "never_ends.jsonl").read_bytes())
    with pytest.raises(kr.AssignorThrows, match="sticky assignor never ends here"):
        kr.assign(group, engine=engine)


@pytest.mark.oracle
@pytest.mark.usefixtures("oracle")
def test_kafka_still_never_ends() -> None:
    line = json.loads((VECTORS / "never_ends.jsonl").read_bytes())
    assert ask_once(line, within_s=5) is None

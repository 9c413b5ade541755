# SPDX-License-Identifier: Apache-2.0
"""Short runs of the differential tools: Kafka's classes, the reference and Rust agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.oracle import OracleError, missing_java_of_the_judges
from tools import differential
from tools.check_vectors import agrees

if TYPE_CHECKING:
    from tests.support.oracle import Oracle

ROOT = Path(__file__).resolve().parent.parent
CASES = 800
MODULE = (sys.executable, "-m")
CONNECT_JAR = ROOT / "tools/connect-oracle/target/connect-oracle.jar"

pytestmark = pytest.mark.oracle


@pytest.mark.usefixtures("oracle")
def test_three_engines_one_answer(tmp_path: Path) -> None:
    out = tmp_path / "differences.jsonl"
    command = [
        sys.executable,
        "-m",
        "tools.differential",
        "--cases",
        str(CASES),
        "--seed",
        "20261120",
    ]
    ran = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert out.read_text(encoding="utf-8") == ""
    cases = {name: int(n) for name, n in re.findall(r"([a-z-]+) (\d+)[,;]", ran.stdout)}
    assert cases == dict.fromkeys(differential.ASSIGNORS, CASES // 4)


@pytest.mark.usefixtures("oracle")
def test_three_engines_one_answer_to_bytes_of_every_version(tmp_path: Path) -> None:
    out = tmp_path / "differences.jsonl"
    command = [*MODULE, "tools.differential", "--cases", "480", "--seed", "20261121"]
    ran = subprocess.run(
        [*command, "--by-bytes", "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "480 mixed-version cases by bytes: oracle = reference = rust, 0 diff" in ran.stdout


@pytest.mark.usefixtures("server_oracle")
def test_three_engines_one_answer_of_the_brokers_assignors(tmp_path: Path) -> None:
    out = tmp_path / "differences.jsonl"
    names = ",".join(differential.SERVER_SIDE)
    command = [*MODULE, "tools.differential", "--cases", "480", "--seed", "20261122"]
    ran = subprocess.run(
        [*command, "--assignors", names, "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "480 cases: oracle = reference = rust, 0 differences" in ran.stdout


@pytest.mark.usefixtures("oracle")
def test_java_plays_the_rounds_of_plans() -> None:
    command = [
        sys.executable,
        "-m",
        "tools.differential_plans",
        "--plans",
        "60",
        "--seed",
        "20261121",
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "Java = reference = rust = in bulk, 0 differences" in ran.stdout


@pytest.mark.usefixtures("oracle")
def test_large_groups_of_the_benchmark_grid_have_equal_answers(first_seed: int) -> None:
    command = [*MODULE, "tools.differential_grid", "--cases", "6", "--seed", f"{first_seed}"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = f"6 grid cases: oracle = rust, 0 differences (seed {first_seed})\n"
    assert (ran.stdout, ran.returncode) == (said, 0), ran.stderr[-3000:]


def test_three_engines_one_answer_to_connects_scripts(tmp_path: Path) -> None:
    if not CONNECT_JAR.is_file():
        pytest.skip("the Connect oracle's jar is missing: `make judges` builds it")
    if missing := missing_java_of_the_judges():
        pytest.skip(missing)
    out = tmp_path / "differences.jsonl"
    command = [
        sys.executable,
        "-m",
        "tools.differential_connect",
        "--scripts",
        "300",
        "--seed",
        "7",
    ]
    ran = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert ran.stdout.startswith("300 scripts: oracle = reference = rust, 0 differences")


@pytest.mark.parametrize(
    "field", [{"subscription_version": 1}, {"user_data": "00"}, {"user_data_generation_id": 2}]
)
def test_the_oracle_refuses_fields_that_need_the_bytes(
    oracle: Oracle, field: dict[str, Any]
) -> None:
    """From the fields, the oracle would encode a new client's bytes; this member sent others."""
    member = {"member_id": "a", "topics": ["t"], "generation_id": 3} | field
    with pytest.raises(OracleError, match="need the bytes in subscription"):
        oracle.ask({"assignor": "sticky", "topics": [], "members": [member]})


def test_the_comparison_sees_differences(oracle: Oracle) -> None:
    topics, members = [{"name": "t", "partitions": 2}], [{"member_id": "a", "topics": ["t"]}]
    asked = {"assignor": "range", "topics": topics, "members": members}
    right = oracle.ask(asked)
    wrong = {"assignment": {"a": [["t", 1], ["t", 0]]}}
    assert agrees(right, right)
    assert not agrees(right, wrong)
    answers = {"oracle": right, "reference": right, "rust": right}
    assert differential.difference(answers) is None
    assert differential.difference(answers | {"rust": wrong}) == "rust gives a other order"
    assert differential.difference(answers | {"rust": {"error": "x"}}) is not None
    assert differential.difference(answers | {"reference": {"crash": "x"}}) is not None

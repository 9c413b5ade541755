# SPDX-License-Identifier: Apache-2.0
"""`make wheel` names missing metadata, and shows the output of a program that fails.

It tries a wheel only in an environment without other packages.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import wheel

ROOT = Path(__file__).resolve().parent.parent
FULL = "".join(f"{field}: x\n" for field in wheel.METADATA)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (FULL + "\nA description\n", []),
        (FULL, ["its description"]),
        (FULL.replace("Author: x\n", "") + "\nA description\n", ["Author"]),
    ],
)
def test_missing_metadata_are_named(text: str, missing: list[str], tmp_path: Path) -> None:
    made = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("x-1.dist-info/METADATA", text)
    assert wheel.missing_metadata(made) == missing


def test_stray_files_in_a_wheel_are_named(tmp_path: Path) -> None:
    made = tmp_path / "x-1-py3-none-any.whl"
    info, sbom = "x-1.dist-info/", "x-1.dist-info/sboms/kafka-rebalance.cyclonedx.json"
    right = {"kafka_rebalance/a.py", "kafka_rebalance/_core.abi3.so", f"{info}METADATA", sbom}
    stray = {"kafka_rebalance/notes.txt", "tests/b.py", f"{info}secret.pem"}
    for names in (right, right | stray, right - {"kafka_rebalance/a.py", sbom}):
        with zipfile.ZipFile(made, "w") as archive:
            for name in names:
                archive.writestr(name, "")
        found = wheel.wrong_files(made, {"kafka_rebalance/a.py"})
        assert found == [
            *(f"{name} does not belong there" for name in sorted(names - right)),
            *(f"{name.removeprefix(info)} is missing" for name in sorted(right - names)),
        ]


def test_a_program_that_fails_is_an_error_with_its_output() -> None:
    with pytest.raises(wheel.WheelError, match=r"(?s)-c .*broken"):
        wheel._run(sys.executable, "-c", "raise SystemExit('broken')")


def test_the_smoke_test_refuses_an_environment_with_other_packages(tmp_path: Path) -> None:
    """This environment has pytest, so the smoke test must fail before it writes its sample."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "wheel_smoke.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode != 0
    assert "pytest" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_shim_that_does_not_run_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert wheel.found_pythons() == []
    said = capsys.readouterr().out.splitlines()
    assert f"python3.12: {shim} does not run, not tried: pyenv: python3.12: command not" in said[1]
    assert said[2] == "  name another one: make wheel PYTHONS=/path/of/python3.12"
    assert said[0] == "python3.11: not on the path, not tried"

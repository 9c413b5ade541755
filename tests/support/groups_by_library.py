# SPDX-License-Identifier: Apache-2.0
"""Groups whose members run one library, and the output of commands about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import kafka_rebalance as kr
from kafka_rebalance.cli import main

if TYPE_CHECKING:
    from pathlib import Path


def group(
    group_id: str, assignor: str, library: str, partitions: tuple[int, ...] = (3, 1)
) -> kr.GroupSpec:
    """Two settled members of one library; its member led last."""
    members, start = [], 0
    for name, count in zip(("c1", "c2"), partitions, strict=True):
        owned = tuple(kr.TopicPartition("t", p) for p in range(start, start + count))
        start += count
        rack = "" if library == "librdkafka" else None
        members.append(
            kr.Member(
                f"{name}-aaaa",
                ("t",),
                client_id=name,
                owned_partitions=owned,
                rack_id=rack,
                client_library=library,
            )
        )
    return kr.GroupSpec(
        group_id, (kr.Topic("t", start),), tuple(members), assignor, leader_library=library
    )


def said(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    groups: list[kr.GroupSpec],
    *command: str,
    code: int = 0,
) -> str:
    """Returns the output of the command, all in one line."""
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(f"{one.to_json()}\n" for one in groups), encoding="utf-8")
    assert main([command[0], str(file), *command[1:]]) == code
    out, err = capsys.readouterr()
    return " ".join(f"{out} {err}".split())

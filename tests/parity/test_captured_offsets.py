# SPDX-License-Identifier: Apache-2.0
"""From the `__consumer_offsets` of a real broker, our coordinator loads the broker's groups."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.parity.driver_player import OwnPlayer
from tests.parity.recorded import TESTS

DATA = TESTS / "data"
GROUPS = {
    group["group_id"]: group
    for group in json.loads((DATA / "consumer_offsets_groups.json").read_text(encoding="utf-8"))
}
AT_REST = ("Stable", "Empty")
CLASSIC = [name for name, group in GROUPS.items() if group["listed"]["group_type"] == "classic"]


@pytest.fixture(scope="module")
def loaded() -> OwnPlayer:
    """Returns our coordinator after it has loaded the captured log."""
    text = (DATA / "consumer_offsets.jsonl").read_text(encoding="utf-8")
    driver = OwnPlayer()
    driver.tell({"op": "init"})
    for record in map(json.loads, text.splitlines()):
        producer = {} if record["pid"] is None else {"pid": record["pid"]}
        if record["control"]:
            driver.tell({"op": "rawend", "commit": record["control"] == "COMMIT", **producer})
        else:
            driver.tell({"op": "raw", "k": record["key"], "v": record["value"], **producer})
    driver.tell({"op": "reload"})
    return driver


@pytest.mark.parametrize(
    "name", [name for name in CLASSIC if GROUPS[name]["described"]["state"] in AT_REST]
)
def test_groups_at_rest(loaded: OwnPlayer, name: str) -> None:
    described = GROUPS[name]["described"]
    ours = loaded.tell({"op": "describe", "g": name})
    assert (ours["state"], ours["ptype"], ours["proto"]) == (
        described["state"], described["protocol_type"], described["protocol"]
    )  # fmt: skip
    assert _ours(ours["members"]) == _broker(described["members"], "metadata", "assignment")


@pytest.mark.parametrize(
    "name", [name for name in CLASSIC if GROUPS[name]["described"]["state"] not in AT_REST]
)
def test_groups_in_a_rebalance(loaded: OwnPlayer, name: str) -> None:
    """Rebalancing groups are loaded as Stable: only finished generations have a record."""
    described = GROUPS[name]["described"]
    ours = loaded.tell({"op": "describe", "g": name})
    assert ours["state"] == "Stable"
    assert {(one["id"], _hex(one["asg"])) for one in ours["members"]} == {
        (one["member_id"], one["assignment"]) for one in described["members"] if one["assignment"]
    }


@pytest.mark.parametrize("name", GROUPS)
def test_offsets(loaded: OwnPlayer, name: str) -> None:
    group = GROUPS[name]
    for one in group["offsets"]:
        place = {"g": name, "topic": one["topic"], "p": one["partition"]}
        ours = loaded.tell({"op": "fetch", **place})
        assert (ours["off"], ours["md"]) == (one["offset"], one["metadata"])
        stable = loaded.tell({"op": "fetch", "stable": True, **place})
        open_ = [one["topic"], one["partition"]] in group["unstable"]
        assert stable["err"] == ("UNSTABLE_OFFSET_COMMIT" if open_ else "NONE")


def test_no_deleted_group_is_in_the_loaded_state(loaded: OwnPlayer) -> None:
    """No deleted group or offset is loaded, and no offset of an open or aborted transaction."""
    assert loaded.tell({"op": "describe", "g": "raw-deleted"})["state"] == "Dead"
    for group, topic, partition in (
        ("raw-deleted", "t", 0),
        ("raw-deleted", "u", 0),
        ("raw-trimmed", "t", 1),
        ("raw-kept", "raw-doomed", 0),
        ("raw-only-open", "t", 0),
    ):
        ours = loaded.tell({"op": "fetch", "g": group, "topic": topic, "p": partition})
        assert ours["off"] == -1, (group, topic, partition)


def _ours(members: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return sorted((one["id"], _hex(one["meta"]), _hex(one["asg"])) for one in members)


def _broker(members: list[dict[str, Any]], *names: str) -> list[tuple[str, ...]]:
    return sorted((one["member_id"], *(one[name] for name in names)) for one in members)


def _hex(text: str) -> str:
    return text[4:] if text.startswith("hex:") else text.encode().hex()

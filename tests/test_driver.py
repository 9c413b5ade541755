# SPDX-License-Identifier: Apache-2.0
"""The driver of JSON lines: wrong commands are answered, errors of the coordinator are raised."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_rebalance.coordinator.coordinator import Coordinator
from kafka_rebalance.playback.driver import Driver

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"op": "nothing"}, ""),
    ({"op": ["join"]}, ""),
    ({"op": "init", "at": "x"}, "TypeError: at: 'x'"),
    ({"op": "init", "chi": 2.5}, "GroupError: group_consumer_heartbeat_interval_ms: 2.5 is not "),
    ({"op": "init", "policy": "no"}, "GroupError: group_consumer_migration_policy: 'no'"),
    ({"op": "advance"}, "KeyError: 'ms'"),
    ({"op": "advance", "ms": -1}, "ValueError: ms: -1 is less than 0"),
    ({"op": "advance", "ms": True}, "TypeError: ms: True"),
    ({"op": "join", "m": 5}, "GroupError: member_id: 5 is not a str"),
    ({"op": "join", "v": "9"}, "TypeError: v: '9'"),
    ({"op": "join", "protos": [["range", 5]]}, "AttributeError: "),
    ({"op": "sync", "asg": {"a": 1}}, "AttributeError: "),
    ({"op": "leave"}, "KeyError: 'members'"),
    ({"op": "leave", "members": [{"m": 7}]}, "GroupError: members: "),
    ({"op": "chb", "epoch": "0"}, "GroupError: member_epoch: '0' is not an int"),
    ({"op": "chb", "topics": [5]}, "GroupError: subscribed_topic_names: (5,)"),
    ({"op": "chb", "owned": {"t": ["0"]}}, "GroupError: topic_partitions: "),
    ({"op": "commit", "off": "1"}, "GroupError: offsets: "),
    ({"op": "topics", "topics": {"t": {"partitions": "1"}}}, "TypeError: topics: "),
    ({"op": "topic_deleted", "p": "0"}, "TypeError: partitions: "),
    ({"op": "sthb", "m": "A", "tags": {"zone": 1}}, "GroupError: client_tags: "),
    ({"op": "raw", "k": "zz"}, "ValueError: "),
    ({"op": "rawend", "pid": 1}, "KeyError: 'commit'"),
    ({"op": "fail_next", "err": "NO_SUCH_ERROR"}, "KeyError: 'NO_SUCH_ERROR'"),
]


@pytest.mark.parametrize(("command", "why"), WRONG, ids=lambda one: str(one)[:40])
def test_a_wrong_command_changes_nothing(command: dict[str, Any], why: str) -> None:
    driver = Driver()
    driver.command({"op": "join", "st": 10_000, "protos": [["range", ""]], "v": 3})
    before = driver.command({"op": "state"})
    answer = driver.command(command)
    assert answer["bad"] == command["op"]
    assert answer.get("why", "").startswith(why)
    after = driver.command({"op": "state"})
    assert before["state"] == after["state"]
    assert before["now"] == after["now"]


def test_members_that_leave() -> None:
    """An absent group is one error of the whole answer; a group has an error for each member."""
    driver = Driver()
    leave = {"op": "leave", "v": 3, "members": [{"m": "nobody"}]}
    assert driver.command(leave)["err"] == "UNKNOWN_MEMBER_ID"
    driver.command({"op": "join", "st": 10_000, "protos": [["range", ""]], "v": 3})
    answer = driver.command(leave)
    assert (answer["err"], answer["members"][0]["err"]) == ("NONE", "UNKNOWN_MEMBER_ID")


@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError])
def test_an_error_inside_the_coordinator_is_raised(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error("inside")

    driver = Driver()
    monkeypatch.setattr(Coordinator, "handle", fails)
    with pytest.raises(error, match="inside"):
        driver.command({"op": "hb", "m": "A", "gen": 1})

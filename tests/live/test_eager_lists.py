# SPDX-License-Identifier: Apache-2.0
"""Java members that list a cooperative and an eager assignor are eager, on a real broker.

A snapshot shows this, and the plan of the next rebalance comes true: owners, gains and rebalances.
A busy member may miss an assignment, which is one rebalance more: the history names such
rebalances.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.broker import Broker, missing_tools

pytest.importorskip("kafka", reason="kafka-python is not installed: pip install -e '.[kafka]'")

import kafka_rebalance as kr
from kafka_rebalance.cli import main
from kafka_rebalance.history.all_groups import rebalance_history
from kafka_rebalance.live import offsets_records
from tests.support.live_members import JavaMembers

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_rebalance.history.recorded import RecordedRebalance

pytestmark = pytest.mark.live

TOPICS = {"orders": 8, "payments": 20}
LISTS = {"both": ["cooperative-sticky", "range"], "one": ["cooperative-sticky"]}
"""Group id -> the assignors that its members list."""


class Moment(NamedTuple):
    """A stable group's contract line, and how many rebalances it needed so far."""

    group: kr.GroupSpec
    rebalances: int


class Live:
    """The two groups on a broker."""

    def __init__(self, server: str, java: JavaMembers, capsys: pytest.CaptureFixture[str]) -> None:
        self._server, self._java, self._capsys = server, java, capsys

    def tell(self, *, add: str | None = None) -> dict[str, Moment]:
        """Adds a member to each group, if one is named; waits, and returns the groups."""
        command: dict[str, Any] = {}
        if add is not None:
            command["add"] = [_member(group_id, add) for group_id in LISTS]
        groups = self._java.tell(**command)
        assert main(["snapshot", "--bootstrap-server", self._server]) == 0
        lines = map(kr.GroupSpec.from_json, self._capsys.readouterr().out.splitlines())
        history = rebalance_history(offsets_records(self._server))
        found = {}
        for line in lines:
            (generation_id,) = {one["generation_id"] for one in groups[line.group_id].values()}
            excess = sum(_excess(row) for row in history if row.group_id == line.group_id)
            found[line.group_id] = Moment(line, generation_id - excess)
        assert set(found) == set(LISTS)
        return found


def _excess(row: RecordedRebalance) -> int:
    """Returns how many rebalances up to this row no leader's answer required: clients were busy."""
    missed = any("had missed generation" in cause.detail for cause in row.causes)
    is_idle = row.cause in ("follow-up", "requested") and not row.moved + row.gained
    return row.gap + (missed or is_idle)


def _member(group_id: str, name: str) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "client_id": f"{group_id}-{name}",
        "assignors": LISTS[group_id],
        "topics": list(TOPICS),
    }


def came_true(plan: kr.RebalancePlan, before: Moment, after: Moment) -> tuple[int, int]:
    """Asserts that a plan came true; returns its rebalances and gains."""
    owned = {m.member_id: set(m.owned_partitions) for m in after.group.members}
    assert {m: set(partitions) for m, partitions in plan.after.items()} == owned
    assert len(plan.rounds) == after.rebalances - before.rebalances
    return len(plan.rounds), plan.moves


def joined(before: Moment, after: Moment) -> kr.RebalancePlan:
    """Returns the plan of the rebalance in which a member joined, with its real id."""
    owned = {m.member_id: m for m in before.group.members}
    members = tuple(owned.get(m.member_id, m.owning()) for m in after.group.members)
    return kr.plan(before.group.edited(members=members))


def test_members_with_both_kinds_are_eager(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = missing_tools()
    if missing:
        pytest.skip(missing)
    with Broker() as broker, JavaMembers(broker.bootstrap_server, tmp_path / "java.log") as java:
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_server) as admin:
            topics = {n: {"num_partitions": p, "replication_factor": 1} for n, p in TOPICS.items()}
            admin.create_topics(topics, wait_for_metadata=True)
        live = Live(broker.bootstrap_server, java, capsys)
        live.tell(add="j1")
        live.tell(add="j2")
        three = live.tell(add="j3")
        four = live.tell(add="j4")
        first = {group_id: four[group_id].group.members[0] for group_id in LISTS}
        for member in first.values():
            java.send(wait=False, close=[member.client_id])
        after = live.tell()

    # A join shows that the members are eager, and that their plan is one rebalance.
    assert three["both"].group.rebalance_protocol == "eager"
    assert four["both"].group.rebalance_protocol == "eager"
    assert three["one"].group.rebalance_protocol != "eager"
    rounds, gains = came_true(joined(three["both"], four["both"]), three["both"], four["both"])
    assert rounds == 1
    assert gains > TOPICS["orders"]
    cooperative = came_true(joined(three["one"], four["one"]), three["one"], four["one"])
    assert cooperative == (2, 7)

    # A member leaves: no id is made up, and the plan is the one that a user gets.
    leaves = {
        group_id: kr.plan(four[group_id].group, None, [f"remove-member={member.member_id}"])
        for group_id, member in first.items()
    }
    assert came_true(leaves["both"], four["both"], after["both"])[0] == 1
    assert [one.kind for one in leaves["both"].rounds] == ["eager"]
    assert came_true(leaves["one"], four["one"], after["one"]) == (1, 7)
    assert leaves["both"].moves > leaves["one"].moves
    # Nobody is new now, so the lists are unknown, except those of members that claim partitions.
    assert after["both"].group.rebalance_protocol is None
    assert after["one"].group.rebalance_protocol == "cooperative"

    # Planned as cooperative, as without the field, these changes would not come true.
    line = json.loads(three["both"].group.to_json())
    del line["rebalance_protocol"]
    unknown = three["both"]._replace(group=kr.GroupSpec.from_dict(line))
    with pytest.raises(AssertionError):
        came_true(joined(unknown, four["both"]), unknown, four["both"])

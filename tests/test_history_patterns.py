# SPDX-License-Identifier: Apache-2.0
"""Patterns of recorded groups, compared with the recording script, and of made-up groups."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_rebalance.cli import main
from kafka_rebalance.history.all_groups import rebalance_history
from kafka_rebalance.history.patterns import Pattern, find_patterns
from kafka_rebalance.history.recorded import BackMember, Cause, RecordedRebalance
from tests.test_history import RELEASES, VECTORS, records_of


def patterns_of(release: str, kind: str, group: str | None = None) -> list[Pattern]:
    found = find_patterns(rebalance_history(records_of(release)))
    return [one for one in found if one.kind == kind and group in (None, one.group_id)]


def actions_of(release: str, group: str) -> list[dict[str, Any]]:
    text = (VECTORS / f"kafka-{release}" / "actions.jsonl").read_text(encoding="utf-8")
    return [one for line in text.splitlines() if (one := json.loads(line))["group"] == group]


def test_two_rolling_restarts_are_found_where_the_script_made_them() -> None:
    """The assignor of `shop` was switched by two rolling restarts of three members."""
    switches = [one for one in actions_of("4.4.0", "shop") if one["action"].startswith("switch")]
    leaves = [one for one in switches if one["action"] == "switch_leave"]
    assert [one["members"] for one in leaves] == 2 * [["shop-1"], ["shop-2"], ["shop-3"]]
    first, second = patterns_of("4.4.0", "rolling", "shop")
    assert first.told == second.told == "3 members restarted one after another, in 6 rebalances"
    assert switches[0]["at_ms"] <= first.first_ms <= first.last_ms <= switches[5]["settled_ms"]
    assert switches[6]["at_ms"] <= second.first_ms <= second.last_ms <= switches[11]["settled_ms"]


def test_a_flapping_client_is_the_one_that_the_script_restarted_most() -> None:
    restarts = [
        one
        for one in actions_of("3.6.2", "shop")
        if one["action"] in ("bounce_quick", "bounce_back", "crash_back", "poll_timeout")
    ]
    assert [one["members"] for one in restarts] == 3 * [["shop-2"]]
    (found,) = patterns_of("3.6.2", "flapping")
    assert (found.group_id, found.told) == ("shop", "shop-2 went and came back 3 times")
    assert len(found.generations) == 3


@pytest.mark.parametrize("release", RELEASES)
def test_candidates_for_static_membership_are_dynamic_members_that_came_back(release: str) -> None:
    """Only members that the script made leave and return are named."""
    for found in patterns_of(release, "new ids"):
        assert found.group_id != "ledger"  # its members are static
        known = actions_of(release, found.group_id)
        restarted = {
            member
            for one in known
            if one["action"].endswith(("_back", "quick")) or one["action"] == "poll_timeout"
            for member in one["members"]
        }
        named = found.told.partition(" came")[0].split(", ")
        assert set(named) <= restarted
        assert "group.instance.id" in found.instead


def test_the_command_prints_only_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(VECTORS / "kafka-3.6.2" / "records.jsonl.gz")
    assert main(["history", path, "--patterns", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = find_patterns(rebalance_history(records_of("3.6.2")))
    assert [(one["group_id"], one["kind"]) for one in lines] == [
        (one.group_id, one.kind) for one in found
    ]
    assert main(["history", path, "--patterns", "--group", "shop"]) == 0
    text = capsys.readouterr().out
    assert "shop: flapping: shop-2 went and came back 3 times" in text
    assert "billing" not in text


def _row(second: int, generation: int, **fields: Any) -> RecordedRebalance:
    time_ms = 1_000_000_000_000 + 1_000 * second
    kinds = fields.pop("causes", ("joined",))
    causes = tuple(Cause(kind) for kind in kinds)
    return RecordedRebalance(
        "g", 0, generation, time_ms, time_ms, generation, causes=causes, **fields
    )


def test_a_storm_is_as_long_as_its_windows_are_full() -> None:
    calm = [_row(3_600 * i, i + 1, members=2) for i in range(20)]
    assert find_patterns(calm) == []
    storm = [_row(80_000 + 30 * i, 21 + i, members=2, causes=("timed out",)) for i in range(30)]
    (found,) = find_patterns([*calm, *storm])
    assert (found.kind, found.generations) == ("storm", tuple(range(21, 51)))
    assert found.told == "30 rebalances in 14.5 minutes: 30 timed out"
    assert "session.timeout.ms" in found.instead
    assert find_patterns([*calm, *storm], storm=21) == []  # a window of 10 minutes has 21
    assert find_patterns([*calm, *storm], storm=20, window_ms=599_000) == []
    assert len(find_patterns([*calm, *storm], storm=20, window_ms=600_000)) == 1


def test_a_storm_is_no_reason_for_static_membership_if_few_members_come_back() -> None:
    for back, advice, spares in ((1, "stop members", 9), (6, "static membership", 12)):
        ids = [BackMember(f"{n}-1", f"{n}-2", str(n), False, 30_000, None) for n in range(10)]
        storm = [
            *(_row(30 * n, n, members=2, causes=("left",), left=(f"{n}-1",)) for n in range(10)),
            *(
                _row(300 + 30 * n, 10 + n, members=9, causes=("rejoined",), back=(ids[n],))
                for n in range(back)
            ),
            *(
                _row(
                    600 + 100 * n,
                    20 + n,
                    members=2,
                    joined=(f"new-{n}",),
                    causes=("resubscription",),
                )
                for n in range(5)
            ),
        ]
        found = next(one for one in find_patterns(storm, storm=10) if one.kind == "storm")
        assert found.instead.startswith(advice)
        assert f"({spares} of these {len(found.generations)} fewer: " in found.instead
        assert found.spares == spares


def test_rounds_that_never_settle() -> None:
    rounds = [_row(5 * i, i, members=3, causes=("second round",)) for i in range(2, 6)]
    (found,) = find_patterns([_row(0, 1, members=3), *rounds])
    assert (found.kind, found.generations) == ("never settles", (2, 3, 4, 5))
    assert find_patterns([_row(0, 1, members=3), *rounds[:3]]) == []


def test_a_member_that_is_never_given_a_partition() -> None:
    def rows(*idle: bool) -> list[RecordedRebalance]:
        first = _row(0, 1, members=3, partitions=2, joined=("a", "b", "c"), idle=("c",))
        return [first] + [
            _row(9_000 * i, i + 1, members=3, partitions=2, idle=("c",) if one else ("b",))
            for i, one in enumerate(idle, 1)
        ]

    (found,) = find_patterns(rows(True, True, True))
    assert (found.kind, found.generations) == ("idle", (1, 2, 3, 4))
    assert found.told == "c had no partition in all of its 4 generations"
    assert found.instead == "fewer members, or more partitions: 2 partitions for 3 members"
    assert find_patterns(rows(True, False, True)) == []


def test_restarts_among_other_causes_are_no_rolling_restart() -> None:
    """In each record in which a member came back, another member joined, too."""
    rows = [
        _row(
            10 * i, i, members=2, causes=("joined", "rejoined"), joined=(f"n{i}",),
            back=(BackMember(f"x{i}", f"y{i}", f"x{i}", False, 500, None),),
        )
        for i in range(1, 4)
    ]  # fmt: skip
    assert find_patterns(rows) == []


def test_the_session_to_set_covers_the_absences() -> None:
    """Absences count from the last commit: of 20 absences of 1 to 20 s, 95% are at most 19 s."""
    rows = [
        _row(
            4_000 * i,
            i,
            members=2,
            causes=("rejoined",),
            back=(BackMember(f"x-{i}", f"x-{i + 1}", "x", False, 500, 1_000 * i),),
        )
        for i in range(1, 21)
    ]
    found = {one.kind: one for one in find_patterns(rows)}
    assert set(found) == {"flapping", "new ids"}
    assert "session.timeout.ms above 19,000 ms" in found["new ids"].instead

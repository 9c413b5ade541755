# SPDX-License-Identifier: Apache-2.0
"""Classic Kafka Streams applications in bulk: rows of contract lines, as objects and as columns."""

import json

import pytest

import kafka_rebalance as kr
from kafka_rebalance.bulk import applications_batch, plan_applications
from tests.support.recorded_applications import recorded_line, stable_numbers

LEFT = 20
SETTINGS = {"acceptable.recovery.lag": 5}


def _line(number: int = LEFT, **fields: object) -> bytes:
    return json.dumps(recorded_line(number) | fields).encode()


def test_an_application_and_its_plan() -> None:
    """The row has the figures that `describe` and `plan` print."""
    (row,) = plan_applications([_line()], ["remove-member=0420"], given=SETTINGS)
    assert row.error is None
    assert row[2:10] == (2, 4, 14, 7, 0, 1, 863, 1795460875093)
    assert (row.moved_tasks, row.probing_rebalances, row.settled_after_ms) == (7, 0, 45_000)
    assert row.restored_records == 837 + 179 + 307


def test_other_groups_have_no_row_and_bad_lines_an_error() -> None:
    other = json.dumps({"group_id": "g", "topics": [], "members": [], "assignor": "range"})
    bad = _line(group_id="bad", application={"members": 1})
    application = recorded_line(LEFT)["application"]
    racks = _line(group_id="racks", application=application | {"brokers": {"0": 5}})
    costs = _line(
        group_id="costs", application=application | {"configs": {"max.warmup.replicas": -1}}
    )
    lines: list[bytes | str] = [other, b"{", "[1]", "\ud800", bad, racks, costs, _line()]
    rows = [*plan_applications(lines, given=SETTINGS)]
    assert [(one.group_id, (one.error or "").partition(": ")[0]) for one in rows] == [
        (None, "line"),
        (None, "line"),
        (None, "line"),
        ("bad", "application.now_ms"),
        ("racks", 'application.brokers["0"]'),
        ("costs", "application.configs.max.warmup.replicas"),
        ("shop", ""),
    ]


def test_end_offsets_that_a_line_lacks_count_as_0() -> None:
    application = recorded_line(LEFT)["application"]
    name, ends = next(iter(application["end_offsets"].items()))
    short = application | {"end_offsets": application["end_offsets"] | {name: ends[:1]}}
    none = application | {"end_offsets": application["end_offsets"] | {name: []}}
    for one in (short, none):
        core, reference = (
            [*plan_applications([_line(application=one)], ["remove-members=1"], engine=engine)]
            for engine in ("rust", "reference")
        )
        assert core == reference


def test_a_replay_that_differs_has_its_state_and_no_plan() -> None:
    (row,) = plan_applications([_line()], given={"num.standby.replicas": 3})
    assert row.error is not None
    assert "played again, differs" in row.error
    assert (row.processes, row.moved_tasks) == (2, None)


def test_a_bad_change_is_one_error() -> None:
    with pytest.raises(kr.GroupError, match="changes"):
        [*plan_applications([_line()], ["nothing=1"])]


@pytest.mark.parametrize("given", ["given", "new_settings"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("foo", 1), ("num.standby.replicas", 2**31), ("acceptable.recovery.lag", "9" * 5000)],
)
def test_settings_are_checked_once_for_all_lines(given: str, name: str, value: object) -> None:
    with pytest.raises(kr.GroupError) as raised:
        [*plan_applications([], **{given: {name: value}})]  # type: ignore[arg-type]
    assert raised.value.path == f"{given}.{name}"


def test_columns() -> None:
    lines = [_line(number) for number in stable_numbers()]
    batch = applications_batch(lines, given=SETTINGS)
    rows = [*plan_applications(lines, given=SETTINGS)]
    assert batch.to_pylist() == [one._asdict() for one in rows]
    assert sum(one.error is None for one in rows) > len(rows) / 2

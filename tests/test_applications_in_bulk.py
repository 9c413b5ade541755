# SPDX-License-Identifier: Apache-2.0
"""Classic Kafka Streams applications in bulk: rows of contract lines, as objects and as columns."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kafka_rebalance as kr
from kafka_rebalance.assignors.registry import IN_PLACE_OF_STREAM
from kafka_rebalance.bulk import (
    applications_batch,
    assign_batch,
    assign_lines,
    plan_applications,
)
from tests.support.recorded_applications import recorded_line, stable_numbers

if TYPE_CHECKING:
    from kafka_rebalance.assignors.registry import Engine

VECTORS = Path(__file__).parent / "vectors" / "stream.jsonl.gz"
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
    [("foo", 1), ("num.standby.replicas", 2**31), ("acceptable.recovery.lag", "9" * 5000), (5, 1)],
)
def test_settings_are_checked_once_for_all_lines(given: str, name: str, value: object) -> None:
    with pytest.raises(kr.GroupError) as raised:
        [*plan_applications([], **{given: {name: value}})]  # type: ignore[arg-type]
    assert raised.value.path == f"{given}.{name}"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"assignor": "x"}, "given.assignor"),
        ({"assignor": 5}, "given.assignor"),
        ({"stateful": "12"}, "given.stateful"),
        ({"stateful": [-1]}, "given.stateful"),
        ({"stateful": 5}, "given.stateful"),
    ],
)
def test_what_a_replay_takes_is_checked_too(given: dict[str, object], path: str) -> None:
    with pytest.raises(kr.GroupError) as raised:
        [*plan_applications([], given=given)]
    assert raised.value.path == path


def test_columns() -> None:
    lines = [_line(number) for number in stable_numbers()]
    batch = applications_batch(lines, given=SETTINGS)
    rows = [*plan_applications(lines, given=SETTINGS)]
    assert batch.to_pylist() == [one._asdict() for one in rows]
    assert sum(one.error is None for one in rows) > len(rows) / 2


# What the leader answers --------------------------------------------------------------------------


def test_lines_have_the_present_assignment(engine: Engine) -> None:
    """The last call is played again; of 27 lines, 2 lack topics that are withheld."""
    numbers = stable_numbers()
    answers = assign_lines([_line(number) for number in numbers], engine=engine)
    assert sum(one.is_error for one in answers) == 2
    for number, answer in zip(numbers, answers, strict=True):
        if not answer.is_error:
            told = json.loads(answer.line)
            assigned = recorded_line(number)["application"]["assigned"]
            assert told["assignment"] == {name: one["partitions"] for name, one in assigned.items()}
            tasks = {name: [*one["standby_tasks"]] for name, one in assigned.items()}
            standby = {
                name: ["_".join(map(str, t)) for t in of] for name, of in told["standby"].items()
            }
            assert {name: sorted(of) for name, of in standby.items()} == {
                name: sorted(of) for name, of in tasks.items()
            }


def test_a_line_with_the_whole_input_of_a_leader(engine: Engine) -> None:
    """The cases of the vectors, answered by Kafka's class, as lines."""
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        vectors = [json.loads(line) for line in file][::20]
    lines = [
        json.dumps(
            {
                "group_id": one["case"]["application_id"],
                "assignor": "stream",
                "topics": [],
                "members": [
                    {"member_id": member["member_id"], "topics": []}
                    for member in one["case"]["members"]
                ],
                "application": one["case"],
            }
        ).encode()
        for one in vectors
    ]
    for one, answer in zip(vectors, assign_lines(lines, engine=engine), strict=True):
        expected = {name: of["partitions"] for name, of in one["expected"]["members"].items()}
        assert json.loads(answer.line)["assignment"] == expected


def _columns(numbers: list[int], **fields: Any) -> pa.RecordBatch:
    rows = []
    for number in numbers:
        line = recorded_line(number)
        group = kr.GroupSpec.from_dict(line).to_dict()
        rows.append({**group, "application": json.dumps(line["application"]), **fields})
    return pa.RecordBatch.from_pylist(rows)


def test_columns_have_the_answers_of_lines() -> None:
    """The column `application` is the field of a line, as JSON text."""
    numbers = stable_numbers()
    rows = assign_batch(_columns(numbers)).to_pylist()
    for row, answer in zip(rows, assign_lines([_line(n) for n in numbers]), strict=True):
        told = json.loads(answer.line)
        assert row["error"] == told.get("error")
        for name in ("assignment", "standby"):
            found = row[name] and {
                one["member_id"]: [
                    [r["topic"], p] for r in one["partitions"] for p in r["partitions"]
                ]
                for one in row[name]
            }
            assert found == told.get(name)


def test_a_group_without_the_field_is_an_error_in_lines_and_columns() -> None:
    problem = 'assignor: "stream" is Kafka Streams\' own assignor, which no setting replaces; '
    problem += IN_PLACE_OF_STREAM
    assert json.loads(assign_lines([_line(application=None)])[0].line)["error"] == problem
    assert assign_batch(_columns([LEFT], application=None)).to_pylist()[0]["error"] == problem
    for bad in ("{", "[1]", "1"):
        row = assign_batch(_columns([LEFT], application=bad)).to_pylist()[0]
        assert row["error"] is not None
        assert row["error"].startswith("application: ")
        assert row["error_kind"] == "group"

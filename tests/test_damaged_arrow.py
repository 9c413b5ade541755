# SPDX-License-Identifier: Apache-2.0
"""Arrow data with offsets or views that point anywhere: an error names the column, nothing crashes.

pyarrow reads an IPC stream without a check of its buffers. The damaged batches are answered in a
process of their own, so that a crash fails one test.

    python -m tests.test_damaged_arrow string     counts the damaged batches by answer
"""

from __future__ import annotations

import ast
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

from kafka_rebalance import _core
from kafka_rebalance.bulk import assign_batch, compare_batch, plan_batch

GROUP = {
    "group_id": "the id of a group",
    "topics": [{"name": "the name of a topic", "partitions": 3, "racks": [["a"], ["b"], ["c"]]}],
    "members": [
        {
            "member_id": f"the id of the {which} member",
            "topics": ["the name of a topic"],
            "owned_partitions": [{"topic": "the name of a topic", "partitions": [0, 2]}],
        }
        for which in ("first", "second")
    ],
}
TEXTS = {"string": pa.string(), "large_string": pa.large_string(), "view": pa.string_view()}
VALUES = (-1, 1, 255, 1_900_000_000)
CALLS: dict[str, Callable[[pa.RecordBatch], object]] = {
    "assign": lambda batch: assign_batch(batch, "range"),
    "plan": lambda batch: plan_batch(pa.Table.from_batches([batch]), "sticky", []),
    "compare": lambda batch: compare_batch(
        pa.RecordBatchReader.from_batches(batch.schema, [batch])
    ).read_all(),
}


def stream(text: pa.DataType) -> tuple[bytes, int]:
    """Returns an IPC stream of three groups, and the place of its first buffer."""
    columns = {name: pa.array([value] * 3) for name, value in GROUP.items()}
    batch = pa.record_batch({n: one.cast(_with(one.type, text)) for n, one in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written = sink.getvalue()
    messages = pa.ipc.MessageReader.open_stream(written)
    messages.read_next_message()
    return written.to_pybytes(), messages.read_next_message().body.address - written.address


def _with(found: pa.DataType, text: pa.DataType) -> pa.DataType:
    if pa.types.is_list(found):
        return pa.list_(_with(found.value_type, text))
    if pa.types.is_struct(found):
        return pa.struct([(one.name, _with(one.type, text)) for one in found.fields])
    return text if pa.types.is_string(found) else found


def read(raw: bytes | bytearray) -> pa.RecordBatch:
    return pa.ipc.open_stream(bytes(raw)).read_next_batch()


def main() -> None:
    """Changes every number of the buffers, one at a time, and requests the answers."""
    honest, start = stream(TEXTS[sys.argv[1]])
    met: Counter[str] = Counter()
    for at in range(start, len(honest) - 8, 4):
        for value in VALUES:
            raw = bytearray(honest)
            raw[at : at + 4] = struct.pack("<i", value)
            for name, call in CALLS.items():
                try:
                    call(read(raw))
                    met[f"{name}: answered"] += 1
                except ValueError as error:
                    told = "refused" if "damaged Arrow data: " in str(error) else str(error)
                    met[f"{name}: {told}"] += 1
    print(dict(met))


@pytest.mark.parametrize("text", TEXTS)
def test_a_damaged_stream_never_crashes(text: str) -> None:
    command = [sys.executable, "-m", "tests.test_damaged_arrow", text]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    met = ast.literal_eval(ran.stdout)
    assert {*met} == {f"{name}: {what}" for name in CALLS for what in ("answered", "refused")}


@pytest.mark.parametrize(
    ("found", "place", "value", "column"),
    [
        (pa.array(["g0", "g1"]), 1, 1_900_000_000, "group_id"),
        (pa.array(["g0", "g1"], pa.large_string()), 1, 77, "group_id"),
        (pa.array(["an id of a group"] * 2, pa.string_view()), 2, 7, "group_id"),
        (pa.array(["an id of a group"] * 2, pa.string_view()), 3, -7, "group_id"),
    ],
)
def test_the_error_names_the_column(found: pa.Array, place: int, value: int, column: str) -> None:
    nulls, changed, *others = found.buffers()
    width = 8 if found.type == pa.large_string() else 4
    numbers = bytearray(changed.to_pybytes())
    numbers[place * width : (place + 1) * width] = value.to_bytes(width, "little", signed=True)
    buffers = [nulls, pa.py_buffer(bytes(numbers)), *others]
    lists = {name: pa.array([GROUP[name]] * 2) for name in ("topics", "members")}
    ids = pa.Array.from_buffers(found.type, len(found), buffers)
    batch = pa.record_batch({"group_id": ids, **lists})
    with pytest.raises(ValueError, match=f"{column}.*read or write the data again"):
        assign_batch(batch, "range")


def test_an_offset_behind_the_buffer_is_found_by_pyarrow() -> None:
    honest, _ = stream(pa.string())
    offsets = struct.pack("<4i", 0, 17, 34, 51)
    lying = honest.replace(offsets, struct.pack("<4i", 0, 17, 34, 5_000))
    assert lying != honest
    with pytest.raises(ValueError, match=r"In column 0: .*offsets .5000. larger than"):
        assign_batch(read(lying), "range")


def test_damaged_records_and_topics_are_errors_too() -> None:
    keys = pa.array([b"key", b"key"])
    nulls, _, data = keys.buffers()
    lying = pa.py_buffer(struct.pack("<3i", 0, 1_900_000_000, 6))
    bad = pa.Array.from_buffers(keys.type, 2, [nulls, lying, data])
    batch = pa.record_batch({"key": bad, "value": keys})
    for call in (
        _core.commits_from_records,
        lambda batch: _core.groups_from_records(batch, _core.TopicInventory(_topics())),
        _core.TopicInventory,
    ):
        with pytest.raises(ValueError, match="key: damaged Arrow data"):
            call(batch)


def _topics() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"name": "t", "partitions": 1}])


if __name__ == "__main__":
    main()

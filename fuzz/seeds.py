# SPDX-License-Identifier: Apache-2.0
"""Writes first inputs for the fuzzers into `corpus/`: small vectors, and encoded messages.

../.venv/bin/python seeds.py [DIRECTORY]
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pyarrow as pa

from kafka_rebalance import TopicPartition
from kafka_rebalance.wire import consumer_protocol as wire

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent / "tests" / "vectors"
OWNED = (TopicPartition("t", 0), TopicPartition("é", 7), TopicPartition("t", 1))
MOST_BYTES = 1_500


def lines() -> list[bytes]:
    """Returns the first 40 small cases of every vector file."""
    seeds = []
    for path in sorted(VECTORS.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            cases = (json.dumps(json.loads(line)["case"], ensure_ascii=False) for line in file)
            seeds += [case.encode() for case in cases if len(case) < MOST_BYTES][:40]
    return seeds


def streams() -> list[bytes]:
    """Returns Arrow streams of the small lines, two groups in each."""
    groups = [case for case in map(json.loads, lines()) if "topics" in case]
    batches = [pa.RecordBatch.from_pylist(groups[at : at + 2]) for at in range(0, len(groups), 2)]
    seeds = []
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        seeds.append(sink.getvalue().to_pybytes())
    return seeds


def messages() -> dict[str, list[bytes]]:
    """Returns the first inputs for each fuzz target, by its name."""
    user_data = [None, b"", wire.encode_sticky_user_data(OWNED, 3)]
    return {
        "assign_line": lines(),
        "arrow_stream": streams(),
        "decode_subscription": [
            wire.encode_subscription(wire.Subscription(("t", "é"), data, OWNED, 3, "r", version))
            for version in range(4)
            for data in user_data
        ],
        "decode_assignment": [
            wire.encode_assignment(wire.AssignmentData(OWNED, data, version))
            for version in range(4)
            for data in user_data
        ],
        "decode_user_data": [
            wire.encode_sticky_user_data(OWNED, 3),
            wire.encode_sticky_user_data(OWNED, 3)[:-4],
            wire.encode_cooperative_user_data(-1),
        ],
    }


def main() -> None:
    corpus = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus"
    for target, seeds in messages().items():
        (corpus / target).mkdir(parents=True, exist_ok=True)
        for n, seed in enumerate(seeds):
            (corpus / target / f"seed-{n:03d}").write_bytes(seed)


if __name__ == "__main__":
    main()
